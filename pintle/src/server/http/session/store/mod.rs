//! The records of sessions in a store, so that other processes can continue them.
//!
//! A call of a session runs in one process. If the record of a session is in a [`Store`] that processes share, a request may reach any
//! of them, and processes may be restarted. Every request of a session reads its record first, so a session that one process has ended
//! is over for all. Processes may change a session at the same time: each change is one of the version that was read, and the process
//! whose version is outdated reads the session again and repeats its change.

use std::{fmt, io, sync::Arc, time::Duration};

use pintle_proto::server::SessionRecord;
use serde::{Deserialize, Serialize};

use crate::server::store::{Expected, GetOptions, Got, Key, Life, Put, Space, Store};

/// The sessions of a store.
#[derive(Clone, Debug)]
pub(in crate::server::http) struct SessionStore(pub(in crate::server::http) Arc<dyn Store>);

/// A stored session, and how often it was written.
#[derive(Debug)]
pub(in crate::server::http) struct VersionedSession {
    pub(in crate::server::http) version: u64,
    pub(in crate::server::http) session: StoredSession,
}

/// The stored record of a session, serialized with serde.
#[derive(Clone, Deserialize, Serialize)]
pub(in crate::server::http) struct StoredSession {
    /// The principal that opened the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::server::http) principal: Option<String>,
    /// The name of the server that the session was opened with. Another server does not continue it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::server::http) server: Option<String>,
    /// The secret by which the processes that have the session know the ids of each other's questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::server::http) question_key: Option<String>,
    /// The protocol state of the session.
    #[serde(flatten)]
    pub(in crate::server::http) record: SessionRecord,
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

/// The result of reading a session of which a version is known.
pub(in crate::server::http) enum Renewed {
    Unchanged,
    Changed(Box<VersionedSession>),
    Gone,
}

impl SessionStore {
    /// Stores a new session with version 1, which expires if it is not used for `idle`. Returns `false` if there is one of that id.
    pub(in crate::server::http) async fn create(
        &self,
        id: &str,
        session: &StoredSession,
        idle: Duration,
    ) -> io::Result<bool> {
        Ok(matches!(self.put(id, Expected::Absent, session, idle).await?, Put::Done(_)))
    }

    /// Returns the session of that id, and sets its expiry to `idle` from now.
    pub(in crate::server::http) async fn get(
        &self,
        id: &str,
        idle: Duration,
    ) -> io::Result<Option<VersionedSession>> {
        Ok(match self.renew(id, None, idle).await? {
            Renewed::Changed(session) => Some(*session),
            Renewed::Unchanged | Renewed::Gone => None,
        })
    }

    /// Sets the expiry of a session to `idle` from now, and returns it if it has another version than this one.
    pub(in crate::server::http) async fn renew(
        &self,
        id: &str,
        known: Option<u64>,
        idle: Duration,
    ) -> io::Result<Renewed> {
        let how = GetOptions::default().prolong(idle).unless(known);
        Ok(match self.0.get(key(id), how).await? {
            Got::None => Renewed::Gone,
            Got::Same => Renewed::Unchanged,
            Got::Value { version, value } => {
                let session = serde_json::from_slice(&value)?;
                Renewed::Changed(Box::new(VersionedSession { version, session }))
            }
        })
    }

    /// Puts a session as a new one, or for the version that was read.
    pub(in crate::server::http) async fn put(
        &self,
        id: &str,
        at: Expected,
        session: &StoredSession,
        idle: Duration,
    ) -> io::Result<Put> {
        let value = serde_json::to_vec(session)?;
        self.0.put(key(id).owned_by(session.principal.as_deref()), at, &value, Life::Idle(idle)).await
    }

    /// Returns whether there is a session of that id, without changing its expiry.
    pub(in crate::server::http) async fn contains(&self, id: &str) -> io::Result<bool> {
        Ok(self.0.get(key(id), GetOptions::default()).await? != Got::None)
    }

    /// Removes a session. Returns `false` if there is none of that id.
    pub(in crate::server::http) async fn remove(&self, id: &str) -> io::Result<bool> {
        self.0.remove(key(id)).await
    }
}

fn key(id: &str) -> Key<'_> {
    Key::new(Space::Session, id)
}
