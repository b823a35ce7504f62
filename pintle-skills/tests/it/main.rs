//! One binary for all integration tests; a file that is not named here fails `cargo xtask tidy`.
#![cfg(all(feature = "client", feature = "server"))]
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "clippy's exemption for tests does not reach their helpers"
)]

mod apps;
#[cfg(unix)]
mod examples;
mod folder;
mod gate;
mod reader;
mod support;
