//! The connections of a relay, and which of them a call uses.
//!
//! There is one connection for all if the server behind has no sessions, otherwise one for each session of a client, or one of a pool for each
//! principal (`pool.rs`). The first connection is closed once clients have their own, unless it is used; a subscription that depends on it again
//! waits until its changes are forwarded. Idle and old connections are closed by a task of their own (`link_state/limits.rs`), which counts
//! their uses.

pub(crate) mod attached;
pub(crate) mod failure;
pub(crate) mod forwarding;
pub(crate) mod link;
pub(crate) mod listeners;
mod outage;
mod own_links;
pub(crate) mod pool;
pub(crate) mod slot;
pub(crate) mod watches;

use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Client, Connection, Error, Result,
    client::{Change, Connector, Mode},
    forward::{OwnedPrincipal, Subscriber},
    server::{Cx, Scope, SessionHandle},
    types::{
        RpcError,
        schema::{ClientCapabilities, ServerTasksCapability},
    },
};
use tokio::{sync::watch, time::timeout};

use self::{
    attached::AttachedServers,
    failure::Failure,
    link::{MAX_SUBSCRIBE_WAIT, RelayLink},
    listeners::{LinkListener, OpenSessions, PrimaryListener, PrincipalListeners},
    outage::Outage,
    own_links::OwnLinks,
    pool::{Lease, LinkKey, link_key, sharing_principal},
    slot::{LinkSlot, SessionLinks, SessionSlot},
};
use crate::{
    hops::RelayIdentity,
    link_state::{
        catalogue::LinkCatalogue,
        limits::LinkLimits,
        sharing::{LinkOptions, LinkSharing},
        watched::WatchedResources,
        watched_tasks::SharedTaskWatches,
    },
};

/// The server behind a relay.
pub(crate) struct Upstream {
    /// A number that no other relay of this process has.
    id: u64,
    /// The first connection. All clients share it, if the server has no sessions.
    primary: LinkSlot,
    /// The first connection as it was opened first, for what is known of the server.
    first: Arc<RelayLink>,
    /// Opens connections for single clients; `None` if all share the first one.
    own: Option<OwnLinks>,
    /// The connections of sessions, by session.
    sessions: OpenSessions,
    outage: Outage,
    /// Sent when the first connection was opened again.
    primary_opened: watch::Sender<()>,
    /// The first connection as it was when its changes were forwarded last.
    forwarded: watch::Sender<Weak<RelayLink>>,
    /// The number of subscriptions that depend on the first connection, although others do not.
    primary_listeners: Arc<AtomicUsize>,
    listeners: Arc<PrincipalListeners>,
    attached: Arc<AttachedServers>,
    identity: Arc<RelayIdentity>,
    /// The resources that are watched over the first connection.
    pub(crate) watched: WatchedResources,
    /// The tasks that are watched over it.
    pub(crate) watched_tasks: SharedTaskWatches,
    /// Whether clients see this server, and so the ids of its tasks.
    is_whole_server: AtomicBool,
    /// The principal that all connections are for, if there is one.
    principal: OnceLock<String>,
}

/// The delay before a connection that was lost is opened again without a call. It doubles with each attempt.
pub(crate) const RECONNECT_DELAY: Duration = Duration::from_secs(1);
pub(crate) const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(60);

/// The limit of attempts to lease a connection that is not being closed.
const MAX_LEASE_ATTEMPTS: u32 = 3;

impl Upstream {
    pub(crate) fn shared(connection: Connection) -> Self {
        Self::new(connection, None)
    }

    /// Opens the first connection.
    pub(crate) async fn connect<C: Connector>(client: Client, connector: C) -> Result<Self> {
        let (connection, own) = OwnLinks::open(client, connector).await?;
        Ok(Self::new(connection, Some(own)))
    }

