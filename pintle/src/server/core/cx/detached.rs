//! Calls that go on after their response.
//!
//! A call can be detached from its request: by its handler (`Cx::detach_with`), or before it starts, by an extension that intercepts tool calls
//! (`ToolStart::Detach`), or when its handler waits (`ToolStart::DetachOnWait`, for which nothing is created or looked up before). `HandlerRun`
//! then hands the handler over as a `DetachedCall` and goes on with the response. The `Cx` stays the same: its sink becomes a queue of
//! `DetachedEvent`s, and `Inputs` sends questions in either era instead of ending the round. `Cx::once` in a detached call waits for its
//! record before and after the action (`DetachedEvent::Checkpoint`).

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use pintle_proto::{inputs::AskError, server::Outcome};
use pintle_types::{
    RawObject, RawValue, RpcError, keys,
    schema::{InputRequest, Tool},
};
use serde_json::value::to_raw_value;
use tokio::sync::oneshot;

use super::{Cx, edited::Edited};
use crate::server::core::{
    driver::{
        detached::{DetachedEvent, DetachedEvents},
        sink::{CallEvent, CallSink},
    },
    sessions::LiveSession,
};

/// The boxed future of a handler.
type BoxedHandler = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// The rest of a call that goes on after its response, from [`Cx::detach_with`] or a [`ToolStart::Detach`].
///
/// [`next`](Self::next) runs the handler, and returns its questions, its progress and its outcome. Dropping this drops the handler.
pub struct DetachedCall {
    run: BoxedHandler,
    cx: Cx,
    events: Arc<DetachedEvents>,
    outcome: Option<Outcome>,
    /// The servers that the one of the call is mounted in.
    outer: Option<TaskNaming>,
}

impl DetachedCall {
    pub(crate) fn new(run: BoxedHandler, cx: &Cx, events: Arc<DetachedEvents>) -> Self {
        Self { run, cx: cx.clone(), events, outcome: None, outer: None }
    }

    /// Returns the context of the call.
    pub fn cx(&self) -> &Cx {
        &self.cx
    }

    /// Returns the id that a task has for the client of the call: servers in which that of the call is mounted give it another. The
    /// outcome of a request has it by itself; this is for messages that are sent without one.
    pub fn task_id_for_client(&self, id: &str) -> String {
        let outer = self.outer.as_ref().and_then(|outer| outer(id).ok());
        outer.unwrap_or_else(|| id.to_owned())
    }

    /// Runs the handler until its next event. After [`DetachedEvent::Done`] there are no more, and this does not return.
    ///
    /// It is cancel safe: if the future is dropped, no event is lost.
    pub async fn next(&mut self) -> DetachedEvent {
        poll_fn(|task| self.poll_next(task)).await
    }

    fn poll_next(&mut self, task: &mut Context<'_>) -> Poll<DetachedEvent> {
        if let Some(event) = self.events.take(task.waker()) {
            return Poll::Ready(event);
        }
        if self.outcome.is_none()
            && let Poll::Ready(outcome) = self.run.as_mut().poll(task)
        {
            self.outcome = Some(outcome);
        }
        match self.events.take(task.waker()) {
            Some(event) => Poll::Ready(event),
            None => {
                self.outcome.take().map_or(Poll::Pending, |outcome| Poll::Ready(DetachedEvent::Done(outcome)))
            }
        }
    }
}

impl fmt::Debug for DetachedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DetachedCall").field(&self.cx).finish()
    }
}

/// The code that takes over a detached call, and returns the outcome of its request.
pub(crate) type Adopt = Box<dyn FnOnce(DetachedCall) -> BoxedHandler + Send>;

/// The decision of an [interceptor](crate::server::Installation::intercept_tools) about a tool call, before its handler runs.
#[non_exhaustive]
pub enum ToolStart {
    /// The handler runs as usual.
    Run,
    /// The call ends with this outcome.
    Refuse(Outcome),
    /// The call goes on after its response: see [`ToolStart::detach`].
    Detach(DetachRequest),
    /// The call goes on after its response if its handler has to wait. Then the function of
    /// [`takes_detached`](crate::server::Installation::takes_detached) takes it over; it is not called for a handler that completes at
    /// once. Without such a function, or if it returns `None`, this is [`Run`](Self::Run).
    DetachOnWait,
}

/// The request to detach a call, from [`ToolStart::detach`].
pub struct DetachRequest {
    adopt: Adopt,
    /// Whether the call is detached even if its handler completes at once.
    always: bool,
}

