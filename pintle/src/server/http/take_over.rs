//! Going on with the recorded call of a process that is gone.

use std::sync::Arc;

use bytes::Bytes;
use pintle_proto::server::Inbound;
use pintle_types::{Frame, Message, RequestId, Response, RpcError, method};
use serde_json::json;

use super::{
    session::{
        Session,
        exchange::Exchange,
        log::{Appended, EventId, EventLog, MissedEvents, Replay},
        nodes::message::{RecordedCall, StreamOpening, decode, encode},
    },
    shared::HttpShared,
};
use crate::server::core::driver::context::RequestContext;

/// The result of going on with a call.
pub(super) enum TakeOver {
    /// This process runs the call, and is the only one that writes its stream, after this event, which it has added.
    Runs(Exchange, EventId, Bytes),
    /// Another process was first.
    Late,
    /// The call is not recorded, or its caller may not make it any more.
    Unrecorded,
    /// The log cannot be reached. The client tries again.
    Failed,
}

/// Runs a call again whose process is gone, over the answers and actions that are recorded. `last` is the newest event of its stream.
///
/// An event takes the next position of the stream: of several processes one succeeds, and the process that was taken for gone writes
/// nothing more, neither events nor what its call does.
pub(super) async fn take_over(
    shared: &Arc<HttpShared>,
    session: &Arc<Session>,
    last: EventId,
    opening: &StreamOpening,
    context: &Arc<RequestContext>,
) -> TakeOver {
    let settings = shared.settings();
    let Some((call, nodes)) = opening.call.as_ref().zip(settings.nodes.as_ref()) else {
        return TakeOver::Unrecorded;
    };
    let snapshot = session.server.snapshot();
    let Ok(frame) = Frame::parse(call.request.get().as_bytes(), 1) else { return TakeOver::Unrecorded };
    if session.check_rights(&snapshot, context, &frame).is_err() {
        return TakeOver::Unrecorded;
    }
    let (log, id) = (&*settings.log, session.id.to_string());
    let newest = EventId { place: last.place + 1, ..last };
    let line = withdrawal(log, &id, last, &nodes.id().to_string()).await;
    let failed = |error| {
        tracing::warn!(%error, "the event log failed: a call whose process is gone was not run again");
        TakeOver::Failed
    };
    match log.append(&id, newest, line.clone()).await {
        Ok(Appended::Done) => {}
        Ok(Appended::Taken | Appended::Gone) => return TakeOver::Late,
        Err(error) => return failed(error),
    }
    // From now on nobody else records anything.
    let recorded = match log.after(&id, newest).await {
        Ok(Replay::Events(MissedEvents { opening, .. })) => decode::<StreamOpening>(&opening),
        Ok(Replay::Gone) => return TakeOver::Late,
        Err(error) => return failed(error),
    };
    let Some(mut recorded) = recorded.filter(|recorded| recorded.owner() == opening.owner()) else {
        return TakeOver::Late;
    };
    recorded.node = nodes.id().to_string();
    match log.describe(&id, newest, encode(&recorded)).await {
        Ok(Appended::Done) => {}
        Ok(Appended::Taken | Appended::Gone) => return TakeOver::Late,
        Err(error) => return failed(error),
    }
    let Some(call) = recorded.call else { return TakeOver::Late };
    tracing::info!("a call whose process is gone is run again");
    let mut exchange = Exchange::new(shared, session, &snapshot, true);
    start(&mut exchange, session, context, frame, &call, recorded.requests.first());
    TakeOver::Runs(exchange, newest, line)
}

fn start(
    exchange: &mut Exchange,
    session: &Session,
    context: &Arc<RequestContext>,
    frame: Frame,
    recorded: &RecordedCall,
    id: Option<&RequestId>,
) {
    let answer = match session.receive(&session.server.snapshot().service, frame) {
        Inbound::Call(call) if call.restore_state(&recorded.state) => return exchange.add(context, call),
        Inbound::Call(call) => {
            session.forget(&call);
            let message = "what the call has done so far was recorded by another version of the server: check its effects before you \
                           call again";
            Response::new(id.cloned(), Err(RpcError::internal(message)))
        }
        Inbound::Reply(answer) => answer,
        _ => {
            Response::new(id.cloned(), Err(RpcError::internal("the call could not be run again: call again")))
        }
    };
    exchange.reply(Message::Response(answer).to_vec());
}

/// Returns the message that withdraws the last question of a stream. If there was none, it names a request that nobody has made, which
/// clients ignore.
async fn withdrawal(log: &dyn EventLog, session: &str, last: EventId, node: &str) -> Bytes {
    let events = match log.after(session, EventId::start(last.stream)).await {
        Ok(Replay::Events(MissedEvents { events, .. })) => events,
        _ => Vec::new(),
    };
    let question = events.iter().rev().find_map(|event| match Frame::parse(&event.data, 1) {
        Ok(Frame::One(Message::Request(request))) => serde_json::to_value(&request.id).ok(),
        _ => None,
    });
    let params = json!({
        "requestId": question.unwrap_or_else(|| node.into()),
        "reason": "the process that asked is gone: what it has no answer to is asked again",
    });
    let withdrawal = json!({"jsonrpc": "2.0", "method": method::NOTIFICATIONS_CANCELLED, "params": params});
    withdrawal.to_string().into()
}
