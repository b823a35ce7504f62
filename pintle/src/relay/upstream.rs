//! The connections of a relay, and which of them a call uses.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use pintle_types::{RpcError, schema::ClientCapabilities};
use tokio::sync::OnceCell;

use super::{
    link::{OpenConnection, RelayLink},
    pool::{Lease, LinkKey, LinkPool},
};
use crate::{
    Client, Error, Result,
    client::Connector,
    server::{Cx, Principal, SessionHandle},
};

/// The server behind a relay.
pub(super) struct Upstream {
    /// The first connection. All clients share it, if the server has no sessions.
    pub(super) primary: Arc<RelayLink>,
    /// Opens connections for single clients; `None` if all share the first one.
    own: Option<OwnLinks>,
}

/// Connections that are not shared between clients.
struct OwnLinks {
    open: Arc<OpenConnection>,
    client: Client,
    pool: LinkPool,
    share_anonymous: bool,
}

/// The connections of the relays that a session has used, by relay.
#[derive(Default)]
struct SessionLinks(Mutex<HashMap<u64, Arc<OnceCell<Arc<RelayLink>>>>>);

impl Upstream {
    pub(super) fn shared(connection: crate::Connection) -> Self {
        Self { primary: Arc::new(RelayLink::new(connection)), own: None }
    }

    /// Opens the first connection.
    pub(super) async fn connect<C: Connector>(client: Client, connector: C) -> Result<Self> {
        let connector = Arc::new(Mutex::new(connector));
        let open: Arc<OpenConnection> = Arc::new(move |client| {
            let connector = connector.clone();
            Box::pin(async move {
                let connecting = connector.lock().unwrap_or_else(PoisonError::into_inner).connect();
                client.connect(connecting.await.map_err(Error::Io)?).await
            })
        });
        let primary = Arc::new(RelayLink::new(open(client.clone()).await?));
        let own = OwnLinks { open, client, pool: LinkPool::default(), share_anonymous: false };
        Ok(Self { primary, own: Some(own) })
    }

    pub(super) fn share_anonymous(&mut self) {
        if let Some(own) = &mut self.own {
            own.share_anonymous = true;
        }
    }

    /// Returns the connection for a call.
    pub(super) async fn lease(
        &self,
        relay: u64,
        cx: &Cx,
        capabilities: &ClientCapabilities,
    ) -> Result<Lease, RpcError> {
        let Some(own) = self.own.as_ref().filter(|_| !self.primary.connection.revision().is_stateless())
        else {
            return Ok(Lease::shared(self.primary.clone()));
        };
        match cx.session() {
            Some(session) => own.of_session(relay, &session, capabilities).await,
            None => own.of_principal(cx, capabilities).await,
        }
    }
}

impl OwnLinks {
    /// Returns the connection of a session. It is opened once, and again if it has ended.
    async fn of_session(
        &self,
        relay: u64,
        session: &SessionHandle,
        capabilities: &ClientCapabilities,
    ) -> Result<Lease, RpcError> {
        let ended = |error: crate::server::SessionError| RpcError::internal(error.to_string());
        let links = session.get_or_insert_with(SessionLinks::default).map_err(ended)?;
        let cell = {
            let mut links = links.0.lock().unwrap_or_else(PoisonError::into_inner);
            let cell = links.entry(relay).or_default();
            if cell.get().is_some_and(|link| link.is_closed()) {
                *cell = Arc::default();
            }
            cell.clone()
        };
        let opening = cell.get_or_try_init(|| async {
            let session = Some(session.clone());
            let link = RelayLink::open(&*self.open, self.client.clone(), capabilities.clone(), session).await;
            link.map(Arc::new).map_err(|error| unreachable(&error))
        });
        Ok(Lease::shared(opening.await?.clone()))
    }

    /// Returns a connection that only this principal uses.
    async fn of_principal(&self, cx: &Cx, capabilities: &ClientCapabilities) -> Result<Lease, RpcError> {
        let principal = match cx.identity() {
            Principal::Local => Some(None),
            Principal::Named(name) => Some(Some(name.into())),
            Principal::Anonymous => self.share_anonymous.then_some(None),
        };
        let printed = serde_json::to_string(capabilities);
        let printed: Box<str> = printed.map_err(|error| RpcError::internal(error.to_string()))?.into();
        let key = principal.map(|principal| LinkKey { principal, capabilities: printed });
        let open = || async {
            let link = RelayLink::open(&*self.open, self.client.clone(), capabilities.clone(), None).await;
            link.map_err(|error| unreachable(&error))
        };
        self.pool.lease(key, can_be_asked(capabilities), open).await
    }
}

fn can_be_asked(capabilities: &ClientCapabilities) -> bool {
    capabilities.elicitation.is_some() || capabilities.sampling.is_some() || capabilities.roots.is_some()
}

fn unreachable(error: &Error) -> RpcError {
    RpcError::internal(format!("the server behind this one cannot be reached: {error}; call again later"))
}
