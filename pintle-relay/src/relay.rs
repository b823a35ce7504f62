use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use pintle::{
    Client, Connection, Result,
    client::Connector,
    server::{Cx, ListHints, Server},
    types::{RawObject, RpcError, schema::Implementation},
};

use super::{
    calls::parked::ParkedCalls,
    declared::LastDeclared,
    link_state::{
        catalogue::LinkCatalogue,
        paged_lists::PagedLists,
        sharing::{LinkOptions, LinkSharing},
    },
    meta::LastMeta,
    own_tasks::OwnTasks,
    upstream::{Upstream, backend_name, listeners::TaskGuard},
};

/// A server behind another one, which forwards calls to it. It is a [`Provider`](pintle::server::Provider) of what that server offers:
/// tools, prompts, resources, templates, completions and their changes.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// use pintle::{Client, Server, server::tool};
/// use pintle_relay::Relay;
///
/// let dice = Server::new("dice", "1.0.0").tool(tool("roll", || async { "4" }));
///
/// let behind = Client::new("front", "1.0.0").connect(dice.in_process()?).await?;
/// let front = Server::new("front", "1.0.0").provider(Relay::new(behind));
///
/// let client = Client::new("demo", "1.0.0").connect(front.in_process()?).await?;
/// assert_eq!(client.call_tool("roll", ()).await?.text(), "4");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Relay {
    pub(super) inner: Arc<Inner>,
    pub(super) options: RelayOptions,
}

/// The options of one handle of a relay. Its clones keep them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RelayOptions {
    pub(super) links: LinkOptions,
    pub(super) forwards_unlisted: bool,
    /// Whether its server has nothing else, and its instructions already.
    pub(super) is_whole_server: bool,
    /// Whether requests for the tasks of the relay itself reach it, so that it may have some.
    pub(super) answers_for_tasks: bool,
}

pub(super) struct Inner {
    pub(super) upstream: Arc<Upstream>,
    pub(super) parked: ParkedCalls,
    pub(super) hints: Mutex<ListHints>,
    /// The lists that any connection has seen last.
    pub(super) known: Arc<LinkCatalogue>,
    pub(super) paged: PagedLists,
    pub(super) last_declared: LastDeclared,
    pub(super) last_meta: LastMeta,
    pub(super) tasks: OwnTasks,
    /// The task that forwards changes. It keeps the first connection open.
    pub(super) forwarding: Mutex<Option<TaskGuard>>,
}

impl Relay {
    /// Creates a relay to the server of this connection. All clients share it.
    ///
    /// Use this for a server without sessions, or if there is one client. In the session era a server asks only what the client of
    /// the connection has declared: give that client handlers. They answer what cannot be attributed to a call (see
    /// [`client`](pintle::client#handlers-of-one-request)).
    pub fn new(connection: Connection) -> Self {
        Self::over(Upstream::shared(connection))
    }

    /// Creates a relay that opens its connections with a connector, as this client.
    ///
    /// A server without sessions has one connection. Of a server with sessions, each session of a client has its own connection,
    /// which declares the capabilities of that client. Clients without a session share connections with those of the same
    /// principal; anonymous ones of the network share none, unless [`share_anonymous`](Self::share_anonymous) allows it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// use pintle::{Client, Server, server::tool};
    /// use pintle_relay::Relay;
    ///
    /// let dice = Server::new("dice", "1.0.0").tool(tool("roll", || async { "4" }));
    /// let relay = Relay::connect(Client::new("front", "1.0.0"), move || {
    ///     let connected = dice.in_process().map_err(std::io::Error::other);
    ///     async { connected }
    /// })
    /// .await?;
    /// # let _ = relay;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The first connection cannot be opened.
    pub async fn connect(client: Client, connector: impl Connector) -> Result<Self> {
        Ok(Self::over(Upstream::connect(client, connector).await?))
    }

    fn over(upstream: Upstream) -> Self {
        let inner = Inner {
            upstream: Arc::new(upstream),
            parked: ParkedCalls::default(),
            hints: Mutex::default(),
            known: Arc::default(),
            paged: PagedLists::default(),
            last_declared: LastDeclared::default(),
            last_meta: LastMeta::default(),
            tasks: OwnTasks::default(),
            forwarding: Mutex::default(),
        };
        Self { inner: Arc::new(inner), options: RelayOptions::default() }
    }

