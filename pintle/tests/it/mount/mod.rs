//! A server in a server.

#[cfg(feature = "server")]
mod calls;
#[cfg(feature = "server")]
mod changes;
#[cfg(feature = "http-server")]
mod http;
#[cfg(feature = "server")]
mod names;
#[cfg(feature = "server")]
mod order;
