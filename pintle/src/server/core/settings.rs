use std::{collections::HashMap, future::Future, io, sync::Arc, time::Duration};

use pintle_proto::server::CacheHint;
use pintle_types::{JsonObject, RawObject};

use super::{catalogue::extension::ExtensionHooks, cx::outgoing::AroundOutgoing, gate::decision::FilterGate};
use crate::{
    Result, Timeouts,
    message_log::MessageLog,
    server::{
        AskError, Entry, Gate, ListKind, OutgoingNext, OutgoingRequest, Scope, Server, SourceRoute,
        StateKeys,
        replay::ReplayGuard,
        store::{MemoryStore, Store},
    },
};

/// The settings of a server.
#[derive(Clone)]
pub(crate) struct ServerSettings {
    /// The instructions without those of providers.
    pub(crate) instructions: Option<String>,
    pub(crate) calls: CallSettings,
    pub(crate) timeouts: Timeouts,
    pub(crate) lists: ListSettings,
    pub(crate) capabilities: CapabilitySettings,
    pub(crate) extensions: ExtensionHooks,
    /// The keys that seal states, and values of stores.
    pub(crate) keys: StateKeys,
    /// The guard against the replay of states.
    pub(crate) replay: Arc<ReplayGuard>,
    /// Whether the guard is that of one process.
    #[cfg(feature = "http-server")]
    pub(crate) guards_alone: bool,
    pub(crate) message_log: Option<MessageLog>,
    /// The functions around requests to clients. The last is the outermost.
    pub(crate) outgoing: Vec<Arc<AroundOutgoing>>,
}

/// The limits of calls.
#[derive(Clone)]
pub(crate) struct CallSettings {
    /// The time limit of a call, if it was set: `None` within means that there is none.
    pub(crate) timeout: Option<Option<Duration>>,
    /// The limit of concurrent calls of one connection or session. Further calls are queued.
    pub(crate) running: usize,
    /// The limit of bytes of one result.
    pub(crate) result_bytes: usize,
}

/// The pages and the cache hints of lists.
#[derive(Clone)]
pub(crate) struct ListSettings {
    /// The limit of entries of one page, at least 1.
    pub(crate) page: usize,
    pub(crate) hint: CacheHint,
    /// The cache hints of lists that differ from `hint`.
    pub(crate) hints: HashMap<ListKind, CacheHint>,
}

impl ListSettings {
    /// Returns how long a list may be cached.
    pub(crate) fn hint(&self, list: ListKind) -> &CacheHint {
        self.hints.get(&list).unwrap_or(&self.hint)
    }
}

/// The capabilities that are declared besides those of the catalogue and of providers.
#[derive(Clone, Default)]
pub(crate) struct CapabilitySettings {
    /// Whether entries are declared although the catalogue has none yet.
    pub(crate) may_change: bool,
    pub(crate) logging: bool,
    pub(crate) tool_completion: bool,
    pub(crate) extensions: JsonObject,
    pub(crate) experimental: JsonObject,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            instructions: None,
            calls: CallSettings { timeout: None, running: 1024, result_bytes: 16 << 20 },
            timeouts: Timeouts::default(),
            lists: ListSettings { page: usize::MAX, hint: CacheHint::default(), hints: HashMap::new() },
            capabilities: CapabilitySettings::default(),
            extensions: ExtensionHooks::default(),
            keys: StateKeys::random(),
            replay: Arc::new(ReplayGuard::new(Arc::new(MemoryStore::new()))),
            #[cfg(feature = "http-server")]
            guards_alone: true,
            message_log: None,
            outgoing: Vec::new(),
        }
    }
}

impl Server {
    /// Declares a capability. What is wrong with it is a fault of the server.
    pub(crate) fn declaring(self, declare: impl FnOnce(&mut CapabilitySettings) -> Result<()>) -> Self {
        self.noting(|server| server.change(|state| declare(&mut state.settings.capabilities)))
    }
}

/// How long things may take, and how many of them at the same time.
impl Server {
    /// Adds a source of resources that may change at any time.
    ///
    /// A URI is looked up among the resources first, then in the sources in the order in which they were added, then
    /// among the templates. The first that has the URI answers.
    #[must_use]
    pub fn source(self, source: impl Into<SourceRoute>) -> Self {
        let source = source.into();
        self.change(|state| {
            state.catalogue.requires.add(&source.required);
            state.catalogue.sources.push(source);
        });
        self
    }

    /// Sets the store of the uses of call states, so that each state is used once. The default is a [`MemoryStore`], which covers this
    /// process. Processes that share their [state keys](Self::state_keys) share a store, as `Http::shared` does.
    ///
    /// A request that repeats a state with the same answers gets the reply of the first; one with other answers is refused. If the store
    /// cannot be reached, no such call runs.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use pintle::{Server, server::{StateKeys, store::MemoryStore}};
    ///
    /// // Two servers of one process that serve the same calls.
    /// let store = Arc::new(MemoryStore::new());
    /// let one = Server::new("shop", "1.0.0").state_keys(StateKeys::from([7; 32])).replay_store(store.clone());
    /// let other = Server::new("shop", "1.0.0").state_keys(StateKeys::from([7; 32])).replay_store(store);
    /// ```
    #[must_use]
    pub fn replay_store(self, store: impl Store) -> Self {
        self.setting(|settings| {
            settings.replay = Arc::new(ReplayGuard::new(Arc::new(store)));
            #[cfg(feature = "http-server")]
            {
                settings.guards_alone = false;
            }
        })
    }

    /// Seals what calls remember with these keys: what a fleet needs, whose next round may reach another process.
    #[must_use]
    pub fn state_keys(self, keys: StateKeys) -> Self {
        self.setting(|settings| settings.keys = keys.clone()).service(|service| service.seal(Arc::new(keys)))
    }

