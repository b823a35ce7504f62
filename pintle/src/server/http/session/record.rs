//! A session's record in the store: when it is read, adopted and written.

use std::{io, sync::Arc, time::Duration};

use pintle_proto::{
    http::Refusal,
    server::{Call, Inbound, Outcome, Performed, Service, SessionRecord},
};
use pintle_types::{Frame, RawObject, RpcError};
use tokio::sync::oneshot;

use super::{
    Core, Session,
    store::{Sessions, StoredSession},
};
use crate::server::http::{edge::response::store_failed, settings::HttpSettings};

/// The error for a subscription of the stateless era in a session.
pub(super) const NO_SUBSCRIPTIONS: &str =
    "subscriptions are not served in a session: send `subscriptions/listen` as a stateless request";

/// Orders the reads and the local changes of one session's record, so that an older record never replaces a newer one.
#[derive(Default)]
pub(super) struct RecordClock {
    now: u64,
    /// A record that was read earlier than this is out of date.
    valid_from: u64,
    /// How many local changes are not in the store yet.
    unwritten: u32,
}

/// When a read of the record began.
#[derive(Clone, Copy)]
pub(in crate::server::http) struct ReadStart(u64);

/// A local change that is not in the store yet. Until this is dropped, nothing that is read there is adopted.
pub(in crate::server::http) struct Unwritten(Arc<Session>);

impl Drop for Unwritten {
    fn drop(&mut self) {
        let mut core = self.0.lock();
        let clock = core.record_clock();
        clock.unwritten -= 1;
        clock.now += 1;
        clock.valid_from = clock.now;
    }
}

impl Core {
    fn record_clock(&mut self) -> &mut RecordClock {
        self.record_clock.get_or_insert_default()
    }
}

impl Session {
    /// Returns the lock of writes to the store.
    fn writes(&self) -> &tokio::sync::Mutex<()> {
        self.writes.get_or_init(Box::default)
    }

    /// Returns the record from which another process can restore the session.
    pub(in crate::server::http) fn stored(&self) -> Option<StoredSession> {
        let record = self.lock().engine.record()?;
        let stored = StoredSession::new(self.principal.as_deref(), record);
        Some(stored.at_server(&*self.server.snapshot().service.info().name))
    }

    /// Marks the beginning of a read of the record, for [`adopt`](Self::adopt).
    pub(in crate::server::http) fn start_read(&self) -> ReadStart {
        let mut core = self.lock();
        let clock = core.record_clock();
        clock.now += 1;
        ReadStart(clock.now)
    }

    /// Adopts the record of another process, unless it is older than the state here.
    pub(in crate::server::http) fn adopt(&self, record: &SessionRecord, read: ReadStart) {
        let snapshot = self.server.snapshot();
        let mut core = self.lock();
        let clock = core.record_clock();
        if clock.unwritten == 0 && read.0 >= clock.valid_from {
            clock.valid_from = read.0;
            core.engine.adopt(&snapshot.service, record);
        }
    }

    /// Passes messages to the engine. Also returns a guard if they changed the record, which has to be written then.
    pub(in crate::server::http) fn receive_recorded(
        self: &Arc<Self>,
        service: &Service,
        frame: Frame,
    ) -> (Inbound, Option<Unwritten>) {
        let mut core = self.lock();
        let before = core.engine.record();
        let inbound = self.receive_in(&mut core, service, frame);
        let changed = core.engine.record() != before;
        if changed {
            core.record_clock().unwritten += 1;
        }
        drop(core);
        (inbound, changed.then(|| Unwritten(self.clone())))
    }

    /// Carries out a request that the layers have passed on, and stores the change that it makes to the session before the
    /// layers see the outcome.
    pub(in crate::server::http) fn perform(
        self: &Arc<Self>,
        settings: &HttpSettings,
        service: &Service,
        call: &Call,
        params: &RawObject,
        reply: oneshot::Sender<Outcome>,
    ) {
        let (outcome, change) = {
            let mut core = self.lock();
            let before = settings.store.is_some().then(|| core.engine.record());
            let performed = core.engine.perform(service, call, params);
            self.follow(&mut core);
            let changed = before.is_some_and(|before| core.engine.record() != before);
            if changed {
                core.record_clock().unwritten += 1;
            }
            drop(core);
            let outcome = match performed {
                Ok(Performed::Outcome(outcome)) => outcome,
                Ok(Performed::Listen(_)) => Outcome::Failed(RpcError::invalid_request(NO_SUBSCRIPTIONS)),
                Err(error) => Outcome::Failed(error),
            };
            (outcome, changed.then(|| Unwritten(self.clone())))
        };
        let outcome = self.note_peer().err().map_or(outcome, Outcome::Failed);
        let Some((change, store)) = change.zip(settings.store.clone()).filter(|_| self.is_written()) else {
            // The layers may have ended meanwhile.
            let _ = reply.send(outcome);
            return;
        };
        let (session, idle) = (self.clone(), settings.idle_session);
        // In a task, so that a client that disconnects leaves no unwritten change.
        tokio::spawn(async move {
            let written = session.write(&*store, idle).await;
            drop(change);
            let outcome = match written {
                Ok(true) => outcome,
                Ok(false) => Outcome::Failed(Refusal::unknown_session().error),
                Err(error) => Outcome::Failed(store_failed(&error).error),
            };
            let _ = reply.send(outcome);
        });
    }

    /// Writes the current record to the store. Writes are serialized, so that the last one is complete. Returns `false` if the
    /// session has ended.
    pub(in crate::server::http) async fn write(
        &self,
        store: &dyn Sessions,
        idle: Duration,
    ) -> io::Result<bool> {
        let _turn = self.writes().lock().await;
        match self.stored() {
            Some(stored) if !self.is_over() => {
                store.put(&self.id.to_string(), stored, idle).await?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Removes an ended session from the store, after pending writes.
    pub(in crate::server::http) async fn erase(&self, store: &dyn Sessions) -> io::Result<bool> {
        let _turn = self.writes().lock().await;
        store.remove(&self.id.to_string()).await
    }
}
