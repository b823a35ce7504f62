//! Conversations through a relay, compared with those without it.

mod both_eras;
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
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod push_streams;
#[cfg(feature = "http-server")]
mod restored;
mod scripted;
mod sessions;
mod several;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod stream_pauses;
mod tasks;
mod translated;
pub(crate) mod world;
