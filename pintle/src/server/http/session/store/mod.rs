//! Stores of sessions, so that other processes can continue them.
//!
//! A call of a session runs in one process. The record of a session can be kept in a [`Sessions`] store: then a request may reach
//! any process of a deployment, and processes may be restarted. [`MemorySessions`] is a store for tests. `pintle-redis` has one for
//! production; for another database, implement the trait, and run `pintle_testing::kits::sessions::check` on it.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pintle_proto::server::SessionRecord;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::server::store::Stored;

/// A store of sessions.
///
/// Every request of a session calls [`renew`](Self::renew) or [`get`](Self::get) first, so a session that one process has ended is over
/// for all. A process also calls one of them from time to time for each session with an open stream or a running call, so that the session does not
/// expire. A store that cannot be reached has to return an error and not `None`: clients are then asked to try again.
///
/// Processes may change a session at the same time. Each change is a [`replace`](Self::replace) of the version that was read: the
/// process whose version is outdated reads the session again and repeats its change. Nothing but [`create`](Self::create) adds a
/// session, so a session that was removed stays removed.
///
/// Answers, cancellations and the end of a session reach the process that runs a call if the processes share
/// [`Nodes`](super::nodes::Nodes) too: see [`Http::shared`](crate::server::http::Http::shared). Without them, route all requests of a
/// session to one process if handlers ask questions.
pub trait Sessions: fmt::Debug + Send + Sync + 'static {
    /// Stores a new session with version 1. It expires if it is not used for `idle`. Returns `false`, and changes nothing, if there
    /// is a session of that id.
    fn create<'a>(&'a self, id: &'a str, session: StoredSession, idle: Duration) -> Stored<'a, bool>;

    /// Returns the session of that id with its version, and sets its expiry to `idle` from now.
    fn get<'a>(&'a self, id: &'a str, idle: Duration) -> Stored<'a, Option<VersionedSession>>;

    /// Sets the expiry of a session to `idle` from now, and returns it if it has another version than this one.
    ///
    /// Requests of a session that this process knows call it. The default reads all of the session: a store that finds the version
    /// without decoding the rest is faster.
    fn renew<'a>(&'a self, id: &'a str, version: u64, idle: Duration) -> Stored<'a, Renewed> {
        let found = self.get(id, idle);
        Stored::later(async move {
            Ok(match found.await? {
                None => Renewed::Gone,
                Some(found) if found.version == version => Renewed::Unchanged,
                Some(found) => Renewed::Changed(found.into()),
            })
        })
    }

    /// Replaces a session if it has this version. Its version is then one more, and its expiry `idle` from now.
    fn replace<'a>(
        &'a self,
        id: &'a str,
        version: u64,
        session: StoredSession,
        idle: Duration,
    ) -> Stored<'a, Replaced>;

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

/// A stored session, and how often it was written.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct VersionedSession {
    /// The version: 1 for a new session, and one more with each replacement.
    pub version: u64,
    /// The record.
    pub session: StoredSession,
}

impl VersionedSession {
    /// Creates a session with this version.
    pub fn new(version: u64, session: StoredSession) -> Self {
        Self { version, session }
    }
}

/// The result of [`Sessions::renew`].
#[expect(clippy::exhaustive_enums, reason = "a comparison has no other result")]
#[derive(Clone, Debug, PartialEq)]
pub enum Renewed {
    /// The session has the version.
    Unchanged,
    /// The session has another version.
    Changed(Box<VersionedSession>),
    /// There is no session of that id.
    Gone,
}

/// The result of [`Sessions::replace`].
#[expect(clippy::exhaustive_enums, reason = "a comparison has no other result")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Replaced {
    /// The session was replaced.
    Done,
    /// The session has another version, and is unchanged.
    Conflict,
    /// There is no session of that id, and none was created.
    Gone,
}

/// The stored record of a session, serialized with serde.
#[non_exhaustive]
#[derive(Clone, Deserialize, PartialEq, Serialize)]
pub struct StoredSession {
    /// The principal that opened the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The name of the server that the session was opened with. Another server does not continue it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The secret by which the processes that have the session know the ids of each other's questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question_key: Option<String>,
    /// The protocol state of the session.
    #[serde(flatten)]
    pub record: SessionRecord,
}

