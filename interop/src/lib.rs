//! Pintle's side of `cargo xtask interop`: a server for the clients of other SDKs, a client for their servers. And both of
//! its sides with an authorization server of somebody else's: `cargo xtask login`.
//!
//! Every server of the matrix, in whatever language, offers the same; every client asks for the same. `README.md` beside
//! this crate has the list.

pub mod client;
pub mod login;
pub mod server;
mod wrong;

pub use wrong::Wrong;
