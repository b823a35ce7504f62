//! Traces and durations across clients, servers and relays.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "these are tests")]

mod collected;
mod durations;
#[path = "../../examples/telemetry.rs"]
#[allow(dead_code, reason = "its `main` is not run here")]
mod example;
mod export;
mod traces;
