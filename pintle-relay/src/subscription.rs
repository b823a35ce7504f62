//! The changes of the server behind, and the subscriptions to them.
//!
//! If all clients share the first connection, it reports the changes to all of them. Otherwise each session is notified of the
//! changes that its own connection reports, and the clients of a principal without a session of those of its connections. The first
//! one is for the rest: sessions that have used nothing yet, and anonymous clients that share nothing. Of a relay that is for one
//! principal, only the clients of that one are notified.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use pintle::{
    client::{Change, Event},
    forward::{OwnedPrincipal, Subscriber},
    server::{Cx, ProviderSubscription, SessionHandle},
};
use pintle_proto::TaskKind;
use pintle_types::{RawObject, RpcError, method, schema::ClientCapabilities};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{
    Inner, Relay,
    forward::upstream_capabilities,
    link::{MAX_SUBSCRIBE_WAIT, no_subscription, send_subscription},
    link_state::{
        sharing::LinkSharing,
        watched::WatchTask,
        watched_tasks::{MEMBER, task_notice},
    },
    listeners::{PrimaryListener, TaskGuard},
    pool::{LinkKey, link_key},
};
use crate::lock::lock;

/// The delay before a connection that was lost is opened again without a call. It doubles with each attempt.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(60);

/// The changes that are possible when a connection was opened again.
const ANY_LIST: &[Change] = &[Change::Tools, Change::Prompts, Change::Resources];

