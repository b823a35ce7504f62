//! Tests of the crate as its users see it.

#![allow(
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    reason = "clippy's exemption for tests does not reach their helpers"
)]

mod config;
mod edit;
mod example;
mod group;
mod model;
