//! One binary for all integration tests; a file that is not named here fails `cargo xtask tidy`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "clippy's exemption for tests does not reach their helpers"
)]

mod approval;
mod asking;
mod bad_targets;
mod bridge;
mod command;
mod completions;
mod configured;
mod demo;
mod doctor;
mod edit;
mod everywhere;
mod gateway;
#[cfg(target_os = "linux")]
mod hostile;
#[cfg(unix)]
mod http_tools;
mod lint;
mod login;
mod man;
#[cfg(unix)]
mod serve;
mod servers;
#[cfg(target_os = "linux")]
mod shells;
mod support;
mod terminal;
mod tour;
mod traffic;
mod transcripts;
mod watch;
