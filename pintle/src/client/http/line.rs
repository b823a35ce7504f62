//! What the requests of one connection share: the session, and where what comes in is put.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use pintle_proto::{
    Revision,
    http::{MCP_SESSION_ID, dress, is_session_id},
};
use pintle_types::RequestId;
use tokio::sync::mpsc;

use super::{
    address::Address,
    wire::{Ask, Wire},
};
use crate::transport::Failed;

/// How much may wait for the driver. Beyond that nothing more is read of the streams, and the servers notice.
pub(super) const EVENTS: usize = 64;

/// One connection, as far as HTTP has such a thing.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) wire: Arc<Wire>,
    events: mpsc::Sender<Event>,
    state: Mutex<State>,
    /// Requests that have been sent and not been answered by so much as a status.
    headless: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    session: Option<Box<str>>,
    revision: Option<Revision>,
    /// Where messages go, if that is not where they come from.
    endpoint: Option<Address>,
}

/// What happened.
#[derive(Debug)]
pub(super) enum Event {
    /// A message came.
    Message(Bytes),
    /// Nothing more will come for these requests.
    Over(Vec<RequestId>, Box<Failed>),
    /// Nothing more will come for these requests where they were sent to: their answers come elsewhere.
    Taken(Vec<RequestId>),
    /// The server has taken notice that the session is open, or not.
    Initialized { taken: bool },
    /// The stream of the session is open, or will not be.
    Standing,
    /// The session is gone.
    Lost,
    /// There is another endpoint for messages, or none.
    Endpoint(Result<(), Box<Failed>>),
    /// Nothing more will come at all.
    Ended(String),
}

impl Line {
    pub(super) fn new(wire: Arc<Wire>) -> (Arc<Self>, mpsc::Receiver<Event>) {
        let (events, happened) = mpsc::channel(EVENTS);
        let line = Self { wire, events, state: Mutex::default(), headless: AtomicUsize::new(0) };
        (Arc::new(line), happened)
    }

    pub(super) async fn tell(&self, event: Event) {
        // Nobody listens when the connection is being closed.
        let _ = self.events.send(event).await;
    }

    /// Takes the session that an answer to `initialize` names.
    pub(super) fn open_session(&self, headers: &HeaderMap) -> Result<(), Failed> {
        let Some(id) = headers.get(&MCP_SESSION_ID) else { return Ok(()) };
        match id.to_str().ok().filter(|id| is_session_id(id)) {
            Some(id) => {
                self.state().session = Some(id.into());
                Ok(())
            }
            None => Err(Failed::new("the server's `Mcp-Session-Id` is not made of visible ASCII")),
        }
    }

    /// What is spoken from now on; nothing is agreed on while a session is being opened.
    pub(super) fn agree(&self, revision: Option<Revision>) {
        self.state().revision = revision;
    }

    pub(super) fn move_to(&self, endpoint: Address) {
        self.state().endpoint = Some(endpoint);
    }

    pub(super) fn has_session(&self) -> bool {
        self.state().session.is_some()
    }

    pub(super) fn has_two_endpoints(&self) -> bool {
        self.state().endpoint.is_some()
    }

    pub(super) fn revision(&self) -> Option<Revision> {
        self.state().revision
    }

    /// A POST in the session era.
    pub(super) fn session_headers(&self, revision: Option<Revision>) -> Result<HeaderMap, dress::BadHeader> {
        let state = self.state();
        let session = state.session.as_deref();
        match revision.or(state.revision) {
            Some(revision) => dress::session_post(revision.as_str(), session),
            // An answer of ours before anything is agreed on.
            None => {
                let mut headers = dress::initialize();
                if let Some(mut id) = session.and_then(|id| HeaderValue::from_str(id).ok()) {
                    id.set_sensitive(true);
                    headers.insert(&MCP_SESSION_ID, id);
                }
                Ok(headers)
            }
        }
    }

    pub(super) fn post(&self, headers: HeaderMap, body: Bytes, what: &str) -> Ask {
        let address = self.state().endpoint.clone().unwrap_or_else(|| self.wire.address.clone());
        Ask { method: Method::POST, address, headers, body, what: what.into() }
    }

    /// A GET that listens, or goes on listening after the last event that came.
    pub(super) fn listen(&self, last: Option<&str>) -> Result<Ask, dress::BadHeader> {
        let state = self.state();
        let headers = match state.revision {
            Some(revision) => dress::session_get(revision.as_str(), state.session.as_deref(), last)?,
            None => dress::event_stream(),
        };
        Ok(self.without_body(Method::GET, headers))
    }

    /// A DELETE of the session, if there is one. There is none afterwards.
    pub(super) fn leave(&self) -> Option<Ask> {
        let mut state = self.state();
        let session = state.session.take()?;
        let headers = dress::session_delete(state.revision?.as_str(), &session).ok()?;
        Some(self.without_body(Method::DELETE, headers))
    }

    fn without_body(&self, method: Method, headers: HeaderMap) -> Ask {
        let what = if method == Method::GET { "GET" } else { "DELETE" };
        Ask { method, address: self.wire.address.clone(), headers, body: Bytes::new(), what: what.into() }
    }

    /// While it lives, a request has no head of an answer.
    pub(super) fn headless(&self) -> Headless<'_> {
        self.headless.fetch_add(1, Ordering::Relaxed);
        Headless(&self.headless)
    }

    pub(super) fn has_headless(&self) -> bool {
        self.headless.load(Ordering::Relaxed) > 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Headless<'a>(&'a AtomicUsize);

impl Drop for Headless<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