impl StoredSession {
    /// Creates the record of a session of this principal.
    pub fn new(principal: Option<&str>, record: SessionRecord) -> Self {
        Self { principal: principal.map(str::to_owned), server: None, question_key: None, record }
    }

    /// Sets the name of the server that the session was opened with.
    #[must_use]
    pub fn at_server(self, name: impl Into<String>) -> Self {
        Self { server: Some(name.into()), ..self }
    }
}

/// Without the key, which is secret.
impl fmt::Debug for StoredSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { principal, server, question_key: _, record } = self;
        f.debug_struct("StoredSession")
            .field("principal", principal)
            .field("server", server)
            .field("record", record)
            .finish_non_exhaustive()
    }
}

/// A session store in memory, for tests and for several services in one process.
#[derive(Debug, Default)]
pub struct MemorySessions(Mutex<SessionMap>);

#[derive(Debug, Default)]
struct SessionMap {
    sessions: HashMap<String, MemorySession>,
    /// The number of sessions at which expired ones are removed.
    crowded: usize,
}

#[derive(Debug)]
struct MemorySession {
    stored: VersionedSession,
    end: Instant,
}

impl SessionMap {
    fn live(&mut self, id: &str, now: Instant) -> Option<&mut MemorySession> {
        self.sessions.get_mut(id).filter(|session| session.end > now)
    }
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
    fn create<'a>(&'a self, id: &'a str, session: StoredSession, idle: Duration) -> Stored<'a, bool> {
        let now = Instant::now();
        let mut map = self.lock();
        if map.live(id, now).is_some() {
            return Stored::now(false);
        }
        let SessionMap { sessions, crowded } = &mut *map;
        if sessions.len() >= *crowded {
            sessions.retain(|_, session| session.end > now);
            *crowded = 2 * sessions.len() + 16;
        }
        let stored = VersionedSession::new(1, session);
        sessions.insert(id.to_owned(), MemorySession { stored, end: now + idle.min(CENTURY) });
        Stored::now(true)
    }

    fn get<'a>(&'a self, id: &'a str, idle: Duration) -> Stored<'a, Option<VersionedSession>> {
        let now = Instant::now();
        let mut map = self.lock();
        Stored::now(map.live(id, now).map(|session| {
            session.end = now + idle.min(CENTURY);
            session.stored.clone()
        }))
    }

    fn replace<'a>(
        &'a self,
        id: &'a str,
        version: u64,
        session: StoredSession,
        idle: Duration,
    ) -> Stored<'a, Replaced> {
        let now = Instant::now();
        let mut map = self.lock();
        let Some(found) = map.live(id, now) else { return Stored::now(Replaced::Gone) };
        if found.stored.version != version {
            return Stored::now(Replaced::Conflict);
        }
        found.stored = VersionedSession::new(version.saturating_add(1), session);
        found.end = now + idle.min(CENTURY);
        Stored::now(Replaced::Done)
    }

    fn contains<'a>(&'a self, id: &'a str) -> Stored<'a, bool> {
        Stored::now(self.lock().live(id, Instant::now()).is_some())
    }

    fn remove<'a>(&'a self, id: &'a str) -> Stored<'a, bool> {
        let removed = self.lock().sessions.remove(id);
        Stored::now(removed.is_some_and(|session| session.end > Instant::now()))
    }
}

impl<S: Sessions + ?Sized> Sessions for Arc<S> {
    fn create<'a>(&'a self, id: &'a str, session: StoredSession, idle: Duration) -> Stored<'a, bool> {
        (**self).create(id, session, idle)
    }

    fn get<'a>(&'a self, id: &'a str, idle: Duration) -> Stored<'a, Option<VersionedSession>> {
        (**self).get(id, idle)
    }

    fn renew<'a>(&'a self, id: &'a str, version: u64, idle: Duration) -> Stored<'a, Renewed> {
        (**self).renew(id, version, idle)
    }

    fn replace<'a>(
        &'a self,
        id: &'a str,
        version: u64,
        session: StoredSession,
        idle: Duration,
    ) -> Stored<'a, Replaced> {
        (**self).replace(id, version, session, idle)
    }

    fn contains<'a>(&'a self, id: &'a str) -> Stored<'a, bool> {
        (**self).contains(id)
    }

    fn remove<'a>(&'a self, id: &'a str) -> Stored<'a, bool> {
        (**self).remove(id)
    }
}
