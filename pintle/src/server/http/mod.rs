//! Serving over HTTP: the parts that any framework can use, and a server around them.

mod body;
mod connection;
mod cors;
mod incoming;
pub mod log;
mod quiet;
mod serve;
mod stopping;
#[cfg(feature = "http2")]
mod tasks;

pub use body::{Patience, Unread, read_body};
pub use cors::{Cors, CorsFuture, CorsService};
pub use incoming::{BodyError, PeerAddress, RequestBody};
pub use serve::{HttpServer, HttpServing, Plain, Shutdown};
pub use stopping::Stopping;