    /// Seals a value for a store, with the [`state_keys`](Self::state_keys) of the server. `bound` is where the value belongs: it can be
    /// opened only with the same.
    ///
    /// # Errors
    ///
    /// Returns an error if the system's random number generator failed.
    pub fn seal_value(&self, bound: &str, value: &[u8]) -> io::Result<Vec<u8>> {
        self.snapshot().settings.keys.seal_value(bound, value)
    }

    /// Opens a value that [`seal_value`](Self::seal_value) has sealed. Returns `None` if it was sealed with another key, belongs
    /// elsewhere, or was changed.
    pub fn open_value(&self, bound: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        self.snapshot().settings.keys.open_value(bound, sealed)
    }

    /// Sets the time limit of a call, also of one that is relayed; `None` means no limit. Default: 30 minutes. The time that clients take to answer questions does not count, nor does that of tasks.
    #[must_use]
    pub fn call_timeout(self, after: impl Into<Option<Duration>>) -> Self {
        let after = after.into();
        self.setting(|settings| settings.calls.timeout = Some(after))
    }

    /// Sets the timeouts for clients: the keep-alive of a silent session, the end of running calls of a client that has
    /// disconnected, the answer to a question, the next request of a session over HTTP.
    ///
    /// ```
    /// use std::time::Duration;
    /// use pintle::{Server, Timeouts};
    ///
    /// let mut timeouts = Timeouts::default();
    /// timeouts.keepalive = Some(Duration::from_secs(30));
    /// let server = Server::new("notes", "1.0.0").timeouts(timeouts);
    /// ```
    #[must_use]
    pub fn timeouts(self, timeouts: Timeouts) -> Self {
        self.setting(|settings| settings.timeouts = timeouts)
    }

    /// Logs every message on every transport, over HTTP with headers. Applies to connections that are opened, and to HTTP requests
    /// that arrive, from now on. What layers in front of the HTTP service answer themselves is not logged.
    ///
    /// ```
    /// use pintle::{Server, message_log::MessageLog};
    ///
    /// let server = Server::new("notes", "1.0.0").message_log(MessageLog::to_writer(std::io::stderr()));
    /// ```
    #[must_use]
    pub fn message_log(self, log: MessageLog) -> Self {
        self.setting(|settings| settings.message_log = Some(log))
    }

    /// Sets how many calls of one connection or session run at the same time. Default: 1,024; more are queued. A call that
    /// waits for the client to answer a question does not count.
    #[must_use]
    pub fn concurrency(self, calls: usize) -> Self {
        self.setting(|settings| settings.calls.running = calls.max(1))
    }
}

/// Access: the gates that decide about every use of an entry.
impl Server {
    /// Adds a gate, which decides about every use of every entry: lists, completions, reads, subscriptions and calls. Of several gates,
    /// the strictest decision counts.
    ///
    /// Gates are asked inside of the [layers](Self::layer), about the arguments that these pass on. A method that the protocol does not
    /// define is an [entry](Entry::Method) too; those of tasks are not, because a task belongs to its caller.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// use pintle::{Server, server::{Decision, GateRequest, tool}};
    ///
    /// let server = Server::new("vault", "1.0.0")
    ///     .tool(tool("look", || async { "gold" }))
    ///     .tool(tool("take", || async { "taken" }))
    ///     .gate(|request: &GateRequest<'_>| match request.name() {
    ///         "take" => Decision::Deny("the vault is closed on Mondays".to_owned()),
    ///         _ => Decision::Allow,
    ///     });
    /// # #[cfg(feature = "client")] {
    /// let vault = pintle::Client::new("demo", "0.1.0").connect(server.in_process()?).await?;
    /// assert_eq!(vault.call_tool("look", ()).await?.text(), "gold");
    /// assert!(vault.call_tool("take", ()).await.unwrap_err().to_string().contains("closed on Mondays"));
    /// # }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn gate(self, gate: impl Gate) -> Self {
        self.change(|state| state.gates.push(gate));
        self
    }

    /// Shows an entry only if `sees` returns `true`. What a caller does not see it cannot call, read or complete either. This is a
    /// [gate](Self::gate) that allows or hides.
    #[must_use]
    pub fn filter(self, sees: impl Fn(&Scope<'_>, Entry<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.gate(FilterGate(sees))
    }

    /// Puts a function around every request that a call sends to its client: elicitation, sampling, roots, and [requests of
    /// extensions](crate::server::Cx::request). The last one added is the outermost.
    ///
    /// Only questions that are requests of their own pass it: those of sessions, and those of tasks. Without a
    /// session a question is part of the response, and the client repeats the call. The params of a request must stay those that
    /// the handler wrote, but for `_meta`.
    ///
    /// ```
    /// use pintle::{Server, server::{OutgoingNext, OutgoingRequest}, types::Meta};
    ///
    /// let server = Server::new("notes", "1.0.0").around_outgoing(|request: OutgoingRequest, next: OutgoingNext| async move {
    ///     let mut meta = Meta::new();
    ///     meta.insert("com.example/asked-by", request.cx().method());
    ///     next.run(request.with_meta(meta)).await
    /// });
    /// ```
    #[must_use]
    pub fn around_outgoing<F, Fut>(self, function: F) -> Self
    where
        F: Fn(OutgoingRequest, OutgoingNext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<RawObject, AskError>> + Send + 'static,
    {
        let function: Arc<AroundOutgoing> = Arc::new(move |request, next| Box::pin(function(request, next)));
        self.setting(|settings| settings.outgoing.push(function))
    }
}
