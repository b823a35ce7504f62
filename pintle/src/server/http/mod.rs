//! Serving over HTTP: the parts that any framework can use, and a server around them.
//!
//! [`Http`] is a `tower` service that serves every revision on one path. Mount it in the framework of your choice.

mod choice;
mod edge;
mod follow;
mod frame;
mod node_events;
mod node_link;
mod origin;
mod post;
mod request_cx;
mod rights;
mod serve;
mod service;
mod session;
mod settings;
mod shared;
mod shutdown;
mod stateless;
mod take_over;

pub use self::edge::acceptor::Shutdown;
pub use self::edge::body::{BodyLimits, ReadBodyError, read_body};
pub use self::edge::cors::{Cors, CorsFuture, CorsService};
pub use self::edge::incoming::{BodyError, RequestBody};
pub use self::edge::response::Body;
pub use self::edge::server::{HttpServer, HttpServing, PlainTcp};
pub use self::edge::shutdown_signal::ShutdownSignal;
pub use self::edge::tls_socket::TlsSocket;
pub use self::service::Http;
pub use self::session::{log, nodes};
pub use self::shutdown::Drained;
