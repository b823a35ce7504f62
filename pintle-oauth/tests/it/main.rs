//! Clients that log in and servers that check, with the authorization server of the test kit.
#![allow(
    missing_docs,
    clippy::needless_pass_by_value,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "clippy's exemption for tests does not reach their helpers"
)]

mod authorization_server;
mod canaries;
mod client;
mod example;
mod properties;
mod roundtrip;
mod server;
mod support;
