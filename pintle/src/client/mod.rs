//! Using servers: connect, list, call, and answer what they ask.
//!
//! A [`Client`] says who is asking and what it can do; [`connect`](Client::connect) makes a [`Connection`] of it and a
//! transport. Which era and revision the server speaks is found out on the way, and nothing after that depends on it.

mod asking;
mod connection;
mod driver;
#[cfg(feature = "http-client")]
pub mod http;
mod reconnect;
mod state;
mod tools;

use std::{
    fmt,
    future::Future,
    sync::{Arc, Weak},
};

use pintle_proto::{Limits, Revision};
use pintle_types::{
    JsonObject,
    schema::{
        CreateMessageParams, CreateMessageResult, ElicitFormParams, ElicitResult, Implementation,
        LoggingLevel, LoggingMessageParams, ProgressParams,
    },
};
use tokio::sync::mpsc;

use crate::{
    Result, Timeouts,
    transport::{DrivenTransport, Transport, driven},
};

pub use asking::{Answer, ElicitUrl, IntoReply, IntoRoot, IntoRoots, Question, Roots};
pub use connection::{Batch, Call, Changes, Connection, Group, Items, List, Listing};
pub use pintle_proto::client::{Change, Mode, OpenError, Verdict};
pub use reconnect::{Connector, Reconnect};
pub use state::Event;
pub use tools::{Hints, OutputCheck, Policy, Proposal};

use asking::handler;
use driver::{DirectSend, Driver};
use state::{Settings, Shared};

/// A client: who is asking, and what it can do for servers. One client opens any number of connections.
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
    settings: Settings,
}

impl Client {
    /// A client that can do nothing for servers yet. It introduces itself by name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { settings: Settings::new(Implementation::new(name, version)) }
    }

    /// The name that people see.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.settings.info.title = Some(title.into());
        self
    }

    /// All that the client says of itself.
    pub fn info(mut self, info: Implementation) -> Self {
        self.settings.info = info;
        self
    }

    /// Answers forms that servers want filled in.
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

    /// Answers servers that want the user to open a page.
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

    /// Asks a model on a server's behalf.
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

    /// Whether [`on_sample`](Self::on_sample) can deal with tools for the model.
    pub fn sample_with_tools(mut self, can: bool) -> Self {
        self.settings.handlers.sample_tools = can;
        self
    }

    /// The places that servers may work in: URIs, paths, or a [`Roots`] handle to change them later.
    ///
    /// A path that cannot be one is an error of [`connect`](Self::connect).
    pub fn roots(mut self, roots: impl IntoRoots) -> Self {
        match roots.into_roots() {
            Ok(roots) => self.settings.handlers.roots = Some(roots),
            Err(error) => self.settings.fault = Some(error.to_string()),
        }
        self
    }

    /// Is called with log messages of the server, in order. Say with [`log_level`](Self::log_level) which are wanted.
    pub fn on_log(mut self, call: impl Fn(LoggingMessageParams) + Send + Sync + 'static) -> Self {
        self.settings.on_log = Some(Arc::new(call));
        self
    }

    /// From which level on log messages are wanted, to begin with.
    pub fn log_level(mut self, level: LoggingLevel) -> Self {
        self.settings.log_level = Some(level);
        self
    }

    /// Is called with the progress of calls that have no callback of their own. All of them ask for it then.
    pub fn on_progress(mut self, call: impl Fn(ProgressParams) + Send + Sync + 'static) -> Self {
        self.settings.on_progress = Some(Arc::new(call));
        self
    }

    /// Is called when something of the server's has changed. [`Connection::changes`] is the same as a stream.
    pub fn on_change(mut self, call: impl Fn(Change) + Send + Sync + 'static) -> Self {
        self.settings.on_change = Some(Arc::new(call));
        self
    }

    /// Is called with what a server prints that is no message. It is counted and ignored otherwise.
    pub fn on_noise(mut self, call: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.settings.on_noise = Some(Arc::new(call));
        self
    }

    /// Decides whether a tool may be called, before every call.
    ///
    /// It never decides on what the server said of the tool before it was restarted, or before changes could be missed:
    /// then the tools are listed again first. While nothing tells of changes, that is before every call. An open
    /// [`changes`](Connection::changes) saves it, and so does a server that says for how long its list is good.
    pub fn policy(mut self, decide: impl Fn(&Proposal<'_>) -> Policy + Send + Sync + 'static) -> Self {
        self.settings.policy = Some(Arc::new(decide));
        self
    }

    /// Checks results against output schemas, instead of the client's own check of their structure.
    pub fn output_check(mut self, check: impl OutputCheck) -> Self {
        self.settings.output = Arc::new(check);
        self
    }

    /// How long to wait for anything.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.settings.timeouts = timeouts;
        self
    }

    /// How much of anything a server may make this side hold.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Which eras to try.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.settings.mode = mode;
        self
    }

    /// Which revisions may be spoken; all of them otherwise.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.settings.revisions = Some(revisions.into_iter().collect());
        self
    }

    /// What an opening of this server found out before: it saves asking again, and is not trusted beyond that.
    pub fn remember(mut self, verdict: Verdict) -> Self {
        self.settings.remembered = Some(verdict);
        self
    }

    /// Offers an extension, with its settings.
    pub fn extension(mut self, name: impl Into<String>, settings: JsonObject) -> Self {
        self.settings.extensions.insert(name.into(), settings.into());
        self
    }

    /// Result types that belong to the extensions on offer; other unknown ones are a fault of the server's.
    pub fn result_types<T: Into<Box<str>>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.settings.result_types.extend(types.into_iter().map(Into::into));
        self
    }

    /// How many results to keep for as long as the server says that they are good, and how many bytes of them.
    /// 256 and 16 MiB; none at all if either is 0.
    pub fn cache(mut self, entries: usize, bytes: usize) -> Self {
        self.settings.cache = (entries > 0 && bytes > 0).then_some((entries, bytes));
        self
    }

    /// How often in a row a lost connection is opened again, by transports that can. 3.
    pub fn reconnects(mut self, most: u32) -> Self {
        self.settings.reconnects = most;
        self
    }

    /// Opens a connection, in whatever era the server speaks.
    ///
    /// # Errors
    ///
    /// The server is silent, went away, refused, or speaks nothing that this client may speak: the error says which.
    pub async fn connect(&self, transport: impl Transport) -> Result<Connection> {
        self.open(driven(transport)).await
    }

    async fn open(&self, mut transport: Box<dyn DrivenTransport>) -> Result<Connection> {
        let settings = Arc::new(self.settings.clone());
        let profile = settings.profile()?;
        transport.limit_messages(settings.limits.message_bytes);
        let shared = Arc::new(Shared::new(settings, &*transport));
        let (commands, obeyed) = mpsc::channel(driver::COMMANDS);
        let mut driver = Driver::new(shared.clone(), profile, transport, obeyed);
        driver.open(self.settings.remembered).await?;
        if let Some(roots) = &self.settings.handlers.roots {
            let observer: Weak<Shared> = Arc::downgrade(&shared);
            roots.register(observer);
        }
        let direct = Arc::new(DirectSend::new());
        tokio::spawn(driver.run(direct.clone()));
        Ok(Connection::new(shared, commands, direct))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("settings", &self.settings).finish()
    }
}
