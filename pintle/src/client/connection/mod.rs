//! An open connection, and its requests.

mod admission;
mod batch;
mod call;
mod changes;
mod complete;
mod exchange;
mod forward;
mod lists;
mod options;
mod output;
mod perform;
mod repeat;
mod request;
mod resume;
mod rounds;
mod sending;
mod slot;
mod unresolved;
mod watch;

use std::{borrow::Cow, fmt, sync::Arc, sync::atomic::Ordering};

use pintle_proto::{Facts, Revision, client::Verdict};
use pintle_types::{
    Meta, RawObject, method,
    schema::{
        CallToolResult, GetPromptResult, Implementation, LoggingLevel, ReadResourceResult,
        ServerCapabilities, SetLevelParams, SubscriptionFilter,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    driver::{Command, DirectSend, GRANTED, WatchChange},
    state::{CallFailure, ConnectionState},
};
use crate::{Ended, Error, Result};
pub use batch::Batch;
pub use call::Call;
pub use changes::Changes;
pub use forward::ForwardRequest;
pub use lists::{Items, List};
pub use options::ForwardEvent;
pub use repeat::Repetition;
pub use request::RequestBuilder;
pub use unresolved::{CallStart, Unresolved};
pub(in crate::client) use unresolved::{Prepare, ResultArm, SessionArm};
pub use watch::ListStates;

use call::{misnamed, named, params};

/// An open connection to a server. A clone is another handle to the same one.
///
/// When the last handle is dropped, the connection is closed.
///
/// ```
/// use pintle::{Client, Server, server::{Arguments, tool}};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let echo = tool("echo", |Arguments(arguments)| async move { arguments.as_str().to_owned() });
/// let server = Server::new("echo", "1.0.0").tool(echo);
///
/// let server = Client::new("demo", "0.1.0").connect(server.in_process()?).await?;
/// for tool in server.tools().await? {
///     println!("{}", tool.name);
/// }
/// let result = server.call_tool("echo", json!({"n": 1})).await?;
/// assert_eq!(result.text(), r#"{"n":1}"#);
/// server.close().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Connection {
    shared: Arc<ConnectionState>,
    commands: mpsc::Sender<Box<Command>>,
    direct: Arc<DirectSend>,
    /// The result types that extensions resolve.
    arms: Arc<[Arc<ResultArm>]>,
    /// Metadata of every request of this handle.
    meta: Option<Meta>,
}

impl Connection {
    pub(in crate::client) fn new(
        shared: Arc<ConnectionState>,
        commands: mpsc::Sender<Box<Command>>,
        direct: Arc<DirectSend>,
        arms: Arc<[Arc<ResultArm>]>,
    ) -> Self {
        let meta = shared.settings.meta.clone();
        Self { shared, commands, direct, arms, meta }
    }

    pub(in crate::client) fn shared(&self) -> &Arc<ConnectionState> {
        &self.shared
    }

    pub(in crate::client) fn commands(&self) -> &mpsc::Sender<Box<Command>> {
        &self.commands
    }

    pub(in crate::client) fn direct(&self) -> &DirectSend {
        &self.direct
    }

    /// Returns the client that opened the connection, for example to open another one.
    pub fn client(&self) -> super::Client {
        super::Client { settings: (*self.shared.settings).clone(), arms: self.arms.clone() }
    }

    /// Returns the name that the connection was given by [`Client::connect_as`](super::Client::connect_as).
    pub fn name(&self) -> Option<&str> {
        self.shared.name.as_deref()
    }

    /// Returns a handle to this connection whose requests carry this metadata, in place of that of
    /// [`Client::meta`](super::Client::meta). Metadata of a single request is merged over it.
    ///
    /// ```
    /// # async fn example(connection: pintle::Connection) -> pintle::Result<()> {
    /// use pintle::types::Meta;
    ///
    /// let mut meta = Meta::new();
    /// meta.insert("example.com/user", "ada");
    /// let for_ada = connection.with_meta(meta);
    /// for_ada.call_tool("report", ()).await?;
    /// # Ok(()) }
    /// ```
    #[must_use = "the connection itself is not changed"]
    pub fn with_meta(&self, meta: Meta) -> Self {
        Self { meta: Some(meta), ..self.clone() }
    }

