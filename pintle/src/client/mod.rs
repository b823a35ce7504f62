//! Clients: connecting to servers, listing, calling, and answering input requests.
//!
//! A [`Client`] holds its identity, its capabilities and its settings; [`connect`](Client::connect) opens a [`Connection`] over a
//! transport. The era and revision of the server are negotiated then, and calls do not depend on them.
//!
//! # Handlers of one request
//!
//! [`Call`] and [`RequestBuilder`] can have their own handlers of input requests (`on_elicit`, `on_elicit_url`, `on_sample`) and their
//! own callbacks (`on_progress`, `on_log`), so that concurrent calls are distinguished. A handler of the request takes precedence over
//! that of the client.
//!
//! Progress is always attributed to its request. The protocol does not attribute everything else on every transport:
//!
//! | | stateless era | session era |
//! |---|---|---|
//! | input requests over HTTP | always | if the server sends them on the stream of the request, as it should |
//! | input requests over stdio and sockets | always | if it is the only request in flight |
//! | log messages over HTTP | always | if the server sends them on the stream of the request |
//! | log messages over stdio and sockets | if it is the only request in flight | if it is the only request in flight |
//!
//! What cannot be attributed goes to the handler of the client, never to that of another request. Lists, completions and pings do
//! not count as requests in flight here, because they do not ask. After a request was cancelled or timed out, the next one counts as
//! the only one only once the server has answered a later request: the server may still be asking for the cancelled one.
//!
//! In the stateless era a handler of a request also declares its capability for that request. In the session era capabilities are
//! declared when the connection is opened: a server asks only if the client has a handler too.

pub(crate) mod asking;
pub(crate) mod connection;
mod driver;
mod extension;
#[cfg(feature = "http-client")]
pub mod http;
mod layer;
mod reconnect;
mod state;
mod tools;

mod sealed {
    /// A supertrait of traits that only this crate implements.
    #[expect(unnameable_types, reason = "nobody else can implement what they cannot name")]
    pub trait Sealed {}
}

use std::{
    collections::hash_map::Entry,
    fmt,
    future::Future,
    sync::{Arc, Weak},
};

