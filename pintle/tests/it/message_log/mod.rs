//! The log of all messages, and what is not in it.

#[cfg(all(feature = "http-client", feature = "http-server", feature = "net", unix))]
mod canaries;
mod lines;
#[cfg(all(feature = "client", feature = "server"))]
mod spans;
#[cfg(all(feature = "http-client", feature = "http-server", feature = "net", unix))]
mod transports;
