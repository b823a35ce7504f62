//! The spans of requests that the engine answers.

use pintle_proto::server::Inbound;

use super::StreamConnection;
use crate::telemetry::{AnsweredRequests, ConnectionFacts, ReceivedRequests};

impl StreamConnection {
    /// Creates the spans of the requests of a message that no handler answers.
    pub(super) fn record_spans(&self, received: ReceivedRequests, inbound: &Inbound) {
        let mut answered = AnsweredRequests::default();
        add(&mut answered, inbound);
        let facts = ConnectionFacts {
            revision: self.engine.peer().map(|peer| peer.revision),
            session: None,
            transport: self.context.transport(),
        };
        drop(received.spans(facts, &answered));
    }
}

fn add(answered: &mut AnsweredRequests, inbound: &Inbound) {
    match inbound {
        Inbound::Call(call) => answered.add_call(call.id()),
        Inbound::Listen(listen) => answered.add_call(listen.call.id()),
        Inbound::Reply(response) => answered.add_response(response),
        Inbound::BatchReply(bytes) => answered.add_bytes(bytes),
        Inbound::Many(several) => several.iter().for_each(|inbound| add(answered, inbound)),
        Inbound::Answer(_) | Inbound::Cancel(_) | Inbound::Notify(..) | Inbound::Ignore(_) => {}
    }
}
