use std::{
    collections::HashMap,
    future::{Future, ready},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use pintle_proto::Peer;
use pintle_types::{Notification, RpcError};

use super::{
    changes::ProviderChanges,
    registry::{Providers, RegisteredProvider},
    subscription::ProviderSubscription,
};
use crate::server::{ConnectionEvent, Cx, ListKind, RequestError, SessionHandle};

/// A future of a [`Watch`].
pub type WatchFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The part of a [`Provider`](crate::server::Provider) that changes by itself, or follows what clients of the server do. Every function
/// has a default that does nothing.
pub trait Watch: Send + Sync {
    /// Called once for each server that the provider is added to, with a handle to report changes to it.
    fn attach(&self, changes: ProviderChanges) {
        let _ = changes;
    }

    /// Called when the first client of the server watches a resource that may be one of this provider. It must not block.
    ///
    /// A provider that reports updates of all of its resources need not care.
    fn watched(&self, uri: &str) {
        let _ = uri;
    }

    /// Called when no client of the server watches a resource any more. It must not block.
    fn unwatched(&self, uri: &str) {
        let _ = uri;
    }

    /// Prepares a subscription of a client, before it is acknowledged: a `resources/subscribe` of a session, or a
    /// `subscriptions/listen`, also one to changes of lists only. `uris` are the resources that may be of this provider. The tasks of this
    /// provider that the client wants to be notified of are in the params of the call: see [`ProviderSubscription::grant_task`].
    ///
    /// A provider that reports changes to all clients alike need not care. The default accepts everything.
    ///
    /// # Errors
    ///
    /// None of the resources can be watched.
    fn subscribe(
        &self,
        cx: Cx,
        uris: Vec<String>,
    ) -> WatchFuture<'_, Result<ProviderSubscription, RequestError>> {
        let _ = (cx, uris);
        Box::pin(ready(Ok(ProviderSubscription::new())))
    }

    /// Ends a subscription of a session to a resource that may be of this provider, or one that was not acknowledged after all.
    fn unsubscribe(&self, cx: Cx, uri: String) -> WatchFuture<'_, ()> {
        let _ = (cx, uri);
        Box::pin(ready(()))
    }

    /// Called for connections of the server, as hooks of [`on_open`](crate::server::Server::on_open),
    /// [`on_session`](crate::server::Server::on_session) and [`on_close`](crate::server::Server::on_close) are. It must not
    /// block.
    ///
    /// # Errors
    ///
    /// The connection, session or request is refused.
    fn connection_event(&self, event: ConnectionEvent<'_>) -> Result<(), RpcError> {
        let _ = event;
        Ok(())
    }

    /// Handles a notification of a client, such as `notifications/roots/list_changed`, after the handler of the server.
    fn notified(
        &self,
        notification: Notification,
        peer: Option<Arc<Peer>>,
        session: Option<SessionHandle>,
    ) -> WatchFuture<'_, ()> {
        let _ = (notification, peer, session);
        Box::pin(ready(()))
    }
}

/// The [`Watch`] of a provider that never changes.
pub(crate) struct NoChanges;

impl Watch for NoChanges {}

/// The resources that clients of a server with providers watch, and by how many. Listeners pay for their number and bytes.
#[derive(Debug, Default)]
pub(crate) struct Watches(Mutex<HashMap<Box<str>, usize>>);

impl Watches {
    /// Adds a listener of a resource. The first one is reported to the providers.
    pub(crate) fn watch(&self, providers: &Providers, uri: &str) {
        // Held while providers are called, so that they see the changes in their order.
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match watched.get_mut(uri) {
            Some(count) => *count += 1,
            None => {
                watched.insert(uri.into(), 1);
                resource_providers(providers).for_each(|known| known.provider.watch().watched(uri));
            }
        }
    }

    /// Removes a listener of a resource. The last one is reported to the providers.
    pub(crate) fn unwatch(&self, providers: &Providers, uri: &str) {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = watched.get_mut(uri) else { return };
        *count -= 1;
        if *count == 0 {
            watched.remove(uri);
            resource_providers(providers).for_each(|known| known.provider.watch().unwatched(uri));
        }
    }

    /// Reports what is watched to a provider that was added.
    pub(crate) fn report_to(&self, added: &RegisteredProvider) {
        let watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.keys().for_each(|uri| added.provider.watch().watched(uri));
    }

    /// Has a provider that was removed watch nothing.
    pub(crate) fn withdraw_from(&self, removed: &RegisteredProvider) {
        let watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.keys().for_each(|uri| removed.provider.watch().unwatched(uri));
    }
}

fn resource_providers(providers: &Providers) -> impl Iterator<Item = &RegisteredProvider> {
    providers.iter().filter(|known| known.offers(ListKind::Resources))
}
