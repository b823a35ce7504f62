//! Serving over HTTP: the parts that any framework can use, and a server around them.
//!
//! [`Http`] is a `tower` service that serves every revision on one path. Mount it in the framework of your choice.

mod body;
mod calls;
mod channel;
mod choice;
mod connection;
mod content;
mod conversation;
mod cors;
mod detached;
mod driving;
mod exchange;
mod incoming;
mod listen;
pub mod log;
mod origin;
mod post;
mod pulse;
mod quiet;
mod registry;
mod response;
mod rights;
mod serve;
mod service;
mod session;
mod session_id;
mod settings;
mod shutdown;
mod standing;
mod start;
mod stateless;
mod stopping;
pub mod store;
mod table;
#[cfg(feature = "http2")]
mod tasks;
mod two_endpoints;

pub use body::{Patience, Unread, read_body};
pub use cors::{Cors, CorsFuture, CorsService};
pub use incoming::{BodyError, PeerAddress, RequestBody};
pub use response::Body;
pub use serve::{HttpServer, HttpServing, Plain, Shutdown};
pub use service::Http;
pub use shutdown::Drained;
pub use stopping::Stopping;
