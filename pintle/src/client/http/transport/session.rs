//! The state that the requests of a connection share: session id, revision, and the queue of events.

use std::{
    borrow::Cow,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method};
use pintle_proto::{
    Revision,
    http::{
        MCP_SESSION_ID, Streams,
        headers::{self, PostHeaders},
        is_session_id,
    },
};
use pintle_types::{Message, RequestId};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::Instant,
};

use super::header_cache::HeaderCache;
use crate::{
    client::http::{
        connect::{Address, ExchangeKind},
        fetch::{HttpClient, PreparedRequest},
    },
    transport::{Failed, StreamPause},
};

/// Capacity of the event queue. Streams are not read while it is full.
pub(in crate::client::http) const EVENTS: usize = 64;
/// How long a 400 says nothing of the session, after another one has led to a new session.
const DOUBT: Duration = Duration::from_secs(30);

/// A logical connection over HTTP: one session, or one peer in the stateless era.
#[derive(Debug)]
pub(in crate::client::http) struct HttpSession {
    pub(in crate::client::http) wire: Arc<HttpClient>,
    /// Boxed: the queue has memory for 32 events at once, and is empty most of the time.
    events: mpsc::Sender<Box<TransportEvent>>,
    /// Limit of queued bytes of all streams: the maximum size of one message.
    room: Arc<Semaphore>,
    state: Mutex<HttpSessionState>,
    /// Number of requests without a response head.
    headless: AtomicUsize,
    /// When a session before this one was taken for lost because of a 400, and when this one was.
    doubted_before: Option<Instant>,
    doubted: OnceLock<Instant>,
}

#[derive(Debug, Default)]
struct HttpSessionState {
    session: Option<Box<str>>,
    revision: Option<Revision>,
    /// The headers of POSTs for this session and revision.
    posts: Option<HeaderCache>,
    /// The message endpoint of HTTP+SSE.
    endpoint: Option<Address>,
}

/// An event for the connection.
#[derive(Debug)]
pub(in crate::client::http) enum TransportEvent {
    /// A message of a stream, which may belong to a request. It holds its share of the buffer until it is delivered.
    Message { bytes: Bytes, stream_of: Option<RequestId>, room: OwnedSemaphorePermit },
    /// The server ended the stream of a request before its answer; it is resumed.
    Paused(StreamPause),
    /// `notifications/initialized` was accepted, or failed.
    Initialized { taken: bool },
    /// The GET stream was deferred, and is wanted now.
    SessionStreamWanted,
    /// The GET stream is open, or failed to open.
    SessionStreamReady,
    /// The session is gone.
    Lost,
    /// The message endpoint of HTTP+SSE is known, or there is none.
    Endpoint(Result<(), Box<Failed>>),
    /// The stream of HTTP+SSE ended, and with it the session.
    Ended(String),
}

impl HttpSession {
    pub(in crate::client::http) fn new(
        wire: Arc<HttpClient>,
        before: Option<&Self>,
    ) -> (Arc<Self>, mpsc::Receiver<Box<TransportEvent>>) {
        let (events, happened) = mpsc::channel(EVENTS);
        let room = Arc::new(Semaphore::new(max_permits(&wire)));
        let line = Self {
            wire,
            events,
            room,
            state: Mutex::default(),
            headless: AtomicUsize::new(0),
            doubted_before: before.and_then(|before| before.doubted.get().copied().or(before.doubted_before)),
            doubted: OnceLock::new(),
        };
        (Arc::new(line), happened)
    }

    /// Whether a request that was refused with 400 may mean that the session is lost. A new session is tried once: if it refuses the
    /// same, the request is at fault.
    pub(in crate::client::http) fn may_be_lost(&self) -> bool {
        if self.doubted_before.is_some_and(|before| before.elapsed() < DOUBT) {
            return false;
        }
        self.doubted.get_or_init(Instant::now);
        true
    }

    pub(in crate::client::http) async fn tell(&self, event: TransportEvent) {
        // Nobody listens when the connection is being closed.
        let _ = self.events.send(Box::new(event)).await;
    }

    /// Queues a message of a stream. Waits while the buffer is full.
    pub(in crate::client::http) async fn pass(&self, bytes: Bytes, stream_of: Option<RequestId>) {
        let size = bytes.len().clamp(1, max_permits(&self.wire));
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        // It is never closed.
        let Ok(room) = self.room.clone().acquire_many_owned(size).await else { return };
        self.tell(TransportEvent::Message { bytes, stream_of, room }).await;
    }

    /// Records that the GET stream is open, unless the connection was replaced.
    pub(in crate::client::http) fn listens(&self) {
        self.wire.push_state.open();
        if self.events.is_closed() {
            self.wire.push_state.close();
        }
    }

