//! The client over HTTP.

#[cfg(feature = "http-client")]
mod auth;
#[cfg(feature = "http-client")]
mod headers;
#[cfg(feature = "http-client")]
mod limits;
#[cfg(feature = "http-client")]
mod listen;
#[cfg(feature = "http-client")]
mod opening;
#[cfg(feature = "http-client")]
mod own_handlers;
#[cfg(feature = "http-client")]
mod proxy;
#[cfg(feature = "http-client")]
mod redirect;
#[cfg(feature = "http-client")]
mod requests;
#[cfg(feature = "http-client")]
mod resume;
#[cfg(feature = "http-client")]
mod session;
#[cfg(feature = "http-client")]
mod socket;
#[cfg(feature = "http-client")]
mod stateless;
#[cfg(feature = "http-client")]
mod two_endpoints;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod with_server;
