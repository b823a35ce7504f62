use bytes::{Buf, Bytes};
use pintle_types::{Frame, Malformed};

use crate::server::reading::{parse, parse_text, utf8};

/// What is in a body.
#[derive(Debug)]
pub(in crate::server::http) enum Content {
    /// Bytes, as they came in one piece.
    Bytes(Bytes),
    /// Several pieces that were joined and are UTF-8.
    Text(String),
}

impl Content {
    /// Reads the message, or the batch of at most `most` messages.
    pub(in crate::server::http) fn parse(self, most: usize) -> Result<Frame, Box<Malformed>> {
        match self {
            Self::Text(text) => parse_text(text, most),
            Self::Bytes(bytes) => parse(bytes, most),
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

/// The pieces of a body so far: the only one as it came, or all of them joined.
#[derive(Default)]
pub(super) struct Pieces {
    only: Bytes,
    /// Checked piece by piece while they are joined: they are in the cache, and the joined text needs no second look.
    text: String,
    /// What is not text, and all behind it: most often the beginning of a character whose rest is in the next piece.
    rest: Vec<u8>,
}

/// The most that is reserved on the word of the sender alone.
const TRUSTED: u64 = 2 << 20;

impl Pieces {
    pub(in crate::server::http) fn len(&self) -> usize {
        self.only.len() + self.text.len() + self.rest.len()
    }

    /// Adds a piece; at least `more` bytes will follow it.
    pub(in crate::server::http) fn add(&mut self, mut data: impl Buf, more: u64) {
        // One that more will follow is copied at once: whoever reads them can use its memory for the next one.
        if self.len() == 0 && more == 0 {
            self.only = data.copy_to_bytes(data.remaining());
            return;
        }
        if self.text.is_empty() && self.rest.is_empty() {
            let more = usize::try_from(more.min(TRUSTED)).unwrap_or(0);
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
        let (whole, begun) = bytes.split_at(bytes.len() - begun(bytes));
        match utf8(whole) {
            Some(text) => {
                self.text.push_str(text);
                self.rest.extend_from_slice(begun);
            }
            None => self.rest.extend_from_slice(bytes),
        }
    }

    pub(in crate::server::http) fn done(mut self) -> Content {
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

/// How many bytes at the end are the beginning of a character.
fn begun(bytes: &[u8]) -> usize {
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
        let mut taken = Pieces::default();
        pieces.iter().for_each(|piece| taken.add(*piece, 1));
        taken.done()
    }

    #[test]
    fn a_text_is_joined_wherever_it_was_cut() {
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
    fn what_is_no_text_stays_as_it_was() {
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
