//! Layers around the messages of a client.

mod cx;
mod next;
mod spans;

pub use cx::Cx;
pub use next::{Next, around};

pub(in crate::client) use cx::{CxOrigin, MessageFuture, Perform};
pub(in crate::client) use next::{innermost, result};
pub(in crate::client) use spans::{in_span, question_span, request_span};
