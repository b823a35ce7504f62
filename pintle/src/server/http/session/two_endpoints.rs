//! The oldest revision: an endpoint for the event stream, and another one for messages.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use pintle_proto::{
    http::{Accepts, Head, Refusal},
    server::{Engine, Outcome},
    sse::Frame as Event,
};
use pintle_types::{Message, RawObject, RpcError, schema::ServerCapabilities};
use serde_json::value::to_raw_value;

use super::{
    Session,
    channel::{BACKLOG, Channel},
    conversation::{decide, with_cancellations},
    exchange::Exchange,
    get_stream,
    id::SessionId,
};
use crate::{
    Ended,
    server::{
        Authenticated,
        core::{dispatch, refused::record},
        http::{
            Body,
            edge::{
                content::Content,
                response::{accepted, closed, events, overloaded, refused},
            },
            frame::{expects_response, malformed_id, request_id},
            request_cx::HttpRequestCx,
            rights,
            shared::HttpShared,
        },
    },
    telemetry::ReceivedRequests,
};

/// The paths of the two endpoints.
#[derive(Clone, Debug)]
pub(in crate::server::http) struct TwoEndpoints {
    pub(in crate::server::http) stream: String,
    pub(in crate::server::http) messages: String,
}

/// One of the two endpoints.
pub(in crate::server::http) enum Part {
    Stream,
    Messages,
}

impl TwoEndpoints {
    /// Returns the endpoint of a path. A service that is mounted below a path sees only the end of it.
    pub(in crate::server::http) fn part(&self, path: &str) -> Option<Part> {
        let is = |whole: &str| path.len() > 1 && whole.ends_with(path);
        if is(&self.stream) { Some(Part::Stream) } else { is(&self.messages).then_some(Part::Messages) }
    }
}

/// Refuses a request for the event stream by its head.
pub(in crate::server::http) fn check_stream(cx: &HttpRequestCx, head: &Head<'_>) -> Result<(), Refusal> {
    if head.method() != Method::GET {
        Err(Refusal::method_not_allowed(head.method(), "GET"))
    } else if !Accepts::read(head).events {
        Err(Refusal::not_acceptable("text/event-stream"))
    } else if cx.http.0.calls.is_closed() {
        Err(closed())
    } else {
        Ok(())
    }
}

/// Finds the session of a message, or refuses the message by its head.
pub(in crate::server::http) fn find_session(
    cx: &HttpRequestCx,
    head: &Head<'_>,
) -> Result<Arc<Session>, Refusal> {
    if head.method() != Method::POST {
        return Err(Refusal::method_not_allowed(head.method(), "POST"));
    }
    head.check_content_type()?;
    let id = head.query().and_then(|query| query.strip_prefix(SESSION)).and_then(SessionId::parse);
    id.and_then(|id| cx.find_here(id)).ok_or_else(unknown)
}

/// Opens a session and its event stream. Both end together.
pub(in crate::server::http) async fn open_stream(cx: &HttpRequestCx) -> Result<Response<Body>, Refusal> {
    let extensions = cx.context.extensions();
    let shared = &cx.http.0;
    let session = cx.keep(cx.open(Engine::new_session())?).await?;
    if let Err(error) = session.opened(extensions) {
        // No client knows its id; if this fails, it expires.
        let _ = shared.end(&session, Ended::Stopped).await;
        return Err(Refusal::new(StatusCode::FORBIDDEN, error));
    }
    let channel = Channel::new(shared, &session, MAIN, false);
    let mut reader = channel.begin(Bytes::new()).await;
    let settings = shared.settings();
    let messages = settings.two_endpoints.as_ref().map(|two| &*two.messages).unwrap_or_default();
    let target = format!("{messages}?{SESSION}{}", session.id);
    reader.begin_with(&Event::data(&target).event("endpoint"));
    session.keep(&channel);
    let end = SessionGuard { shared: shared.clone(), session: session.clone() };
    let until = Authenticated::expiry(extensions);
    get_stream::start_until(&channel, extensions.clone(), until, end);
    Ok(events(reader, settings.keep_alive))
}