impl Relay {
    /// Prepares a subscription of a client: watches the resources over the connection whose changes it is notified of.
    pub(super) async fn subscribe_for(
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
                let watches = uris.into_iter().map(|uri| (uri.clone(), PrimaryWatch::new(self, vec![uri])));
                lock(&slot.watches).extend(watches);
            }
            return Ok(subscription);
        }
        let capabilities = upstream_capabilities(self, cx).capabilities.clone();
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
    pub(super) fn unsubscribe_for(&self, cx: &Cx, uri: &str) {
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
            let watched = PrimaryWatch::new(self, uris);
            let late = Instant::now() + MAX_SUBSCRIBE_WAIT;
            for uri in &watched.uris {
                let settled = timeout_at(late, self.inner.watched.settled(uri)).await;
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
        let watch = RelayedTaskWatch::new(self, OwnedPrincipal::from(cx.identity()), ids);
        let granted =
            self.inner.watched_tasks.request(&link.connection, &watch.ids, MAX_SUBSCRIBE_WAIT).await;
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
        let (relay, place) = (Arc::downgrade(&self.inner), Arc::downgrade(&slot));
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
                let Some(inner) = relay.upgrade() else { return };
                match inner.upstream.reopen_session(&session, &capabilities, limits).await {
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
        let watch = PrincipalWatch::new(&self.inner, principal.clone(), uris);
        for link in self.inner.upstream.links_of(&principal) {
            watch.uris.iter().for_each(|uri| link.watch(uri));
        }
        for (uri, error) in lease.link().watch_all(&watch.uris).await {
            subscription.refuse(uri, error);
        }
        let relay = Arc::downgrade(&self.inner);
        let task = tokio::spawn(async move {
            let (mut lease, mut delay) = (lease, RECONNECT_DELAY);
            loop {
                let connection = lease.connection.clone();
                connection.wait().await;
                drop(lease);
                lease = loop {
                    sleep(delay).await;
                    let Some(inner) = relay.upgrade() else { return };
                    match inner.upstream.lease_for_listening(&key, &capabilities, options).await {
                        Ok(lease) => {
                            delay = RECONNECT_DELAY;
                            let is_listener = |owner: &Subscriber| owner.subscriber() == Some(&principal);
                            inner.upstream.attached().publish_to(ANY_LIST, &is_listener);
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
    pub(super) fn send_subscriptions(&self) {
        send_subscriptions(&self.inner);
    }

    /// Forwards the changes of the server behind, from the first time that this is called within a runtime.
    pub(super) fn listen(&self) {
        if let Ok(runtime) = Handle::try_current()
            && self.inner.upstream.attached().begin()
        {
            let forwarding = forward_changes(Arc::downgrade(&self.inner), self.options.links.sharing);
            let task = runtime.spawn(forwarding);
            *lock(&self.inner.forwarding) = Some(TaskGuard(task.abort_handle()));
        }
    }
}

/// Resources that are watched over the first connection, until this is dropped.
pub(super) struct PrimaryWatch {
    relay: Weak<Inner>,
    uris: Vec<String>,
}

impl PrimaryWatch {
    fn new(relay: &Relay, uris: Vec<String>) -> Self {
        uris.iter().for_each(|uri| relay.inner.watched.hold(uri));
        relay.send_subscriptions();
        Self { relay: Arc::downgrade(&relay.inner), uris }
    }
}

impl Drop for PrimaryWatch {
    fn drop(&mut self) {
        let Some(inner) = self.relay.upgrade() else { return };
        self.uris.iter().for_each(|uri| inner.watched.release(uri));
        send_subscriptions(&inner);
    }
}

/// Tasks that are watched over the first connection, until this is dropped.
struct RelayedTaskWatch {
    relay: Weak<Inner>,
    principal: OwnedPrincipal,
    ids: Vec<String>,
}

impl RelayedTaskWatch {
    fn new(relay: &Relay, principal: OwnedPrincipal, ids: Vec<String>) -> Self {
        let ids = relay.inner.watched_tasks.hold(&principal, ids);
        Self { relay: Arc::downgrade(&relay.inner), principal, ids }
    }
}

impl Drop for RelayedTaskWatch {
    fn drop(&mut self) {
        if let Some(inner) = self.relay.upgrade() {
            inner.watched_tasks.release(&self.principal, &self.ids);
        }
    }
}

/// Resources that are watched over the connections of a principal, until this is dropped.
struct PrincipalWatch {
    relay: Weak<Inner>,
    principal: OwnedPrincipal,
    uris: Vec<String>,
}

impl PrincipalWatch {
    fn new(relay: &Arc<Inner>, principal: OwnedPrincipal, uris: Vec<String>) -> Self {
        relay.upstream.listeners().add(&principal, &uris);
        Self { relay: Arc::downgrade(relay), principal, uris }
    }
}

impl Drop for PrincipalWatch {
    fn drop(&mut self) {
        let Some(inner) = self.relay.upgrade() else { return };
        let unwatched = inner.upstream.listeners().remove(&self.principal, &self.uris);
        for link in inner.upstream.links_of(&self.principal) {
            unwatched.iter().for_each(|uri| link.unwatch(uri));
        }
    }
}

/// Sends the subscriptions of the first connection in a task, unless there is one.
fn send_subscriptions(inner: &Arc<Inner>) {
    if let Ok(runtime) = Handle::try_current()
        && inner.watched.begin() == WatchTask::Needed
    {
        let relay = Arc::downgrade(inner);
        runtime.spawn(async move {
            loop {
                let Some(inner) = relay.upgrade() else { return };
                let Ok(link) = inner.upstream.live_primary().await else { return inner.watched.end() };
                let Some(request) = inner.watched.next() else { return };
                drop(inner);
                let refused = send_subscription(&link.connection, &request).await;
                let Some(inner) = relay.upgrade() else { return };
                inner.watched.answered(&request, refused);
            }
        });
    }
}

/// Forwards the changes that the first connection reports, until the relay is dropped.
async fn forward_changes(relay: Weak<Inner>, sharing: LinkSharing) {
    let mut delay = RECONNECT_DELAY;
    let Some(mut opened) = relay.upgrade().map(|inner| inner.upstream.primary_opened()) else { return };
    // The first one is open.
    let mut is_open = true;
    loop {
        let Some(inner) = relay.upgrade() else { return };
        if !is_open && !inner.upstream.keeps_primary(sharing) {
            drop(inner);
            if opened.changed().await.is_err() {
                return;
            }
            is_open = true;
            continue;
        }
        let Ok(link) = inner.upstream.live_primary().await else {
            drop(inner);
            let _ = timeout(delay, opened.changed()).await;
            delay = (delay * 2).min(MAX_RECONNECT_DELAY);
            continue;
        };
        // From here on it is opened again by others only.
        opened.mark_unchanged();
        delay = RECONNECT_DELAY;
        let connection = link.connection.clone();
        drop(inner);
        if let Ok(mut changes) = connection.changes().await {
            if let Some(inner) = relay.upgrade() {
                inner.upstream.set_forwarded(&link);
                send_subscriptions(&inner);
                inner.watched_tasks.request_again(&connection, MAX_SUBSCRIBE_WAIT).await;
            }
            drop(connection);
            // Ends when the connection does: then it is opened again.
            while let Some(event) = changes.next().await {
                let Some(inner) = relay.upgrade() else { return };
                publish(&inner, sharing, link.catalogue.note(&event));
                if let Event::Notification(notification) = event
                    && !inner.upstream.identity().is_in_loop()
                    && let Some(notice) = task_notice(notification)
                {
                    inner.upstream.attached().tell(&notice);
                }
            }
        } else {
            if let Some(inner) = relay.upgrade() {
                inner.upstream.set_forwarded(&link);
            }
            connection.wait().await;
        }
        let Some(inner) = relay.upgrade() else { return };
        if !inner.upstream.can_reopen() {
            return;
        }
        is_open = false;
        let changes = link.catalogue.note(&Event::Reopened);
        // Nobody depends on one that was closed because it was not needed.
        if inner.upstream.keeps_primary(sharing) || !link.is_over() {
            publish(&inner, sharing, changes);
        }
        inner.watched.reset();
        let is_kept = inner.upstream.keeps_primary(sharing);
        drop(inner);
        if is_kept {
            // Whoever needs it opens it earlier.
            let _ = timeout(delay, opened.changed()).await;
        }
    }
}

/// Publishes changes that the first connection reports to those who depend on it.
fn publish(inner: &Inner, sharing: LinkSharing, changes: &[Change]) {
    let upstream = &inner.upstream;
    if upstream.identity().is_in_loop() || changes.is_empty() {
        return;
    }
    let (attached, audience) = (upstream.attached(), upstream.primary_audience(sharing));
    // Nobody has another connection.
    let is_for_all = upstream.is_common(sharing);
    match upstream.principal() {
        Some(name) => {
            attached.publish_to(changes, &|owner| owner.is_of(name) && (is_for_all || audience(owner)));
        }
        None if is_for_all => attached.publish_all(changes),
        None => attached.publish_to(changes, &audience),
    }
}
