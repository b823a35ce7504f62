//! One binary for all integration tests; a file that is not named here fails `cargo xtask tidy`.
#![allow(missing_docs, reason = "tests")]

mod eras;
mod raw;
mod server_both_eras;
mod server_catalogue;
mod server_completion;
mod server_elicit;
mod server_extensions;
mod server_filters;
mod server_hooks;
mod server_limits;
mod server_sources;
mod server_telling;