/// Receives a message. Its response is sent on the event stream.
pub(in crate::server::http) async fn receive(
    cx: &HttpRequestCx,
    session: &Arc<Session>,
    content: Content,
) -> Response<Body> {
    let (shared, context) = (&cx.http.0, &cx.context);
    if let Err(response) = rights::check_body(context.left(), content.bytes()) {
        return *response;
    }
    let snapshot = session.server.snapshot();
    let Some(channel) = session.channel(MAIN) else { return refused(&unknown(), None) };
    let length = content.bytes().len();
    let frame = match content.parse(snapshot.service.bounds().batch) {
        Ok(frame) => frame,
        Err(malformed) => {
            if let Some(reply) = malformed.reply() {
                channel.send(Message::Response(reply).to_vec().into()).await;
            }
            return refused(&Refusal::bad_request(malformed.error.clone()), malformed_id(&malformed));
        }
    };
    if let Err(response) = session.check_rights(&snapshot, context, &frame) {
        return *response;
    }
    if expects_response(&frame) && shared.calls.is_closed() {
        return refused(&closed(), request_id(&frame));
    }
    // The token of the reader has expired: running calls complete, and no new ones start.
    if expects_response(&frame) && channel.is_closing() {
        return refused(&unknown(), request_id(&frame));
    }
    // Only requests have a response that waits for the reader.
    let producer = match expects_response(&frame).then(|| channel.add_producer(length)) {
        Some(None) => return refused(&unread(), request_id(&frame)),
        other => other.flatten(),
    };
    let received = ReceivedRequests::of(&frame);
    let cancelled = dispatch::cancellations(&session.server, &snapshot, &frame);
    let inbound = session.receive(&snapshot.service, frame);
    record(received, || context.connection_facts(), &inbound);
    let inbound = with_cancellations(session, inbound, cancelled);
    let mut exchange = Exchange::new(shared, session, &snapshot, true);
    decide(&mut exchange, session, context, inbound);
    exchange.begin().await;
    if exchange.is_empty() {
        exchange.forward_to(&channel, None).await;
    } else {
        // The response to the POST does not wait for the calls.
        crate::runtime::spawn(async move { exchange.forward_to(&channel, producer.as_ref()).await });
    }
    accepted()
}

/// Returns the outcome of `server/discover` without what is not served in a session: `subscriptions/listen`.
pub(super) fn without_subscriptions(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Complete(result) => Outcome::Complete(unwatched(&result).into()),
        Outcome::Cacheable(result, hint) => Outcome::Cacheable(unwatched(&result).into(), hint),
        other => other,
    }
}

fn unwatched(result: &RawObject) -> RawObject {
    let Ok(Some(mut offered)) = result.decode_member::<ServerCapabilities>("capabilities") else {
        return result.clone();
    };
    offered.tools.iter_mut().for_each(|tools| tools.list_changed = None);
    offered.prompts.iter_mut().for_each(|prompts| prompts.list_changed = None);
    offered.resources.iter_mut().for_each(|resources| {
        (resources.list_changed, resources.subscribe) = (None, None);
    });
    to_raw_value(&offered).map_or_else(|_| result.clone(), |offered| result.with("capabilities", &offered))
}

/// Returns the 429 refusal of a client that does not read its event stream.
fn unread() -> Refusal {
    let message = format!(
        "more than {BACKLOG} bytes of this session's requests and answers wait: read its event stream, and send more when some are answered"
    );
    overloaded(StatusCode::TOO_MANY_REQUESTS, message)
}

/// The number of the only stream of such a session.
const MAIN: u64 = 0;
const SESSION: &str = "session=";

fn unknown() -> Refusal {
    let message = "no such session: open the event stream, and post to the endpoint that it names";
    Refusal::new(http::StatusCode::NOT_FOUND, RpcError::invalid_request(message))
}

/// Ends the session on drop, with its stream.
struct SessionGuard {
    shared: Arc<HttpShared>,
    session: Arc<Session>,
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        self.shared.sessions.remove(self.session.id);
        self.session.end(Ended::ByPeer { known: None });
    }
}
