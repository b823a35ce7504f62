mod asking;

use std::{
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
    time::Duration,
};

use bytes::Bytes;
use http::Extensions;
use pintle_proto::{Peer, server::Call};
use pintle_types::{Meta, RawObject, schema::LoggingLevel};
use serde::Serialize;
use tokio::sync::Notify;

#[cfg(feature = "http-server")]
use super::outbox::Outbox;
use super::{
    HttpHead, Scope, Server, ToolRoute,
    around::Around,
    port::{Port, Said},
    rate::Rate,
    state::State,
    texts::Given,
};

/// The call being answered: who makes it, and what can be said to them meanwhile.
///
/// Cheap to clone. Only handlers of tools, prompts and resources get one, because only they may ask.
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
pub struct Cx(Arc<Inner>);

struct Inner {
    call: Call,
    server: Server,
    /// The server as it was when the call came: what changes meanwhile is for later calls.
    state: Arc<State>,
    around: Arc<Around>,
    /// The texts that came with the call, where it found who takes them.
    given: OnceLock<Box<Given>>,
    port: Port,
    /// Whether a question waits for the next round.
    parked: AtomicBool,
    /// Who polls the handler, and is to hear of `parked`.
    waker: Mutex<Option<Waker>>,
    /// Tells tasks that still wait for an answer that there will be none.
    over: Notify,
    is_over: AtomicBool,
    telling: Mutex<Telling>,
    tool: OnceLock<Called>,
}

/// The tool that is called.
pub(crate) struct Called {
    pub(crate) route: Arc<ToolRoute>,
    /// The arguments with their defaults, if they came without.
    pub(crate) filled: Option<String>,
}

/// What was not told yet, because there was no room or too much of it.
#[derive(Default)]
struct Telling {
    progress: Rate,
    /// The newest report that was held back.
    held: Option<Held>,
    #[cfg(feature = "logging")]
    log: Rate,
    /// Log messages that nobody will read.
    lost: u64,
}

struct Held {
    done: f64,
    total: Option<f64>,
    message: Option<String>,
}

/// A call that may have ended.
#[cfg(feature = "logging")]
#[derive(Clone, Debug)]
pub(crate) struct WeakCx(std::sync::Weak<Inner>);

#[cfg(feature = "logging")]
impl WeakCx {
    pub(crate) fn upgrade(&self) -> Option<Cx> {
        self.0.upgrade().map(Cx)
    }
}

impl Cx {
    pub(crate) fn new(
        call: Call,
        server: Server,
        state: Arc<State>,
        around: Arc<Around>,
        port: Port,
    ) -> Self {
        Self(Arc::new(Inner {
            call,
            server,
            state,
            around,
            given: OnceLock::new(),
            port,
            parked: AtomicBool::new(false),
            waker: Mutex::default(),
            over: Notify::new(),
            is_over: AtomicBool::new(false),
            telling: Mutex::default(),
            tool: OnceLock::new(),
        }))
    }

    /// Notes which tool is called. A layer that tries again leads to the same one.
    pub(crate) fn call_tool(&self, called: Called) {
        let _ = self.0.tool.set(called);
    }

    pub(crate) fn tool(&self) -> Option<&Called> {
        self.0.tool.get()
    }

    /// Who is calling, as far as this request says.
    pub fn peer(&self) -> &Peer {
        self.0.call.peer()
    }

    /// On whose behalf, if somebody has checked that.
    pub fn principal(&self) -> Option<&str> {
        self.0.call.principal()
    }

    /// What layers below have left for the handler.
    pub fn extensions(&self) -> &Extensions {
        &self.0.around.extensions
    }

    /// The head of the HTTP request that brought the call, if one did.
    pub fn http(&self) -> Option<&HttpHead> {
        self.0.around.head.as_ref()
    }

    /// The server, to change its catalogue or tell of changes.
    pub fn server(&self) -> &Server {
        &self.0.server
    }

