use std::{
    convert::Infallible,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};
use http_body::{Body as _, Frame, SizeHint};
use pintle_proto::{
    RETRY_AFTER_MS,
    http::{Refusal, X_ACCEL_BUFFERING},
    sse::KEEP_ALIVE,
};
use pintle_types::{RequestId, RpcError};
use tokio::time::Sleep;

use super::pulse::Pulse;

/// The body of an answer: all of it at once, or events as they happen.
///
/// Dropping a stream of events hangs up. What that means for the call behind it depends on the revision: a stateless
/// call is cancelled, one in a session goes on.
pub struct Body(Kind);

enum Kind {
    Full(Bytes),
    Events(Box<Events>),
}

struct Events {
    source: Box<dyn Source>,
    pulse: Pulse,
    over: bool,
    /// When nobody may read on.
    end: Option<Pin<Box<Sleep>>>,
}

/// Where the events of a stream come from.
pub(in crate::server::http) trait Source: Send {
    /// Writes what there is behind what is in `out`. Ready when nothing more will come. As long as `out` is not empty it
    /// is called again without being woken, so it may stop when it has written enough.
    fn poll(&mut self, task: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()>;
}

/// As much goes into one piece of the body.
pub(in crate::server::http) const PIECE: usize = 16 << 10;

impl Body {
    /// Nothing.
    pub fn empty() -> Self {
        Self::full(Bytes::new())
    }

    /// These bytes.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Full(bytes.into()))
    }

    pub(in crate::server::http) fn events(source: impl Source + 'static, keep_alive: Duration) -> Self {
        let events =
            Events { source: Box::new(source), pulse: Pulse::new(keep_alive), over: false, end: None };
        Self(Kind::Events(Box::new(events)))
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::full(bytes)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut self.0 {
            Kind::Full(bytes) if bytes.is_empty() => None,
            Kind::Full(bytes) => Some(std::mem::take(bytes)),
            Kind::Events(events) => std::task::ready!(events.poll(task)),
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Full(bytes) => bytes.is_empty(),
            Kind::Events(events) => events.over,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

impl Events {
    fn poll(&mut self, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !self.over
            && let Some(end) = &mut self.end
        {
            self.over = end.as_mut().poll(task).is_ready();
        }
        if self.over {
            return Poll::Ready(None);
        }
        let mut out = Vec::new();
        self.over = self.source.poll(task, &mut out).is_ready();
        match (out.is_empty(), self.over) {
            (false, _) => {
                self.pulse.beat();
                Poll::Ready(Some(out.into()))
            }
            (true, true) => Poll::Ready(None),
            // Between two signs of life nothing was said: a proxy might take the stream for dead.
            (true, false) => self.pulse.poll(task).map(|()| Some(Bytes::from_static(KEEP_ALIVE))),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Full(_) => f.debug_tuple("Body").field(&self.size_hint().exact()).finish(),
            Kind::Events(_) => f.write_str("Body(events)"),
        }
    }
}

/// 202, and nothing more to say.
pub(in crate::server::http) fn accepted() -> Response<Body> {
    bare(StatusCode::ACCEPTED)
}

/// A status without a body.
pub(in crate::server::http) fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// One JSON text.
pub(in crate::server::http) fn json(status: StatusCode, bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::full(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    if let StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS = status {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_MS.div_ceil(1000)));
    }
    response
}

/// A stream of events.
pub(in crate::server::http) fn events(source: impl Source + 'static, keep_alive: Duration) -> Response<Body> {
    let mut response = Response::new(Body::events(source, keep_alive));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::clone(&X_ACCEL_BUFFERING), HeaderValue::from_static("no"));
    response
}

/// The same, until then.
pub(in crate::server::http) fn events_until(
    source: impl Source + 'static,
    keep_alive: Duration,
    end: Option<Pin<Box<Sleep>>>,
) -> Response<Body> {
    let mut response = events(source, keep_alive);
    if let Kind::Events(events) = &mut response.body_mut().0 {
        events.end = end;
    }
    response
}

/// No, and what to change.
pub(in crate::server::http) fn refused(refusal: &Refusal, id: Option<&RequestId>) -> Response<Body> {
    let mut response = json(refusal.status, refusal.body(id));
    if let Some(allow) = refusal.allow {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    }
    if refusal.status == StatusCode::PAYLOAD_TOO_LARGE || refusal.status == StatusCode::REQUEST_TIMEOUT {
        // The rest of the body is still to come, and nobody wants to read it.
        response.headers_mut().insert(http::header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// No for the moment: 429 if the one who asks is the reason, else 503.
pub(in crate::server::http) fn overloaded(status: StatusCode, said: impl Into<String>) -> Refusal {
    Refusal::new(status, RpcError::overloaded(said.into(), RETRY_AFTER_MS))
}

/// Why a call is refused or cut when the service comes to its end.
pub(in crate::server::http) fn shutting_down() -> RpcError {
    overloaded(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down: call again in a moment").error
}

/// Why a call is ended with its session.
pub(in crate::server::http) fn session_ended() -> RpcError {
    RpcError::internal("the session was ended before the call came to its end: open another, and call again")
}

/// 503 because the service comes to its end.
pub(in crate::server::http) fn closed() -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, shutting_down())
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
