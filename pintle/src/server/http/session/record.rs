//! A session's record in the store: when it is read, adopted and written.

use std::{io, sync::Arc, time::Duration};

use pintle_proto::{
    http::Refusal,
    server::{CarriedOut, Outcome, SessionRecord},
};
use pintle_types::{RpcError, method};
use tokio::{sync::oneshot, time::Instant};

use super::{
    Core, Session,
    nodes::message::MessageBody,
    question_ids::QuestionIds,
    store::{SessionStore, StoredSession, VersionedSession},
    two_endpoints::without_subscriptions,
};
use crate::server::{
    Cx,
    core::{snapshot::Snapshot, subscription},
    http::{edge::response::store_failed, settings::HttpSettings},
    store::{Expected, Put},
};

/// The error for a subscription of the stateless era in a session.
const NO_SUBSCRIPTIONS: &str =
    "subscriptions are not served in a session: send `subscriptions/listen` as a stateless request";

/// The version of one session's record that is in use here, and the local changes that are not in the store yet.
#[derive(Default)]
pub(super) struct RecordVersion {
    /// The version in the store that was read or written last.
    version: u64,
    /// Whether the state here is that of this version: it was read in the store, and nothing has changed here since.
    is_adopted: bool,
    /// The number of local changes that are not in the store yet.
    unwritten: u32,
    /// The record of that version in the store, while there are local changes.
    base: Option<Box<SessionRecord>>,
    /// The number of gaps in the messages of other processes when they were last told that this process has the session.
    gaps: u64,
    /// When they were last told that.
    joined: Option<Instant>,
}

/// The end of a call after its effect.
pub(in crate::server::http) enum CallEffect {
    Done(Outcome),
    /// The session has changed: the outcome comes once it is stored.
    Stored(oneshot::Receiver<Result<Outcome, Refusal>>),
}

/// A local change that is not in the store yet. Until this is dropped, nothing that is read there is adopted.
pub(in crate::server::http) struct Unwritten(Arc<Session>);

impl Drop for Unwritten {
    fn drop(&mut self) {
        let mut core = self.0.lock();
        let known = core.record_version();
        known.unwritten -= 1;
        if known.unwritten == 0 {
            known.base = None;
        }
    }
}

impl Core {
    fn record_version(&mut self) -> &mut RecordVersion {
        self.record_version.get_or_insert_default()
    }

    /// Notes a local change of the record.
    fn change_record(&mut self, before: Option<SessionRecord>) {
        let known = self.record_version();
        known.unwritten += 1;
        // It may not be written.
        known.is_adopted = false;
        if known.base.is_none() {
            known.base = before.map(Box::new);
        }
    }
}

/// How often a change is repeated because another process has changed the session meanwhile.
const MAX_CONFLICTS: usize = 32;

impl Session {
    /// Returns the lock of writes to the store.
    fn writes(&self) -> &tokio::sync::Mutex<()> {
        self.writes.get_or_init(Box::default)
    }

    /// Returns the record from which another process can restore the session.
    pub(in crate::server::http) fn stored(&self) -> Option<StoredSession> {
        let record = self.lock().engine.record()?;
        Some(StoredSession {
            principal: self.principal.as_deref().map(str::to_owned),
            server: Some(self.server.snapshot().service.info().name.to_string()),
            question_key: self.question_ids().map(QuestionIds::key),
            record,
        })
    }

    /// Marks the session as stored with this version.
    pub(in crate::server::http) fn set_version(&self, version: u64) {
        self.lock().record_version().version = version;
        self.set_written();
    }

    /// Returns whether the other processes were told that this one has the session, after so many gaps in their messages.
    pub(in crate::server::http) fn is_joined_after(&self, gaps: u64) -> bool {
        self.lock().record_version.as_ref().is_none_or(|known| known.gaps == gaps)
    }

