//! The requests of a message that are refused before they are calls.

use pintle_proto::server::Inbound;

use crate::telemetry::{AnsweredRequests, ConnectionFacts, ReceivedRequests};

/// Creates the spans of the requests that the engine refuses.
pub(crate) fn record<'a>(
    received: ReceivedRequests,
    facts: impl FnOnce() -> ConnectionFacts<'a>,
    inbound: &Inbound,
) {
    if received.is_empty() {
        return;
    }
    let mut answered = AnsweredRequests::default();
    add(&mut answered, inbound);
    drop(received.spans(facts(), &answered));
}

fn add(answered: &mut AnsweredRequests, inbound: &Inbound) {
    match inbound {
        // It has a span of its own.
        Inbound::Call(call) => answered.add_call(call.id()),
        Inbound::Listen(listen) => answered.add_call(listen.call.id()),
        Inbound::Reply(response) => answered.add_response(response),
        Inbound::BatchReply(bytes) => answered.add_bytes(bytes),
        Inbound::Many(several) => several.iter().for_each(|inbound| add(answered, inbound)),
        Inbound::Answer(_) | Inbound::Cancel(_) | Inbound::Notify(..) | Inbound::Ignore(_) => {}
    }
}

/// Creates the spans of the requests that are refused with this response.
#[cfg(feature = "http-server")]
pub(crate) fn record_response<'a>(
    received: ReceivedRequests,
    facts: impl FnOnce() -> ConnectionFacts<'a>,
    response: &[u8],
) {
    if received.is_empty() {
        return;
    }
    let mut answered = AnsweredRequests::default();
    answered.add_bytes(response);
    drop(received.spans(facts(), &answered));
}
