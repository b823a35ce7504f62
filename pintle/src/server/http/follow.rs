//! Reading a stream that another process writes.

use std::{sync::Arc, time::Duration};

use pintle_types::{Message, Response, RpcError};

use super::{
    session::{
        channel::Channel,
        log::{Appended, EventId, EventLog, MissedEvents, Replay},
        nodes::message::{MessageBody, StreamOpening, decode},
    },
    shared::HttpShared,
};

/// The interval in which the writer of a stream is asked to go on, and a writer that is gone is found.
const INTERVAL: Duration = Duration::from_secs(5);

/// Sends the events that another process appends to a stream, until it ends. `last` is the last event that was read.
///
/// The log has the events; the writer only notifies this process of them, so nothing is missed or repeated if a notification is
/// lost. If the writer is gone, its calls are answered with an error, once, whichever process finds it.
async fn follow(shared: Arc<HttpShared>, channel: Arc<Channel>, mut last: EventId, opening: StreamOpening) {
    let session = channel.session.id;
    let following = shared.follow(session, last.stream);
    let owner = opening.owner();
    loop {
        let gone = match owner {
            Some(owner) => {
                let follow = MessageBody::Follow { stream: last.stream };
                matches!(shared.send_to_node(owner, session, follow).await, Ok(false))
            }
            // Of a service without a fleet, which is not running.
            None => true,
        };
        loop {
            match shared.settings().log.after(&session.to_string(), last).await {
                Ok(Replay::Events(MissedEvents { events, ended, .. })) => {
                    for event in events {
                        last = event.id;
                        channel.deliver(Some(event.id), event.data).await;
                    }
                    if ended {
                        return channel.over();
                    }
                }
                // The session has ended, or the reader is too slow. It is told when it resumes.
                Ok(Replay::Gone) => return channel.over(),
                Err(error) => tracing::warn!(%error, "the event log failed: a stream waits for it"),
            }
            if gone || following.stream.is_abandoned() {
                let log = &shared.settings().log;
                if end_abandoned(&**log, &session.to_string(), last, &opening).await {
                    continue;
                }
                return channel.over();
            }
            if !following.stream.advance(INTERVAL).await {
                break;
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
    pub(super) fn follow_stream(self: &Arc<Self>, channel: &Arc<Channel>, last: EventId, opening: &[u8]) {
        let opening = decode(opening).unwrap_or_default();
        channel.set_work(Box::pin(follow(self.clone(), channel.clone(), last, opening)));
    }
}
