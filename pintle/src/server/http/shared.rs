use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Semaphore;

use super::{
    session::{Session, detached::Places, table::Table},
    settings::Settings,
    stateless::listen::Listens,
};
use crate::{
    Ended,
    server::{call::registry::CallRegistry, changes::ChangeHub},
};

/// The state that all clones of an [`Http`](super::Http) share.
pub(super) struct Shared {
    pub(super) settings: RwLock<Arc<Settings>>,
    pub(super) listens: Listens,
    /// The inboxes of all sessions and subscriptions.
    pub(super) listening: ChangeHub,
    pub(super) sessions: Table,
    pub(super) calls: Arc<CallRegistry>,
    /// Which of them go on without their clients.
    pub(super) detached: Places,
    /// Notifications that are being handled.
    pub(super) notices: Arc<Semaphore>,
}

/// As many notifications of all clients are handled at the same time; more are dropped.
const NOTICES: usize = 4096;

impl Shared {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings: RwLock::new(Arc::new(settings)),
            listens: Listens::default(),
            listening: ChangeHub::default(),
            sessions: Table::new(),
            calls: Arc::default(),
            detached: Places::default(),
            notices: Arc::new(Semaphore::new(NOTICES)),
        }
    }

    /// Returns the settings as they are now. A request keeps those that it began with.
    pub(super) fn settings(&self) -> Arc<Settings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends a session, here and in the store.
    pub(super) async fn end(self: &Arc<Self>, session: &Arc<Session>, why: Ended) {
        self.sessions.remove(session.id);
        session.end(why);
        let (shared, session) = (self.clone(), session.clone());
        // In a task: a client that hangs up after its DELETE must not leave the session in the store.
        let erased = tokio::spawn(async move {
            if let Some(store) = &shared.settings().store
                && let Err(error) = session.erase(&**store).await
            {
                tracing::error!(%error, "the session store failed: an ended session may still be in it");
            }
            let _ = shared.settings().log.forget_session(&session.id.to_string()).await;
        });
        // A panic of the store's is reported by the runtime.
        let _ = erased.await;
    }
}
