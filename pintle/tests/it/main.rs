//! One binary for all integration tests; a file that is not named here fails `cargo xtask tidy`.
#![allow(
    missing_docs,
    clippy::needless_pass_by_value,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "clippy's exemption for tests does not reach their helpers"
)]

mod catalogue;
mod client;
mod docs;
#[cfg(all(feature = "client", feature = "logging", feature = "server"))]
mod gate;
mod http_client;
mod http_server;
#[cfg(feature = "http-server")]
mod http_session;
mod macros;
mod message_log;
mod mount;
#[cfg(all(feature = "next-revision", feature = "http-client", feature = "http-server"))]
mod next_revision;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod properties;
mod provider;
mod schema;
mod server;
mod stream;
mod support;
#[cfg(all(feature = "client", feature = "server"))]
mod testing_kit;
mod transport;
