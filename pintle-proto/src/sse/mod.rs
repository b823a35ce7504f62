//! Server-sent events, both directions: [`Frame`] writes them, [`Decoder`] reads them.

mod decode;
mod encode;

pub use decode::{DecodeError, Decoder, DecoderLimits, Event};
pub use encode::{BadFrame, Frame, KEEP_ALIVE};
