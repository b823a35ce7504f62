//! Sockets, bodies and responses: what is between a byte stream and the service.

pub(super) mod body;
pub(super) mod connection;
pub(super) mod content;
pub(super) mod cors;
pub(super) mod incoming;
pub(super) mod pulse;
pub(super) mod quiet;
pub(super) mod response;
pub(super) mod serve;
pub(super) mod start;
pub(super) mod stopping;
#[cfg(feature = "http2")]
pub(super) mod tasks;
