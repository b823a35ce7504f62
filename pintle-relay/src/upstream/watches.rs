use std::sync::{Arc, Weak};

use pintle::forward::OwnedPrincipal;
use tokio::runtime::Handle;

use super::{Upstream, link::send_subscription};
use crate::link_state::watched::WatchTask;

impl Upstream {
    /// Sends the subscriptions of the first connection in a task, unless there is one.
    pub(crate) fn send_subscriptions(self: &Arc<Self>) {
        if let Ok(runtime) = Handle::try_current()
            && self.watched.begin() == WatchTask::Needed
        {
            let weak = Arc::downgrade(self);
            runtime.spawn(async move {
                loop {
                    let Some(upstream) = weak.upgrade() else { return };
                    let Ok(link) = upstream.live_primary().await else { return upstream.watched.end() };
                    let Some(request) = upstream.watched.next() else { return };
                    drop(upstream);
                    let refused = send_subscription(&link.connection, &request).await;
                    let Some(upstream) = weak.upgrade() else { return };
                    upstream.watched.answered(&request, refused);
                }
            });
        }
    }
}

/// Resources that are watched over the first connection, until this is dropped.
pub(crate) struct PrimaryWatch {
    upstream: Weak<Upstream>,
    pub(crate) uris: Vec<String>,
}

impl PrimaryWatch {
    pub(crate) fn new(upstream: &Arc<Upstream>, uris: Vec<String>) -> Self {
        uris.iter().for_each(|uri| upstream.watched.hold(uri));
        upstream.send_subscriptions();
        Self { upstream: Arc::downgrade(upstream), uris }
    }
}

impl Drop for PrimaryWatch {
    fn drop(&mut self) {
        let Some(upstream) = self.upstream.upgrade() else { return };
        self.uris.iter().for_each(|uri| upstream.watched.release(uri));
        upstream.send_subscriptions();
    }
}

/// Tasks that are watched over the first connection, until this is dropped.
pub(crate) struct RelayedTaskWatch {
    upstream: Weak<Upstream>,
    principal: OwnedPrincipal,
    pub(crate) ids: Vec<String>,
}

impl RelayedTaskWatch {
    pub(crate) fn new(upstream: &Arc<Upstream>, principal: OwnedPrincipal, ids: Vec<String>) -> Self {
        let ids = upstream.watched_tasks.hold(&principal, ids);
        Self { upstream: Arc::downgrade(upstream), principal, ids }
    }
}

impl Drop for RelayedTaskWatch {
    fn drop(&mut self) {
        if let Some(upstream) = self.upstream.upgrade() {
            upstream.watched_tasks.release(&self.principal, &self.ids);
        }
    }
}

/// Resources that are watched over the connections of a principal, until this is dropped.
pub(crate) struct PrincipalWatch {
    upstream: Weak<Upstream>,
    principal: OwnedPrincipal,
    pub(crate) uris: Vec<String>,
}

impl PrincipalWatch {
    pub(crate) fn new(upstream: &Arc<Upstream>, principal: OwnedPrincipal, uris: Vec<String>) -> Self {
        upstream.listeners().add(&principal, &uris);
        Self { upstream: Arc::downgrade(upstream), principal, uris }
    }
}

impl Drop for PrincipalWatch {
    fn drop(&mut self) {
        let Some(upstream) = self.upstream.upgrade() else { return };
        let unwatched = upstream.listeners().remove(&self.principal, &self.uris);
        for link in upstream.links_of(&self.principal) {
            unwatched.iter().for_each(|uri| link.unwatch(uri));
        }
    }
}
