use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use super::LiveSession;

/// The sessions of a server, on all its transports.
#[derive(Default)]
pub(crate) struct SessionRegistry(Mutex<RegisteredSessions>);

#[derive(Default)]
struct RegisteredSessions {
    by_number: BTreeMap<u64, Weak<dyn LiveSession>>,
    /// The length at which sessions that were dropped without an end are removed: so that adding one is cheap, however many
    /// there are.
    cleanup_at: usize,
}

impl SessionRegistry {
    pub(crate) fn add(&self, session: &Arc<dyn LiveSession>) {
        let mut all = self.lock();
        let RegisteredSessions { by_number, cleanup_at } = &mut *all;
        if by_number.len() >= *cleanup_at {
            by_number.retain(|_, session| session.strong_count() > 0);
            *cleanup_at = 2 * by_number.len() + 16;
        }
        by_number.insert(session.facts().number, Arc::downgrade(session));
    }

    /// Removes a session that has ended.
    pub(crate) fn remove(&self, session: &dyn LiveSession) {
        self.lock().by_number.remove(&session.facts().number);
    }

    /// Returns the sessions that have not ended and whose handshake is done, in the order in which they were opened.
    pub(crate) fn live(&self) -> Vec<Weak<dyn LiveSession>> {
        // Upgraded first: a session is locked without the lock of the registry, in which it may be removed meanwhile.
        let all: Vec<Arc<dyn LiveSession>> =
            self.lock().by_number.values().filter_map(Weak::upgrade).collect();
        let live = all.iter().filter(|session| !session.is_over() && session.peer().is_some());
        live.map(Arc::downgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, RegisteredSessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
