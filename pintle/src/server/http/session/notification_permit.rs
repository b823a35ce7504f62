//! The limits of running notification handlers.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::Session;
use crate::server::access::peer_address::AddressKey;

/// The limit of one owner. Further notifications are dropped.
const OWNER_HANDLERS: usize = 256;
/// The limit of all owners without a principal.
const ANONYMOUS_HANDLERS: usize = 4096;

/// The numbers of running notification handlers.
#[derive(Clone, Debug, Default)]
pub(in crate::server::http) struct NotificationHandlers(Arc<Mutex<HandlerCounts>>);

#[derive(Debug, Default)]
struct HandlerCounts {
    running: HashMap<HandlerOwner, usize>,
    /// The number of handlers without a principal.
    anonymous: usize,
}

/// The client whose notification runs.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum HandlerOwner {
    Principal(Box<str>),
    /// The address of the client. `None` if it is not known: all such clients have only the limit of all.
    Address(Option<AddressKey>),
}

/// A permit for one notification handler, released on drop.
pub(super) struct NotificationPermit {
    handlers: NotificationHandlers,
    owner: HandlerOwner,
}

impl NotificationPermit {
    /// Returns a permit, unless a limit is reached.
    pub(super) fn take(handlers: &NotificationHandlers, session: &Session) -> Option<Self> {
        let owner = match &session.principal {
            Some(name) => HandlerOwner::Principal(name.clone()),
            None => HandlerOwner::Address(session.address),
        };
        let anonymous = matches!(owner, HandlerOwner::Address(_));
        let mut counts = handlers.lock();
        let count = counts.running.get(&owner).copied().unwrap_or_default();
        if (count >= OWNER_HANDLERS && owner != HandlerOwner::Address(None))
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
        counts.anonymous -= usize::from(matches!(self.owner, HandlerOwner::Address(_)));
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
