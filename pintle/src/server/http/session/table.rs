use std::{
    io,
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::{
    Session,
    id::SessionId,
    question_ids::QuestionIds,
    registry::{AddedSession, Quota, Refused, Registry},
    store::SessionStore,
};
use crate::{
    Ended,
    server::{
        core::sessions::{LiveSession, SessionFacts},
        http::shared::HttpShared,
    },
};

/// The sessions of this process. A task removes expired ones, as long as there are sessions.
pub(in crate::server::http) struct SessionTable {
    sessions: RwLock<Registry>,
    swept: AtomicBool,
    epoch: Instant,
}

/// The bounds of the interval in which expired sessions are removed.
const SWEEP: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

/// The longest interval in which the stored records of sessions in use are refreshed.
const KEPT: Duration = Duration::from_secs(600);

/// The tolerance for late clocks and stores.
const MARGIN: Duration = Duration::from_secs(5);

impl SessionTable {
    pub(in crate::server::http) fn new() -> Self {
        Self { sessions: RwLock::default(), swept: AtomicBool::new(false), epoch: Instant::now() }
    }

    /// Adds a session, within the limits. Returns the session of that id if there is one already.
    pub(in crate::server::http) fn add(
        &self,
        session: Arc<Session>,
        quota: &Quota,
    ) -> Result<AddedSession, Refused> {
        let now = self.now();
        session.touch(now);
        self.write().add(session, quota, now)
    }

    pub(in crate::server::http) fn find(&self, id: SessionId) -> Option<Arc<Session>> {
        let session = self.read().find(id).cloned()?;
        session.touch(self.now());
        Some(session)
    }

    pub(in crate::server::http) fn remove(&self, id: SessionId) -> Option<Arc<Session>> {
        self.write().remove(id)
    }

    /// Removes and returns all sessions.
    pub(in crate::server::http) fn take_all(&self) -> Vec<Arc<Session>> {
        self.write().extract(|_| true)
    }

    pub(in crate::server::http) fn len(&self) -> usize {
        self.read().len()
    }

    /// Removes and returns the sessions that have been unused for `after`.
    fn idle(&self, after: Duration) -> Vec<Arc<Session>> {
        let now = self.now();
        let after = milliseconds(after);
        let is_old = |session: &Session| now.saturating_sub(session.seen.load(Ordering::Relaxed)) >= after;
        let (mut idle, held) = {
            let mut sessions = self.write();
            // A reference besides that of the table is a use: a request, an open stream, a running call.
            let idle = sessions.extract(|session| Arc::strong_count(session) == 1 && is_old(session));
            let held: Vec<_> = sessions.all().filter(|session| is_old(session)).cloned().collect();
            (idle, held)
        };
        // A call that waits for an answer of a client that is gone does not count: it would wait forever.
        let deserted = held.into_iter().filter(|session| session.is_deserted() && is_old(session));
        idle.extend(deserted.filter_map(|session| self.remove(session.id)));
        idle
    }

    /// Sends a ping to the sessions whose clients have an open stream and have been silent for an interval. Removes and returns
    /// those that have been silent for three.
    fn keep_alive(&self, every: Duration) -> Vec<Arc<Session>> {
        let now = self.now();
        let silent: Vec<_> =
            self.read().all().filter(|session| session.is_silent(now, every)).cloned().collect();
        let dead = every.saturating_mul(3);
        let (dead, asked): (Vec<_>, Vec<_>) =
            silent.into_iter().partition(|session| session.is_silent(now, dead));
        asked.iter().for_each(|session| session.send_keepalive());
        dead.into_iter().filter_map(|session| self.remove(session.id)).collect()
    }

    /// Returns the sessions in use that are in the store.
    pub(in crate::server::http) fn in_use(&self) -> Vec<Arc<Session>> {
        let sessions = self.read();
        let used = sessions.all().filter(|session| Arc::strong_count(session) > 1 && session.is_written());
        used.cloned().collect()
    }

    /// Removes and returns the uninitialized sessions that have been unused for `after`.
    fn uninitialized(&self, after: Duration) -> Vec<Arc<Session>> {
        let now = self.now();
        self.write().uninitialized(milliseconds(after), now)
    }

    pub(in crate::server::http) fn now(&self) -> u64 {
        milliseconds(self.epoch.elapsed())
    }

    fn read(&self) -> RwLockReadGuard<'_, Registry> {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Registry> {
        self.sessions.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The parts of a session that are rarely used, and only if it outlives a request.
pub(super) struct KeptSession {
    pub(super) facts: SessionFacts,
    /// The service that has it.
    pub(super) shared: Weak<HttpShared>,
    /// The ids of its questions, if several processes may have it.
    pub(super) question_ids: Option<QuestionIds>,
}

impl Default for KeptSession {
    fn default() -> Self {
        Self { facts: SessionFacts::new(), shared: Weak::new(), question_ids: None }
    }
}

impl Session {
    /// Sets the service that has it, and the ids of its questions if other processes may receive the answers.
    pub(super) fn of(mut self, shared: &Arc<HttpShared>, question_ids: Option<QuestionIds>) -> Self {
        let named = shared.settings().nodes.clone().zip(question_ids);
        if let Some((nodes, ids)) = &named {
            self.lock().engine.name_questions(ids.names(nodes.id()));
        }
        if let Some(kept) = &mut self.kept {
            kept.shared = Arc::downgrade(shared);
            kept.question_ids = named.map(|(_, ids)| ids);
        }
        self
    }

    /// Returns the ids of its questions, if several processes may have it.
    pub(in crate::server::http) fn question_ids(&self) -> Option<&QuestionIds> {
        self.kept.as_ref()?.question_ids.as_ref()
    }
}

impl HttpShared {
    /// Adds a session, and ends the one that was evicted for it.
    pub(in crate::server::http) async fn admit(
        self: &Arc<Self>,
        session: Arc<Session>,
    ) -> Result<Arc<Session>, Refused> {
        let AddedSession { session, evicted } = self.sessions.add(session, &self.settings().quota)?;
        let live: Arc<dyn LiveSession> = session.clone();
        session.server.session_registry().add(&live);
        drop(live);
        self.keep_tidy();
        if let Some(evicted) = evicted {
            tracing::debug!("a session had to make room for another one");
            let shared = self.clone();
            // In a task, so that a client that disconnects does not leave the events of the evicted session.
            let _ = crate::runtime::spawn(async move { shared.expire(&evicted).await }).await;
        }
        Ok(session)
    }

    /// Ends a session in a task, because others need its room.
    pub(super) fn give_up(self: &Arc<Self>, id: SessionId) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let shared = self.clone();
        crate::runtime::spawn_on(&runtime, async move {
            if let Some(session) = shared.sessions.remove(id) {
                tracing::debug!("a session was ended: its client keeps most, and others need the room");
                shared.expire(&session).await;
            }
        });
    }

    /// Starts the task that removes expired sessions, unless it runs.
    pub(super) fn keep_tidy(self: &Arc<Self>) {
        if !self.sessions.swept.swap(true, Ordering::AcqRel) {
            crate::runtime::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Ends a session that was removed from the table.
    async fn expire(&self, session: &Session) {
        session.end(Ended::Dead);
        self.leave_others(session.id).await;
        let id = session.id.to_string();
        // Another process may use a stored session and its events, and forgets them later.
        let used = match &self.settings().store {
            Some(store) if session.is_written() => store.contains(&id).await.unwrap_or(true),
            _ => false,
        };
        if !used {
            let _ = self.settings().log.forget_session(&id).await;
        }
    }

    /// Extends the expiry of the sessions in use in the store, and ends those that other processes have ended.
    ///
    /// # Errors
    ///
    /// Returns an error if the store fails. The other sessions are not extended then.
    pub(in crate::server::http) async fn keep_written(
        self: &Arc<Self>,
        store: &SessionStore,
    ) -> io::Result<()> {
        for session in self.sessions.in_use() {
            let id = session.id.to_string();
            match store.get(&id, self.settings().idle_session).await {
                Ok(Some(stored)) => {
                    session.adopt(&stored);
                    // A store that was restarted may have lost it.
                    self.join_others(&session).await?;
                }
                Ok(None) => {
                    self.sessions.remove(session.id);
                    session.end(Ended::Stopped);
                    let _ = self.settings().log.forget_session(&id).await;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends the questions of all sessions whose answers may have been lost between processes.
    pub(in crate::server::http) fn lose_answers(&self) {
        self.sessions.in_use().iter().for_each(|session| session.lose_answers());
    }
}

/// Returns the silence after which a client is pinged.
fn keepalive(shared: &Weak<HttpShared>) -> Option<Duration> {
    let every = shared.upgrade()?.settings().keepalive?;
    Some(every.max(SWEEP.0))
}

async fn sweep(shared: Weak<HttpShared>) {
    let Some((idle, opening)) = shared
        .upgrade()
        .map(|shared| (shared.settings().idle_session, shared.settings().uninitialized_session))
    else {
        return;
    };
    let pause = |life: Duration| (life / 4).clamp(SWEEP.0, SWEEP.1);
    // A stored session has to expire in the store before it is removed here.
    let later = |life: Duration, shared: &HttpShared| {
        let margin = if shared.settings().store.is_some() { (life / 8).min(MARGIN) } else { Duration::ZERO };
        life.saturating_add(margin)
    };
    let mut written = Instant::now() + pause(idle);
    // All sessions are visited less often than the uninitialized ones.
    let mut next = Instant::now() + pause(idle);
    let mut asked = Instant::now();
    loop {
        let keepalive = keepalive(&shared);
        sleep(pause(idle).min(pause(opening)).min(keepalive.unwrap_or(SWEEP.1))).await;
        let Some(shared) = shared.upgrade() else { return };
        let mut over = shared.sessions.uninitialized(later(opening, &shared));
        if let Some(every) = keepalive.filter(|every| asked.elapsed() >= *every) {
            asked = Instant::now();
            over.extend(shared.sessions.keep_alive(every));
        }
        if let Some(store) = &shared.settings().store
            && Instant::now() >= written
        {
            if let Err(error) = shared.keep_written(store).await {
                // Tried again before the sessions expire.
                tracing::error!(%error, "the session store failed");
            }
            written = Instant::now() + (idle / 4).clamp(SWEEP.0, KEPT);
        }
        if Instant::now() >= next {
            next = Instant::now() + pause(idle);
            over.extend(shared.sessions.idle(later(idle, &shared)));
        }
        for session in over {
            shared.expire(&session).await;
        }
        if shared.sessions.len() == 0 {
            shared.sessions.swept.store(false, Ordering::Release);
            // A session may have been added meanwhile, while the task still seemed to run.
            if shared.sessions.len() > 0 {
                shared.keep_tidy();
            }
            return;
        }
    }
}