    /// Takes the session id from the response to `initialize`.
    pub(in crate::client::http) fn open_session(&self, headers: &HeaderMap) -> Result<(), Failed> {
        let Some(id) = headers.get(&MCP_SESSION_ID) else { return Ok(()) };
        match id.to_str().ok().filter(|id| is_session_id(id)) {
            Some(id) => {
                let mut state = self.state();
                state.session = Some(id.into());
                state.posts = None;
                Ok(())
            }
            None => Err(Failed::new("the server's `Mcp-Session-Id` is not made of visible ASCII")),
        }
    }

    /// Resets session and revision before another session is opened.
    pub(in crate::client::http) fn begin(&self) {
        let HttpSessionState { session, revision, posts, .. } = &mut *self.state();
        (*session, *revision, *posts) = (None, None, None);
    }

    /// Sets the negotiated revision.
    pub(in crate::client::http) fn agree(&self, revision: Revision) {
        let mut state = self.state();
        if state.revision != Some(revision) {
            state.revision = Some(revision);
            state.posts = None;
        }
    }

    /// Whether closing the stream of a request cancels it.
    pub(in crate::client::http) fn hanging_up_cancels(&self) -> bool {
        self.revision().is_some_and(|revision| Streams::of(revision).hanging_up_cancels)
    }

    pub(in crate::client::http) fn move_to(&self, endpoint: Address) {
        let mut state = self.state();
        state.endpoint = Some(endpoint);
        state.posts = None;
    }

    pub(in crate::client::http) fn has_session(&self) -> bool {
        self.state().session.is_some()
    }

    pub(in crate::client::http) fn has_two_endpoints(&self) -> bool {
        self.state().endpoint.is_some()
    }

    pub(in crate::client::http) fn revision(&self) -> Option<Revision> {
        self.state().revision
    }

    /// Builds the POST of messages.
    pub(in crate::client::http) fn post(
        &self,
        messages: &[Message],
        body: Bytes,
    ) -> Result<PreparedRequest, headers::BadHeader> {
        let mut state = self.state();
        let HttpSessionState { session, revision, posts, endpoint } = &mut *state;
        let address = endpoint.as_ref().unwrap_or(&self.wire.address).clone();
        // Made once for all calls.
        let posts = match posts {
            Some(posts) => posts,
            none => {
                let made = PostHeaders::new(*revision, session.as_deref())?;
                let common = self.wire.with_usual(made.common(), &address, true);
                none.insert(HeaderCache::new(made, common))
            }
        };
        let (headers, what) = (posts.headers_for(messages)?, method_of(messages));
        Ok(PreparedRequest {
            method: Method::POST,
            kind: ExchangeKind::Short,
            address,
            headers,
            mirrored: None,
            body,
            what,
        })
    }

    /// Builds the GET of a stream, resumed after the last event if there was one.
    pub(in crate::client::http) fn listen(
        &self,
        last: Option<&str>,
    ) -> Result<PreparedRequest, headers::BadHeader> {
        let state = self.state();
        let headers = match state.revision {
            Some(revision) => headers::session_get(revision.as_str(), state.session.as_deref(), last)?,
            None => headers::event_stream(),
        };
        Ok(self.without_body(Method::GET, &headers))
    }

    /// Builds the DELETE of the session, if there is one, and forgets the session.
    pub(in crate::client::http) fn leave(&self) -> Option<PreparedRequest> {
        let mut state = self.state();
        let session = state.session.take()?;
        state.posts = None;
        let headers = headers::session_delete(state.revision?.as_str(), &session).ok()?;
        Some(self.without_body(Method::DELETE, &headers))
    }

    fn without_body(&self, method: Method, headers: &HeaderMap) -> PreparedRequest {
        let what = if method == Method::GET { "GET" } else { "DELETE" };
        let address = self.wire.address.clone();
        let headers = Arc::new(self.wire.with_usual(headers, &address, false));
        PreparedRequest {
            method,
            kind: ExchangeKind::Short,
            address,
            headers,
            mirrored: None,
            body: Bytes::new(),
            what: what.into(),
        }
    }

    /// Counts a request without a response head until the guard is dropped.
    pub(in crate::client::http) fn headless(&self) -> Headless<'_> {
        self.headless.fetch_add(1, Ordering::Relaxed);
        Headless(&self.headless)
    }

    pub(in crate::client::http) fn has_headless(&self) -> bool {
        self.headless.load(Ordering::Relaxed) > 0
    }

    fn state(&self) -> MutexGuard<'_, HttpSessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(in crate::client::http) struct Headless<'a>(&'a AtomicUsize);

impl Drop for Headless<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn max_permits(wire: &HttpClient) -> usize {
    wire.answer.bytes.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize))
}

/// The name of a message, for errors.
fn method_of(messages: &[Message]) -> Cow<'static, str> {
    match messages {
        [Message::Request(request)] => request.method.clone(),
        [Message::Notification(notification)] => notification.method.clone(),
        [Message::Response(_)] => "an answer".into(),
        _ => "an array of messages".into(),
    }
}
