use std::sync::{Arc, Mutex};

use pintle::types::schema::ServerTasksCapability;
use pintle::{
    Client, Connection, Error, Result,
    client::{Connector, Mode},
};

use super::{link::OpeningConnection, pool::LinkPool};
use crate::{lock::lock, tasks};

/// Connections that are not shared between clients.
pub(super) struct OwnLinks {
    pub(super) open: Arc<OpenFor>,
    pub(super) client: Client,
    /// Whether the server has both eras, so that a client gets that which it has itself.
    pub(super) has_both: bool,
    /// The tasks that its sessions have then, if those without one have some.
    pub(super) session_tasks: Option<ServerTasksCapability>,
    pub(super) pool: LinkPool,
}

/// Opens a connection of a client on behalf of an authenticated principal, if there is one.
type OpenFor = dyn Fn(Client, Option<&str>) -> OpeningConnection + Send + Sync;

impl OwnLinks {
    /// Opens the first connection, and returns what opens the others.
    pub(super) async fn open<C: Connector>(client: Client, connector: C) -> Result<(Connection, Self)> {
        let connector = Arc::new(Mutex::new(connector));
        let open: Arc<OpenFor> =
            Arc::new(move |client: Client, principal: Option<&str>| -> OpeningConnection {
                let connecting = lock(&connector).connect_for(principal);
                Box::pin(async move { client.connect(connecting.await.map_err(Error::Io)?).await })
            });
        let connection = open(client.clone(), None).await?;
        // How it was opened is known now: a program that ends with what it does not know is started twice only once.
        let client = client.remember(connection.verdict());
        let has_both = connection.has_sessions();
        let mut own = Self { open, client, has_both, session_tasks: None, pool: LinkPool::default() };
        if has_both && tasks::has_extension(&connection) {
            own.read_session_tasks().await;
        }
        Ok((connection, own))
    }

    /// Opens a session, to read which tasks the server has in it: that is declared to clients before they have a session there. A server that
    /// opens none is used without.
    async fn read_session_tasks(&mut self) {
        match (self.open)(self.client.clone().mode(Mode::Legacy), None).await {
            Ok(session) => {
                self.session_tasks = session.capabilities().tasks;
                // Nobody waits for the end of its program.
                tokio::spawn(async move { session.close().await });
            }
            Err(error) => {
                tracing::debug!(%error, "a server with both eras opens no session: it is used without");
                self.has_both = false;
            }
        }
    }

    /// Returns what opens connections on behalf of a principal.
    pub(super) fn opening(
        &self,
        principal: Option<String>,
    ) -> impl Fn(Client) -> OpeningConnection + Send + Sync + use<> {
        let open = self.open.clone();
        move |client| open(client, principal.as_deref())
    }
}
