//! Conversations through a relay, compared with those without it.

mod changes;
mod eras;
mod extensions;
#[cfg(feature = "http-server")]
mod headers;
mod hops;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod http;
mod limits;
mod lookup;
mod outage;
mod parked;
mod scripted;
mod sessions;
mod translated;
mod world;
