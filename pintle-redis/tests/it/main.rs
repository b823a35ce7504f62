//! One binary for all integration tests; a file that is not named here fails `cargo xtask tidy`.
#![allow(
    missing_docs,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "clippy's exemption for tests does not reach their helpers"
)]

mod acts;
mod chaos;
mod clocks;
mod cluster;
mod costs;
mod cuts;
mod example;
mod faults;
mod formats;
mod hostile_nodes;
mod kits;
mod limits;
mod outages;
mod prefixes;
mod sentinel;
#[path = "../../../pintle/tests/it/support/subscriber.rs"]
mod subscriber;
mod support;
mod task_process;
mod tasks;
#[cfg(feature = "tls")]
mod tls;
mod unreachable;

use support::{cut_link, redis_folder, redis_server, scripted_redis};
