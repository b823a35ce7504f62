//! Server-sent events, both directions: [`Frame`] writes them, [`Decoder`] reads them.

mod decode;
mod encode;

pub use decode::{Decoder, Event, Fault, Limits};
pub use encode::{BadFrame, Frame, KEEP_ALIVE};
