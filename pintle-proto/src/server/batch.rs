use std::collections::{HashMap, HashSet};

use pintle_types::{Message, Response};

use super::Ticket;

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
    /// Whether the batch has been taken apart: until then it cannot close.
    split: bool,
    /// The calls whose answers are owed.
    owed: HashSet<Ticket>,
    bytes: Vec<u8>,
}

impl Batches {
    pub(super) fn open(&mut self) -> BatchId {
        self.last += 1;
        let id = BatchId(self.last);
        self.open.insert(id, Replies::default());
        id
    }

    /// One more answer is owed.
    pub(super) fn expect(&mut self, id: BatchId, call: Ticket) {
        if let Some(replies) = self.open.get_mut(&id) {
            replies.owed.insert(call);
        }
    }

    /// Adds an answer that was there at once.
    pub(super) fn reply(&mut self, id: BatchId, response: Response) {
        if let Some(replies) = self.open.get_mut(&id) {
            replies.add(&Message::Response(response).to_vec());
        }
    }

    /// All of the batch has been looked at. The whole array if nothing more is owed.
    pub(super) fn split(&mut self, id: BatchId) -> Option<Vec<u8>> {
        self.open.get_mut(&id)?.split = true;
        self.close(id)
    }

    /// This call's answer is owed no more: here it is, or there will be none. The whole array if it was the last.
    ///
    /// A call that is settled twice (it was through, and then cancelled) counts once.
    pub(super) fn settle(&mut self, id: BatchId, call: Ticket, answer: Option<&[u8]>) -> Option<Vec<u8>> {
        let replies = self.open.get_mut(&id)?;
        if !replies.owed.remove(&call) {
            return None;
        }
        if let Some(answer) = answer {
            replies.add(answer);
        }
        self.close(id)
    }

    fn close(&mut self, id: BatchId) -> Option<Vec<u8>> {
        if self.open.get(&id).is_none_or(|replies| !replies.split || !replies.owed.is_empty()) {
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

#[cfg(test)]
mod tests {
    use pintle_types::{
        Frame,
        schema::{Implementation, ServerCapabilities, ToolsCapability},
    };

    use crate::server::{Arrival, Engine, Inbound, Service};

    #[test]
    fn a_batch_whose_calls_are_forgotten_is_not_kept() {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        let service = Service::new(Implementation::new("s", "0"), capabilities);
        let mut engine = Engine::new_session();
        let receive = |engine: &mut Engine, text: &str| {
            engine.receive(&service, Frame::parse(text.as_bytes(), 8).unwrap(), &Arrival::at(0))
        };
        receive(
            &mut engine,
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26",
                "capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
        );
        let batch = r#"[{"jsonrpc":"2.0","id":2,"method":"ping"},
            {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a"}},
            {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"b"}}]"#;
        let Inbound::Many(several) = receive(&mut engine, batch) else { panic!("it is taken apart") };
        assert_eq!(engine.batches.open.len(), 1);
        for inbound in several {
            if let Inbound::Call(call) = inbound {
                engine.forget(&call);
            }
        }
        assert!(engine.batches.open.is_empty());
    }
}
