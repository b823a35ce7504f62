use std::collections::HashMap;

use pintle_types::{Message, Response};

/// The batches of one connection whose answers are not all there.
///
/// A batch is split on arrival and nobody further in knows of it; here its answers come together again.
#[derive(Debug, Default)]
pub(super) struct Batches {
    open: HashMap<BatchId, Replies>,
    last: u64,
}

/// A batch in flight.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct BatchId(u64);

#[derive(Debug, Default)]
struct Replies {
    left: usize,
    bytes: Vec<u8>,
}

impl Batches {
    pub(super) fn open(&mut self) -> BatchId {
        self.last += 1;
        let id = BatchId(self.last);
        // One for the batch itself, so that it cannot close while it is still being taken apart.
        self.open.insert(id, Replies { left: 1, bytes: Vec::new() });
        id
    }

    /// One more answer is owed.
    pub(super) fn expect(&mut self, id: BatchId) {
        if let Some(replies) = self.open.get_mut(&id) {
            replies.left += 1;
        }
    }

    /// Adds an answer that was there at once.
    pub(super) fn reply(&mut self, id: BatchId, response: Response) {
        if let Some(replies) = self.open.get_mut(&id) {
            replies.add(&Message::Response(response).to_vec());
        }
    }

    /// One answer fewer is owed: here it is, or there will be none. The whole array if it was the last.
    pub(super) fn settle(&mut self, id: BatchId, answer: Option<&[u8]>) -> Option<Vec<u8>> {
        let replies = self.open.get_mut(&id)?;
        if let Some(answer) = answer {
            replies.add(answer);
        }
        replies.left = replies.left.saturating_sub(1);
        if replies.left > 0 {
            return None;
        }
        let mut bytes = self.open.remove(&id)?.bytes;
        if bytes.is_empty() {
            return None;
        }
        bytes.push(b']');
        Some(bytes)
    }
}

impl Replies {
    fn add(&mut self, answer: &[u8]) {
        self.bytes.push(if self.bytes.is_empty() { b'[' } else { b',' });
        self.bytes.extend_from_slice(answer);
    }
}
