//! OAuth 2.1 for Model Context Protocol clients: log in when a server asks for it, and stay logged in.
//!
//! [`client::OAuth`] is what [`pintle::client::http::Http::auth`] takes.

#[cfg(feature = "client")]
pub mod client;
#[cfg(all(doctest, feature = "client"))]
mod guide;
#[cfg(feature = "testing")]
pub mod testing;
