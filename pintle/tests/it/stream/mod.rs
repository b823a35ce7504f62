//! The server on one byte stream.

#[cfg(feature = "server")]
mod asking;
#[cfg(feature = "server")]
mod backpressure;
#[cfg(feature = "server")]
mod changes;
#[cfg(feature = "server")]
mod closing;
#[cfg(feature = "server")]
mod keepalive;
#[cfg(feature = "server")]
mod known_faults;
#[cfg(all(feature = "http-client", feature = "http-server", feature = "net", unix))]
mod listen;
#[cfg(feature = "server")]
mod load;
#[cfg(feature = "server")]
mod panics;
#[cfg(feature = "server")]
mod pipelining;
#[cfg(all(unix, feature = "child", feature = "stdio", feature = "server"))]
mod stdio_process;
