//! The changes of the server behind, and the subscriptions to them.
//!
//! If all clients share the first connection, it reports the changes to all of them. Otherwise each session is notified of the
//! changes that its own connection reports, and the clients of a principal without a session of those of its connections. The first
//! one is for the rest: sessions that have used nothing yet, and anonymous clients that share nothing. Of a relay that is for one
//! principal, only the clients of that one are notified.
//!
//! [`Subscriber`](pintle::forward::Subscriber) selects inboxes by their owner. `Watch::subscribe` runs before the engine carries a subscription
//! out, so that it is acknowledged when it is in effect behind. What a subscription without a session holds is dropped with its call. Each
//! connection sends its subscriptions one after the other (`link_state/watched.rs`), and names all tasks that are watched over it in one
//! request (`link_state/watched_tasks.rs`). What a restored session watches is prepared again in a task.
//!
//! Over HTTP, the connection of a session has a GET stream when it is wanted (`transport/push_demand.rs` of `pintle`): from when the client has
//! one, or watches a resource, or a list is relied on that could change. A list is relied on within one period of the stream without a gap; if
//! there is none, for a second.

use std::sync::Arc;

use pintle::{
    client::Change,
    forward::{OwnedPrincipal, Subscriber},
    proto::TaskKind,
    server::{Cx, ProviderSubscription, SessionHandle},
    types::{RawObject, RpcError, method, schema::ClientCapabilities},
};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep, timeout_at},
};

use crate::{
    link_state::watched_tasks::MEMBER,
    lock::lock,
    relay::Relay,
    upstream::{
        MAX_RECONNECT_DELAY, RECONNECT_DELAY,
        forwarding::forward_changes,
        link::{MAX_SUBSCRIBE_WAIT, no_subscription},
        listeners::{PrimaryListener, TaskGuard},
        pool::{LinkKey, link_key},
        watches::{PrimaryWatch, PrincipalWatch, RelayedTaskWatch},
    },
};

/// The changes that are possible when a connection was opened again.
const ANY_LIST: &[Change] = &[Change::Tools, Change::Prompts, Change::Resources];

impl Relay {
    /// Prepares a subscription of a client: watches the resources over the connection whose changes it is notified of.
    pub(crate) async fn subscribe_for(
        &self,
        cx: &Cx,
        uris: Vec<String>,
    ) -> Result<ProviderSubscription, RpcError> {
        let (upstream, options) = (&self.inner.upstream, self.options.links);
        // The server may have been made outside of a runtime.
        self.listen();
        if upstream.principal().is_some_and(|name| cx.principal() != Some(name)) {
            return Ok(ProviderSubscription::new());
        }
        if upstream.is_shared_by(&cx.scope(), options.sharing) {
            let listener = match upstream.is_common(options.sharing) {
                true => None,
                false => Some(upstream.listen_to_primary().await?),
            };
            let mut subscription = self.watch_over_primary(uris.clone(), listener).await?;
            self.watch_tasks(cx, &mut subscription).await;
            if let Some(session) = cx.session().filter(|_| upstream.principal().is_some()) {
                // Until it unsubscribes or ends.
                let slot = upstream.add_session_slot(&session)?;
                let watches = uris
                    .into_iter()
                    .map(|uri| (uri.clone(), PrimaryWatch::new(&self.inner.upstream, vec![uri])));
                lock(&slot.watches).extend(watches);
            }
            return Ok(subscription);
        }
        let capabilities = self.request(cx).capabilities().capabilities.clone();
        if let Some(session) = cx.session() {
            return self.watch_in_session(cx, &session, capabilities, &uris).await;
        }
        match link_key(&cx.scope(), options.sharing, &capabilities)? {
            Some(key) => self.watch_for_principal(key, capabilities, uris).await,
            None => {
                let listener = upstream.listen_to_primary().await?;
                self.watch_over_primary(uris, Some(listener)).await
            }
        }
    }

    /// Ends the subscription of a session. Those of other clients end with what they hold.
    pub(crate) fn unsubscribe_for(&self, cx: &Cx, uri: &str) {
        let (Some(session), upstream) = (cx.session(), &self.inner.upstream) else { return };
        if let Some(slot) = upstream.session_slot(&session) {
            let watch = lock(&slot.watches).remove(uri);
            drop(watch);
        }
        if let Some(link) = upstream.session_link(&session) {
            link.unwatch(uri);
        }
    }

    /// Watches resources over the first connection.
    async fn watch_over_primary(
        &self,
        uris: Vec<String>,
        listener: Option<PrimaryListener>,
    ) -> Result<ProviderSubscription, RpcError> {
        let mut subscription = ProviderSubscription::new();
        if !uris.is_empty() {
            let link = self.inner.upstream.live_primary().await?;
            let watched = PrimaryWatch::new(&self.inner.upstream, uris);
            let late = Instant::now() + MAX_SUBSCRIBE_WAIT;
            for uri in &watched.uris {
                let settled = timeout_at(late, self.inner.upstream.watched.settled(uri)).await;
                if let Err(error) = settled.unwrap_or_else(|_| Err(no_subscription(&link.connection))) {
                    subscription.refuse(uri.as_str(), error);
                }
            }
            subscription.hold(watched);
        }
        subscription.hold(listener);
        Ok(subscription)
    }

