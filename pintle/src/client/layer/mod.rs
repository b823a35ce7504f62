//! Layers around the messages of a client.

mod cx;
mod next;

pub use cx::Cx;
pub use next::{Next, around};

pub(in crate::client) use cx::{CxOrigin, LayerFuture};
