use std::{
    collections::{HashMap, hash_map::Entry},
    hash::BuildHasherDefault,
    sync::{
        Arc, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::{
    service::Shared,
    session::Session,
    session_id::{AsItIs, SessionId},
};
use crate::Ended;

/// The sessions of this process. One task looks for idle ones, as long as there are any.
pub(super) struct Table {
    sessions: RwLock<HashMap<SessionId, Arc<Session>, BuildHasherDefault<AsItIs>>>,
    swept: AtomicBool,
    epoch: Instant,
}

/// Two looks for idle sessions are this far apart.
const SWEEP: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

impl Table {
    pub(super) fn new() -> Self {
        Self { sessions: RwLock::default(), swept: AtomicBool::new(false), epoch: Instant::now() }
    }

    /// Adds a session, unless there are `most`. The one that is there, if two were about to add it.
    pub(super) fn add(&self, session: Arc<Session>, most: usize) -> Option<Arc<Session>> {
        session.touch(self.now());
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        let fits = sessions.len() < most;
        match sessions.entry(session.id) {
            Entry::Occupied(there) => Some(there.get().clone()),
            Entry::Vacant(place) => fits.then(|| place.insert(session).clone()),
        }
    }

    pub(super) fn find(&self, id: SessionId) -> Option<Arc<Session>> {
        let session = self.sessions.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()?;
        session.touch(self.now());
        Some(session)
    }

    pub(super) fn remove(&self, id: SessionId) -> Option<Arc<Session>> {
        self.sessions.write().unwrap_or_else(PoisonError::into_inner).remove(&id)
    }

    pub(super) fn len(&self) -> usize {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Takes out those that nobody has used for so long.
    fn idle(&self, after: Duration) -> Vec<Arc<Session>> {
        let now = self.now();
        let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        let is_old = |session: &Session| now.saturating_sub(session.seen.load(Ordering::Relaxed)) >= after;
        let (mut idle, held) = {
            let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
            // Somebody who holds one is using it: a request in flight, an open stream, a call that runs.
            let idle = sessions.extract_if(|_, session| Arc::strong_count(session) == 1 && is_old(session));
            let idle: Vec<_> = idle.map(|(_, session)| session).collect();
            let held: Vec<_> = sessions.values().filter(|session| is_old(session)).cloned().collect();
            (idle, held)
        };
        // Unless that call waits for a client that does not come back: then nobody would ever let go.
        let deserted = held.into_iter().filter(|session| session.is_deserted() && is_old(session));
        idle.extend(deserted.filter_map(|session| self.remove(session.id)));
        idle
    }

    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Shared {
    /// Sees to it that idle sessions are looked for.
    pub(super) fn keep_tidy(self: &Arc<Self>) {
        if !self.sessions.swept.swap(true, Ordering::AcqRel) {
            tokio::spawn(sweep(Arc::downgrade(self), self.settings.idle_session));
        }
    }
}

async fn sweep(shared: Weak<Shared>, idle: Duration) {
    loop {
        sleep((idle / 4).clamp(SWEEP.0, SWEEP.1)).await;
        let Some(shared) = shared.upgrade() else { return };
        for session in shared.sessions.idle(idle) {
            session.end(Ended::Dead);
            // One that is written down may be in use elsewhere, and its events too.
            if shared.settings.store.is_none() {
                let _ = shared.settings.log.forget_session(&session.id.to_string()).await;
            }
        }
        if shared.sessions.len() == 0 {
            shared.sessions.swept.store(false, Ordering::Release);
            // One may have come just now, and have seen that somebody looks.
            if shared.sessions.len() > 0 {
                shared.keep_tidy();
            }
            return;
        }
    }
}
