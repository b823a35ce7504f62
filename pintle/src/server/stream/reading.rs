//! From bytes to messages.

use std::{hint::black_box, sync::Once};

use pintle_types::{Frame, Malformed};

/// Reads a message, or a batch of at most `limit` messages.
pub(crate) fn parse(bytes: &[u8], limit: usize) -> Result<Frame, Box<Malformed>> {
    prepare_heap(bytes.len());
    match utf8(bytes) {
        Some(text) => Frame::parse_str(text, limit),
        None => Frame::parse(bytes, limit),
    }
}

/// Reads a message, or a batch of at most `limit` messages, from text that becomes that of the message.
#[cfg(feature = "http-server")]
pub(crate) fn parse_string(text: String, limit: usize) -> Result<Frame, Box<Malformed>> {
    prepare_heap(text.len());
    Frame::parse_string(text, limit)
}

/// Returns bytes as text, if they are UTF-8.
pub(crate) fn utf8(bytes: &[u8]) -> Option<&str> {
    simdutf8::basic::from_utf8(bytes).ok()
}

/// Makes the allocator keep memory that the next long message needs again (see `bench/LEDGER.md`).
///
/// glibc returns the end of its heap to the system once 128 KB of it are free, and a long message then faults it in page by page.
/// After it has freed one larger block, it keeps twice the size of that. The block is not touched, so it takes no memory; other
/// allocators are not affected.
fn prepare_heap(message_bytes: usize) {
    const LONG: usize = 8 << 10;
    const BLOCK: usize = 4 << 20;
    static PREPARED: Once = Once::new();
    if message_bytes >= LONG {
        PREPARED.call_once(|| drop(black_box(Vec::<u8>::with_capacity(BLOCK))));
    }
}
