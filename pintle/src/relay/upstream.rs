//! The connections of a relay, and which of them a call uses.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pintle_types::{RpcError, schema::ClientCapabilities};
use tokio::time::Instant;

use super::{
    limits::LinkLimits,
    link::{OpenConnection, RelayLink},
    pool::{Lease, LinkKey, LinkPool, LinkPrincipal, RETRY_AFTER_MS},
    slot::LinkSlot,
};
use crate::{
    Client, Connection, Error, Result,
    client::{Change, Connector},
    lock::lock,
    server::{Cx, Principal, SessionHandle},
    timeouts::rounded,
};

/// The server behind a relay.
pub(super) struct Upstream {
    /// A number that no other relay of this process has.
    id: u64,
    /// The first connection. All clients share it, if the server has no sessions.
    primary: LinkSlot,
    /// The first connection as it was opened first, for what is known of the server.
    first: Arc<RelayLink>,
    /// Opens connections for single clients; `None` if all share the first one.
    own: Option<OwnLinks>,
    outage: Mutex<Option<Outage>>,
}

/// A time in which the server behind cannot be reached.
struct Outage {
    since: Instant,
    attempts: u32,
}

impl Outage {
    fn begin() -> Self {
        Self { since: Instant::now(), attempts: 0 }
    }
}

/// The limit of attempts to lease a connection that is not being closed.
const MAX_LEASE_ATTEMPTS: u32 = 3;

/// The time for which the last lists are returned while the server behind is down.
const GRACE: Duration = Duration::from_secs(300);

/// Connections that are not shared between clients.
struct OwnLinks {
    open: Arc<OpenConnection>,
    client: Client,
    pool: LinkPool,
}

/// How connections are shared and kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinkOptions {
    pub(super) sharing: LinkSharing,
    pub(super) limits: LinkLimits,
}

/// The clients that share connections to a server with sessions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum LinkSharing {
    /// Those of one principal, without a session.
    #[default]
    Principals,
    /// Anonymous ones too.
    Anonymous,
    /// All.
    Everybody,
}

/// The connections of the relays that a session has used, by relay.
#[derive(Default)]
struct SessionLinks(Mutex<HashMap<u64, Arc<LinkSlot>>>);

impl SessionLinks {
    fn slot(&self, relay: u64) -> Arc<LinkSlot> {
        lock(&self.0).entry(relay).or_default().clone()
    }
}

impl Upstream {
    pub(super) fn shared(connection: Connection) -> Self {
        Self::new(connection, None)
    }

    /// Opens the first connection.
    pub(super) async fn connect<C: Connector>(client: Client, connector: C) -> Result<Self> {
        let connector = Arc::new(Mutex::new(connector));
        let open: Arc<OpenConnection> = Arc::new(move |client| {
            let connector = connector.clone();
            Box::pin(async move {
                let connecting = lock(&connector).connect();
                client.connect(connecting.await.map_err(Error::Io)?).await
            })
        });
        let connection = open(client.clone()).await?;
        let own = OwnLinks { open, client, pool: LinkPool::default() };
        Ok(Self::new(connection, Some(own)))
    }

