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
use serde::Deserialize;
use tokio::time::Sleep;

use super::keep_alive::KeepAlive;
use crate::message_log::BodyLog;

/// The body of a response: either complete, or a stream of events.
///
/// Dropping a stream of events disconnects it from its call: a stateless call is cancelled, a call in a session continues.
///
/// ```
/// use http::Response;
/// use pintle::server::http::Body;
///
/// let response = Response::builder().status(503).body(Body::full("back in a minute"))?;
/// # Ok::<(), http::Error>(())
/// ```
pub struct Body(BodyKind);

enum BodyKind {
    Full(Bytes),
    Events(Box<Events>),
}

struct Events {
    source: Box<dyn EventSource>,
    keep_alive: KeepAlive,
    ended: bool,
    /// The end of the caller's authentication.
    expiry: Option<Pin<Box<Sleep>>>,
    log: Option<Box<BodyLog>>,
}

/// A source of events for a stream.
pub(in crate::server::http) trait EventSource: Send {
    /// Appends the available events to `out`. Ready when no more will follow. If `out` is not empty, it is polled again
    /// without being woken, so it may return early once it has written enough.
    fn poll(&mut self, task: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()>;
}

/// The size in bytes that one chunk of a stream should have.
pub(in crate::server::http) const PIECE: usize = 16 << 10;

impl Body {
    /// Creates an empty body.
    pub fn empty() -> Self {
        Self::full(Bytes::new())
    }

    /// Creates a body of these bytes.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self(BodyKind::Full(bytes.into()))
    }

    pub(in crate::server::http) fn events(source: impl EventSource + 'static, keep_alive: Duration) -> Self {
        let keep_alive = KeepAlive::new(keep_alive);
        let events = Events { source: Box::new(source), keep_alive, ended: false, expiry: None, log: None };
        Self(BodyKind::Events(Box::new(events)))
    }

    /// Returns the bytes of a body that is complete.
    pub(in crate::server::http) fn complete(&self) -> Option<&[u8]> {
        match &self.0 {
            BodyKind::Full(bytes) => Some(bytes),
            BodyKind::Events(_) => None,
        }
    }

    /// Returns this body, with a log of what is sent of it.
    pub(in crate::server::http) fn logged(mut self, mut log: BodyLog) -> Self {
        match &mut self.0 {
            BodyKind::Full(bytes) => log.data(bytes),
            BodyKind::Events(events) => events.log = Some(Box::new(log)),
        }
        self
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
            BodyKind::Full(bytes) if bytes.is_empty() => None,
            BodyKind::Full(bytes) => Some(std::mem::take(bytes)),
            BodyKind::Events(events) => std::task::ready!(events.poll(task)),
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodyKind::Full(bytes) => bytes.is_empty(),
            BodyKind::Events(events) => events.ended,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyKind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            BodyKind::Events(_) => SizeHint::default(),
        }
    }
}

impl Events {
    fn poll(&mut self, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !self.ended
            && let Some(expiry) = &mut self.expiry
        {
            self.ended = expiry.as_mut().poll(task).is_ready();
        }
        if self.ended {
            return Poll::Ready(None);
        }
        let mut out = Vec::new();
        self.ended = self.source.poll(task, &mut out).is_ready();
        match (out.is_empty(), self.ended) {
            (false, _) => {
                self.keep_alive.restart();
                if let Some(log) = &mut self.log {
                    log.data(&out);
                }
                Poll::Ready(Some(out.into()))
            }
            (true, true) => Poll::Ready(None),
            // Without output a proxy might consider the stream dead.
            (true, false) => self.keep_alive.poll(task).map(|()| Some(Bytes::from_static(KEEP_ALIVE))),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            BodyKind::Full(_) => f.debug_tuple("Body").field(&self.size_hint().exact()).finish(),
            BodyKind::Events(_) => f.write_str("Body(events)"),
        }
    }
}

/// Returns a 202 response without a body.
pub(in crate::server::http) fn accepted() -> Response<Body> {
    bare(StatusCode::ACCEPTED)
}

