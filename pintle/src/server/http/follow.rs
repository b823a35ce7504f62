//! Reading a stream that another process writes.

use std::{sync::Arc, time::Duration};

use pintle_types::{Message, Response, RpcError};

use super::{
    node_link::RETRY,
    session::{
        channel::Channel,
        log::{Appended, EventId, EventLog, MissedEvents, Replay},
        nodes::message::{MessageBody, StreamOpening, decode},
    },
    shared::HttpShared,
    take_over::{TakeOver, take_over},
};
use crate::server::core::driver::context::RequestContext;

/// The interval in which the writer of a stream is asked to go on, and a writer that is gone is found.
const INTERVAL: Duration = Duration::from_secs(5);

/// Sends the events that another process appends to a stream, until it ends. `last` is the last event that was read.
///
/// The log has the events; the writer only notifies this process of them, so nothing is missed or repeated if a notification is
/// lost. If the writer is gone, one process, whichever finds it first, goes on with a call that is recorded, or answers the calls with an
/// error.
async fn follow(
    shared: Arc<HttpShared>,
    channel: Arc<Channel>,
    mut last: EventId,
    mut opening: StreamOpening,
    context: Arc<RequestContext>,
) {
    let session = channel.session.id;
    let log = shared.settings().log.clone();
    'writer: loop {
        let owner = opening.owner();
        let following = shared.follow(session, last.stream, owner);
        loop {
            let mut wait = INTERVAL;
            let gone = match owner {
                Some(owner) => {
                    let follow = MessageBody::Follow { stream: last.stream };
                    shared.send_to_node(owner, session, follow).await.map_or_else(
                        |_| {
                            wait = RETRY;
                            false
                        },
                        |is_there| !is_there,
                    )
                }
                // Of a service without a fleet, which is not running.
                None => true,
            };
            loop {
                match log.after(&session.to_string(), last).await {
                    Ok(Replay::Events(MissedEvents { events, ended, opening: described })) => {
                        for event in events {
                            last = event.id;
                            channel.deliver(Some(event.id), event.data).await;
                        }
                        if ended {
                            return channel.over();
                        }
                        if let Some(described) = decode::<StreamOpening>(&described)
                            && described.owner().is_some()
                        {
                            opening = described;
                            if opening.owner() != owner {
                                continue 'writer;
                            }
                        }
                    }
                    // The session has ended, or the reader is too slow. It is told when it resumes.
                    Ok(Replay::Gone) => return channel.over(),
                    Err(error) => {
                        tracing::warn!(%error, "the event log failed: a stream waits for it");
                        wait = RETRY;
                    }
                }
                if gone || following.stream.is_abandoned() {
                    match take_over(&shared, &channel.session, last, &opening, &context).await {
                        TakeOver::Runs(exchange, newest, line) => {
                            drop(following);
                            channel.deliver(Some(newest), line).await;
                            return exchange.go_on(channel, newest).await;
                        }
                        TakeOver::Late => {
                            // The other one has to be able to say that it goes on.
                            following.stream.advance(RETRY).await;
                            continue;
                        }
                        TakeOver::Failed => return channel.over(),
                        TakeOver::Unrecorded => {}
                    }
                    if end_abandoned(&*log, &session.to_string(), last, &opening).await {
                        continue;
                    }
                    return channel.over();
                }
                if !following.stream.advance(wait).await {
                    break;
                }
            }
        }
    }
}

/// Ends a stream whose writer is gone, with errors for its calls. Returns `false` if it cannot be ended.
async fn end_abandoned(
    log: &dyn EventLog,
    session: &str,
    mut last: EventId,
    opening: &StreamOpening,
) -> bool {
    let error = || {
        RpcError::internal(
            "the process that ran the call is gone; the call may have had effects: check them before you call again",
        )
    };
    let mut requests = opening.requests.iter().peekable();
    while let Some(id) = requests.next() {
        last.place += 1;
        let answer = Message::Response(Response::new(Some(id.clone()), Err(error()))).to_vec().into();
        let appended = match requests.peek() {
            Some(_) => log.append(session, last, answer).await,
            None => log.append_last(session, last, answer).await,
        };
        match appended {
            Ok(Appended::Done) => {}
            // The writer, or another reader, was first.
            Ok(Appended::Taken | Appended::Gone) => return true,
            Err(error) => {
                tracing::warn!(%error, "the event log failed: a stream whose process is gone was not ended");
                return false;
            }
        }
    }
    if opening.requests.is_empty() {
        return log.end(session, last.stream).await.is_ok();
    }
    true
}

impl HttpShared {
    /// Has a channel send the events that another process appends to its stream, after `last`.
    pub(super) fn follow_stream(
        self: &Arc<Self>,
        channel: &Arc<Channel>,
        last: EventId,
        opening: &[u8],
        context: &Arc<RequestContext>,
    ) {
        let opening = decode(opening).unwrap_or_default();
        let following = follow(self.clone(), channel.clone(), last, opening, context.clone());
        channel.set_work(Box::pin(following));
    }
}
