//! One binary for all integration tests; a file that is not named here fails `cargo xtask tidy`.
#![allow(
    missing_docs,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "clippy's exemption for tests does not reach their helpers"
)]

mod files;
mod folder;
mod killed;
mod process;
mod reporting;
mod shared;
mod shared_store;
