//! Help for tests: an authorization server in the process of the test, and users who log in by themselves.
//!
//! A server that is protected and a client that logs in, over nothing but memory:
//!
//! ```
//! # #[cfg(not(doctest))] {}
//! ```
//!
//! [`AuthorizationServer`] does all that a real one does for a client and a server, says afterwards what it was asked, and
//! does it wrong when it is told to: a [`Fault`], a [`Gate`], another clock. [`Hosts`] is the network that the two are in;
//! [`AuthorizationServer::listen`] is for real sockets. [`User`] is who logs in.
//!
//! What goes wrong here panics: that is the test failing. None of it is safe enough for anything but tests.

mod answer;
mod asked;
mod authorization_server;
mod claims;
mod clients;
mod documents;
mod endpoint;
mod fault;
mod gate;
mod granting;
mod hosts;
mod login;
mod proof;
mod received;
mod state;
mod tokens;
mod user;

pub use asked::Asked;
pub use authorization_server::AuthorizationServer;
pub use claims::Claims;
pub use endpoint::Endpoint;
pub use fault::Fault;
pub use gate::Gate;
pub use hosts::{HostBody, Hosts};
pub use user::User;
