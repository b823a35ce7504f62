//! Clients that log in and servers that check, with the authorization server of the test kit.
#![allow(
    missing_docs,
    clippy::needless_pass_by_value,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "clippy's exemption for tests does not reach their helpers"
)]

mod attacked;
mod authorization_server;
mod bound;
mod bound_token;
mod device;
mod door;
mod dpop;
mod expired_token;
mod first_use;
mod kept;
mod login;
mod loopback;
mod machine;
mod more_rights;
mod notes;
mod properties;
mod refresh;
mod refused;
mod requires;
mod rotated_keys;
mod step_up;
mod vault;
mod world;