    /// Returns the server's name and version, if it reports them. For display and logs, never for decisions.
    pub fn server_info(&self) -> Option<Arc<Implementation>> {
        self.shared.server_facts().info.clone()
    }

    /// Returns the server's capabilities. Empty if it reports none.
    pub fn capabilities(&self) -> ServerCapabilities {
        self.shared.server_facts().capabilities.clone().unwrap_or_default()
    }

    /// Returns the server's instructions for the model.
    pub fn instructions(&self) -> Option<String> {
        self.shared.server_facts().instructions.as_deref().map(Into::into)
    }

    /// Returns the negotiated revision.
    pub fn revision(&self) -> Revision {
        self.verdict().revision()
    }

    /// Returns what the protocol of the server can do, in place of its revision or era.
    pub fn facts(&self) -> Facts {
        self.revision().facts()
    }

    /// Returns whether the server has sessions too, although this connection is of the stateless era.
    pub fn has_sessions(&self) -> bool {
        self.shared.server_facts().has_sessions
    }

    /// Returns the result of the negotiation. [`Client::remember`](super::Client::remember) uses it to open faster next time.
    ///
    /// # Panics
    ///
    /// Never: a `Connection` exists only after the negotiation.
    pub fn verdict(&self) -> Verdict {
        self.shared.server_facts().verdict.expect("an open connection knows its revision")
    }

    /// Returns how many lines of the server were not messages, for example because it prints to standard output.
    pub fn noise(&self) -> u64 {
        self.shared.noise.load(Ordering::Relaxed)
    }