    fn new(connection: Connection, own: Option<OwnLinks>) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let id = LAST.fetch_add(1, Ordering::Relaxed);
        let first = Arc::new(RelayLink::new(connection));
        Self {
            id,
            primary: LinkSlot::open(first.clone()),
            first,
            own,
            sessions: OpenSessions::default(),
            outage: Outage::default(),
            primary_opened: watch::Sender::new(()),
            forwarded: watch::Sender::new(Weak::new()),
            primary_listeners: Arc::default(),
            listeners: Arc::default(),
            attached: Arc::default(),
            identity: Arc::default(),
            watched: WatchedResources::default(),
            watched_tasks: SharedTaskWatches::default(),
            is_whole_server: AtomicBool::new(false),
            principal: OnceLock::new(),
        }
    }

    /// Sets the principal that all connections are for. The first one stays.
    pub(crate) fn set_principal(&self, name: String) {
        let _ = self.principal.set(name);
    }

    /// Returns the principal that all connections are for.
    pub(crate) fn principal(&self) -> Option<&str> {
        self.principal.get().map(String::as_str)
    }

    /// Notes that clients see the server behind as it is.
    pub(crate) fn set_whole_server(&self) {
        self.is_whole_server.store(true, Ordering::Relaxed);
    }

    pub(crate) fn attached(&self) -> &Arc<AttachedServers> {
        &self.attached
    }

    pub(crate) fn identity(&self) -> &Arc<RelayIdentity> {
        &self.identity
    }

    pub(crate) fn listeners(&self) -> &Arc<PrincipalListeners> {
        &self.listeners
    }

    /// Whether all clients without a session share the first connection.
    pub(crate) fn is_shared(&self, sharing: LinkSharing) -> bool {
        self.own.is_none() || sharing == LinkSharing::Everybody || !self.has_session()
    }

    /// Whether the client of a call shares the first connection.
    pub(crate) fn is_shared_by(&self, scope: &Scope<'_>, sharing: LinkSharing) -> bool {
        self.is_shared(sharing) && !self.is_paired(scope, sharing)
    }

    /// Whether the connection for a call has a session.
    pub(crate) fn has_session_for(&self, cx: &Cx, sharing: LinkSharing) -> bool {
        self.has_session() || self.is_paired(&cx.scope(), sharing)
    }

    /// Whether the client of a call has a session of a server whose first connection has none.
    pub(crate) fn is_paired(&self, scope: &Scope<'_>, sharing: LinkSharing) -> bool {
        scope.session().is_some() && self.pairs(sharing)
    }

    /// Returns the tasks of the sessions of clients, if those are paired.
    pub(crate) fn session_tasks(&self, sharing: LinkSharing) -> Option<Option<ServerTasksCapability>> {
        let own = self.own.as_ref().filter(|_| self.pairs(sharing))?;
        Some(own.session_tasks.clone())
    }

    /// Whether clients with a session have one of the server too, and others share the first connection, which has none.
    pub(crate) fn pairs(&self, sharing: LinkSharing) -> bool {
        let has_both = self.own.as_ref().is_some_and(|own| own.has_both);
        has_both && sharing != LinkSharing::Everybody && !self.has_session()
    }

    /// Whether the first connection has a session.
    fn has_session(&self) -> bool {
        self.primary().connection.facts().keeps_session
    }

    /// Whether the first connection is that of all clients, with a session or without.
    pub(crate) fn is_common(&self, sharing: LinkSharing) -> bool {
        self.is_shared(sharing) && !self.pairs(sharing)
    }

    /// Whether the first connection is opened again when it has ended. One that nobody depends on is opened when it is needed.
    pub(crate) fn keeps_primary(&self, sharing: LinkSharing) -> bool {
        self.is_common(sharing) || self.primary_listeners.load(Ordering::Acquire) > 0
    }

    /// Notes that the changes of the first connection are forwarded, if it reports any.
    pub(crate) fn set_forwarded(&self, link: &Arc<RelayLink>) {
        self.forwarded.send_replace(Arc::downgrade(link));
    }

    /// Returns a signal that the first connection was opened again.
    pub(crate) fn primary_opened(&self) -> watch::Receiver<()> {
        self.primary_opened.subscribe()
    }

    /// Has the first connection kept open for a subscription, until the value is dropped. Returns when its changes are forwarded, within
    /// a time.
    pub(crate) async fn listen_to_primary(&self) -> Result<PrimaryListener, RpcError> {
        let listener = PrimaryListener::new(self.primary_listeners.clone());
        let link = self.lease_primary(LinkLimits::default()).await?;
        let (mut forwarded, current) = (self.forwarded.subscribe(), Arc::downgrade(&link.link()));
        let is_forwarded = forwarded.wait_for(|forwarded| forwarded.ptr_eq(&current));
        let _ = timeout(MAX_SUBSCRIBE_WAIT, is_forwarded).await;
        Ok(listener.using(link.begin_use()))
    }

    /// Returns the first connection, unless it is being closed.
    async fn lease_primary(&self, limits: LinkLimits) -> Result<Lease, RpcError> {
        let mut attempts = 0;
        loop {
            let lease = Lease::shared(self.live_primary().await?);
            attempts += 1;
            // It may have reached its limits before it was leased.
            if !lease.is_over() || attempts == MAX_LEASE_ATTEMPTS {
                return Ok(lease.limited(limits));
            }
        }
    }

    /// Returns the limits of the first connection. One that all clients share is not closed when it is idle: changes arrive there.
    fn primary_limits(&self, options: LinkOptions) -> LinkLimits {
        let idle = options.limits.idle.filter(|_| !self.is_common(options.sharing));
        if self.can_reopen() { LinkLimits { idle, ..options.limits } } else { LinkLimits::default() }
    }

    /// Returns who is notified of changes that the first connection reports: those who have no other one.
    pub(crate) fn primary_audience(
        &self,
        sharing: LinkSharing,
    ) -> impl Fn(&Subscriber) -> bool + Send + Sync + use<> {
        let (sessions, listeners) = (self.sessions.open(), self.listeners.principals());
        let is_shared = self.is_shared(sharing);
        move |owner| match owner.session() {
            Some(session) if !sessions.contains(&session.get()) => true,
            None if is_shared => true,
            _ => owner.subscriber().is_some_and(|subscriber| !listeners.contains(subscriber)),
        }
    }

    /// Closes the very first connection, from which the facts of the server are known, if nobody uses it: clients have their own. If it has
    /// no session, clients without one use it.
    fn retire_first(&self) {
        let is_needed = !self.has_session() && self.first.was_used();
        if !is_needed && self.primary_listeners.load(Ordering::Acquire) == 0 && !self.first.is_closed() {
            self.first.retire();
        }
    }

    /// Whether connections that have ended can be opened again.
    pub(crate) fn can_reopen(&self) -> bool {
        self.own.is_some()
    }

    /// Returns the first connection, open or not, for what is known of the server.
    pub(crate) fn primary(&self) -> Arc<RelayLink> {
        self.primary.last().unwrap_or_else(|| self.first.clone())
    }

    /// Returns the first connection, and opens it again if it has ended.
    pub(crate) async fn live_primary(&self) -> Result<Arc<RelayLink>, RpcError> {
        let Some(own) = &self.own else { return Ok(self.primary()) };
        let open = async |before: Option<Arc<RelayLink>>| {
            let opened = (own.open)(own.client.clone(), None).await;
            let link = self.record(opened.map(|connection| Arc::new(RelayLink::new(connection))))?;
            if let Some(before) = before {
                link.catalogue.inherit(&before.catalogue);
            }
            self.primary_opened.send_replace(());
            Ok::<_, RpcError>(link)
        };
        self.primary.get(open).await
    }

    /// Returns the connection for a call.
    pub(crate) async fn lease(
        &self,
        cx: &Cx,
        capabilities: &ClientCapabilities,
        options: LinkOptions,
    ) -> Result<Lease, RpcError> {
        let is_shared = self.is_shared_by(&cx.scope(), options.sharing);
        let Some(own) = self.own.as_ref().filter(|_| !is_shared) else {
            return self.lease_primary(self.primary_limits(options)).await;
        };
        let mut attempts = 0;
        loop {
            let lease = match cx.session() {
                Some(session) => self.of_session(own, &session, capabilities).await?,
                None => {
                    let key = link_key(&cx.scope(), options.sharing, capabilities)?;
                    // Boxed, because its future is large, and those with a session have no use for it.
                    Box::pin(self.of_principal(own, key, capabilities)).await?
                }
            };
            attempts += 1;
            // It may have reached its limits before it was leased.
            if !lease.is_over() || attempts == MAX_LEASE_ATTEMPTS {
                return Ok(lease.limited(options.limits));
            }
        }
    }

    /// Returns the connection for lists: that of the calls of a client, so that both agree. Anonymous clients that share nothing
    /// have the first one for it.
    pub(crate) async fn lease_for_lists(
        &self,
        cx: &Cx,
        capabilities: &ClientCapabilities,
        options: LinkOptions,
    ) -> Result<Lease, RpcError> {
        let own = self.own.as_ref().filter(|_| !self.is_shared_by(&cx.scope(), options.sharing));
        match (own, link_key(&cx.scope(), options.sharing, capabilities)?) {
            _ if cx.session().is_some() => self.lease(cx, capabilities, options).await,
            (Some(own), Some(key)) => {
                let link = self.pooled(own, key, capabilities).await?;
                Ok(Lease::shared(link).limited(options.limits))
            }
            (Some(_), None) => Ok(Lease::shared(self.live_primary().await?).limited(options.limits)),
            (None, _) => self.lease_primary(self.primary_limits(options)).await,
        }
    }

    /// Returns a connection of a principal, for changes that it reports.
    pub(crate) async fn lease_for_listening(
        &self,
        key: &LinkKey,
        capabilities: &ClientCapabilities,
        options: LinkOptions,
    ) -> Result<Lease, RpcError> {
        let Some(own) = &self.own else { return Ok(Lease::shared(self.live_primary().await?)) };
        let open = own.pool.of_principal(&key.principal).into_iter().next();
        let link = match open {
            Some(link) => link,
            None => self.pooled(own, key.clone(), capabilities).await?,
        };
        Ok(Lease::shared(link).limited(options.limits))
    }

    /// Returns the open connections of a principal.
    pub(crate) fn links_of(&self, principal: &OwnedPrincipal) -> Vec<Arc<RelayLink>> {
        self.own.as_ref().map(|own| own.pool.of_principal(principal)).unwrap_or_default()
    }

    /// Returns a connection of the pool that may be in use.
    async fn pooled(
        &self,
        own: &OwnLinks,
        key: LinkKey,
        capabilities: &ClientCapabilities,
    ) -> Result<Arc<RelayLink>, RpcError> {
        match own.pool.peek(&key) {
            Some(link) => Ok(link),
            None => Ok(self.of_principal(own, Some(key), capabilities).await?.link()),
        }
    }

    /// Returns the connection for a notification of a client. A server with sessions gets those of a session only: whose others are
    /// is not known.
    pub(crate) async fn lease_for_notification(
        &self,
        session: Option<&SessionHandle>,
        capabilities: &ClientCapabilities,
        sharing: LinkSharing,
    ) -> Result<Lease, RpcError> {
        match (&self.own, session) {
            (Some(own), Some(session)) if self.has_session() || self.pairs(sharing) => {
                self.of_session(own, session, capabilities).await
            }
            (Some(_), None) if self.has_session() => {
                Err(RpcError::invalid_request("the client has no session: send the notification in one"))
            }
            _ => Ok(Lease::shared(self.live_primary().await?)),
        }
    }

    /// Returns the lists that were read last on behalf of a client.
    pub(crate) fn last_catalogue(
        &self,
        scope: &Scope<'_>,
        sharing: LinkSharing,
    ) -> Option<Arc<LinkCatalogue>> {
        let Some(own) = self.own.as_ref().filter(|_| !self.is_shared_by(scope, sharing)) else {
            return Some(self.primary().catalogue.clone());
        };
        if let Some(session) = scope.session() {
            return Some(session.get::<SessionLinks>()?.slot(self.id).link.last()?.catalogue.clone());
        }
        match sharing_principal(scope, sharing) {
            Some(principal) => own.pool.last_catalogue(&principal),
            None => Some(self.primary().catalogue.clone()),
        }
    }

    /// Returns the connection that [`lease_for_lists`](Self::lease_for_lists) would return, if it is open.
    pub(crate) fn open_for_lists(
        &self,
        scope: &Scope<'_>,
        capabilities: &ClientCapabilities,
        sharing: LinkSharing,
    ) -> Option<Arc<RelayLink>> {
        let own = self.own.as_ref().filter(|_| !self.is_shared_by(scope, sharing));
        let link = match (own, scope.session()) {
            (Some(_), Some(session)) => self.session_link(&session)?,
            (Some(own), None) => match link_key(scope, sharing, capabilities).ok()? {
                Some(key) => own.pool.peek(&key)?,
                None => self.primary(),
            },
            (None, _) => self.primary(),
        };
        Some(link).filter(|link| !link.is_closed())
    }

    /// Returns the connection of a session, if it has one that is open.
    pub(crate) fn session_link(&self, session: &SessionHandle) -> Option<Arc<RelayLink>> {
        session.get::<SessionLinks>()?.slot(self.id).link.last().filter(|link| !link.is_closed())
    }

    /// Returns the connection of a session. It is opened once, and again if it has ended.
    async fn of_session(
        &self,
        own: &OwnLinks,
        session: &SessionHandle,
        capabilities: &ClientCapabilities,
    ) -> Result<Lease, RpcError> {
        let slot = self.add_session_slot(session)?;
        let open = async |before: Option<Arc<RelayLink>>| {
            self.retire_first();
            let asked = Some(session.clone());
            let open = own.opening(session.principal());
            let client =
                if own.has_both { own.client.clone().mode(Mode::Legacy) } else { own.client.clone() };
            let link = RelayLink::open(&open, client, capabilities.clone(), asked).await;
            let link = self.record(link.map(Arc::new))?;
            let knows_task_ids = self.is_whole_server.load(Ordering::Relaxed);
            let (attached, notified) = (self.attached.clone(), session.clone());
            let listener = LinkListener::Session { session: notified, knows_task_ids, attached };
            link.forward_changes(listener).await;
            self.sessions.add(session, &link);
            if let Some(before) = before {
                link.catalogue.inherit(&before.catalogue);
                // Anything may be different in the new session.
                [Change::Tools, Change::Prompts, Change::Resources]
                    .iter()
                    .for_each(|change| session.publish(change));
                for uri in link.watch_again(&before) {
                    session.publish(&Change::Resource(uri));
                }
            }
            Ok::<_, RpcError>(link)
        };
        Ok(Lease::shared(slot.link.get(open).await?))
    }

    /// Opens the connection of a session again, if it has ended.
    pub(crate) async fn reopen_session(
        &self,
        session: &SessionHandle,
        capabilities: &ClientCapabilities,
        limits: LinkLimits,
    ) -> Result<(), RpcError> {
        let Some(own) = &self.own else { return Ok(()) };
        drop(self.of_session(own, session, capabilities).await?.limited(limits));
        Ok(())
    }

    /// Returns the place of the connection of a session, which may not have one.
    pub(crate) fn add_session_slot(&self, session: &SessionHandle) -> Result<Arc<SessionSlot>, RpcError> {
        let links = session.get_or_insert_with(SessionLinks::default);
        Ok(links.map_err(|error| RpcError::internal(error.to_string()))?.slot(self.id))
    }

    /// Returns the place of the connection of a session, if it has had one.
    pub(crate) fn session_slot(&self, session: &SessionHandle) -> Option<Arc<SessionSlot>> {
        Some(session.get::<SessionLinks>()?.slot(self.id))
    }

    /// Returns a connection that only this principal uses, or, without a key, only one call.
    async fn of_principal(
        &self,
        own: &OwnLinks,
        key: Option<LinkKey>,
        capabilities: &ClientCapabilities,
    ) -> Result<Lease, RpcError> {
        let principal = key.as_ref().map(|key| key.principal.clone());
        let opened = AtomicBool::new(false);
        // Boxed: a call that finds a connection does not carry the memory to open one.
        let open = || {
            Box::pin(async {
                opened.store(true, Ordering::Relaxed);
                self.retire_first();
                let open = own.opening(principal.as_ref().and_then(OwnedPrincipal::name));
                let opened = RelayLink::open(&open, own.client.clone(), capabilities.clone(), None).await;
                let link = self.record(opened.map(Arc::new))?;
                if capabilities.roots.is_some() {
                    link.receive_questions().await;
                }
                if let Some(principal) = principal.clone() {
                    let (attached, identity) = (self.attached.clone(), self.identity.clone());
                    link.forward_changes(LinkListener::Subscribers { principal, attached, identity }).await;
                }
                Ok(link)
            })
        };
        let lease = own.pool.lease(key, open).await?;
        // What the principal watches is watched over it from now on: it is in the pool, where later subscriptions find it.
        if let Some(principal) = principal.filter(|_| opened.load(Ordering::Relaxed)) {
            lease.link().watch_all(&self.listeners.watched(&principal)).await;
        }
        Ok(lease)
    }

    /// Whether the server is down for so long that its last lists are not returned any more.
    pub(crate) fn is_long_down(&self) -> bool {
        self.outage.is_long()
    }

    /// Returns the error of the last attempt to open a connection, if it failed.
    pub(crate) fn last_failure(&self) -> Option<RpcError> {
        self.outage.last()
    }

    /// Asks the server whether it answers. An error is an answer.
    pub(crate) async fn ping(&self, connection: &Connection) -> Result<(), RpcError> {
        match connection.ping().await {
            Ok(()) | Err(Error::Rpc(_)) => Ok(()),
            Err(error) => Err(Failure::of(error, || backend_name(connection)).into()),
        }
    }

    /// Records that the server has answered.
    pub(crate) fn recovered(&self) {
        self.outage.end();
    }

    /// Records whether a connection could be opened. Returns the error for the client if not.
    fn record<T>(&self, opened: Result<T>) -> Result<T, RpcError> {
        self.outage.record(opened, || backend_name(&self.first.connection))
    }
}

/// Returns the name of the server behind, for messages.
pub(crate) fn backend_name(connection: &Connection) -> String {
    let named = connection.name().map(str::to_owned);
    named.or_else(|| Some(connection.server_info()?.name.clone())).unwrap_or_else(|| "a server".to_owned())
}
