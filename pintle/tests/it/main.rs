//! What the parts do together. One binary: a file that is not named here does not run.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "the helpers of tests are tests")]

#[cfg(all(unix, feature = "child"))]
mod transport_child;
#[cfg(all(unix, feature = "child", feature = "stdio"))]
mod transport_helper;
mod transport_kit;
mod transport_record;
#[cfg(feature = "net")]
mod transport_socket;
#[cfg(all(unix, feature = "child", feature = "stdio"))]
mod transport_stdio;
mod transport_verbs;
