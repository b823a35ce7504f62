//! From bytes to messages.

use std::{hint::black_box, sync::Once};

use bytes::Bytes;
use pintle_types::{Frame, Malformed};

/// Reads the message, or the batch of at most `most` messages.
pub(crate) fn parse(bytes: Bytes, most: usize) -> Result<Frame, Box<Malformed>> {
    if bytes.len() >= LONG
        && let Some(text) = utf8(&bytes)
    {
        let text = text.to_owned();
        // What is decoded next takes its place.
        drop(bytes);
        return parse_text(text, most);
    }
    Frame::parse(&bytes, most)
}

/// The same, from text that becomes the message.
pub(crate) fn parse_text(text: String, most: usize) -> Result<Frame, Box<Malformed>> {
    static SHOWN: Once = Once::new();
    if text.len() >= LONG {
        SHOWN.call_once(show_a_large_block);
    }
    Frame::parse_text(text, most)
}

/// Bytes as text, if they are.
///
/// Of 1 MiB with some characters beyond ASCII in each line, std takes 365 µs and this 85.
pub(crate) fn utf8(bytes: &[u8]) -> Option<&str> {
    simdutf8::basic::from_utf8(bytes).ok()
}

/// From this size on a message is read as a long one: see [`Frame::parse_text`].
const LONG: usize = 8 << 10;

/// Lets the allocator see a large block come and go, without touching it: two system calls, once.
///
/// glibc gives the end of its heap back to the system as soon as 128 KB are free there, and each long message takes that
/// memory again page by page: 30 to 50 faults for 64 KiB, 700 for 1 MiB. Once it has seen a large block it keeps twice as
/// much as that. (Measured: 120 µs instead of 195 for 64 KiB over HTTP, one at a time.) To other allocators this is nothing.
fn show_a_large_block() {
    drop(black_box(Vec::<u8>::with_capacity(LARGE_BLOCK)));
}

/// What is kept is never more than was used before.
const LARGE_BLOCK: usize = 4 << 20;
