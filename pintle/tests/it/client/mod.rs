//! The client, connected to a server that the test plays.

#[cfg(feature = "client")]
mod calls;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod changed_roots;
#[cfg(feature = "client")]
mod changes;
#[cfg(all(unix, feature = "client", feature = "child"))]
mod child;
#[cfg(all(feature = "client", feature = "server"))]
mod extensions;
#[cfg(feature = "client")]
mod layers;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod layers_over_transports;
#[cfg(feature = "client")]
mod limits;
#[cfg(feature = "client")]
mod opening;
#[cfg(feature = "client")]
mod output_checks;
#[cfg(all(feature = "client", feature = "server"))]
mod oversized;
#[cfg(feature = "client")]
mod own_handlers;
#[cfg(feature = "client")]
mod policy;
#[cfg(feature = "client")]
mod questions;
#[cfg(feature = "client")]
mod retries;
#[cfg(feature = "client")]
mod robustness;
#[cfg(all(feature = "client", feature = "server"))]
mod with_server;