impl DetachRequest {
    /// Creates the request to detach a call whatever its handler does.
    pub(crate) fn always(adopt: impl FnOnce(DetachedCall) -> BoxedHandler + Send + 'static) -> Self {
        Self { adopt: Box::new(adopt), always: true }
    }

    /// Creates the request to detach a call if its handler has to wait, from the decision of a [`Detacher`].
    pub(super) fn on_wait(start: ToolStart) -> Option<Self> {
        match start {
            ToolStart::Detach(request) => Some(Self { always: false, ..request }),
            _ => None,
        }
    }

    /// Has the call taken over with what layers and mounts have made of it. A task of a mounted server, or of a provider, gets the id for
    /// clients of the outermost one.
    pub(super) fn within(self, edited: Option<Arc<Edited>>, outer: Option<OuterTask>) -> Self {
        let Self { adopt, always } = self;
        let adopt: Adopt = Box::new(move |call| {
            let cx = Cx(call.cx.0.clone(), edited);
            let Some(OuterTask { naming, readdress }) = outer else {
                return adopt(DetachedCall { cx, ..call });
            };
            let adopted = adopt(DetachedCall { cx, outer: Some(naming), ..call });
            Box::pin(async move { readdress(adopted.await) })
        });
        Self { adopt, always }
    }
}

impl ToolStart {
    /// Detaches the call from its request. `adopt` gets it, and returns the outcome of the request, for example that a task was
    /// created.
    ///
    /// Unless `always` is set, a handler that completes without waiting is not detached: its outcome is that of the request.
    pub fn detach<F, Fut>(always: bool, adopt: F) -> Self
    where
        F: FnOnce(DetachedCall) -> Fut + Send + 'static,
        Fut: Future<Output = Outcome> + Send + 'static,
    {
        Self::Detach(DetachRequest { adopt: Box::new(move |call| Box::pin(adopt(call))), always })
    }
}

impl fmt::Debug for ToolStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Run => "Run",
            Self::Refuse(_) => "Refuse",
            Self::Detach(_) => "Detach",
            Self::DetachOnWait => "DetachOnWait",
        })
    }
}

impl fmt::Debug for DetachRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DetachRequest").field("always", &self.always).finish_non_exhaustive()
    }
}

/// The holder of the task that a call becomes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TaskHolder {
    /// The server that handles the call, mounted or not.
    Server,
    /// The provider of that server that handles it.
    Provider,
}

/// A task of a mounted server, or of a provider, as clients of the outermost one see it.
pub(crate) struct OuterTask {
    /// Returns the id for them.
    pub(crate) naming: TaskNaming,
    /// Gives an outcome that is a task the id for them.
    pub(crate) readdress: Box<dyn FnOnce(Outcome) -> Outcome + Send>,
}

/// Returns the id that a task has for clients of the outermost server.
pub(crate) type TaskNaming = Box<dyn Fn(&str) -> Result<String, RpcError> + Send + Sync>;

/// Decides how the calls of tools start.
pub(crate) type Interceptor = dyn Fn(&Cx, &Tool) -> ToolStart + Send + Sync;

/// Takes over a call whose handler detaches it.
pub(crate) type Detacher = dyn Fn(&Cx) -> Option<ToolStart> + Send + Sync;

/// The state of a call that is to be detached, or is.
pub(crate) struct Detaching {
    pub(super) sink: CallSink,
    request: Mutex<Option<DetachRequest>>,
    /// Whether the handler completed before the call was detached.
    declined: AtomicBool,
}

impl Detaching {
    pub(super) fn new(request: Option<DetachRequest>, session: Option<Weak<dyn LiveSession>>) -> Self {
        let sink = CallSink::Detached(Arc::new(DetachedEvents::new(session)));
        Self { sink, request: Mutex::new(request), declined: AtomicBool::new(false) }
    }

    /// Takes the request, if the call is to be detached now. `completed` is whether the handler has completed.
    pub(super) fn take(&self, completed: bool) -> Option<Adopt> {
        let mut request = self.request.lock().unwrap_or_else(PoisonError::into_inner);
        if completed && !request.as_ref()?.always {
            *request = None;
            self.declined.store(true, Ordering::Relaxed);
            return None;
        }
        request.take().map(|request| request.adopt)
    }

    /// Returns whether the handler completed before the call was detached.
    pub(super) fn was_declined(&self) -> bool {
        self.declined.load(Ordering::Relaxed)
    }

