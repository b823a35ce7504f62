//! Transports, each by itself.

#[cfg(all(unix, feature = "child"))]
mod child;
mod kit;
#[cfg(feature = "net")]
mod socket;
#[cfg(all(unix, feature = "child", feature = "stdio"))]
mod stdio;
