//! The transport: what is sent and received over several HTTP requests, as one connection.

mod connection;
mod exchange;
mod future_set;
mod header_cache;
mod http_sse;
mod session;
mod session_stream;
mod stream;
mod wake_set;

pub(super) use connection::HttpConnection;
