use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use crate::server::{
    clock, hex,
    store::{Key, Life, Space, Store},
};

/// The SHA-256 of a `requestState`.
pub(crate) type StateDigest = [u8; 32];

/// The limit of states that are remembered. The oldest is forgotten for a new one.
const MAX_STATES: usize = 10_000;

/// The time for which a state is known after its expiry: the clocks of processes differ.
const MARGIN: u64 = 60_000;

/// The states of servers behind that clients have sent back. Those servers claim them; here a call with one that was seen before is counted
/// again.
#[doc(hidden)]
#[expect(unnameable_types, reason = "gates of this crate pass them on")]
#[derive(Debug, Default)]
pub struct SeenStates {
    own: Mutex<(HashSet<StateDigest>, VecDeque<StateDigest>)>,
    /// The store in which all processes count them, and the part of it for these.
    store: OnceLock<(Arc<dyn Store>, Arc<str>)>,
}

impl SeenStates {
    /// Shares them with other processes. The first store stays.
    pub(crate) fn share(&self, store: Arc<dyn Store>, part: Arc<str>) {
        let _ = self.store.set((store, part));
    }

    /// Notes a state that can be used for this time. Returns whether it was seen before, or nobody knows.
    pub(crate) async fn is_repeated(&self, state: StateDigest, lifetime: Duration) -> bool {
        if !self.note(state) {
            return true;
        }
        let Some((store, part)) = self.store.get() else { return false };
        let id = format!("{part}{}", hex(&state));
        let lifetime = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
        let life = Life::Until(clock::now().saturating_add(lifetime).saturating_add(MARGIN));
        match store.count(Key::new(Space::Seen, &id), 1, life).await {
            Ok(times) => times > 1,
            Err(error) => {
                tracing::warn!(%error, "the store of rates cannot be reached: a later round of a call is counted as a call");
                true
            }
        }
    }

    /// Returns whether the state is new to this process.
    fn note(&self, state: StateDigest) -> bool {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, order) = &mut *own;
        if !known.insert(state) {
            return false;
        }
        order.push_back(state);
        if order.len() > MAX_STATES
            && let Some(oldest) = order.pop_front()
        {
            known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let seen = SeenStates::default();
        let state = |number: usize| {
            let mut state = [0; 32];
            state[..8].copy_from_slice(&number.to_le_bytes());
            state
        };
        assert!((0..=MAX_STATES).all(|number| seen.note(state(number))));
        assert!(!seen.note(state(1)) && seen.note(state(0)), "the oldest was forgotten");
        let own = seen.own.lock().unwrap();
        assert_eq!((own.0.len(), own.1.len()), (MAX_STATES, MAX_STATES));
    }
}