/// Returns a response of this status without a body.
pub(in crate::server::http) fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Returns a response with a JSON body.
///
/// If it is one of overload, `Retry-After` is the time that its error states. Its status is 503 if no limit is exceeded.
pub(in crate::server::http) fn json(mut status: StatusCode, bytes: impl Into<Bytes>) -> Response<Body> {
    let bytes = bytes.into();
    let retry_after = match status {
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
            let (seconds, is_unavailable) = retry_after(&bytes);
            if is_unavailable {
                status = StatusCode::SERVICE_UNAVAILABLE;
            }
            Some(seconds)
        }
        _ => None,
    };
    let mut response = Response::new(Body::full(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Returns the seconds after which a request may be repeated, by the error in the body, and whether it is one without a limit.
fn retry_after(body: &[u8]) -> (u64, bool) {
    #[derive(Deserialize)]
    struct ErrorBody {
        error: RpcError,
    }
    let error = serde_json::from_slice(body).ok().map(|body: ErrorBody| body.error);
    let stated = error.as_ref().and_then(RpcError::retry_after_ms);
    (stated.unwrap_or(RETRY_AFTER_MS).div_ceil(1000), error.is_some_and(|error| error.is_unavailable()))
}

/// Returns a response that streams events.
pub(in crate::server::http) fn events(
    source: impl EventSource + 'static,
    keep_alive: Duration,
) -> Response<Body> {
    let mut response = Response::new(Body::events(source, keep_alive));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::clone(&X_ACCEL_BUFFERING), HeaderValue::from_static("no"));
    response
}

/// Returns a response that streams events until `expiry`, if there is one.
pub(in crate::server::http) fn events_until(
    source: impl EventSource + 'static,
    keep_alive: Duration,
    expiry: Option<Pin<Box<Sleep>>>,
) -> Response<Body> {
    let mut response = events(source, keep_alive);
    if let BodyKind::Events(events) = &mut response.body_mut().0 {
        events.expiry = expiry;
    }
    response
}

/// Returns the response for a refused request.
pub(in crate::server::http) fn refused(refusal: &Refusal, id: Option<&RequestId>) -> Response<Body> {
    let mut response = json(refusal.status, refusal.body(id));
    if let Some(allow) = refusal.allow {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    }
    if refusal.status == StatusCode::PAYLOAD_TOO_LARGE || refusal.status == StatusCode::REQUEST_TIMEOUT {
        // The rest of the body is not read.
        response.headers_mut().insert(http::header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Returns a refusal with a retry hint: 429 if the caller exceeds its limits, else 503.
pub(in crate::server::http) fn overloaded(status: StatusCode, message: impl Into<String>) -> Refusal {
    let error = match status {
        StatusCode::TOO_MANY_REQUESTS => RpcError::overloaded,
        _ => RpcError::unavailable,
    };
    Refusal::new(status, error(message.into(), RETRY_AFTER_MS))
}

/// Returns the 503 refusal of a request whose session cannot be looked up, changed or ended because the store failed.
pub(in crate::server::http) fn store_failed(error: &std::io::Error) -> Refusal {
    tracing::error!(%error, "the session store failed");
    overloaded(StatusCode::SERVICE_UNAVAILABLE, "the session store is unavailable; try again later")
}

/// Returns the error of a call that ran when the service shut down. It is not one of overload, which clients take for a promise
/// that the call was not processed and may be repeated.
pub(in crate::server::http) fn shut_down() -> RpcError {
    RpcError::internal(
        "the server is shutting down, and ended the call before it completed; it may have had effects",
    )
}

/// Returns the error of a call that is ended with its session.
pub(in crate::server::http) fn session_ended() -> RpcError {
    RpcError::internal("the session ended before the call completed; open a new session and call again")
}

/// Returns the 503 refusal of a service that shuts down.
pub(in crate::server::http) fn closed() -> Refusal {
    overloaded(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down; call again in a moment")
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
