//! What the guide and the examples promise.

#[cfg(all(feature = "client", feature = "server"))]
mod errors;
#[cfg(all(unix, feature = "child", feature = "client", feature = "macros", feature = "stdio"))]
mod examples;
#[cfg(all(unix, feature = "child", feature = "http-client", feature = "http-server"))]
mod http;
mod running;
