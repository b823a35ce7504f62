use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pintle::{
    proto::Peer,
    server::{
        ConnectionEvent, Cx, Provider as _, ProviderChanges, ProviderSubscription, RequestError,
        SessionHandle, Watch, WatchFuture,
    },
    types::{Notification, RpcError},
};

use super::Backend;

/// The resources that clients watch, and through how many servers, for the next connection. Each client pays for what it watches.
#[derive(Default)]
pub(super) struct WatchedUris(Mutex<HashMap<String, usize>>);

impl WatchedUris {
    fn add(&self, uri: &str) {
        *self.lock().entry(uri.to_owned()).or_default() += 1;
    }

    fn remove(&self, uri: &str) {
        let mut watched = self.lock();
        if let Some(servers) = watched.get_mut(uri) {
            *servers -= 1;
            if *servers == 0 {
                watched.remove(uri);
            }
        }
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for Backend {
    fn attach(&self, changes: ProviderChanges) {
        // A target that is connected meanwhile is attached once: the second time is the same.
        self.offering.attach(changes.clone());
        for connected in self.all_connected() {
            connected.watch().attach(changes.clone());
        }
    }

    fn watched(&self, uri: &str) {
        self.watched.add(uri);
        for connected in self.all_connected() {
            connected.watch().watched(uri);
        }
    }

    fn unwatched(&self, uri: &str) {
        self.watched.remove(uri);
        for connected in self.all_connected() {
            connected.watch().unwatched(uri);
        }
    }

    fn subscribe(
        &self,
        cx: Cx,
        uris: Vec<String>,
    ) -> WatchFuture<'_, Result<ProviderSubscription, RequestError>> {
        Box::pin(async move {
            match self.connected_for(&cx).await {
                Some(Ok(connected)) => connected.watch().subscribe(cx, uris).await,
                Some(Err(_)) | None => Ok(ProviderSubscription::new()),
            }
        })
    }

    fn unsubscribe(&self, cx: Cx, uri: String) -> WatchFuture<'_, ()> {
        Box::pin(async move {
            if let Some(Ok(connected)) = self.connected_for(&cx).await {
                connected.watch().unsubscribe(cx, uri).await;
            }
        })
    }

    fn connection_event(&self, event: ConnectionEvent<'_>) -> Result<(), RpcError> {
        self.all_connected().iter().try_for_each(|connected| connected.watch().connection_event(event))
    }

    fn notified(
        &self,
        notification: Notification,
        peer: Option<Arc<Peer>>,
        session: Option<SessionHandle>,
    ) -> WatchFuture<'_, ()> {
        let connected = self.all_connected();
        Box::pin(async move {
            for connected in connected {
                connected.watch().notified(notification.clone(), peer.clone(), session.clone()).await;
            }
        })
    }
}
