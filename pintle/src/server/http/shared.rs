use std::{
    io,
    sync::{Arc, PoisonError, RwLock},
};

use super::{
    node_link::NodeLink,
    session::{Session, detached::DetachedCalls, nodes::message::MessageBody, table::SessionTable},
    settings::HttpSettings,
    stateless::listen::OpenSubscriptions,
};
use crate::{
    Ended,
    server::{changes::ChangeHub, core::driver::registry::CallRegistry},
};

/// The state that all clones of an [`Http`](super::Http) share.
pub(super) struct HttpShared {
    pub(super) settings: RwLock<Arc<HttpSettings>>,
    pub(super) subscriptions: OpenSubscriptions,
    /// The inboxes of all sessions and subscriptions.
    pub(super) change_hub: ChangeHub,
    pub(super) sessions: SessionTable,
    pub(super) calls: Arc<CallRegistry>,
    /// The calls whose clients have disconnected.
    pub(super) detached: DetachedCalls,
    /// The other processes.
    pub(super) link: NodeLink,
}

impl HttpShared {
    pub(super) fn new(settings: HttpSettings) -> Self {
        Self {
            settings: RwLock::new(Arc::new(settings)),
            subscriptions: OpenSubscriptions::default(),
            change_hub: ChangeHub::default(),
            sessions: SessionTable::new(),
            calls: Arc::default(),
            detached: DetachedCalls::default(),
            link: NodeLink::default(),
        }
    }

    /// Returns the settings as they are now. A request keeps those that it began with.
    pub(super) fn settings(&self) -> Arc<HttpSettings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends a session, here and in the store. If the store fails, the session may still be in it: who ends it again ends it
    /// there too.
    pub(super) async fn end(self: &Arc<Self>, session: &Arc<Session>, why: Ended) -> io::Result<()> {
        self.sessions.remove(session.id);
        session.end(why);
        let (shared, session) = (self.clone(), session.clone());
        // In a task, so that it completes even if the client closes the connection of its DELETE.
        let erased = tokio::spawn(async move {
            let erased = match &shared.settings().store {
                Some(store) => session.erase(store).await.map(drop),
                None => Ok(()),
            };
            if erased.is_ok()
                && let Err(error) = shared.send_to_others(session.id, MessageBody::End).await
            {
                // They notice it when they next look for the session.
                tracing::warn!(%error, "the other processes of a session were not notified of its end");
            }
            shared.leave_others(session.id).await;
            let _ = shared.settings().log.forget_session(&session.id.to_string()).await;
            erased
        });
        // The runtime reports a panic of the store.
        erased.await.unwrap_or_else(|_| Err(io::Error::other("the session store panicked")))
    }
}
