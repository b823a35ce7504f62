use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::sync::OnceCell;

use super::{link::RelayLink, listeners::TaskGuard, watches::PrimaryWatch};
use crate::lock::lock;

/// A connection that is opened when it is needed, and again when it has ended. Callers at the same time share one attempt.
#[derive(Debug, Default)]
pub(crate) struct LinkSlot(Mutex<SlotState>);

#[derive(Debug, Default)]
struct SlotState {
    current: Arc<OnceCell<Arc<RelayLink>>>,
    /// The connection before this one.
    last: Option<Arc<RelayLink>>,
}

impl LinkSlot {
    pub(crate) fn open(link: Arc<RelayLink>) -> Self {
        let current = Arc::new(OnceCell::new_with(Some(link.clone())));
        Self(Mutex::new(SlotState { current, last: Some(link) }))
    }

    /// Returns the connection, open or not, or the one before.
    pub(crate) fn last(&self) -> Option<Arc<RelayLink>> {
        let state = self.lock();
        state.current.get().or(state.last.as_ref()).cloned()
    }

    /// Returns an open connection. `open` is given the connection before it, if there was one.
    pub(crate) async fn get<E, Fut>(
        &self,
        open: impl FnOnce(Option<Arc<RelayLink>>) -> Fut,
    ) -> Result<Arc<RelayLink>, E>
    where
        Fut: Future<Output = Result<Arc<RelayLink>, E>>,
    {
        let (current, last) = {
            let mut state = self.lock();
            if state.current.get().is_some_and(|link| link.is_closed()) {
                state.last = state.current.get().cloned();
                state.current = Arc::default();
            }
            (state.current.clone(), state.last.clone())
        };
        // Boxed, because it is large, and most calls find the connection open.
        current.get_or_try_init(|| Box::pin(open(last))).await.cloned()
    }

    fn lock(&self) -> MutexGuard<'_, SlotState> {
        lock(&self.0)
    }
}

/// The connections of the relays that a session has used, by relay.
#[derive(Default)]
pub(crate) struct SessionLinks(Mutex<HashMap<u64, Arc<SessionSlot>>>);

/// The connection of a session.
#[derive(Default)]
pub(crate) struct SessionSlot {
    pub(crate) link: LinkSlot,
    /// The task that opens it again, as long as the session watches something.
    pub(crate) keeper: Mutex<Option<TaskGuard>>,
    /// The resources that it watches over the first connection, if that is for its principal alone.
    pub(crate) watches: Mutex<HashMap<String, PrimaryWatch>>,
}

impl SessionLinks {
    pub(crate) fn slot(&self, relay: u64) -> Arc<SessionSlot> {
        lock(&self.0).entry(relay).or_default().clone()
    }
}
