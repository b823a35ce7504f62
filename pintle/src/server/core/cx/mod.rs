pub(crate) mod asking;
pub(crate) mod caller_key;
mod client_task;
#[cfg(feature = "logging")]
pub(crate) mod current;
pub(crate) mod detached;
mod edited;
pub(crate) mod elicit;
pub(crate) mod found_in;
#[cfg(feature = "logging")]
pub mod logging;
mod notifications;
mod once;
pub(crate) mod outgoing;
mod recorded;
pub(crate) mod routed;
pub(crate) mod span;
mod target;
mod web;

use std::{
    fmt,
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Extensions;
#[cfg(feature = "http-server")]
use pintle_proto::server::Ticket;
use pintle_proto::{
    Facts, Peer,
    server::{Call, Extension},
};
use pintle_types::{Meta, RawObject, RequestId, RpcError, method, plain_error};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

pub use self::target::Target;

use self::{
    asking::QuestionState,
    detached::{Adopt, DetachRequest, Detaching, OuterTask, TaskHolder},
    edited::Edited,
    notifications::HeldNotifications,
    routed::{TextArguments, ToolCall},
};
use super::{
    driver::{context::RequestContext, detached::DetachedEvents, sink::CallSink},
    provider::tasks::outer_task,
    sessions::{LiveSession, handle::SessionHandle},
    snapshot::Snapshot,
};
use crate::server::{Principal, Scope, Server, replay::StateClaim};

/// The time limit of a call, if its route and its server set none.
const CALL_TIMEOUT: Duration = Duration::from_secs(1800);

/// The context of a call: its caller, its parameters, progress reports, log messages and questions to the client.
///
/// Cheap to clone. Handlers of tools, prompts, resources and custom methods take it as an argument.
///
/// ```
/// use pintle::server::{Cx, tool};
///
/// async fn copy(cx: Cx) -> String {
///     for file in 1..=3 {
///         cx.progress_with(f64::from(file), 3.0, "copying").await;
///     }
///     format!("copied for {}", cx.peer().info.as_ref().map_or("somebody", |info| &info.name))
/// }
///
/// let copy = tool("copy", copy);
/// ```
#[derive(Clone)]
pub struct Cx(Arc<CallState>, Option<Arc<Edited>>);

struct CallState {
    call: Call,
    server: Server,
    /// The server as it was when the call was received. Later changes apply to later calls.
    snapshot: Arc<Snapshot>,
    context: Arc<RequestContext>,
    routed: Routed,
    sink: CallSink,
    mounts: MountState,
    questions: QuestionState,
    end: EndState,
    /// Created by the first progress report or log message.
    notifications: Mutex<Option<Box<HeldNotifications>>>,
    /// The timeout of the route that the call was routed to, if it has its own; `None` in it means no limit.
    timeout: OnceLock<Option<Duration>>,
    /// Set once the state that the call came with is to be claimed.
    held: OnceLock<Box<StateClaim>>,
    /// Set once the call is to go on after its response.
    detaching: OnceLock<Box<Detaching>>,
}

/// The providers and mounted servers that a call has come to.
#[derive(Default)]
struct MountState {
    /// Whether a mounted server has answered with what has passed the mounts before.
    has_passed: AtomicBool,
    /// One more than the number of the provider that handles the call, of the innermost server that it has come to; 0 if none does.
    provider: AtomicUsize,
}

/// The end of a call.
#[derive(Default)]
struct EndState {
    is_over: AtomicBool,
    /// Notified when the call is over: tasks that wait for an answer get none.
    over: Notify,
}

/// The facts of a call that are known once it was routed.
#[derive(Default)]
struct Routed {
    /// The tool that is called.
    tool: OnceLock<ToolCall>,
    /// The texts of a call of a prompt or a resource template.
    texts: OnceLock<Box<TextArguments>>,
    /// The URI of the resource that is read, decoded.
    uri: OnceLock<Box<str>>,
}

/// A server that handles a call of the server that it is mounted in.
pub(crate) struct Mounted {
    server: Server,
    snapshot: Arc<Snapshot>,
    /// The mounted server that this one is mounted in, if it is not that of the connection.
    outer: Option<Arc<Self>>,
    /// The number of the provider that it is, or is in, of the one that it is mounted in, if it handles the call.
    number: Option<usize>,
}

impl Mounted {
    pub(crate) fn new(server: &Server, snapshot: Arc<Snapshot>) -> Self {
        Self { server: server.clone(), snapshot, outer: None, number: None }
    }
}

/// A call that may have ended.
#[cfg(feature = "logging")]
#[derive(Clone, Debug)]
pub(crate) struct WeakCx(std::sync::Weak<CallState>);

#[cfg(feature = "logging")]
impl WeakCx {
    pub(crate) fn upgrade(&self) -> Option<Cx> {
        self.0.upgrade().map(|state| Cx(state, None))
    }
}

impl Cx {
    pub(crate) fn new(
        call: Call,
        server: Server,
        snapshot: Arc<Snapshot>,
        context: Arc<RequestContext>,
        sink: CallSink,
    ) -> Self {
        let state = CallState {
            call,
            server,
            snapshot,
            context,
            routed: Routed::default(),
            sink,
            mounts: MountState::default(),
            questions: QuestionState::default(),
            end: EndState::default(),
            notifications: Mutex::default(),
            timeout: OnceLock::new(),
            held: OnceLock::new(),
            detaching: OnceLock::new(),
        };
        Self(Arc::new(state), None)
    }

    fn routed(&self) -> &Routed {
        self.1.as_ref().map_or(&self.0.routed, |edited| &edited.routed)
    }

    /// Sets the tool that is called. A layer that dispatches the call again finds the same one.
    pub(crate) fn set_tool(&self, tool: ToolCall) {
        let _ = self.routed().tool.set(tool);
    }

    pub(crate) fn tool(&self) -> Option<&ToolCall> {
        self.routed().tool.get()
    }

    /// Sets the timeout of the route. A layer that dispatches the call again finds the same one.
    pub(crate) fn set_timeout(&self, timeout: Option<Duration>) {
        let _ = self.0.timeout.set(timeout);
    }

    /// Returns the timeout of the route, or else that of the server, or else the usual one.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        let of_server = || match self.0.snapshot.settings.calls.timeout {
            Some(timeout) => timeout,
            // It waits for a task, which has its own lifetime.
            None if self.method() == method::TASKS_RESULT => None,
            None => Some(CALL_TIMEOUT),
        };
        self.0.timeout.get().copied().unwrap_or_else(of_server)
    }

    /// Returns the arguments of a tool call as text, with the defaults of those that the client omitted.
    pub(crate) fn arguments(&self) -> &str {
        self.tool().and_then(|called| called.filled.as_deref()).unwrap_or_else(|| self.sent_arguments())
    }

    /// Decodes the arguments of a tool call, of which [`arguments`](Self::arguments) returns the text. The strings of long ones may be
    /// decoded already.
    #[cold]
    pub(crate) fn decode_long_arguments<T: DeserializeOwned>(
        &self,
        text: &str,
    ) -> Result<T, serde_json::Error> {
        let is_filled = self.tool().is_some_and(|called| called.filled.is_some());
        if !is_filled && let Ok(Some(arguments)) = self.params().decode_member("arguments") {
            return Ok(arguments);
        }
        serde_json::from_str(text)
    }

    /// Returns the arguments of a tool call as the client sent them. If it sent none, or `null`, they are an empty object.
    pub(crate) fn sent_arguments(&self) -> &str {
        self.params().get("arguments").filter(|text| *text != "null").unwrap_or("{}")
    }

    /// Returns the claim on the state that the call came with.
    pub(crate) fn held(&self) -> Option<&StateClaim> {
        self.0.held.get().map(|held| &**held)
    }

    /// Sets the claim on the state that the call came with, unless it is set, and returns it.
    pub(crate) fn hold(&self, held: impl FnOnce() -> StateClaim) -> &StateClaim {
        self.0.held.get_or_init(|| Box::new(held()))
    }

    /// Returns the destination of the events of the call.
    pub(crate) fn sink(&self) -> &CallSink {
        self.detaching().map_or(&self.0.sink, |detaching| &detaching.sink)
    }

    /// Returns the destination of the response and of what comes before it.
    pub(crate) fn response_sink(&self) -> &CallSink {
        &self.0.sink
    }

    /// Has the call go on after its response. Returns `false` if it does already.
    pub(crate) fn request_detach(&self, request: DetachRequest) -> bool {
        let outer = self.is_mounted().then(|| outer_task(self, TaskHolder::Server));
        self.request_detach_as(request, outer)
    }

    /// Has the call go on after its response, as a task that is this one for clients.
    pub(crate) fn request_detach_as(&self, request: DetachRequest, outer: Option<OuterTask>) -> bool {
        let mut request = Some(match (&self.1, outer) {
            (None, None) => request,
            (edited, outer) => request.within(edited.clone(), outer),
        });
        self.0.detaching.get_or_init(|| {
            let session = self.0.sink.session().cloned();
            // The closure runs once, so there is a request.
            Box::new(Detaching::new(request.take(), session))
        });
        if request.is_none() {
            self.0.call.detach();
        }
        request.is_none()
    }

    /// Has the call go on after its response if its handler has to wait. Nothing is created for one that completes before.
    pub(crate) fn detach_on_wait(&self) {
        if self.1.is_none() {
            // The rest is done when it is needed: see `detaching`.
            self.0.call.detach();
        } else if let Some(request) = self
            .snapshot()
            .settings
            .extensions
            .detacher
            .as_ref()
            .and_then(|detacher| DetachRequest::on_wait(detacher(self)?))
        {
            self.request_detach(request);
        }
    }

    /// Returns the state of a call that is detached, or is to be once its handler waits. Whatever depends on that asks for it first:
    /// if nobody takes the call over, it is a call like any other from then on.
    fn detaching(&self) -> Option<&Detaching> {
        match self.0.detaching.get() {
            Some(detaching) => Some(detaching),
            None if self.0.call.is_detached() => self.prepare_detaching(),
            None => None,
        }
    }

    #[cold]
    fn prepare_detaching(&self) -> Option<&Detaching> {
        let detacher = self.0.snapshot.settings.extensions.detacher.as_ref();
        let request = detacher.and_then(|detacher| DetachRequest::on_wait(detacher(self)?));
        if request.is_none() {
            self.0.call.attach();
            return None;
        }
        let session = self.0.sink.session().cloned();
        Some(self.0.detaching.get_or_init(|| Box::new(Detaching::new(request, session))))
    }

    /// Returns the code that takes the call over, if it is to be detached now, and the events of the call. `completed` is whether
    /// the handler has completed.
    pub(crate) fn adoption(&self, completed: bool) -> Option<(Adopt, Arc<DetachedEvents>)> {
        if completed && self.0.detaching.get().is_none() {
            if self.0.call.is_detached() {
                self.0.call.attach();
            }
            return None;
        }
        let detaching = self.detaching()?;
        let adopt = detaching.take(completed);
        if adopt.is_none() && completed && detaching.was_declined() {
            self.0.call.attach();
        }
        Some((adopt?, detaching.events()?))
    }

    pub(crate) fn call(&self) -> &Call {
        &self.0.call
    }

    /// Notes that the result of the call has the names that clients of the outermost server see. A task of a mounted server has: its
    /// handler ran within the mounts, and what it returned has passed them.
    pub(crate) fn note_passed_mounts(&self) {
        if self.is_mounted() {
            self.0.mounts.has_passed.store(true, Ordering::Relaxed);
        }
    }

    /// Notes that the result of the call has the names that clients of the outermost server see, whatever provider has answered.
    pub(crate) fn set_passed_mounts(&self) {
        self.0.mounts.has_passed.store(true, Ordering::Relaxed);
    }

    /// Notes that a provider of the server handles the call.
    pub(crate) fn set_provider(&self, number: usize) {
        self.0.mounts.provider.store(number + 1, Ordering::Relaxed);
    }

    /// Returns the number of the provider of the server that handles the call, if one does.
    pub(crate) fn provider(&self) -> Option<usize> {
        self.0.mounts.provider.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Returns whether the result of the call has the names that clients of the outermost server see.
    pub(crate) fn has_passed_mounts(&self) -> bool {
        self.0.mounts.has_passed.load(Ordering::Relaxed)
    }

    /// Returns the number of the call on its connection or in its session.
    #[cfg(feature = "http-server")]
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        self.0.call.ticket()
    }

    /// Returns the client: its revision, capabilities and implementation, as far as they are known for this request.
    pub fn peer(&self) -> &Peer {
        self.0.call.peer()
    }

    /// Returns what the protocol of the client can do, in place of its revision or era.
    pub fn facts(&self) -> Facts {
        self.0.call.facts()
    }

    /// Returns the authenticated principal, if there is one.
    pub fn principal(&self) -> Option<&str> {
        self.0.call.principal()
    }

    /// Returns whether the caller is local, anonymous or authenticated.
    pub fn identity(&self) -> Principal<'_> {
        Principal::of(self.principal(), self.left())
    }

    /// Returns the session that the call belongs to. `None` in the stateless era, and over HTTP if sessions are disabled.
    ///
    /// ```
    /// use pintle::server::{Cx, ToolError, tool};
    ///
    /// struct Basket(Vec<String>);
    ///
    /// async fn basket(cx: Cx) -> Result<usize, ToolError> {
    ///     let session = cx.session().ok_or("a basket needs a session")?;
    ///     Ok(session.get::<Basket>().map_or(0, |basket| basket.0.len()))
    /// }
    /// # let _ = tool("basket", basket);
    /// ```
    pub fn session(&self) -> Option<SessionHandle> {
        self.live_session().cloned().map(SessionHandle::new)
    }

    /// Returns the session that the call belongs to, if it lives on.
    pub(crate) fn live_session(&self) -> Option<&Weak<dyn LiveSession>> {
        self.0.sink.session().filter(|_| self.facts().keeps_session)
    }

    /// Returns the extensions that layers have inserted into the request.
    pub fn extensions(&self) -> &Extensions {
        self.edited_extensions().unwrap_or_else(|| self.0.context.extensions())
    }

    /// Returns the extensions without the peer address.
    pub(crate) fn left(&self) -> &Extensions {
        self.edited_extensions().unwrap_or_else(|| self.0.context.left())
    }

    /// Returns the server, to change its catalogue or to notify clients of changes.
    pub fn server(&self) -> &Server {
        self.mount().map_or(&self.0.server, |mounted| &mounted.server)
    }

    /// Returns the server of the connection, also if a mounted one handles the call.
    pub(crate) fn connection_server(&self) -> &Server {
        &self.0.server
    }

    /// Returns the client's settings of an extension, if it declared the extension.
    pub fn extension(&self, name: &str) -> Option<&serde_json::Value> {
        self.peer().capabilities.extensions.as_ref()?.get(name)
    }

    /// Decodes the client's settings of an extension. `None` if it did not declare the extension. A type that keeps unknown members
    /// has a map with `#[serde(flatten)]`.
    ///
    /// # Errors
    ///
    /// The settings are not a `T`.
    pub fn extension_as<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, RpcError> {
        let Some(settings) = self.extension(name) else { return Ok(None) };
        T::deserialize(settings).map(Some).map_err(|error| {
            RpcError::invalid_params(format!(
                "the settings of the extension `{name}`: {}",
                plain_error(&error)
            ))
        })
    }

    /// Returns an error if the client did not declare an extension. The error names it, so that clients know what is missing.
    ///
    /// # Errors
    ///
    /// The client did not declare the extension.
    pub fn require_extension(&self, name: &str) -> Result<(), RpcError> {
        match self.extension(name) {
            Some(_) => Ok(()),
            None => Err(Extension::undeclared(name)),
        }
    }

    /// Returns the parameters of the request, not decoded.
    pub fn params(&self) -> &RawObject {
        self.edited_params().unwrap_or_else(|| self.0.call.params())
    }

    /// Returns the method of the request.
    pub fn method(&self) -> &str {
        self.0.call.method()
    }

    /// Returns the id of the request. A notification has none.
    pub fn request_id(&self) -> Option<&RequestId> {
        Some(self.0.call.id()).filter(|_| !self.is_notification())
    }

    /// Returns whether the call goes on after the response to its request: see [`detach`](Self::detach).
    pub fn is_detached(&self) -> bool {
        self.detaching().is_some() && self.0.call.is_detached()
    }

    /// Returns the `_meta` of the request, for example its trace context.
    pub fn meta(&self) -> Meta {
        self.params().decode_member("_meta").ok().flatten().unwrap_or_default()
    }

    /// Returns the caller, as lookups need to know it.
    pub fn scope(&self) -> Scope<'_> {
        let session = self.live_session();
        let scope = Scope::new(self.peer(), self.principal(), self.extensions());
        Scope { session, is_mounted: self.is_mounted(), ..scope }
    }

    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        self.mount().map_or(&self.0.snapshot, |mounted| &mounted.snapshot)
    }

    /// Returns the mounted servers that handle the call, the innermost first: the number of each among the providers of the one that it
    /// is mounted in, and the snapshot of that.
    pub(crate) fn mounts(&self) -> impl Iterator<Item = (usize, &Snapshot)> {
        let mounts = std::iter::successors(self.mount(), |mounted| mounted.outer.as_deref());
        mounts.map_while(|mounted| {
            let outer = mounted.outer.as_ref().map_or(&self.0.snapshot, |outer| &outer.snapshot);
            Some((mounted.number?, &**outer))
        })
    }

    /// Returns whether a gate on the way of the call decides by an argument of this name.
    pub(crate) fn is_judged_by(&self, argument: &str) -> bool {
        let own = std::iter::once(&**self.snapshot());
        own.chain(self.mounts().map(|(_, outer)| outer)).any(|server| server.gates.reads_argument(argument))
    }

    /// Returns the snapshot of the server of the connection, whatever server is mounted in it.
    pub(crate) fn outermost_snapshot(&self) -> &Arc<Snapshot> {
        &self.0.snapshot
    }

    /// Returns the arguments of a prompt, or the variables of a resource template.
    pub(crate) fn texts(&self) -> Option<&TextArguments> {
        self.routed().texts.get().map(|texts| &**texts)
    }

    pub(crate) fn set_texts(&self, texts: TextArguments) {
        // A layer that dispatches the call again finds the same ones.
        let _ = self.routed().texts.set(Box::new(texts));
    }

    /// Returns the URI of the resource that is read. It is set before the reader runs.
    pub(crate) fn uri(&self) -> &str {
        self.routed().uri.get().map_or("", |uri| uri)
    }

    pub(crate) fn set_uri(&self, uri: &str) {
        // A layer that dispatches the call again finds the same one.
        self.routed().uri.get_or_init(|| uri.into());
    }

    /// Returns whether the call is over: cancelled, timed out or answered.
    ///
    /// An async handler need not ask, because its future is dropped. A thread cannot be dropped: a synchronous handler, or one
    /// with `spawn_blocking`, asks between two steps and returns.
    ///
    /// ```
    /// use pintle::server::Cx;
    ///
    /// /// Count to a large number.
    /// #[pintle::tool]
    /// fn count(cx: Cx, to: u64) -> u64 {
    ///     (0..to).take_while(|_| !cx.is_cancelled()).map(|_| 1).sum()
    /// }
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.0.end.is_over.load(Ordering::Acquire)
    }

    /// Ends the call: tasks that still wait for an answer get none.
    pub(crate) fn end(&self) {
        self.0.call.end();
        self.0.end.is_over.store(true, Ordering::Release);
        self.0.end.over.notify_waiters();
    }
}

#[cfg(feature = "logging")]
impl Cx {
    pub(crate) fn downgrade(&self) -> WeakCx {
        WeakCx(Arc::downgrade(&self.0))
    }
}

impl fmt::Debug for Cx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cx").field(&self.0.call).finish()
    }
}

impl fmt::Debug for CallState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}