    pub(super) fn events(&self) -> Option<Arc<DetachedEvents>> {
        match &self.sink {
            CallSink::Detached(events) => Some(events.clone()),
            _ => None,
        }
    }
}

impl Cx {
    /// Makes the rest of the call a task: the response is sent now, and the handler goes on. Returns `false`, and the call stays as it is,
    /// if the client does not support tasks or the server has none; `true` also if the call is a task already.
    ///
    /// A tool that is always or never a task declares that with [`ToolRoute::task`](crate::server::ToolRoute::task). This is for one
    /// that asks or checks something first.
    ///
    /// ```
    /// use pintle::server::{Cx, ToolError};
    ///
    /// async fn build(cx: Cx, target: String) -> Result<String, ToolError> {
    ///     if target.is_empty() {
    ///         return Err(ToolError::new("name a target"));
    ///     }
    ///     cx.detach().await;
    ///     // ... a long build ...
    ///     Ok(format!("{target} is built."))
    /// }
    /// ```
    pub async fn detach(&self) -> bool {
        if self.is_detached() {
            return true;
        }
        // A server without tasks leaves them to that which it is mounted in.
        let outermost = self.is_mounted().then(|| self.clone().unmounted());
        for cx in [Some(self), outermost.as_ref()].into_iter().flatten() {
            let start = cx.snapshot().settings.extensions.detacher.clone().and_then(|detacher| detacher(cx));
            if let Some(ToolStart::Detach(DetachRequest { adopt, .. })) = start {
                cx.detach_with(adopt).await;
                return true;
            }
        }
        false
    }

    /// Detaches the rest of the call from its request: the handler goes on after the response. `adopt` gets the call, and returns
    /// the outcome of the request. Returns at once, and `false`, if the call is detached already.
    ///
    /// From here on the questions of the handler are [events](DetachedEvent) of the call in both eras, and so is its progress. Log
    /// messages are not sent.
    ///
    /// The tasks of the crate `pintle-tasks` are made of this.
    pub async fn detach_with<F, Fut>(&self, adopt: F) -> bool
    where
        F: FnOnce(DetachedCall) -> Fut + Send + 'static,
        Fut: Future<Output = Outcome> + Send + 'static,
    {
        let adopt: Adopt = Box::new(move |call| Box::pin(adopt(call)));
        if !self.request_detach(DetachRequest { adopt, always: true }) {
            return false;
        }
        self.wait_to_be_taken_over().await;
        true
    }

    /// Waits once: a handler is taken over when it waits.
    pub(crate) async fn wait_to_be_taken_over(&self) {
        let mut waited = false;
        poll_fn(|task| {
            if std::mem::replace(&mut waited, true) {
                return Poll::Ready(());
            }
            task.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Sends the client of a session a question of another call, and returns its answer, not decoded. For a call that waits for that
    /// other one, as `tasks/result` waits for a task that is [detached](Self::detach_with).
    ///
    /// # Errors
    ///
    /// The client refuses, or this call is over.
    pub async fn ask_for_another(&self, request: InputRequest) -> Result<RawObject, AskError> {
        if self.is_cancelled() {
            return Err(AskError::CallOver);
        }
        let request = self.with_sent_task_id(request);
        let (answer, received) = oneshot::channel();
        self.sink().send(CallEvent::Ask(request, answer)).await;
        received.await.unwrap_or(Err(AskError::CallOver))
    }

    /// Returns a question with the id that the client has sent for the task, if that is another one than a mounted server has.
    fn with_sent_task_id(&self, mut request: InputRequest) -> InputRequest {
        let (own, sent) = (self.params().get("taskId"), self.call().params().get("taskId"));
        let (Some(own), Some(sent)) = (own, sent) else { return request };
        if own == sent || !request.params.as_deref().is_some_and(|params| params.get().contains(own)) {
            return request;
        }
        let changed = || {
            let params: RawObject = request.params.as_deref()?.get().parse().ok()?;
            let meta: RawObject = params.decode_member("_meta").ok()??;
            let related: RawObject = meta.decode_member(keys::RELATED_TASK).ok()??;
            let sent: &RawValue =
                serde_json::from_str(sent).ok().filter(|_| related.get("taskId") == Some(own))?;
            let meta = meta.with(keys::RELATED_TASK, &to_raw_value(&related.with("taskId", sent)).ok()?);
            to_raw_value(&params.with("_meta", &to_raw_value(&meta).ok()?)).ok()
        };
        if let Some(params) = changed() {
            request.params = Some(params);
        }
        request
    }
}
