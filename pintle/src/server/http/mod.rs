//! Serving over HTTP: the parts that any framework can use, and a server around them.

mod body;
pub mod log;

pub use body::{Patience, Unread, read_body};
