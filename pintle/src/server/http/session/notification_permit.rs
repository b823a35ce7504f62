//! The limits of running notification handlers.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{Session, owner::SessionOwner};

/// The limit of one owner. Further notifications are dropped.
const OWNER_HANDLERS: usize = 256;
/// The limit of all owners without a principal.
const ANONYMOUS_HANDLERS: usize = 4096;

/// The numbers of running notification handlers.
#[derive(Clone, Debug, Default)]
pub(in crate::server::http) struct NotificationHandlers(Arc<Mutex<HandlerCounts>>);

#[derive(Debug, Default)]
struct HandlerCounts {
    running: HashMap<SessionOwner, usize>,
    /// The number of handlers without a principal.
    anonymous: usize,
}

/// A permit for one notification handler, released on drop.
pub(super) struct NotificationPermit {
    handlers: NotificationHandlers,
    owner: SessionOwner,
}

impl NotificationPermit {
    /// Returns a permit, unless a limit is reached.
    pub(super) fn take(handlers: &NotificationHandlers, session: &Session) -> Option<Self> {
        let owner = session.owner();
        let anonymous = owner.is_anonymous();
        let mut counts = handlers.lock();
        let count = counts.running.get(&owner).copied().unwrap_or_default();
        // Clients whose address is unknown have only the limit of all without a principal.
        if (count >= OWNER_HANDLERS && owner != SessionOwner::Address(None))
            || (anonymous && counts.anonymous >= ANONYMOUS_HANDLERS)
        {
            return None;
        }
        counts.running.insert(owner.clone(), count + 1);
        counts.anonymous += usize::from(anonymous);
        drop(counts);
        Some(Self { handlers: handlers.clone(), owner })
    }
}

impl Drop for NotificationPermit {
    fn drop(&mut self) {
        let mut counts = self.handlers.lock();
        counts.anonymous -= usize::from(self.owner.is_anonymous());
        if let Some(count) = counts.running.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                counts.running.remove(&self.owner);
            }
        }
    }
}

impl NotificationHandlers {
    fn lock(&self) -> MutexGuard<'_, HandlerCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
