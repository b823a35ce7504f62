//! What a server offers, in every revision.

#[cfg(feature = "server")]
mod asking;
#[cfg(feature = "server")]
mod both_eras;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod client_requests;
#[cfg(feature = "server")]
mod content;
#[cfg(feature = "server")]
mod custom;
#[cfg(feature = "server")]
mod elicit;
#[cfg(feature = "server")]
mod errors;
#[cfg(feature = "server")]
mod extensions;
#[cfg(feature = "server")]
mod features;
#[cfg(feature = "server")]
mod hooks;
#[cfg(feature = "server")]
mod layers;
#[cfg(feature = "server")]
mod limits;
#[cfg(feature = "logging")]
mod logging;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod middleware;
#[cfg(feature = "server")]
mod prompts;
#[cfg(feature = "server")]
mod question_timeouts;
#[cfg(feature = "server")]
mod replay;
#[cfg(feature = "server")]
mod resources;
#[cfg(feature = "server")]
mod sessions;