    /// Returns whether they have to be told again, because that was longer ago than this.
    pub(in crate::server::http) fn is_joined_before(&self, age: Duration) -> bool {
        let core = self.lock();
        core.record_version
            .as_ref()
            .and_then(|known| known.joined)
            .is_some_and(|joined| joined.elapsed() >= age)
    }

    /// Notes that the other processes are told, after so many gaps.
    pub(in crate::server::http) fn set_joined_after(&self, gaps: u64) {
        let mut core = self.lock();
        let known = core.record_version();
        (known.gaps, known.joined) = (gaps, Some(Instant::now()));
    }

    /// Returns the version of the stored record that the state here is that of. `None` if there is none, or if the store may have lost
    /// that version since, which is the case after a gap in the messages of other processes.
    pub(in crate::server::http) fn stored_version(&self, gaps: u64) -> Option<u64> {
        let core = self.lock();
        let known = core.record_version.as_ref()?;
        (known.is_adopted && known.gaps == gaps).then_some(known.version)
    }

    /// Adopts the record of another process, unless it is older than the state here.
    pub(in crate::server::http) fn adopt(&self, stored: &VersionedSession) {
        let snapshot = self.server.snapshot();
        let mut core = self.lock();
        let known = core.record_version();
        if known.unwritten == 0 && stored.version >= known.version {
            known.version = stored.version;
            known.is_adopted = true;
            core.engine.adopt(&snapshot.service, &stored.session.record);
        }
    }

    /// Adopts the record of another process besides the local changes.
    fn merge(&self, stored: VersionedSession) {
        let snapshot = self.server.snapshot();
        let mut core = self.lock();
        let known = core.record_version();
        known.version = stored.version;
        let theirs = stored.session.record;
        let base = known.base.replace(Box::new(theirs.clone()));
        if let Some((base, ours)) = base.zip(core.engine.record()) {
            core.engine.adopt(&snapshot.service, &merged(&base, ours, theirs));
        }
    }

    /// Carries out what a call that is over has prepared, and stores the change that it makes to the session before its response.
    pub(in crate::server::http) fn carry_out(
        self: &Arc<Self>,
        settings: &HttpSettings,
        snapshot: &Snapshot,
        cx: &Cx,
        outcome: Outcome,
    ) -> CallEffect {
        let (outcome, change) = {
            let mut core = self.lock();
            let before = settings.store.is_some().then(|| core.engine.record());
            let outcome = self.apply(&mut core, snapshot, cx, outcome);
            let before = before.filter(|before| core.engine.record() != *before);
            let changed = before.is_some();
            if let Some(before) = before {
                core.change_record(before);
            }
            drop(core);
            (outcome, changed.then(|| Unwritten(self.clone())))
        };
        let outcome = self.note_peer().err().map_or(outcome, Outcome::Failed);
        let Some((change, store)) = change.zip(settings.store.clone()).filter(|_| self.is_written()) else {
            return CallEffect::Done(outcome);
        };
        let (session, idle) = (self.clone(), settings.idle_session);
        let (report, written) = oneshot::channel();
        // In a task, so that a client that disconnects leaves no unwritten change.
        crate::runtime::spawn(async move {
            let written = session.write(&store, idle).await;
            drop(change);
            if let Some(shared) = session.kept.as_ref().and_then(|kept| kept.shared.upgrade()) {
                shared.notify_others(session.id, MessageBody::Record);
            }
            // The exchange may have ended meanwhile.
            let _ = report.send(match written {
                Ok(true) => Ok(outcome),
                Ok(false) => Err(Refusal::unknown_session()),
                Err(error) => Err(store_failed(&error)),
            });
        });
        CallEffect::Stored(written)
    }

