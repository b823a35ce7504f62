//! The server over HTTP, apart from its sessions.

#[cfg(feature = "http-server")]
mod choice;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod connection_reuse;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod cut_connections;
#[cfg(feature = "http-server")]
mod detached;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod disconnects;
#[cfg(feature = "http2")]
mod hostile_http2;
#[cfg(feature = "http-server")]
mod modes;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod mounted;
#[cfg(feature = "http-server")]
mod overload;
#[cfg(feature = "http-server")]
mod refusals;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod restart;
#[cfg(feature = "http-server")]
mod rights;
#[cfg(feature = "http-server")]
mod serve;
#[cfg(feature = "http-server")]
mod shutdown;
#[cfg(feature = "http-server")]
mod slow_readers;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod soak;
#[cfg(feature = "http-server")]
mod stateless;
