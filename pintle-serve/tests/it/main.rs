//! Tools of a file, called by clients.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "clippy's exemption for tests does not reach their helpers"
)]

#[cfg(unix)]
mod commands;
#[cfg(unix)]
mod prompts;
#[cfg(unix)]
mod properties;
#[cfg(unix)]
mod questions;
#[cfg(unix)]
mod requests;
#[cfg(unix)]
mod resources;
#[cfg(unix)]
mod workers;