    /// Carries out what a call that is over has prepared, in this process.
    pub(super) fn apply(&self, core: &mut Core, snapshot: &Snapshot, cx: &Cx, outcome: Outcome) -> Outcome {
        let done = subscription::carry_out(&mut core.engine, snapshot, cx.call(), outcome, || cx.clone());
        self.follow(core);
        self.yield_if_charged(core);
        match done {
            CarriedOut::Outcome(outcome) if cx.method() == method::SERVER_DISCOVER => {
                without_subscriptions(outcome)
            }
            CarriedOut::Outcome(outcome) => outcome,
            CarriedOut::Listen(_) => Outcome::Failed(RpcError::invalid_request(NO_SUBSCRIPTIONS)),
        }
    }

    /// Writes the current record to the store, with the changes that other processes have made meanwhile. Writes are serialized, so
    /// that the last one is complete. Returns `false` if the session has ended.
    pub(in crate::server::http) async fn write(
        &self,
        store: &SessionStore,
        idle: Duration,
    ) -> io::Result<bool> {
        let _turn = self.writes().lock().await;
        let id = self.id.to_string();
        for _ in 0..MAX_CONFLICTS {
            let Some(stored) = self.stored().filter(|_| !self.is_over()) else { return Ok(false) };
            let version = self.lock().record_version().version;
            match store.put(&id, Expected::Version(version), &stored, idle).await? {
                Put::Done(version) => {
                    let mut core = self.lock();
                    let known = core.record_version();
                    known.version = version;
                    known.base = Some(Box::new(stored.record));
                    return Ok(true);
                }
                Put::Gone | Put::Forgotten => return Ok(false),
                Put::Other => match store.get(&id, idle).await? {
                    Some(theirs) => self.merge(theirs),
                    None => return Ok(false),
                },
            }
        }
        Err(io::Error::other("other processes change the session all the time"))
    }

    /// Removes an ended session from the store, after pending writes.
    pub(in crate::server::http) async fn erase(&self, store: &SessionStore) -> io::Result<bool> {
        let _turn = self.writes().lock().await;
        store.remove(&self.id.to_string()).await
    }
}

/// Applies the changes from `base` to `ours` to the record of another process.
fn merged(base: &SessionRecord, ours: SessionRecord, mut theirs: SessionRecord) -> SessionRecord {
    let was_watched = |uri: &String| base.watched.contains(uri);
    theirs.watched.retain(|uri| ours.watched.contains(uri) || !was_watched(uri));
    for uri in ours.watched {
        if !was_watched(&uri) && !theirs.watched.contains(&uri) {
            theirs.watched.push(uri);
        }
    }
    if ours.log_level != base.log_level {
        theirs.log_level = ours.log_level;
    }
    // A repeated handshake changes all of these.
    if (&ours.revision, &ours.client, &ours.capabilities)
        != (&base.revision, &base.client, &base.capabilities)
    {
        (theirs.revision, theirs.client, theirs.capabilities) =
            (ours.revision, ours.client, ours.capabilities);
    }
    theirs
}

#[cfg(test)]
mod tests {
    use pintle_proto::Revision;
    use pintle_types::schema::LoggingLevel;

    use super::*;

    #[test]
    fn the_changes_of_both_processes_are_kept() {
        let record = |watched: &[&str], level: Option<LoggingLevel>| {
            let mut record = SessionRecord::new(Revision::all().next_back().unwrap());
            record.watched = watched.iter().map(|uri| (*uri).to_owned()).collect();
            record.log_level = level;
            record
        };
        let base = record(&["a", "b", "c"], Some(LoggingLevel::Info));
        let ours = record(&["b", "c", "ours"], Some(LoggingLevel::Info));
        let theirs = record(&["a", "c", "theirs"], Some(LoggingLevel::Error));
        let both = merged(&base, ours, theirs.clone());
        assert_eq!(both, record(&["c", "theirs", "ours"], Some(LoggingLevel::Error)));
        // The last one to write wins where both changed the same.
        let ours = record(&["a", "b", "c", "theirs"], Some(LoggingLevel::Debug));
        let both = merged(&base, ours, theirs);
        assert_eq!(both, record(&["a", "c", "theirs"], Some(LoggingLevel::Debug)));
    }
}