    fn new(connection: Connection, own: Option<OwnLinks>) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let id = LAST.fetch_add(1, Ordering::Relaxed);
        let first = Arc::new(RelayLink::new(connection));
        Self { id, primary: LinkSlot::open(first.clone()), first, own, outage: Mutex::default() }
    }

    /// Whether connections that have ended can be opened again.
    pub(super) fn can_reopen(&self) -> bool {
        self.own.is_some()
    }

    /// Returns the first connection, open or not, for what is known of the server.
    pub(super) fn primary(&self) -> Arc<RelayLink> {
        self.primary.last().unwrap_or_else(|| self.first.clone())
    }

    /// Returns the first connection, and opens it again if it has ended.
    pub(super) async fn live_primary(&self) -> Result<Arc<RelayLink>, RpcError> {
        let Some(own) = &self.own else { return Ok(self.primary()) };
        let open = async |before: Option<Arc<RelayLink>>| {
            let opened = (own.open)(own.client.clone()).await;
            let link = self.record(opened.map(|connection| Arc::new(RelayLink::new(connection))))?;
            if let Some(before) = before {
                link.catalogue.inherit(&before.catalogue);
            }
            Ok::<_, RpcError>(link)
        };
        self.primary.get(open).await
    }

    /// Returns the connection for a call.
    pub(super) async fn lease(
        &self,
        cx: &Cx,
        capabilities: &ClientCapabilities,
        options: LinkOptions,
    ) -> Result<Lease, RpcError> {
        let is_shared =
            options.sharing == LinkSharing::Everybody || self.primary().connection.revision().is_stateless();
        let mut attempts = 0;
        loop {
            let (lease, limits) = match self.own.as_ref().filter(|_| !is_shared) {
                Some(own) => {
                    let lease = match cx.session() {
                        Some(session) => self.of_session(own, &session, capabilities).await?,
                        None => self.of_principal(own, cx, capabilities, options.sharing).await?,
                    };
                    (lease, options.limits)
                }
                // It is not closed when it is idle: changes arrive there.
                None => {
                    let lease = Lease::shared(self.live_primary().await?);
                    (lease, LinkLimits { idle: None, ..options.limits })
                }
            };
            attempts += 1;
            // It may have reached its limits before it was leased.
            if !lease.is_over() || attempts == MAX_LEASE_ATTEMPTS {
                let limits = if self.can_reopen() { limits } else { LinkLimits::default() };
                return Ok(lease.limited(limits));
            }
        }
    }

    /// Returns the connection for lists. Clients without a session share the first one: nothing in a list is theirs.
    pub(super) async fn lease_for_lists(
        &self,
        cx: &Cx,
        capabilities: &ClientCapabilities,
        options: LinkOptions,
    ) -> Result<Lease, RpcError> {
        match cx.session() {
            Some(_) => self.lease(cx, capabilities, options).await,
            None => Ok(Lease::shared(self.live_primary().await?)),
        }
    }

    /// Returns the connection for a notification of a client. A server with sessions gets those of a session only: whose others are
    /// is not known.
    pub(super) async fn lease_for_notification(
        &self,
        session: Option<&SessionHandle>,
        capabilities: &ClientCapabilities,
    ) -> Result<Lease, RpcError> {
        match (&self.own, session) {
            (Some(own), Some(session)) if !self.primary().connection.revision().is_stateless() => {
                self.of_session(own, session, capabilities).await
            }
            (Some(_), None) if !self.primary().connection.revision().is_stateless() => {
                Err(RpcError::invalid_request("the client has no session: send the notification in one"))
            }
            _ => Ok(Lease::shared(self.live_primary().await?)),
        }
    }

    /// Returns the connection that a client has used last, open or not.
    pub(super) fn last_link(&self, cx: &Cx, sharing: LinkSharing) -> Option<Arc<RelayLink>> {
        let is_shared =
            sharing == LinkSharing::Everybody || self.primary().connection.revision().is_stateless();
        let session = cx.session().filter(|_| self.own.is_some() && !is_shared);
        let Some(session) = session else { return Some(self.primary()) };
        session.get::<SessionLinks>()?.slot(self.id).last()
    }

    /// Returns the connection of a session, if it has one that is open.
    pub(super) fn session_link(&self, session: &SessionHandle) -> Option<Arc<RelayLink>> {
        session.get::<SessionLinks>()?.slot(self.id).last().filter(|link| !link.is_closed())
    }

    /// Returns the connection of a session. It is opened once, and again if it has ended.
    async fn of_session(
        &self,
        own: &OwnLinks,
        session: &SessionHandle,
        capabilities: &ClientCapabilities,
    ) -> Result<Lease, RpcError> {
        let ended = |error: crate::server::SessionError| RpcError::internal(error.to_string());
        let slot = session.get_or_insert_with(SessionLinks::default).map_err(ended)?.slot(self.id);
        let open = async |before: Option<Arc<RelayLink>>| {
            let asked = Some(session.clone());
            let link = RelayLink::open(&*own.open, own.client.clone(), capabilities.clone(), asked).await;
            let link = self.record(link.map(Arc::new))?;
            link.forward_changes(session.clone());
            if let Some(before) = before {
                link.catalogue.inherit(&before.catalogue);
                // Anything may be different in the new session.
                [Change::Tools, Change::Prompts, Change::Resources]
                    .iter()
                    .for_each(|change| session.publish(change));
            }
            Ok::<_, RpcError>(link)
        };
        Ok(Lease::shared(slot.get(open).await?))
    }

    /// Returns a connection that only this principal uses.
    async fn of_principal(
        &self,
        own: &OwnLinks,
        cx: &Cx,
        capabilities: &ClientCapabilities,
        sharing: LinkSharing,
    ) -> Result<Lease, RpcError> {
        let principal = match cx.identity() {
            Principal::Local => Some(LinkPrincipal::Local),
            Principal::Named(name) => Some(LinkPrincipal::Named(name.into())),
            Principal::Anonymous => (sharing == LinkSharing::Anonymous).then_some(LinkPrincipal::Anonymous),
        };
        let printed = serde_json::to_string(capabilities);
        let printed: Box<str> = printed.map_err(|error| RpcError::internal(error.to_string()))?.into();
        let key = principal.map(|principal| LinkKey { principal, capabilities: printed });
        let open = || async {
            self.record(RelayLink::open(&*own.open, own.client.clone(), capabilities.clone(), None).await)
        };
        own.pool.lease(key, can_be_asked(capabilities), open).await
    }

    /// Whether the server is down for so long that its last lists are not returned any more.
    pub(super) fn is_long_down(&self) -> bool {
        let mut outage = lock(&self.outage);
        outage.get_or_insert_with(Outage::begin).since.elapsed() >= GRACE
    }

    /// Records that the server has answered.
    pub(super) fn recovered(&self) {
        *lock(&self.outage) = None;
    }

    /// Records whether a connection could be opened. Returns the error for the client if not.
    fn record<T>(&self, opened: Result<T>) -> Result<T, RpcError> {
        let mut outage = lock(&self.outage);
        match opened {
            Ok(link) => {
                *outage = None;
                Ok(link)
            }
            // The connector has no more of them: the server is not down.
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::ResourceBusy => {
                Err(RpcError::overloaded(error.to_string(), RETRY_AFTER_MS))
            }
            Err(error) => {
                let outage = outage.get_or_insert_with(Outage::begin);
                outage.attempts += 1;
                let (since, attempts) = (rounded(outage.since.elapsed()), outage.attempts);
                Err(RpcError::internal(format!(
                    "`{}`, the server behind this one, has been down for {since:?}, and {attempts} attempts to connect failed: \
                     {error}; call again later",
                    backend_name(&self.first.connection)
                )))
            }
        }
    }
}

/// Returns the name of the server behind, for messages.
pub(super) fn backend_name(connection: &Connection) -> String {
    let named = connection.name().map(str::to_owned);
    named.or_else(|| Some(connection.server_info()?.name.clone())).unwrap_or_else(|| "a server".to_owned())
}

fn can_be_asked(capabilities: &ClientCapabilities) -> bool {
    capabilities.elicitation.is_some() || capabilities.sampling.is_some() || capabilities.roots.is_some()
}
