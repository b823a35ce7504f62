//! Clients that log in, against a server and an authorization server in memory.
#![allow(
    missing_docs,
    clippy::needless_pass_by_value,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "clippy's exemption for tests does not reach their helpers"
)]

mod authorization_server;
mod device;
mod dpop;
mod kept;
mod login;
mod loopback;
mod machine;
mod refresh;
mod refused;
mod step_up;
mod world;
