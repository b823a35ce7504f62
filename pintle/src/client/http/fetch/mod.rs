//! Requests, with what each is sent with and how often.

mod auth;
mod requests;
mod retry;
mod wire;

pub use auth::{Auth, Bearer, Challenge, Outgoing};
pub use requests::Requests;
pub use retry::Retry;

pub(super) use auth::AnyAuth;
pub(super) use wire::{Ask, Wire, cause, drain};
