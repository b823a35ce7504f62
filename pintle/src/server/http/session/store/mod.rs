//! Sessions that are written down, so that another process can go on with them.
//!
//! What goes on in a session, its calls and streams, is always in one process. What a session *is* can be written down in
//! a [`Sessions`]: then a request may reach any process of a fleet, and one may be restarted. [`MemorySessions`] is the
//! one to test with. To write another, see the trait, and run [`kit::check`] on it.

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

/// Where sessions are written down.
///
/// Every request of a session asks [`get`](Self::get) first, so a session that one process ended is over for all. So does a
/// process from time to time for each session that is in use there, by an open stream or a call, so that it does not end
/// meanwhile. A store that cannot be reached answers with an error, never with `None`: clients are told to try again.
/// A question that a call asks its client is in the process of that call, and so must be the answer: keep the requests
/// of one session together where clients are asked.
pub trait Sessions: fmt::Debug + Send + Sync + 'static {
    /// Writes a session down, in the place of what is there. It may be forgotten when it was not used for `idle`.
    fn put<'a>(&'a self, id: &'a str, session: StoredSession, idle: Duration) -> Stored<'a, ()>;

    /// The session of that id. Asking is using: the time to its end begins anew.
    fn get<'a>(&'a self, id: &'a str, idle: Duration) -> Stored<'a, Option<StoredSession>>;

    /// Whether there is a session of that id. Looking is not using: the time to its end goes on.
    ///
    /// A process that has not used a session for long asks this to know whether it is to forget the
    /// [events](super::log::EventLog::forget_session) too. A store that always says yes leaves them to the age that the log
    /// gives them.
    fn contains<'a>(&'a self, id: &'a str) -> Stored<'a, bool> {
        let _ = id;
        Stored::now(true)
    }

    /// Forgets a session. `false` if there is none of that id.
    fn remove<'a>(&'a self, id: &'a str) -> Stored<'a, bool>;
}

/// What is written down of a session: print and read it with serde.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct StoredSession {
    /// Who opened it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// What it is.
    #[serde(flatten)]
    pub record: SessionRecord,
}

impl StoredSession {
    /// A session of somebody.
    pub fn new(principal: Option<&str>, record: SessionRecord) -> Self {
        Self { principal: principal.map(str::to_owned), record }
    }
}

/// Sessions that are written down in memory: for tests, and for several services in one process.
#[derive(Debug, Default)]
pub struct MemorySessions(Mutex<SessionMap>);

#[derive(Debug, Default)]
struct SessionMap {
    sessions: HashMap<String, (StoredSession, Instant)>,
    /// How many there are before those that are over are looked for.
    crowded: usize,
}

impl MemorySessions {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, SessionMap> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the largest durations are cut to: an instant that late cannot be told.
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
