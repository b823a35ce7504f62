//! The oldest revision: a stream of events for what the server says, and another endpoint for what it is told.

use std::sync::Arc;

use http::{Extensions, Method, Response, StatusCode};
use pintle_proto::{
    http::{Accepts, Head, Refusal},
    server::Engine,
    sse::Frame as Event,
};
use pintle_types::{Message, RpcError};

use super::{
    Session,
    channel::{BACKLOG, Channel},
    conversation::decide,
    exchange::Exchange,
    id::SessionId,
    standing,
};
use crate::{
    Ended,
    server::{
        Authenticated,
        http::{
            Body,
            edge::{
                content::Content,
                response::{accepted, closed, events, overloaded, refused},
            },
            post::{asks, id_of, owed},
            rights,
            service::{Asked, Shared},
        },
    },
};

/// Where the two are.
#[derive(Clone, Debug)]
pub(in crate::server::http) struct TwoEndpoints {
    pub(in crate::server::http) stream: String,
    pub(in crate::server::http) messages: String,
}

/// One of the two.
pub(in crate::server::http) enum Part {
    Stream,
    Messages,
}

/// What came in by one of them.
pub(in crate::server::http) enum Entered {
    /// All that there is to answer.
    Answered(Response<Body>),
    /// A message: its body is to be read.
    Message(Arc<Session>),
}

impl TwoEndpoints {
    /// Which one is meant. A service that is mounted below a path sees only the end of it.
    pub(in crate::server::http) fn part(&self, path: &str) -> Option<Part> {
        let is = |whole: &str| path.len() > 1 && whole.ends_with(path);
        if is(&self.stream) { Some(Part::Stream) } else { is(&self.messages).then_some(Part::Messages) }
    }
}

/// Judges a request by its head.
pub(in crate::server::http) async fn open(
    asked: &Asked,
    head: &Head<'_>,
    extensions: &Extensions,
    part: Part,
) -> Result<Entered, Refusal> {
    asked.settings.guard.check(head)?;
    match (part, head.method()) {
        (Part::Stream, &Method::GET) if !Accepts::read(head).events => {
            Err(Refusal::not_acceptable("text/event-stream"))
        }
        (Part::Stream, &Method::GET) if asked.http.0.calls.is_closed() => Err(closed()),
        (Part::Stream, &Method::GET) => stream(asked, extensions).await.map(Entered::Answered),
        (Part::Stream, method) => Err(Refusal::method_not_allowed(method, "GET")),
        (Part::Messages, &Method::POST) => {
            head.check_content_type()?;
            let id = head.query().and_then(|query| query.strip_prefix(SESSION)).and_then(SessionId::parse);
            let session = id.and_then(|id| asked.find_here(id));
            Ok(Entered::Message(session.ok_or_else(unknown)?))
        }
        (Part::Messages, method) => Err(Refusal::method_not_allowed(method, "POST")),
    }
}

/// Opens a session with its stream; both end together.
async fn stream(asked: &Asked, extensions: &Extensions) -> Result<Response<Body>, Refusal> {
    let shared = &asked.http.0;
    let session = asked.keep(asked.open(Engine::new_session())?).await?;
    let channel = Channel::new(shared, &session, MAIN, false);
    let mut reader = channel.begin().await;
    let settings = shared.settings();
    let messages = settings.two_endpoints.as_ref().map(|two| &*two.messages).unwrap_or_default();
    let target = format!("{messages}?{SESSION}{}", session.id);
    reader.begin_with(&Event::data(&target).event("endpoint"));
    session.keep(&channel);
    let end = End { shared: shared.clone(), session: session.clone() };
    let until = Authenticated::expiry(extensions);
    standing::stand_until(&channel, extensions.clone(), until, end);
    session.opened(extensions);
    Ok(events(reader, settings.keep_alive))
}

/// Takes a message. What comes of it is said on the stream.
pub(in crate::server::http) async fn receive(
    asked: &Asked,
    session: &Arc<Session>,
    content: Content,
) -> Response<Body> {
    let (shared, context) = (&asked.http.0, &asked.context);
    if let Err(response) = rights::check_body(context.left(), content.bytes()) {
        return *response;
    }
    let state = session.server.state();
    let Some(channel) = session.channel(MAIN) else { return refused(&unknown(), None) };
    let length = content.bytes().len();
    let frame = match content.parse(state.service.bounds().batch) {
        Ok(frame) => frame,
        Err(malformed) => {
            if let Some(reply) = malformed.reply() {
                channel.say(Message::Response(reply).to_vec().into()).await;
            }
            return refused(&Refusal::bad_request(malformed.error.clone()), owed(&malformed));
        }
    };
    if let Err(response) = rights::check_frame(&state, context, &frame, session) {
        return *response;
    }
    if asks(&frame) && shared.calls.is_closed() {
        return refused(&closed(), id_of(&frame));
    }
    // Whoever reads the stream may do so no longer; what runs has its answers and questions.
    if asks(&frame) && channel.is_closing() {
        return refused(&unknown(), id_of(&frame));
    }
    // What is no request is over with the POST that brought it.
    let speaker = match asks(&frame).then(|| channel.speaker(length)) {
        Some(None) => return refused(&unread(), id_of(&frame)),
        other => other.flatten(),
    };
    let inbound = session.receive(&state.service, frame);
    session.note_peer();
    let mut exchange = Exchange::new(shared, session, &state, true);
    decide(&mut exchange, session, context, inbound);
    if exchange.is_empty() {
        exchange.speak_on(&channel, None).await;
    } else {
        // The answer to this request says nothing of what comes of it, so the rest cannot run in it.
        tokio::spawn(async move { exchange.speak_on(&channel, speaker.as_ref()).await });
    }
    accepted()
}

/// 429: the client sends and does not read.
fn unread() -> Refusal {
    let said = format!(
        "more than {BACKLOG} bytes of this session's requests and answers wait: read its event stream, and send more when some are answered"
    );
    overloaded(StatusCode::TOO_MANY_REQUESTS, said)
}

/// The one stream of such a session.
const MAIN: u64 = 0;
const SESSION: &str = "session=";

fn unknown() -> Refusal {
    let said = "no such session: open the event stream, and post to the endpoint that it names";
    Refusal::new(http::StatusCode::NOT_FOUND, RpcError::invalid_request(said))
}

/// Ends the session when its stream does.
struct End {
    shared: Arc<Shared>,
    session: Arc<Session>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.shared.sessions.remove(self.session.id);
        self.session.end(Ended::ByPeer { known: None });
    }
}
