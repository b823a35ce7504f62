//! Requests, with what each is sent with and how often.

mod auth;
mod client;
mod requests;
mod retry;

pub use auth::{Auth, Bearer, Challenge, Outgoing, OwnedChallenge};
pub use requests::Requests;
pub use retry::Retry;

pub(super) use auth::AnyAuth;
pub(super) use client::{HttpClient, PreparedRequest, cause, drain};
