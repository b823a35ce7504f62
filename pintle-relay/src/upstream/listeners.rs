//! The listeners to changes, by the connections that they depend on.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use pintle::{
    client::Change,
    forward::OwnedPrincipal,
    server::SessionHandle,
    types::{Notification, method::tasks_extension::NOTIFICATIONS_TASKS},
};
use tokio::task::AbortHandle;

use super::{attached::AttachedServers, link::RelayLink};
use crate::{
    hops::RelayIdentity,
    link_state::{limits::LinkUse, watched_tasks::task_notice},
    lock::lock,
};

/// Those who are notified of the changes of one connection to the server behind.
pub(crate) enum LinkListener {
    /// The client of a session. It knows the ids that the server behind has for tasks, or those of the servers that the relay is a part of.
    Session { session: SessionHandle, knows_task_ids: bool, attached: Arc<AttachedServers> },
    /// The clients of a principal without a session.
    Subscribers { principal: OwnedPrincipal, attached: Arc<AttachedServers>, identity: Arc<RelayIdentity> },
}

impl LinkListener {
    pub(crate) fn publish(&self, changes: &[Change]) {
        match self {
            Self::Session { session, .. } => changes.iter().for_each(|change| session.publish(change)),
            Self::Subscribers { principal, attached, identity } => {
                if !identity.is_in_loop() {
                    attached.publish_to(changes, &|owner| owner.subscriber() == Some(principal));
                }
            }
        }
    }

    /// Forwards a notification that the protocol does not define. Whose it is among several clients is not known.
    pub(crate) fn notify(&self, notification: Notification) {
        let Self::Session { session, knows_task_ids, attached } = self else { return };
        if !knows_task_ids && notification.method.starts_with(NOTIFICATIONS_TASKS) {
            let notice = task_notice(notification).and_then(|notice| notice.in_session(session.id()?));
            return notice.iter().for_each(|notice| attached.tell(notice));
        }
        let Notification { method, params, .. } = notification;
        if let Err(error) = session.notify(&method, &params.unwrap_or_default()) {
            tracing::debug!(%error, "a client did not get a notification of the server behind a relay");
        }
    }
}

/// The sessions that have an open connection of their own.
#[derive(Default)]
pub(crate) struct OpenSessions(Mutex<SessionLinkTable>);

#[derive(Default)]
struct SessionLinkTable {
    links: HashMap<u64, Weak<RelayLink>>,
    /// The length at which ended ones are removed.
    cleanup_at: usize,
}

impl OpenSessions {
    pub(crate) fn add(&self, session: &SessionHandle, link: &Arc<RelayLink>) {
        let Some(id) = session.id() else { return };
        let mut table = lock(&self.0);
        if table.links.len() >= table.cleanup_at {
            table.links.retain(|_, link| link.strong_count() > 0);
            table.cleanup_at = 2 * table.links.len() + 16;
        }
        table.links.insert(id, Arc::downgrade(link));
    }

    /// Closes the connections.
    fn close(&self) {
        let links: Vec<_> = lock(&self.0).links.drain().filter_map(|(_, link)| link.upgrade()).collect();
        links.iter().for_each(|link| link.close());
    }

    /// Returns the numbers of the sessions.
    pub(crate) fn open(&self) -> HashSet<u64> {
        let table = lock(&self.0);
        let is_open = |link: &Weak<RelayLink>| link.upgrade().is_some_and(|link| !link.is_closed());
        table.links.iter().filter(|(_, link)| is_open(link)).map(|(id, _)| *id).collect()
    }
}

/// Sessions may outlive the relay.
impl Drop for OpenSessions {
    fn drop(&mut self) {
        self.close();
    }
}

/// The subscriptions of clients without a session, by principal. Each client pays for what it watches.
#[derive(Default)]
pub(crate) struct PrincipalListeners(Mutex<HashMap<OwnedPrincipal, PrincipalWatches>>);

#[derive(Default)]
struct PrincipalWatches {
    subscriptions: usize,
    /// The resources, and by how many subscriptions they are watched.
    uris: HashMap<Box<str>, usize>,
}

impl PrincipalListeners {
    pub(crate) fn add(&self, principal: &OwnedPrincipal, uris: &[String]) {
        let mut all = lock(&self.0);
        let watches = all.entry(principal.clone()).or_default();
        watches.subscriptions += 1;
        for uri in uris {
            *watches.uris.entry(uri.as_str().into()).or_default() += 1;
        }
    }

    /// Removes a subscription. Returns the resources that no other one of the principal watches.
    pub(crate) fn remove(&self, principal: &OwnedPrincipal, uris: &[String]) -> Vec<Box<str>> {
        let mut all = lock(&self.0);
        let Some(watches) = all.get_mut(principal) else { return Vec::new() };
        let mut unwatched = Vec::new();
        for uri in uris {
            if let Some(count) = watches.uris.get_mut(&**uri) {
                *count -= 1;
                if *count == 0 {
                    unwatched.extend(watches.uris.remove_entry(&**uri).map(|(uri, _)| uri));
                }
            }
        }
        watches.subscriptions -= 1;
        if watches.subscriptions == 0 {
            all.remove(principal);
        }
        unwatched
    }

    /// Returns the principals that have subscriptions.
    pub(crate) fn principals(&self) -> HashSet<OwnedPrincipal> {
        lock(&self.0).keys().cloned().collect()
    }

    /// Returns what a principal watches.
    pub(crate) fn watched(&self, principal: &OwnedPrincipal) -> Vec<Box<str>> {
        let all = lock(&self.0);
        all.get(principal).map(|watches| watches.uris.keys().cloned().collect()).unwrap_or_default()
    }
}

/// A subscription that depends on the first connection, until this is dropped.
pub(crate) struct PrimaryListener {
    count: Arc<AtomicUsize>,
    _use: Option<LinkUse>,
}

impl PrimaryListener {
    pub(crate) fn new(count: Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self { count, _use: None }
    }

    pub(crate) fn using(mut self, link: LinkUse) -> Self {
        self._use = Some(link);
        self
    }
}

impl Drop for PrimaryListener {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A task that ends when this is dropped.
pub(crate) struct TaskGuard(pub(crate) AbortHandle);

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}
