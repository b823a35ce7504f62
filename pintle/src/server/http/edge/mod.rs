//! Sockets, bodies and responses: the layer between a byte stream and the service.

pub(super) mod acceptor;
pub(super) mod activity_io;
pub(super) mod body;
pub(super) mod connection;
pub(super) mod content;
pub(super) mod cors;
pub(super) mod idle;
pub(super) mod incoming;
pub(super) mod keep_alive;
pub(super) mod response;
pub(super) mod server;
pub(super) mod shutdown_signal;
#[cfg(feature = "http2")]
mod stream_progress;
#[cfg(feature = "http2")]
pub(super) mod tasks;
pub(super) mod time;
pub(super) mod tls_socket;
