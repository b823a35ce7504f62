use std::collections::{HashMap, HashSet};

use pintle_types::{Message, Response};

use super::Ticket;

/// The batches of one connection that wait for responses.
///
/// A batch is split on arrival and handled as single messages; here its responses are collected again.
#[derive(Debug, Default)]
pub(super) struct Batches {
    open: HashMap<BatchId, Replies>,
    last: u64,
}

/// The id of a batch in flight.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct BatchId(u64);

#[derive(Debug, Default)]
struct Replies {
    /// Whether the batch was split completely: until then it cannot close.
    split: bool,
    /// The calls that were not answered yet.
    pending: HashSet<Ticket>,
    bytes: Vec<u8>,
}

impl Batches {
    pub(super) fn open(&mut self) -> BatchId {
        self.last += 1;
        let id = BatchId(self.last);
        self.open.insert(id, Replies::default());
        id
    }

    /// Adds a call whose response is pending.
    pub(super) fn expect(&mut self, id: BatchId, call: Ticket) {
        if let Some(replies) = self.open.get_mut(&id) {
            replies.pending.insert(call);
        }
    }

    /// Adds a response that needed no handler.
    pub(super) fn reply(&mut self, id: BatchId, response: Response) {
        if let Some(replies) = self.open.get_mut(&id) {
            replies.add(&Message::Response(response).to_vec());
        }
    }

    /// Marks the batch as split completely. Returns the whole array if nothing is pending.
    pub(super) fn split(&mut self, id: BatchId) -> Option<Vec<u8>> {
        self.open.get_mut(&id)?.split = true;
        self.close(id)
    }

    /// Records the response of a call, or that there will be none. Returns the whole array if it was the last.
    ///
    /// A call that is settled twice (it finished, and was then cancelled) counts once.
    pub(super) fn settle(&mut self, id: BatchId, call: Ticket, answer: Option<&[u8]>) -> Option<Vec<u8>> {
        let replies = self.open.get_mut(&id)?;
        if !replies.pending.remove(&call) {
            return None;
        }
        if let Some(answer) = answer {
            replies.add(answer);
        }
        self.close(id)
    }

    fn close(&mut self, id: BatchId) -> Option<Vec<u8>> {
        if self.open.get(&id).is_none_or(|replies| !replies.split || !replies.pending.is_empty()) {
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