    /// The client's settings of an extension, if it declared it.
    pub fn extension(&self, name: &str) -> Option<&serde_json::Value> {
        self.peer().capabilities.extensions.as_ref()?.get(name)
    }

    /// The request's parameters, not decoded.
    pub fn params(&self) -> &RawObject {
        self.0.call.params()
    }

    /// The method that was called.
    pub fn method(&self) -> &str {
        self.0.call.method()
    }

    /// The request's `_meta`: trace context, and whatever else the client put there.
    pub fn meta(&self) -> Meta {
        self.params().decode_member("_meta").ok().flatten().unwrap_or_default()
    }

    pub(crate) fn scope(&self) -> Scope<'_> {
        Scope { peer: self.peer(), principal: self.principal(), extensions: self.extensions() }
    }

    pub(crate) fn state(&self) -> &Arc<State> {
        &self.0.state
    }

    /// The arguments of a prompt, or the variables of a template.
    pub(crate) fn given(&self) -> Option<&Given> {
        self.0.given.get().map(|given| &**given)
    }

    pub(crate) fn give(&self, given: Given) {
        // A layer that sends a call through twice finds the same again.
        let _ = self.0.given.set(Box::new(given));
    }

    /// Tells the client how far the call is: `done` of `total`. Sent only if the client asked, and only if `done` grows.
    ///
    /// Report as often as you like: what comes faster than the client reads it is left out, but for the last.
    pub async fn progress(&self, done: f64, total: impl Into<Option<f64>>) {
        self.report(done, total.into(), None).await;
    }

    /// The same, with words.
    pub async fn progress_with(&self, done: f64, total: impl Into<Option<f64>>, message: &str) {
        self.report(done, total.into(), Some(message)).await;
    }

    async fn report(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        if !self.wants_progress() {
            return;
        }
        {
            // Made and sent under the lock: of two tasks that report at once, none overtakes the other on the way.
            let mut telling = self.telling();
            let told = telling.progress.take()
                && self.0.port.try_notice(|| self.0.call.progress(done, total, message));
            if told {
                telling.held.take_if(|held| held.done <= done);
            } else if telling.held.as_ref().is_none_or(|held| done > held.done) {
                telling.held = Some(Held { done, total, message: message.map(str::to_owned) });
            }
        }
        // A handler that does nothing but report lets others have their turn.
        tokio::task::coop::consume_budget().await;
    }

    /// What must be said before the call's end: it was held back so far.
    pub(crate) fn last_words(&self) -> Vec<Bytes> {
        let (held, lost) = {
            let mut telling = self.telling();
            (telling.held.take(), std::mem::take(&mut telling.lost))
        };
        let progress =
            held.and_then(|held| self.0.call.progress(held.done, held.total, held.message.as_deref()));
        progress.into_iter().chain(self.lost_line(lost)).map(Bytes::from).collect()
    }

    fn telling(&self) -> std::sync::MutexGuard<'_, Telling> {
        self.0.telling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says how many log messages were left out.
    fn lost_line(&self, lost: u64) -> Option<Vec<u8>> {
        if lost == 0 {
            return None;
        }
        let data = serde_json::json!({ "msg": format!("{lost} messages were lost"), "lost": lost });
        self.log_line(LoggingLevel::Warning, Some("pintle"), &data)
    }

    /// Whether the client would like to hear of progress.
    pub fn wants_progress(&self) -> bool {
        self.0.call.wants_progress()
    }

    /// Sends a log message, if the client asked for messages as grave as this one, and the server said
    /// [`logging`](Server::logging).
    ///
    /// ```
    /// use pintle::{server::Cx, types::schema::LoggingLevel};
    ///
    /// async fn backup(cx: Cx) -> &'static str {
    ///     cx.log(LoggingLevel::Info, Some("backup"), &serde_json::json!({"files": 3})).await;
    ///     "done"
    /// }
    /// # let _ = pintle::server::tool("backup", backup);
    /// ```
    pub async fn log(&self, level: LoggingLevel, logger: Option<&str>, data: &impl Serialize) {
        self.say(self.log_line(level, logger, data)).await;
    }

    /// Whether the client asked for messages as grave as this one.
    pub fn hears(&self, level: LoggingLevel) -> bool {
        self.0.call.peer().log_level.is_some_and(|wanted| level >= wanted) && self.logs()
    }

    fn logs(&self) -> bool {
        self.0.state.service.capabilities().logging.is_some()
    }

    fn log_line(&self, level: LoggingLevel, logger: Option<&str>, data: &impl Serialize) -> Option<Vec<u8>> {
        self.logs().then(|| self.0.call.log(level, logger, data)).flatten()
    }

    async fn say(&self, line: Option<Vec<u8>>) {
        if let Some(line) = line {
            self.0.port.say(Said::Notice(line.into())).await;
        }
    }

    fn park(&self) {
        self.0.parked.store(true, Ordering::Release);
        let waker = self.0.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Whether the round is to end; if not, `waker` will hear of it.
    pub(crate) fn is_parked(&self, waker: &Waker) -> bool {
        *self.0.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        self.0.parked.load(Ordering::Acquire)
    }

    async fn until_over(&self) {
        let notified = self.0.over.notified();
        if !self.0.is_over.load(Ordering::Acquire) {
            notified.await;
        }
    }

    /// Lets the client go and come back later for what is still to be said: after so long, if it follows the advice.
    ///
    /// For work that takes minutes: no connection has to be held open for it. The handler goes on. Only some clients
    /// over HTTP can do this (those of 2025-11-25); for all others nothing happens, and they wait.
    ///
    /// ```
    /// use std::time::Duration;
    /// use pintle::server::{Cx, tool};
    ///
    /// let render = tool("render", |cx: Cx| async move {
    ///     cx.hang_up(Duration::from_secs(5)).await;
    ///     // ... a long computation ...
    ///     "rendered"
    /// });
    /// ```
    pub async fn hang_up(&self, retry: Duration) {
        #[cfg(feature = "http-server")]
        if let Port::Own(outbox) = &self.0.port {
            outbox.say(Said::HangUp(u64::try_from(retry.as_millis()).unwrap_or(u64::MAX))).await;
        }
        let _ = retry;
    }

    /// What the call says, for whoever drives it.
    #[cfg(feature = "http-server")]
    pub(crate) fn outbox(&self) -> Option<&Outbox> {
        match &self.0.port {
            Port::Own(outbox) => Some(outbox),
            Port::Line(_) => None,
        }
    }

    /// Ends what still waits on behalf of this call.
    pub(crate) fn end(&self) {
        self.0.call.close();
        self.0.is_over.store(true, Ordering::Release);
        self.0.over.notify_waiters();
    }
}

/// For the layer that forwards what `tracing` says.
#[cfg(feature = "logging")]
impl Cx {
    /// Whether any log message would be read.
    pub(crate) fn wants_log(&self) -> bool {
        self.0.call.peer().log_level.is_some() && self.logs()
    }

    pub(crate) fn downgrade(&self) -> WeakCx {
        WeakCx(Arc::downgrade(&self.0))
    }

    /// Sends a log message without waiting. One for which there is no room, or which is one too many, is lost; how many
    /// were is said with the next.
    pub(crate) fn log_if_room(&self, level: LoggingLevel, logger: &str, data: &impl Serialize) {
        let mut telling = self.telling();
        if !self.0.port.has_room() || !telling.log.take() {
            telling.lost += 1;
            return;
        }
        let lost = std::mem::take(&mut telling.lost);
        if let Some(line) = self.lost_line(lost)
            && !self.0.port.try_say(Said::Notice(line.into()))
        {
            telling.lost = lost + 1;
            return;
        }
        if let Some(line) = self.log_line(level, Some(logger), data)
            && !self.0.port.try_say(Said::Notice(line.into()))
        {
            telling.lost += 1;
        }
    }
}

impl fmt::Debug for Cx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cx").field(&self.0.call).finish()
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}
