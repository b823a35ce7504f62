use bytes::{Buf, Bytes};
use pintle_types::{Frame, Malformed};

use crate::server::stream::reading::{parse, parse_string, utf8};

/// The content of a request body.
#[derive(Debug)]
pub(in crate::server::http) enum Content {
    /// A body that was received in one chunk.
    Bytes(Bytes),
    /// Several chunks joined, known to be UTF-8.
    Text(String),
}

impl Content {
    /// Parses the message, or a batch of at most `max_messages` messages.
    pub(in crate::server::http) fn parse(self, max_messages: usize) -> Result<Frame, Box<Malformed>> {
        match self {
            Self::Text(text) => parse_string(text, max_messages),
            Self::Bytes(bytes) => parse(&bytes, max_messages),
        }
    }

    pub(in crate::server::http) fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Text(text) => text.as_bytes(),
        }
    }

    pub(super) fn into_bytes(self) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Text(text) => text.into(),
        }
    }
}

/// A buffer for the chunks of a body: a single chunk is kept as it is, several are joined.
#[derive(Default)]
pub(super) struct BodyBuffer {
    only: Bytes,
    /// The joined text. Each chunk is validated as it is appended, while it is in the cache.
    text: String,
    /// The bytes from the first one that is not UTF-8 so far: usually the start of a character that the next chunk
    /// completes.
    rest: Vec<u8>,
}

/// The limit on the bytes that are reserved because of an announced length.
const MAX_RESERVE: u64 = 2 << 20;

impl BodyBuffer {
    pub(in crate::server::http) fn len(&self) -> usize {
        self.only.len() + self.text.len() + self.rest.len()
    }

    /// Adds a chunk that at least `more` bytes will follow.
    pub(in crate::server::http) fn add(&mut self, mut data: impl Buf, more: u64) {
        // A chunk that is not the last is copied at once, so that the reader can reuse its memory for the next one.
        if self.len() == 0 && more == 0 {
            self.only = data.copy_to_bytes(data.remaining());
            return;
        }
        if self.text.is_empty() && self.rest.is_empty() {
            let more = usize::try_from(more.min(MAX_RESERVE)).unwrap_or(0);
            self.text.reserve(self.only.len() + data.remaining() + more);
            let only = std::mem::take(&mut self.only);
            self.join(&only);
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            let length = chunk.len();
            self.join(chunk);
            data.advance(length);
        }
    }

    fn join(&mut self, mut bytes: &[u8]) {
        while (1..4).contains(&self.rest.len())
            && let Some((byte, others)) = bytes.split_first()
        {
            self.rest.push(*byte);
            bytes = others;
            if let Ok(character) = std::str::from_utf8(&self.rest) {
                self.text.push_str(character);
                self.rest.clear();
            }
        }
        if !self.rest.is_empty() {
            return self.rest.extend_from_slice(bytes);
        }
        let (whole, partial) = bytes.split_at(bytes.len() - partial_character(bytes));
        match utf8(whole) {
            Some(text) => {
                self.text.push_str(text);
                self.rest.extend_from_slice(partial);
            }
            None => self.rest.extend_from_slice(bytes),
        }
    }

    pub(in crate::server::http) fn finish(mut self) -> Content {
        if self.text.is_empty() && self.rest.is_empty() {
            Content::Bytes(self.only)
        } else if self.rest.is_empty() {
            Content::Text(self.text)
        } else {
            let mut bytes = self.text.into_bytes();
            bytes.append(&mut self.rest);
            Content::Bytes(bytes.into())
        }
    }
}

/// Returns the length of the incomplete character at the end.
fn partial_character(bytes: &[u8]) -> usize {
    let last = |back: usize| bytes.len().checked_sub(back).and_then(|at| bytes.get(at));
    let begins = |back: &usize| match last(*back) {
        Some(0xc0..=0xdf) => *back < 2,
        Some(0xe0..=0xef) => *back < 3,
        Some(0xf0..=0xff) => *back < 4,
        _ => false,
    };
    (1..=3).find(begins).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(pieces: &[&[u8]]) -> Content {
        let mut buffer = BodyBuffer::default();
        pieces.iter().for_each(|piece| buffer.add(*piece, 1));
        buffer.finish()
    }

    #[test]
    fn text_is_joined_wherever_it_was_split() {
        let text = "aé—\u{1f600}z";
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let bytes = text.as_bytes();
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                let content = joined(&pieces);
                assert!(
                    matches!(&content, Content::Text(joined) if joined == text),
                    "{pieces:?} {content:?}"
                );
            }
        }
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_unchanged() {
        for bytes in [&b"a\xff"[..], b"\xe2\x80", b"\x80\x80\x80\x80\x80", b"\xf0\x9f\x98a\xc3", b"\xc3a\xc3"]
        {
            for cut in 0..=bytes.len() {
                let content = joined(&[&bytes[..cut], &bytes[cut..]]);
                assert!(
                    matches!(&content, Content::Bytes(joined) if joined == bytes),
                    "{bytes:?} {content:?}"
                );
            }
        }
    }
}
