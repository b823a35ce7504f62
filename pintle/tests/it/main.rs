//! One binary for all integration tests; a file that is not named here fails `cargo xtask tidy`.
#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "clippy's exemption for tests does not reach their helpers"
)]

mod client_calls;
mod client_changes;
mod client_group;
mod client_opening;
mod client_policy;
mod client_questions;
mod client_robustness;
mod client_world;
mod raw;
mod server_both_eras;
mod transport_child;
mod transport_helper;
mod transport_kit;
mod transport_record;
mod transport_socket;
mod transport_stdio;
mod transport_verbs;
