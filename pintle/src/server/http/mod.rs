//! Serving over HTTP: the parts that any framework can use, and a server around them.
//!
//! [`Http`] is a `tower` service that serves every revision on one path. Mount it in the framework of your choice.

mod body;
mod driving;
mod listen;
pub mod log;
mod post;
mod pulse;
mod response;
mod service;
mod settings;
mod stateless;

pub use body::{Patience, Unread, read_body};
pub use response::Body;
pub use service::Http;
