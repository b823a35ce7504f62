//! Tasks, as conversations: one tool, run plainly and as a task, in every era and over every transport.
//! A file that is not named here fails `cargo xtask tidy`.
#![allow(
    missing_docs,
    clippy::needless_pass_by_value,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "clippy's exemption for tests does not reach their helpers"
)]

mod answers;
mod client;
mod limits;
mod many;
mod mounted;
mod ownership;
mod restart;
mod same_tool;
mod shared;
mod support;
mod wire;
