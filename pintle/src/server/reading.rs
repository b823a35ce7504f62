//! From bytes to messages.

use pintle_types::{Frame, Malformed};

/// Reads the message, or the batch of at most `most` messages.
pub(crate) fn parse(bytes: &[u8], most: usize) -> Result<Frame, Box<Malformed>> {
    if bytes.len() >= LONG
        && let Some(text) = utf8(bytes)
    {
        return Frame::parse_text(text.to_owned(), most);
    }
    Frame::parse(bytes, most)
}

/// Bytes as text, if they are.
///
/// Of 1 MiB with some characters beyond ASCII in each line, std takes 365 µs and this 85.
pub(crate) fn utf8(bytes: &[u8]) -> Option<&str> {
    simdutf8::basic::from_utf8(bytes).ok()
}

/// From this size on a message is read as a long one: see [`Frame::parse_text`].
const LONG: usize = 8 << 10;
