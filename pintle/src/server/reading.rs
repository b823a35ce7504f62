//! From bytes to messages.

use pintle_types::{Frame, Malformed};

/// Reads a message, or a batch of at most `limit` messages.
pub(crate) fn parse(bytes: &[u8], limit: usize) -> Result<Frame, Box<Malformed>> {
    match utf8(bytes) {
        Some(text) => Frame::parse_str(text, limit),
        None => Frame::parse(bytes, limit),
    }
}

/// Returns bytes as text, if they are UTF-8.
pub(crate) fn utf8(bytes: &[u8]) -> Option<&str> {
    simdutf8::basic::from_utf8(bytes).ok()
}