    /// Has the server behind report the tasks that a subscription names. Those of the protocol are reported to their session.
    async fn watch_tasks(&self, cx: &Cx, subscription: &mut ProviderSubscription) {
        let filter: Option<RawObject> = cx.params().decode_member("notifications").ok().flatten();
        let ids = filter.and_then(|filter| filter.decode_member::<Vec<String>>(MEMBER).ok().flatten());
        let Some(ids) = ids.filter(|ids| !ids.is_empty() && cx.method() == method::SUBSCRIPTIONS_LISTEN)
        else {
            return;
        };
        let Ok(link) = self.inner.upstream.live_primary().await else { return };
        if link.connection.facts().tasks != TaskKind::Extension {
            return;
        }
        let watch = RelayedTaskWatch::new(&self.inner.upstream, OwnedPrincipal::from(cx.identity()), ids);
        let granted =
            self.inner.upstream.watched_tasks.request(&link.connection, &watch.ids, MAX_SUBSCRIBE_WAIT).await;
        granted.into_iter().for_each(|id| subscription.grant_task(id));
        subscription.hold(watch);
    }

    /// Watches resources over the connection of a session.
    async fn watch_in_session(
        &self,
        cx: &Cx,
        session: &SessionHandle,
        capabilities: ClientCapabilities,
        uris: &[String],
    ) -> Result<ProviderSubscription, RpcError> {
        let mut subscription = ProviderSubscription::new();
        // A `subscriptions/listen` within a session is refused by the server.
        if cx.method() != method::RESOURCES_SUBSCRIBE {
            return Ok(subscription);
        }
        let lease = self.inner.upstream.lease(cx, &capabilities, self.options.links).await?;
        let link = lease.link();
        for (uri, error) in link.watch_all(uris).await {
            link.unwatch(&uri);
            subscription.refuse(uri, error);
        }
        self.keep_session(session, capabilities);
        Ok(subscription)
    }

    /// Opens the connection of a session again when it has ended, as long as the session watches something.
    fn keep_session(&self, session: &SessionHandle, capabilities: ClientCapabilities) {
        let Some(slot) = self.inner.upstream.session_slot(session) else { return };
        let mut keeper = lock(&slot.keeper);
        if keeper.as_ref().is_some_and(|task| !task.0.is_finished()) {
            return;
        }
        let (relay, place) = (Arc::downgrade(&self.inner.upstream), Arc::downgrade(&slot));
        let (session, limits) = (session.clone(), self.options.links.limits);
        let task = tokio::spawn(async move {
            let mut delay = RECONNECT_DELAY;
            loop {
                let Some(link) = place.upgrade().and_then(|slot| slot.link.last()) else { return };
                link.connection.clone().wait().await;
                if session.is_closed() || link.watched.is_empty() {
                    return;
                }
                drop(link);
                sleep(delay).await;
                let Some(upstream) = relay.upgrade() else { return };
                match upstream.reopen_session(&session, &capabilities, limits).await {
                    Ok(()) => delay = RECONNECT_DELAY,
                    Err(_) => delay = (delay * 2).min(MAX_RECONNECT_DELAY),
                }
            }
        });
        *keeper = Some(TaskGuard(task.abort_handle()));
    }

    /// Watches resources over all connections of a principal, of which there is at least one as long as it listens.
    async fn watch_for_principal(
        &self,
        key: LinkKey,
        capabilities: ClientCapabilities,
        uris: Vec<String>,
    ) -> Result<ProviderSubscription, RpcError> {
        let (mut subscription, options) = (ProviderSubscription::new(), self.options.links);
        let principal = key.principal.clone();
        let lease = self.inner.upstream.lease_for_listening(&key, &capabilities, options).await?;
        let watch = PrincipalWatch::new(&self.inner.upstream, principal.clone(), uris);
        for link in self.inner.upstream.links_of(&principal) {
            watch.uris.iter().for_each(|uri| link.watch(uri));
        }
        for (uri, error) in lease.link().watch_all(&watch.uris).await {
            subscription.refuse(uri, error);
        }
        let relay = Arc::downgrade(&self.inner.upstream);
        let task = tokio::spawn(async move {
            let (mut lease, mut delay) = (lease, RECONNECT_DELAY);
            loop {
                let connection = lease.connection.clone();
                connection.wait().await;
                drop(lease);
                lease = loop {
                    sleep(delay).await;
                    let Some(upstream) = relay.upgrade() else { return };
                    match upstream.lease_for_listening(&key, &capabilities, options).await {
                        Ok(lease) => {
                            delay = RECONNECT_DELAY;
                            let is_listener = |owner: &Subscriber| owner.subscriber() == Some(&principal);
                            upstream.attached().publish_to(ANY_LIST, &is_listener);
                            break lease;
                        }
                        Err(_) => delay = (delay * 2).min(MAX_RECONNECT_DELAY),
                    }
                };
            }
        });
        subscription.hold((TaskGuard(task.abort_handle()), watch));
        Ok(subscription)
    }

    /// Subscribes to the resources that are watched over the first connection by now, and unsubscribes from others.
    pub(crate) fn send_subscriptions(&self) {
        self.inner.upstream.send_subscriptions();
    }

    /// Forwards the changes of the server behind, from the first time that this is called within a runtime.
    pub(crate) fn listen(&self) {
        if let Ok(runtime) = Handle::try_current()
            && self.inner.upstream.attached().begin()
        {
            let forwarding =
                forward_changes(Arc::downgrade(&self.inner.upstream), self.options.links.sharing);
            let task = runtime.spawn(forwarding);
            *lock(&self.inner.forwarding) = Some(TaskGuard(task.abort_handle()));
        }
    }
}
