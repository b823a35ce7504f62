//! Conversations through a relay, compared with those without it.
//! A file that is not named here fails `cargo xtask tidy`.
#![allow(
    missing_docs,
    clippy::needless_pass_by_value,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "clippy's exemption for tests does not reach their helpers"
)]

mod both_eras;
mod changes;
mod eras;
mod extensions;
mod hops;
mod http;
mod limits;
mod lookup;
mod outage;
mod parked;
mod replayed;
mod scripted;
mod sessions;
mod several;
mod support;
mod tasks;
mod translated;
mod world;