use pintle_proto::{Limits, Revision};
use pintle_types::{
    JsonObject, Meta, RawObject, RpcError, method,
    schema::{
        CreateMessageParams, CreateMessageResult, ElicitFormParams, ElicitResult, Implementation,
        LoggingLevel, LoggingMessageParams, ProgressParams,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::mpsc;
use tower_layer::Layer;

use crate::{
    Result, Timeouts,
    error::BoxError,
    message_log::{MessageLog, Side},
    transport::{DrivenTransport, LoggedTransport, Transport, driven},
};
pub use crate::{message_log::Direction, target::Target};

pub use crate::suspended_call::{SuspendedCall, SuspendedQuestion};
pub use asking::{Answer, AnswerTasks, ElicitUrl, IntoReply, IntoRoot, IntoRoots, Question, Report, Roots};
pub use connection::{
    Batch, Call, CallStart, Changes, Connection, Items, List, ListStates, RequestBuilder, Unresolved,
};
pub use extension::{ClientExtension, ClientInstallation};
pub use layer::{Cx, Next, around};
pub use pintle_proto::client::{Change, Mode, OpenError, Verdict};
pub use reconnect::{Connector, Reconnect};
pub use state::Event;
pub use tools::{Hints, OutputCheck, Policy, Proposal};

use asking::{custom_handler, handler};
pub(in crate::client) use connection::ResultArm;
use driver::{DirectSend, Driver};
use state::{ClientSettings, ConnectionState};

/// A client with its capabilities and settings. One client can open any number of connections.
///
/// ```
/// use pintle::client::{Answer, Client};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let client = Client::new("demo", "0.1.0")
///     .title("The demo")
///     // The handler is the capability.
///     .on_elicit(|question| async move {
///         println!("{}", question.message);
///         Answer::accept(json!({"city": "Bergen"}))
///     })
///     .roots(["file:///srv/data"]);
///
/// # #[cfg(feature = "server")] {
/// # let server = pintle::Server::new("s", "0").tool(pintle::server::tool("hello", || async { "hello" }));
/// # let transport = server.in_process()?;
/// let server = client.connect(transport).await?;
/// for tool in server.tools().await? {
///     println!("{}", tool.name);
/// }
/// let result = server.call_tool("hello", ()).await?;
/// # assert_eq!(result.text(), "hello");
/// # }
/// # Ok(()) }
/// ```
#[must_use = "a client does nothing until it is connected"]
#[derive(Clone)]
pub struct Client {
    settings: ClientSettings,
    /// The result types that extensions resolve.
    arms: Arc<[Arc<ResultArm>]>,
}

impl Client {
    /// Creates a client without capabilities, identified by name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { settings: ClientSettings::new(Implementation::new(name, version)), arms: Arc::default() }
    }

    /// Sets the display name.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.settings.info.title = Some(title.into());
        self
    }

    /// Sets everything that identifies the client to servers.
    pub fn info(mut self, info: Implementation) -> Self {
        self.settings.info = info;
        self
    }

    /// Sets the handler of forms that servers request from the user (`elicitation/create`).
    ///
    /// Fields that the answer leaves out get their defaults. The user interface has to show which server asks, and to
    /// offer declining.
    pub fn on_elicit<F, Fut>(mut self, handle: F) -> Self
    where
        F: Fn(Question<ElicitFormParams>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoReply<ElicitResult>> + Send + 'static,
    {
        self.settings.handlers.form = Some(handler(handle));
        self
    }

    /// Sets the handler of requests to open a URL.
    ///
    /// Show the whole URL and its [host](ElicitUrl::host), and open it only if the user agrees, outside of this program.
    /// Never fetch it. A URL that must not be opened, such as `javascript:`, is refused before it gets here.
    pub fn on_elicit_url<F, Fut>(mut self, handle: F) -> Self
    where
        F: Fn(Question<ElicitUrl>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoReply<ElicitResult>> + Send + 'static,
    {
        self.settings.handlers.url = Some(handler(handle));
        self
    }

    /// Sets the handler of requests to the client's model (`sampling/createMessage`).
    ///
    /// ```
    /// use pintle::{Client, types::schema::{ContentBlock, CreateMessageResult}};
    ///
    /// let client = Client::new("demo", "0.1.0").on_sample(|question| async move {
    ///     let words = question.messages.len();
    ///     CreateMessageResult::new("some-model", ContentBlock::text(format!("{words} messages")))
    /// });
    /// ```
    pub fn on_sample<F, Fut>(mut self, handle: F) -> Self
    where
        F: Fn(Question<CreateMessageParams>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoReply<CreateMessageResult>> + Send + 'static,
    {
        self.settings.handlers.sample = Some(handler(handle));
        self
    }

    /// Sets whether [`on_sample`](Self::on_sample) supports tools for the model.
    pub fn sample_with_tools(mut self, can: bool) -> Self {
        self.settings.handlers.sample_tools = can;
        self
    }

    /// Sets whether [`on_sample`](Self::on_sample) supports `includeContext`: the context of this server, or of all.
    pub fn sample_with_context(mut self, can: bool) -> Self {
        self.settings.handlers.sample_context = can;
        self
    }

    /// Lets servers of 2025-11-25 ask for answers as tasks: the client replies at once that it has begun, and the server polls for the
    /// answer. The handlers stay the same. Other revisions do not have it, and there answers are awaited.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// # #[cfg(feature = "server")] {
    /// use std::time::Duration;
    /// use pintle::{Client, Server, client::{Answer, AnswerTasks, Mode}, server::{Cx, ToolError, tool}};
    ///
    /// let server = Server::new("demo", "1.0.0").tool(tool("wipe", |cx: Cx| async move {
    ///     cx.ask_as_tasks(Duration::from_secs(600));
    ///     let agreed = cx.elicit::<()>("agreed", "Wipe the disk?").await?.accepted().is_some();
    ///     Ok::<_, ToolError>(if agreed { "Wiped." } else { "Left alone." })
    /// }));
    /// let client = Client::new("demo", "0.1.0")
    ///     .mode(Mode::Legacy)
    ///     .on_elicit(|_| async { Answer::Decline })
    ///     .answer_tasks(AnswerTasks::new().poll_interval(Duration::from_millis(10)));
    /// let connection = client.connect(server.in_process()?).await?;
    /// assert_eq!(connection.call_tool("wipe", ()).await?.text(), "Left alone.");
    /// # }
    /// # Ok(()) }
    /// ```
    pub fn answer_tasks(mut self, tasks: AnswerTasks) -> Self {
        self.settings.answer_tasks = Some(tasks);
        self
    }

    /// Sets the roots that servers may work in: URIs, paths, or a [`Roots`] handle to change them later.
    ///
    /// A path that cannot be converted is an error of [`connect`](Self::connect).
    pub fn roots(mut self, roots: impl IntoRoots) -> Self {
        match roots.into_roots() {
            Ok(roots) => self.settings.handlers.roots = Some(roots),
            Err(error) => self.settings.fault = Some(error.to_string()),
        }
        self
    }

    /// Adds a handler of requests that the protocol does not define. Servers send them in a session, in revisions that have
    /// sessions; without one they cannot.
    ///
    /// Declare an [extension](Self::extension), so that servers know of it. A method of the protocol, or one that has a handler
    /// already, is an error of [`connect`](Self::connect).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// # #[cfg(feature = "server")] {
    /// use pintle::{Client, Server, client::{Mode, Question}, server::{Cx, ToolError, tool}};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Wanted { lines: u32 }
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Selection { text: String }
    ///
    /// let server = Server::new("demo", "1.0.0").tool(tool("explain", |cx: Cx| async move {
    ///     let selection: Selection = cx.request("example.com/selection", Wanted { lines: 10 }).await?;
    ///     Ok::<_, ToolError>(format!("You selected: {}", selection.text))
    /// }));
    /// let client = Client::new("demo", "0.1.0").mode(Mode::Legacy).method(
    ///     "example.com/selection",
    ///     |question: Question<Wanted>| async move {
    ///         Ok(Selection { text: format!("the first {} lines", question.lines) })
    ///     },
    /// );
    /// let connection = client.connect(server.in_process()?).await?;
    /// assert_eq!(connection.call_tool("explain", ()).await?.text(), "You selected: the first 10 lines");
    /// # }
    /// # Ok(()) }
    /// ```
    pub fn method<P, R, F, Fut>(mut self, name: impl Into<Box<str>>, handle: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize,
        F: Fn(Question<P>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, RpcError>> + Send + 'static,
    {
        let name = name.into();
        let custom = Arc::make_mut(&mut self.settings.handlers.custom);
        let fault = match custom.entry(name) {
            entry if method::find(entry.key()).is_some() => {
                Some(format!("`{}` is a method of the protocol; choose another name", entry.key()))
            }
            Entry::Occupied(entry) => {
                let name = entry.key();
                Some(format!("a handler for the method `{name}` is already registered; choose another name"))
            }
            Entry::Vacant(entry) => {
                entry.insert(custom_handler(handle));
                None
            }
        };
        self.settings.fault = fault.or(self.settings.fault);
        self
    }

    /// Sets a callback for log messages of the server, in order. [`log_level`](Self::log_level) selects them.
    pub fn on_log(mut self, call: impl Fn(Report<LoggingMessageParams>) + Send + Sync + 'static) -> Self {
        self.settings.on_log = Some(Arc::new(call));
        self
    }

    /// Sets the initial minimum level of log messages.
    pub fn log_level(mut self, level: LoggingLevel) -> Self {
        self.settings.log_level = Some(level);
        self
    }

    /// Sets a callback for the progress of calls without their own callback. All calls request progress then.
    pub fn on_progress(mut self, call: impl Fn(Report<ProgressParams>) + Send + Sync + 'static) -> Self {
        self.settings.on_progress = Some(Arc::new(call));
        self
    }

    /// Sets a callback for changes on the server. [`Connection::changes`] returns them as a stream.
    pub fn on_change(mut self, call: impl Fn(Report<Change>) + Send + Sync + 'static) -> Self {
        self.settings.on_change = Some(Arc::new(call));
        self
    }

    /// Sets a callback for output of the server that is not a message. Without one it is counted and ignored.
    pub fn on_noise(mut self, call: impl Fn(Report<&str>) + Send + Sync + 'static) -> Self {
        self.settings.on_noise = Some(Arc::new(call));
        self
    }

    /// Sets a policy that decides before every call whether the tool may be called.
    ///
    /// It always sees the current definition of the tool: after a restart of the server, or when a change may have been missed,
    /// the tools are listed again first. Without notifications of changes that is before every call. An open
    /// [`changes`](Connection::changes) stream avoids it, and so does a server that states how long its list is valid.
    pub fn policy(mut self, decide: impl Fn(&Proposal<'_>) -> Policy + Send + Sync + 'static) -> Self {
        self.settings.policy = Some(Arc::new(decide));
        self
    }

    /// Sets the check of results against output schemas, in place of the default one.
    ///
    /// The tools need not be listed before: if a result has structured content and its tool is unknown, they are listed once. If
    /// that fails, the result is not checked. A result that does not match a schema which may be outdated is checked against the
    /// current one.
    pub fn output_check(mut self, check: impl OutputCheck) -> Self {
        self.settings.output = Arc::new(check);
        self
    }

    /// Sets metadata of every request, such as the user that a host acts for. Metadata of a single request is merged over it.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.settings.meta = Some(meta);
        self
    }

    /// Sets the timeouts.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.settings.timeouts = timeouts;
        self
    }

    /// Changes some of the timeouts.
    pub fn map_timeouts(mut self, change: impl FnOnce(&mut Timeouts)) -> Self {
        change(&mut self.settings.timeouts);
        self
    }

    /// Sets the limits on what a server can make the client hold.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Sets which eras to try.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.settings.mode = mode;
        self
    }

    /// Restricts the revisions that may be negotiated. Default: all.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.settings.revisions = Some(revisions.into_iter().collect());
        self
    }

    /// Sets the result of an earlier negotiation with this server. It saves probing, and is verified.
    pub fn remember(mut self, verdict: Verdict) -> Self {
        self.settings.remembered = Some(verdict);
        self
    }

    /// Declares an extension with its settings.
    pub fn extension(mut self, name: impl Into<String>, settings: JsonObject) -> Self {
        self.settings.extensions.insert(name.into(), settings.into());
        self
    }

    /// Adds result types of the declared extensions. Other unknown result types are protocol violations.
    pub fn result_types<T: Into<Box<str>>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.settings.result_types.extend(types.into_iter().map(Into::into));
        self
    }

    /// Sets the size of the cache of results, in entries and bytes. Results are kept as long as the server states,
    /// private ones for requests with the same metadata. Default: 256 entries and 16 MiB; 0 disables the cache.
    pub fn cache(mut self, entries: usize, bytes: usize) -> Self {
        self.settings.cache = (entries > 0 && bytes > 0).then_some((entries, bytes));
        self
    }

    /// Sets how often in a row a lost connection is opened again, if the transport supports it. Default: 3.
    pub fn reconnects(mut self, limit: u32) -> Self {
        self.settings.reconnects = limit;
        self
    }

    /// Sets how often a request is sent again after it was lost, if repeating it is safe, or was refused by an overloaded server.
    /// Default: 0.
    ///
    /// A request is lost if its connection ended and was [opened again](Self::reconnects), or if its HTTP request failed or was
    /// answered with a status of 500 and above. Timeouts and other errors of the server are not retried. It is safe to repeat lists,
    /// reads, prompts, completions, and calls of tools whose current hints are `idempotent` or `read_only`. Each attempt has the
    /// whole timeout, and the delay before it doubles, from 250 milliseconds.
    ///
    /// A server that answers with [`ErrorCode::OVERLOADED`](crate::types::ErrorCode::OVERLOADED) has done nothing: such a request is
    /// sent again on every transport, after the delay that the server states, unless that is over 30 seconds. Over HTTP, `Retry` of
    /// `client::http` does so too, before this counts.
    ///
    /// ```
    /// use pintle::Client;
    ///
    /// let client = Client::new("demo", "1.0.0").retries(2);
    /// ```
    pub fn retries(mut self, limit: u32) -> Self {
        self.settings.retries = limit;
        self
    }

    /// Puts a `tower` layer around every request and every notification, in both directions and on every transport; [`around`]
    /// makes one of a function. The last one added is the outermost.
    ///
    /// A layer sees what the client sends ([`Direction::Out`]): calls, lists and all other requests of a [`Connection`], and also
    /// what a connection sends by itself, such as `initialize`, `server/discover`, the log level and subscriptions. It sees what the
    /// client receives ([`Direction::In`]) once the protocol has accepted it: input requests, in both eras, `ping`, progress, log
    /// messages, changes and custom notifications.
    ///
    /// - For a request that is sent, layers are outside of everything that this crate does: [`Next::run`] looks in the cache, asks the
    ///   [policy](Self::policy), sends the request, answers the input requests of the server, [retries](Self::retries), and checks
    ///   the output. A layer sees one request however often it is sent, and its time is not part of the timeout.
    /// - A request that a layer refuses is not sent, and the caller gets the error. If the layer refuses an input request, the server
    ///   gets it: an [`Error::Rpc`](crate::Error::Rpc) as it is.
    /// - `subscriptions/listen` is done when it is acknowledged; its result is what the server has granted. If the layer then returns
    ///   an error, the subscription ends.
    /// - A notification that a layer refuses is not sent or not delivered. The connection has used it before: the tools that it
    ///   knows are outdated with `notifications/tools/list_changed`, and the result of a call waits for its progress.
    /// - If the future of a request is dropped, so are those of the layers. Cancellations and keepalives are not seen.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// # #[cfg(feature = "server")] {
    /// use std::time::Instant;
    /// use pintle::{Client, Result, Server, client::{Cx, Next, around}, server::tool, types::RawObject};
    ///
    /// async fn timed(cx: Cx, next: Next) -> Result<RawObject> {
    ///     let (direction, method, start) = (cx.direction(), cx.method().to_owned(), Instant::now());
    ///     let result = next.run(cx).await;
    ///     println!("{direction:?} {method}: {} after {:?}", result.is_ok(), start.elapsed());
    ///     result
    /// }
    ///
    /// let server = Server::new("dice", "1.0.0").tool(tool("roll", || async { "4" }));
    /// let client = Client::new("demo", "0.1.0").layer(&around(timed));
    /// let dice = client.connect(server.in_process()?).await?;
    /// assert_eq!(dice.call_tool("roll", ()).await?.text(), "4");
    /// # }
    /// # Ok(()) }
    /// ```
    pub fn layer<L>(mut self, layer: &L) -> Self
    where
        L: Layer<Next>,
        L::Service: tower_service::Service<Cx, Response = RawObject> + Clone + Send + Sync + 'static,
        <L::Service as tower_service::Service<Cx>>::Error: Into<BoxError> + Send,
        <L::Service as tower_service::Service<Cx>>::Future: Send + 'static,
    {
        self.settings.layers = self.settings.layers.wrapped(layer, layer::result);
        self
    }

    /// Logs every message of all connections, over HTTP with headers.
    ///
    /// ```
    /// use pintle::{Client, message_log::MessageLog};
    ///
    /// let client = Client::new("demo", "1.0.0").message_log(MessageLog::to_writer(std::io::stderr()));
    /// ```
    pub fn message_log(mut self, log: MessageLog) -> Self {
        self.settings.message_log = Some(log);
        self
    }

    /// Opens a connection and negotiates the revision.
    ///
    /// # Errors
    ///
    /// The server did not answer, exited, refused, or supports no revision that this client may use.
    pub async fn connect(&self, transport: impl Transport) -> Result<Connection> {
        self.open(None, driven(transport)).await
    }

    /// Opens a connection with a name of your choice, as [`connect`](Self::connect) does.
    ///
    /// Callbacks, handlers and the policy see the name, so that one client can be used for several servers. Unlike the server's own
    /// name, it can be trusted.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// # #[cfg(feature = "server")] {
    /// use pintle::{Client, Server, client::Policy, server::tool};
    ///
    /// let files = Server::new("files", "1.0.0").tool(tool("delete", || async { "deleted" }));
    /// let client = Client::new("demo", "1.0.0").policy(|call| match call.connection {
    ///     Some("scratch") => Policy::Allow,
    ///     _ => Policy::deny("only in the scratch directory"),
    /// });
    /// let scratch = client.connect_as("scratch", files.in_process()?).await?;
    /// let home = client.connect_as("home", files.in_process()?).await?;
    /// assert_eq!(scratch.name(), Some("scratch"));
    /// assert!(scratch.call_tool("delete", ()).await.is_ok());
    /// assert!(home.call_tool("delete", ()).await.is_err());
    /// # }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn connect_as(
        &self,
        name: impl Into<Arc<str>>,
        transport: impl Transport,
    ) -> Result<Connection> {
        self.open(Some(name.into()), driven(transport)).await
    }

    async fn open(
        &self,
        name: Option<Arc<str>>,
        mut transport: Box<dyn DrivenTransport>,
    ) -> Result<Connection> {
        let settings = Arc::new(self.settings.clone());
        let profile = settings.profile()?;
        if let Some(log) = &settings.message_log {
            transport = Box::new(LoggedTransport::new(log, Side::Client, transport));
        }
        transport.limit_messages(settings.limits.message_bytes);
        transport.defer_pushes(&settings.push_demand);
        let shared = Arc::new(ConnectionState::new(settings, name, &*transport));
        let (commands, obeyed) = mpsc::channel(driver::COMMANDS);
        let mut driver = Box::new(Driver::new(shared.clone(), profile, transport, obeyed));
        driver.open(self.settings.remembered).await?;
        if let Some(roots) = &self.settings.handlers.roots {
            let observer: Weak<ConnectionState> = Arc::downgrade(&shared);
            roots.register(observer);
        }
        let direct = Arc::new(DirectSend::new());
        crate::runtime::spawn(driver.run(direct.clone()));
        Ok(Connection::new(shared, commands, direct, self.arms.clone()))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("settings", &self.settings).finish()
    }
}
