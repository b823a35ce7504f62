//! Stores of sessions, so that other processes can continue them.
//!
//! The calls and streams of a session are always in one process. The record of a session can be kept in a [`Sessions`] store:
//! then a request may reach any process of a deployment, and processes may be restarted. [`MemorySessions`] is a store for tests.
//! For production, implement the trait, and run [`kit::check`] on it.

pub mod kit;

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pintle_proto::server::SessionRecord;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::log::Stored;

/// A store of sessions.
///
/// Every request of a session calls [`get`](Self::get) first, so a session that one process has ended is over for all. A process
/// also calls it from time to time for each session with an open stream or a running call, so that the session does not
/// expire. A store that cannot be reached has to return an error and not `None`: clients are then asked to try again.
///
/// A question to the client belongs to the process of its call, and the answer has to reach that process. Route all requests of
/// a session to one process if handlers ask questions.
pub trait Sessions: fmt::Debug + Send + Sync + 'static {
    /// Stores a session, replacing an older record. It expires if it is not used for `idle`.
    fn put<'a>(&'a self, id: &'a str, session: StoredSession, idle: Duration) -> Stored<'a, ()>;

    /// Returns the session of that id, and sets its expiry to `idle` from now.
    fn get<'a>(&'a self, id: &'a str, idle: Duration) -> Stored<'a, Option<StoredSession>>;

    /// Returns whether there is a session of that id, without changing its expiry.
    ///
    /// A process that drops an idle session calls this to decide whether to forget its
    /// [events](super::log::EventLog::forget_session). If a store always returns `true`, the events stay until the log expires
    /// them.
    fn contains<'a>(&'a self, id: &'a str) -> Stored<'a, bool> {
        let _ = id;
        Stored::now(true)
    }

    /// Removes a session. Returns `false` if there is none of that id.
    fn remove<'a>(&'a self, id: &'a str) -> Stored<'a, bool>;
}

/// The stored record of a session, serialized with serde.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct StoredSession {
    /// The principal that opened the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The name of the server that the session was opened with. Another server does not continue it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The protocol state of the session.
    #[serde(flatten)]
    pub record: SessionRecord,
}

impl StoredSession {
    /// Creates the record of a session of this principal.
    pub fn new(principal: Option<&str>, record: SessionRecord) -> Self {
        Self { principal: principal.map(str::to_owned), server: None, record }
    }

    /// Sets the name of the server that the session was opened with.
    #[must_use]
    pub fn at_server(self, name: impl Into<String>) -> Self {
        Self { server: Some(name.into()), ..self }
    }
}

/// A session store in memory, for tests and for several services in one process.
#[derive(Debug, Default)]
pub struct MemorySessions(Mutex<SessionMap>);

#[derive(Debug, Default)]
struct SessionMap {
    sessions: HashMap<String, (StoredSession, Instant)>,
    /// The number of sessions at which expired ones are removed.
    crowded: usize,
}

impl MemorySessions {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, SessionMap> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The limit of durations: later instants may not be representable.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Sessions for MemorySessions {
    fn put<'a>(&'a self, id: &'a str, session: StoredSession, idle: Duration) -> Stored<'a, ()> {
        let now = Instant::now();
        let mut map = self.lock();
        let SessionMap { sessions, crowded } = &mut *map;
        if sessions.len() >= *crowded {
            sessions.retain(|_, (_, end)| *end > now);
            *crowded = 2 * sessions.len() + 16;
        }
        sessions.insert(id.to_owned(), (session, now + idle.min(CENTURY)));
        Stored::now(())
    }

    fn get<'a>(&'a self, id: &'a str, idle: Duration) -> Stored<'a, Option<StoredSession>> {
        let now = Instant::now();
        let mut map = self.lock();
        let found = map.sessions.get_mut(id).filter(|(_, end)| *end > now);
        Stored::now(found.map(|(session, end)| {
            *end = now + idle.min(CENTURY);
            session.clone()
        }))
    }

    fn contains<'a>(&'a self, id: &'a str) -> Stored<'a, bool> {
        let now = Instant::now();
        Stored::now(self.lock().sessions.get(id).is_some_and(|(_, end)| *end > now))
    }

    fn remove<'a>(&'a self, id: &'a str) -> Stored<'a, bool> {
        let removed = self.lock().sessions.remove(id);
        Stored::now(removed.is_some_and(|(_, end)| end > Instant::now()))
    }
}
