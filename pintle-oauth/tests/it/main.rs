//! Clients that log in, against a server and an authorization server in memory; and servers that check who calls.
#![allow(
    missing_docs,
    clippy::needless_pass_by_value,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "clippy's exemption for tests does not reach their helpers"
)]

mod bound;
mod device;
mod door;
mod dpop;
mod kept;
mod login;
mod loopback;
mod machine;
mod refresh;
mod refused;
mod requires;
mod step_up;
mod vault;
mod world;
