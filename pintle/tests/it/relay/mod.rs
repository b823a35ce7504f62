//! Conversations through a relay, compared with those without it.

mod eras;
#[cfg(feature = "http-server")]
mod headers;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod http;
mod hops;
mod lookup;
mod outage;
mod parked;
mod sessions;
mod translated;
mod world;
