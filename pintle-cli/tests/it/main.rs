//! One binary for all integration tests; a file that is not named here fails `cargo xtask tidy`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "clippy's exemption for tests does not reach their helpers"
)]

mod command;
mod demo;
mod everywhere;
mod support;
mod tour;
mod transcripts;
mod watch;