    /// Calls a tool. [`call`](Self::call) has more options.
    ///
    /// # Errors
    ///
    /// The server refused or did not answer, or the result does not match the tool's output schema. A failed tool is a result: see
    /// [`is_error`](CallToolResult::is_error).
    pub async fn call_tool(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Result<CallToolResult> {
        self.call(name).args(arguments).send().await
    }

    /// Calls a tool and deserializes its structured content, or else its text as JSON.
    ///
    /// ```no_run
    /// # async fn example(server: pintle::Connection) -> pintle::Result<()> {
    /// #[derive(serde::Deserialize)]
    /// struct Weather { celsius: f64 }
    ///
    /// let weather: Weather = server.call_tool_as("weather", serde_json::json!({"city": "Bergen"})).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`call_tool`](Self::call_tool); also if the tool failed, or its result is not a `T`.
    pub async fn call_tool_as<T: DeserializeOwned>(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Result<T> {
        self.call(name).args(arguments).send_as().await
    }

    /// Builds a call of a tool, with its own timeout, progress callback and so on.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// # #[cfg(feature = "server")] {
    /// use pintle::{Client, Server, server::{Cx, tool}};
    /// use std::time::Duration;
    ///
    /// async fn count(cx: Cx) -> &'static str {
    ///     cx.progress(1.0, 1.0).await;
    ///     "counted"
    /// }
    ///
    /// let server = Server::new("demo", "1.0.0").tool(tool("count", count));
    /// let connection = Client::new("demo", "1.0.0").connect(server.in_process()?).await?;
    /// let (steps, mut told) = tokio::sync::mpsc::unbounded_channel();
    /// let result = connection
    ///     .call("count")
    ///     .timeout(Duration::from_secs(5))
    ///     .on_progress(move |progress| drop(steps.send(progress.progress)))
    ///     .await?;
    /// assert_eq!(result.text(), "counted");
    /// assert_eq!(told.recv().await, Some(1.0));
    /// # }
    /// # Ok(()) }
    /// ```
    pub fn call(&self, name: impl Into<String>) -> Call<'_> {
        Call::new(self, name.into())
    }

    /// Reads a resource.
    ///
    /// ```no_run
    /// # async fn example(server: pintle::Connection) -> pintle::Result<()> {
    /// for part in server.read_resource("note://shopping").await?.contents {
    ///     println!("{}: {}", part.uri, part.as_text().unwrap_or("bytes"));
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The resource does not exist, or the server did not answer.
    pub fn read_resource(&self, uri: &str) -> RequestBuilder<'_, ReadResourceResult> {
        #[derive(Serialize)]
        struct Params<'a> {
            uri: &'a str,
        }
        RequestBuilder::typed(self, method::RESOURCES_READ.into(), params(&Params { uri }))
    }

    /// Gets a prompt with arguments: a struct or map of strings, or `()` for none.
    ///
    /// ```no_run
    /// # async fn example(server: pintle::Connection) -> pintle::Result<()> {
    /// let review = server.get_prompt("review", serde_json::json!({"code": "let x = 1;"})).await?;
    /// for message in review.messages {
    ///     println!("{:?}: {}", message.role, message.content.as_text().unwrap_or("..."));
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The prompt does not exist, the arguments are invalid, or the server did not answer.
    pub fn get_prompt(&self, name: &str, arguments: impl Serialize) -> RequestBuilder<'_, GetPromptResult> {
        let params = named(name, &arguments).map_err(|message| misnamed(name, &message));
        RequestBuilder::typed(self, method::PROMPTS_GET.into(), params)
    }

    /// Checks that the server responds: with `ping`, or `server/discover` where there is no `ping`.
    ///
    /// # Errors
    ///
    /// The server did not respond in time, or the connection is closed.
    pub async fn ping(&self) -> Result<()> {
        let method = [method::PING, method::SERVER_DISCOVER];
        let method = method.into_iter().find(|method| self.revision().has_method(method));
        self.once(method.unwrap_or(method::PING), RawObject::empty()).await.map(drop)
    }

    /// Sets the minimum level of log messages for this connection.
    ///
    /// # Errors
    ///
    /// The server does not support logging, or did not answer.
    pub async fn set_log_level(&self, level: LoggingLevel) -> Result<()> {
        self.shared.set_log_level(level);
        if !self.revision().has_method(method::LOGGING_SET_LEVEL) {
            // It goes with each request.
            return Ok(());
        }
        self.once(method::LOGGING_SET_LEVEL, params(&SetLevelParams::new(level))?).await.map(drop)
    }

    /// Returns the events of the server from now on: changes of lists, updates of subscribed resources, custom notifications.
    ///
    /// ```no_run
    /// # async fn example(server: pintle::Connection) -> pintle::Result<()> {
    /// use pintle::client::{Change, Event};
    ///
    /// let mut changes = server.changes().await?;
    /// while let Some(event) = changes.next().await {
    ///     if event == Event::Changed(Change::Tools) {
    ///         println!("now there are {} tools", server.tools().await?.len());
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The server refused the subscription, or the connection is closed.
    pub async fn changes(&self) -> Result<Changes> {
        let queue = self.shared.hub.listen();
        self.watch(WatchChange::Lists).await?;
        Ok(Changes::new(queue, self.clone()))
    }

    /// Subscribes to updates of a resource. They are delivered by [`changes`](Self::changes). The subscription is restored when a
    /// lost connection is opened again.
    ///
    /// # Errors
    ///
    /// The server refused the subscription, or the connection is closed.
    pub async fn subscribe(&self, uri: impl Into<String>) -> Result<()> {
        self.watch(WatchChange::Resource(uri.into())).await.map(drop)
    }

    /// Ends a subscription of [`subscribe`](Self::subscribe).
    ///
    /// # Errors
    ///
    /// The server did not answer, or the connection is closed.
    pub async fn unsubscribe(&self, uri: impl Into<String>) -> Result<()> {
        self.watch(WatchChange::NotResource(uri.into())).await.map(drop)
    }

    /// Subscribes to notifications of an extension: sets a member of the filter of `subscriptions/listen`, such as `taskIds`. They are
    /// delivered by [`changes`](Self::changes). Returns what the server has granted of the value, which may be less. In the session era,
    /// servers send them without a subscription: this does nothing, and returns `null`.
    ///
    /// ```no_run
    /// # async fn example(server: pintle::Connection) -> pintle::Result<()> {
    /// use pintle::client::Event;
    /// use serde_json::json;
    ///
    /// let mut changes = server.changes().await?;
    /// server.subscribe_extension("taskIds", json!(["t-1"])).await?;
    /// while let Some(event) = changes.next().await {
    ///     if let Event::Notification(notification) = event {
    ///         println!("{}", notification.method);
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The server refused the subscription or does not support it, or the connection is closed.
    pub async fn subscribe_extension(
        &self,
        name: impl Into<String>,
        value: impl Into<Value>,
    ) -> Result<Value> {
        let name = name.into();
        if SubscriptionFilter::defines(&name) {
            return Err(Error::Misuse(format!(
                "`{name}` is defined by the protocol: use `changes` or `subscribe` for it"
            )));
        }
        let granted = self.watch(WatchChange::Extension(name, value.into())).await?;
        let granted = granted.decode_member(GRANTED).map_err(|error| Error::Decode(error.to_string()))?;
        Ok(granted.unwrap_or_default())
    }

    /// Notifies the server that the roots have changed. [`Roots`](super::Roots) does so by itself.
    ///
    /// # Errors
    ///
    /// The connection is closed.
    pub async fn notify_roots_changed(&self) -> Result<()> {
        if !self.revision().has_method(method::NOTIFICATIONS_ROOTS_LIST_CHANGED) {
            // The server asks with every call.
            return Ok(());
        }
        self.tell(method::NOTIFICATIONS_ROOTS_LIST_CHANGED.into(), None).await
    }

    /// Sends a custom notification.
    ///
    /// # Errors
    ///
    /// The server's revision has no such notification, or the connection is closed.
    pub async fn notify(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: Option<RawObject>,
    ) -> Result<()> {
        self.tell(method.into(), params).await
    }

    /// Sends a request of any method and returns the result unparsed, with unknown members.
    ///
    /// Input requests are answered, and the cache and the policy apply, as for any other request.
    ///
    /// ```no_run
    /// # async fn example(server: pintle::Connection) -> pintle::Result<()> {
    /// use pintle::types::RawObject;
    ///
    /// let listed = server.call_raw("tools/list", RawObject::empty()).await?;
    /// println!("{}", listed.as_str());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The server refused or did not answer, or its revision has no such method.
    pub fn call_raw(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: RawObject,
    ) -> RequestBuilder<'_, RawObject> {
        RequestBuilder::raw(self, method.into(), params)
    }

    /// Sends a request of any method, with params and a result of your types.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// # #[cfg(feature = "server")] {
    /// use pintle::{Client, Server, server::method};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Add { a: i32, b: i32 }
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Sum { sum: i32 }
    ///
    /// let server = Server::new("demo", "1.0.0")
    ///     .method(method("example.com/add", |_cx, Add { a, b }: Add| async move { Ok::<_, String>(Sum { sum: a + b }) }));
    /// let connection = Client::new("demo", "1.0.0").connect(server.in_process()?).await?;
    /// let sum = connection.request::<_, Sum>("example.com/add", Add { a: 1, b: 2 }).await?;
    /// assert_eq!(sum.sum, 3);
    /// # }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`call_raw`](Self::call_raw); also if the params are not an object, or the result is not an `R`.
    pub fn request<P: Serialize, R: DeserializeOwned>(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: P,
    ) -> RequestBuilder<'_, R> {
        RequestBuilder::typed(self, method.into(), self::params(&params))
    }

    /// Sends a request whose result is not the end of it: more requests follow, with the handlers of this one. `R` sends them.
    ///
    /// The task of the crate `pintle-tasks` is such a result.
    ///
    /// # Errors
    ///
    /// As [`call_raw`](Self::call_raw); also if the params are not an object, or `R` is not made of the result.
    pub fn call_unresolved<P: Serialize, R: TryFrom<Unresolved, Error = Error>>(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: P,
    ) -> RequestBuilder<'_, R> {
        RequestBuilder::unresolved(self, method.into(), self::params(&params))
    }

    /// Builds a batch of requests: sent as one message where the revision supports it, else concurrently.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(self)
    }

    /// Closes the connection, for all its handles. Calls that are still open are cancelled.
    pub async fn close(&self) {
        self.shared.signals.close();
        self.wait().await;
    }

    /// Returns whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.shared.ended.borrow().is_some()
    }

    /// Waits until the connection has ended, and returns why.
    pub async fn wait(&self) -> Ended {
        let mut ended = self.shared.ended.subscribe();
        match ended.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone().unwrap_or(Ended::ByPeer { known: None }),
            Err(_) => self.shared.how_ended(),
        }
    }

    pub(in crate::client) async fn command(&self, command: Command) -> Result<(), CallFailure> {
        self.commands.send(Box::new(command)).await.map_err(|_| CallFailure::Closed(self.shared.how_ended()))
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.server_info();
        f.debug_struct("Connection")
            .field("name", &self.name())
            .field("server", &info.as_ref().map(|info| &*info.name))
            .field("revision", &self.revision().as_str())
            .finish_non_exhaustive()
    }
}