    /// Lets anonymous clients without a session share connections to a server with sessions. Whatever the server keeps for a
    /// session is then shared between them.
    #[must_use]
    pub fn share_anonymous(mut self) -> Self {
        self.options.links.sharing = LinkSharing::Anonymous;
        self
    }

    /// Has all clients share one connection, also to a server with sessions. Whatever the server keeps for a session is shared between
    /// all of them, and it cannot ask: no client is the one of the session.
    #[must_use]
    pub fn share_connection(mut self) -> Self {
        self.options.links.sharing = LinkSharing::Everybody;
        self
    }

    /// Notifies only clients of this authenticated principal of changes: all connections are made on its behalf, with its token. A
    /// subscription of another client does not reach the server behind.
    #[must_use]
    pub fn for_principal(self, name: impl Into<String>) -> Self {
        self.inner.upstream.set_principal(name.into());
        self
    }

    /// Closes a connection for single clients that has had no call for this long. It is opened again for the next one. Without this, a
    /// session of a client keeps its connection, and with it the process behind it, as long as the session is open.
    #[must_use]
    pub fn idle_timeout(mut self, idle: Duration) -> Self {
        self.options.links.limits.idle = Some(idle);
        self
    }

    /// Closes a connection of this age, and opens another for the next call. Open calls are awaited for up to ten minutes.
    #[must_use]
    pub fn max_lifetime(mut self, lifetime: Duration) -> Self {
        self.options.links.limits.lifetime = Some(lifetime);
        self
    }

    /// Forwards requests of entries that the server behind does not list, too. For a relay that is the only provider of its server:
    /// others would not be asked for them.
    #[must_use]
    pub fn forward_unlisted(mut self) -> Self {
        self.options.forwards_unlisted = true;
        self
    }

    /// Returns a server that is the one behind, as far as clients see: with its name, its instructions and all that it offers. This is
    /// what a bridge serves, in every revision and over any transport.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// use pintle::{Client, Server, server::tool};
    /// use pintle_relay::Relay;
    ///
    /// let dice = Server::new("dice", "1.0.0").tool(tool("roll", || async { "4" }));
    /// let behind = Client::new("bridge", "1.0.0").connect(dice.in_process()?).await?;
    /// let bridge = Relay::new(behind).into_server();
    ///
    /// let client = Client::new("demo", "1.0.0").connect(bridge.in_process()?).await?;
    /// assert_eq!(client.server_info().unwrap().name, "dice");
    /// assert_eq!(client.call_tool("roll", ()).await?.text(), "4");
    /// # Ok(()) }
    /// ```
    pub fn into_server(mut self) -> Server {
        self.options.forwards_unlisted = true;
        self.options.is_whole_server = true;
        self.inner.upstream.set_whole_server();
        let connection = self.inner.upstream.primary().connection.clone();
        let mut server = Server::new(self.backend(), "");
        if let Some(info) = connection.server_info() {
            server = server.info(Implementation::clone(&info));
        }
        if let Some(instructions) = connection.instructions() {
            server = server.instructions(instructions);
        }
        server.provider(self)
    }

    /// Asks the server behind whether it answers, over the first connection. One that has ended is opened again, as for a call. The time
    /// that the server takes is not limited by more than the timeouts of the client.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or does not answer.
    pub async fn probe(&self) -> Result<(), RpcError> {
        let link = self.inner.upstream.live_primary().await?;
        self.inner.upstream.ping(&link.connection).await
    }

    /// As [`probe`](Self::probe), and opens no connection, which may start a program: if the first one has ended, the outcome of the last
    /// attempt to open one is returned.
    ///
    /// # Errors
    ///
    /// The server could not be reached, or does not answer.
    pub async fn probe_open(&self) -> Result<(), RpcError> {
        let link = self.inner.upstream.primary();
        match link.is_closed() {
            true => self.inner.upstream.last_failure().map_or(Ok(()), Err),
            false => self.inner.upstream.ping(&link.connection).await,
        }
    }

    /// Returns the name of the server behind, for messages.
    pub(super) fn backend(&self) -> String {
        backend_name(&self.inner.upstream.primary().connection)
    }

    /// Adds the relay to those that a request has passed. `params` are those that it sends for the call.
    pub(crate) fn pass_hop(&self, cx: &Cx, params: &RawObject) -> Result<RawObject, RpcError> {
        self.inner.upstream.identity().pass(cx, params, || self.backend())
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("parked", &self.inner.parked).finish_non_exhaustive()
    }
}
