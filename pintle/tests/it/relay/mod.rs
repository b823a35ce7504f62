//! Conversations through a relay, compared with those without it.

mod eras;
#[cfg(feature = "http-server")]
mod headers;
mod parked;
mod world;
