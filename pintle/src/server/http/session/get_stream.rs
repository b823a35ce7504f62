//! The GET stream of a session, for messages that belong to no call.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Extensions, Response, StatusCode};
use pintle_proto::http::Refusal;
use pintle_types::RpcError;
use tokio::time::Sleep;

use super::{
    Session,
    channel::{Channel, Position},
    channel_reader::ResumeError,
    log::EventId,
    nodes::message::MessageBody,
    push_queue::Pushed,
};
use crate::server::{
    Authenticated,
    core::driver::context::RequestContext,
    http::{
        Body,
        edge::response::{closed, events_until, overloaded},
        shared::HttpShared,
    },
};

/// Opens a GET stream.
pub(in crate::server::http) async fn open(
    shared: &Arc<HttpShared>,
    session: &Arc<Session>,
    extensions: Extensions,
) -> Response<Body> {
    let (number, outdated) = session.get_stream_number();
    let channel = Channel::new(shared, session, number, false);
    let reader = channel.begin(Bytes::new()).await;
    let end = Authenticated::expiry(&extensions);
    start(&channel, extensions, ());
    announce(shared, session, None);
    if session.is_over() {
        // The session ended, and its events were forgotten, while the stream was opened.
        let _ = shared.settings().log.forget_session(&session.id.to_string()).await;
    }
    if let Some(outdated) = outdated {
        let _ = shared.settings().log.forget_stream(&session.id.to_string(), outdated).await;
    }
    events_until(reader, shared.settings().keep_alive, end)
}

/// Tells the other processes that this one has the newest GET stream.
fn announce(shared: &Arc<HttpShared>, session: &Session, stream: Option<u64>) {
    if let Some(order) = session.own_get_order() {
        shared.notify_others(session.id, MessageBody::Listen { stream, order });
    }
}

/// Resumes the stream of a GET or a POST.
pub(in crate::server::http) async fn resume(
    shared: &Arc<HttpShared>,
    session: &Arc<Session>,
    last: &str,
    context: &Arc<RequestContext>,
) -> Result<Response<Body>, Refusal> {
    let gone = || {
        Refusal::bad_request(RpcError::invalid_request(
            "what followed this `Last-Event-ID` is not kept any more; open a stream without it, and ask again for what you miss",
        ))
    };
    let last = EventId::parse(last).ok_or_else(gone)?;
    let is_get = last.stream.is_multiple_of(2);
    if is_get && shared.calls.is_closed() {
        return Err(closed());
    }
    let mut channel = session.channel(last.stream);
    if let Some(running) = &channel
        && running.has_moved().await
    {
        channel = None;
    }
    let runs = channel.is_some();
    let extensions = context.extensions().clone();
    let end = Authenticated::expiry(&extensions);
    let channel = channel.unwrap_or_else(|| Channel::new(shared, session, last.stream, false));
    // The previous connection of a GET stream is replaced only if the stream can be resumed, but before the log is read, or it
    // would take messages in between.
    let start_if_get = || {
        if is_get {
            start(&channel, extensions, ());
        }
    };
    let resumed = channel.resume(last, start_if_get).await.map_err(|error| match error {
        ResumeError::Gone => gone(),
        ResumeError::Failed => {
            let message = "the events that followed cannot be looked up at the moment: try again later";
            overloaded(StatusCode::SERVICE_UNAVAILABLE, message)
        }
    })?;
    if is_get {
        announce(shared, session, Some(last.stream));
    } else if !resumed.ended && !runs && shared.settings().nodes.is_some() {
        let last = EventId { place: resumed.newest, ..last };
        shared.follow_stream(&channel, last, &resumed.opening, context);
    } else if resumed.ended || !runs {
        // The calls of the POST are over, and the log has all events.
        channel.over();
    }
    Ok(events_until(resumed.reader, shared.settings().keep_alive, end))
}

/// Starts to send the messages of a session on a stream. `held` is dropped with the stream.
pub(in crate::server::http) fn start(
    channel: &Arc<Channel>,
    extensions: Extensions,
    held: impl Send + 'static,
) {
    start_until(channel, extensions, None, held);
}

/// Starts to send the messages of a session on a stream, until `end`. Calls that are answered on it complete, and no others are
/// admitted.
pub(super) fn start_until(
    channel: &Arc<Channel>,
    extensions: Extensions,
    mut end: Option<Pin<Box<Sleep>>>,
    held: impl Send + 'static,
) {
    let guard = GetStreamGuard(channel.clone());
    channel.session.add_get_stream(channel);
    channel.set_work(Box::pin(async move {
        let _held = held;
        let channel = &guard.0;
        let mut next = |task: &mut Context<'_>| {
            if end.as_mut().is_some_and(|end| end.as_mut().poll(task).is_ready()) {
                channel.close();
                return Poll::Ready(Pushed::End);
            }
            channel.session.poll_push(channel, &extensions, task)
        };
        loop {
            let line = match poll_fn(&mut next).await {
                Pushed::Message(line) => line,
                Pushed::Behind => {
                    let _ = channel.catch_up().await;
                    continue;
                }
                Pushed::End => break,
            };
            let message = UnrecordedMessage { session: &channel.session, line: Some(line.clone()) };
            let id = channel.record(&line, Position::Next).await;
            if !channel.session.is_replaced(channel) {
                message.sent();
                channel.deliver(id, line).await;
            } else if id.is_some_and(EventId::can_be_logged) && channel.session.hand_over(channel) {
                // The stream was resumed meanwhile, and the new connection reads the message from the log.
                message.sent();
            }
        }
        // Calls that are answered on this stream complete.
        channel.until_no_producers().await;
        channel.over();
    }));
}

/// A message that a GET stream has taken and that is not logged yet. On drop it is put back for the next stream.
struct UnrecordedMessage<'a> {
    session: &'a Session,
    line: Option<Bytes>,
}

impl UnrecordedMessage<'_> {
    fn sent(mut self) {
        self.line = None;
    }
}

impl Drop for UnrecordedMessage<'_> {
    fn drop(&mut self) {
        self.line.take().into_iter().for_each(|line| self.session.push_front(line));
    }
}

/// An open GET stream, removed from its session on drop.
struct GetStreamGuard(Arc<Channel>);

impl Drop for GetStreamGuard {
    fn drop(&mut self) {
        self.0.session.remove_get_stream(&self.0);
    }
}
