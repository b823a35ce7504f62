use std::{
    collections::VecDeque,
    future::{Future, pending, poll_fn},
    mem,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use http::{HeaderMap, HeaderName, HeaderValue};
use pintle::{
    Result,
    forward::{Downstream, ForwardEvent, ForwardRequest},
    proto::http::{MCP_NAME, Streams, name_in},
    server::{Cx, ListKind},
    types::{RawObject, RawValue, method},
};
use tokio::sync::mpsc;

use crate::{
    link_state::{
        calls::{EnteredCall, OpenQuestion, sending_to},
        log_levels::LevelGuard,
    },
    lock::lock,
    tasks::{
        awaited::cancel_created,
        session::{SessionTaskCall, TaskReport},
    },
    upstream::pool::Lease,
};

/// The capacity of the queue of notifications. A client buffers about as many before it drops some.
const NOTIFICATIONS: usize = 1280;
/// The capacity of the queue of questions. A server that asks more at once waits. Its entries are boxed: it allocates memory for 32 at
/// once, and most calls have none.
const QUESTIONS: usize = 16;

/// The notifications of a call that have arrived, and the reports of its task. They are queued while its result is polled.
#[derive(Clone, Default)]
struct Notifications(Arc<Mutex<VecDeque<ArrivedReport>>>);

enum ArrivedReport {
    Notification(ForwardEvent),
    Task(TaskReport),
}

impl Notifications {
    /// Adds one, unless the queue is full.
    fn push(&self, report: ArrivedReport) {
        let mut queue = lock(&self.0);
        if queue.len() < NOTIFICATIONS {
            queue.push_back(report);
        }
    }

    /// Whether a task was created.
    fn has_task(&self) -> bool {
        lock(&self.0).iter().any(|report| matches!(report, ArrivedReport::Task(TaskReport::Created(_))))
    }

    fn pop(&self) -> Option<CallProgress> {
        Some(match lock(&self.0).pop_front()? {
            ArrivedReport::Notification(notification) => CallProgress::Notification(notification),
            ArrivedReport::Task(report) => CallProgress::Task(report),
        })
    }
}

/// A call to the server behind a relay. It does not depend on the call of a client that it is made for, and may outlive one round
/// of it. Dropping it cancels the call.
pub(crate) struct UpstreamCall {
    result: Pin<Box<dyn Future<Output = Result<RawObject>> + Send>>,
    notifications: Notifications,
    /// `None` if the server behind has no sessions: it sends no requests.
    questions: Option<mpsc::Receiver<Box<OpenQuestion>>>,
    is_done: bool,
    /// The capabilities of its client, as long as the server may make the call a task that nobody knows yet.
    creating: Option<RawObject>,
    entered: Option<EnteredCall>,
    _logs: Option<LevelGuard>,
    /// Dropped last, so that the connection is free when the call was cancelled.
    link: Lease,
}

impl Drop for UpstreamCall {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        if let Some(capabilities) = self.creating.take() {
            let result = mem::replace(&mut self.result, Box::pin(pending()));
            let notifications = self.notifications.clone();
            let is_created = move || notifications.has_task();
            let leased = (self.link.connection.clone(), self.link.again());
            cancel_created(result, is_created, leased, capabilities);
        }
        // Its cancellation is sent when this is dropped.
        self.result = Box::pin(pending());
        self.entered = None;
        self.link.cancelled();
    }
}

/// The next event of a call.
pub(crate) enum CallProgress {
    Notification(ForwardEvent),
    Task(TaskReport),
    Question(OpenQuestion),
    Done(Result<RawObject>),
}

impl UpstreamCall {
    /// Sends a call.
    pub(crate) fn start(link: Lease, request: UpstreamRequest<'_>) -> Self {
        let has_questions = link.connection.facts().asks_by_request;
        let (ask, questions) = has_questions.then(|| mpsc::channel(QUESTIONS)).unzip();
        let notifications = Notifications::default();
        let UpstreamRequest { method, params, capabilities, logs, tasks, creates_task, cx } = request;
        let creating = creates_task.then(|| capabilities.clone());
        // A list asks nothing, and may be requested during a call that does.
        let asking = ask.as_ref().filter(|_| ListKind::of_method(&method).is_none());
        let entered = asking.map(|ask| link.enter(ask.clone()));
        let headers = param_headers(cx, &params, &link);
        let mut forward = ForwardRequest::new(method, params);
        forward.capabilities = capabilities;
        // The progress of a call that goes on as a task is its status.
        forward.progress = cx.wants_progress() || cx.is_detached();
        forward.log_level = cx.peer().log_level;
        forward.headers = headers;
        if let Some(ask) = ask {
            forward.questions = sending_to(ask);
        }
        let (connection, queue) = (link.connection.clone(), notifications.clone());
        let before = entered.as_ref().and_then(|_| link.answered_before());
        let result = Box::pin(async move {
            if let Some(before) = before {
                Box::pin(before).await;
            }
            let reports = tasks.is_some().then(|| queue.clone());
            let notify = move |notification| queue.push(ArrivedReport::Notification(notification));
            match tasks.zip(reports) {
                Some((tasks, reports)) => {
                    let report = move |report| reports.push(ArrivedReport::Task(report));
                    // Boxed, because its future is large and few calls need it.
                    Box::pin(tasks.call(&connection, forward, notify, report)).await
                }
                None => connection.forward(forward, notify).await,
            }
        });
        Self { result, notifications, questions, is_done: false, creating, entered, _logs: logs, link }
    }

    /// Returns the next event. The result comes after all notifications, and a question after those that were sent before it.
    pub(crate) async fn next(&mut self) -> CallProgress {
        poll_fn(|task| self.poll_next(task)).await
    }

    pub(crate) fn poll_next(&mut self, task: &mut Context<'_>) -> Poll<CallProgress> {
        if let Some(arrived) = self.pop_arrived() {
            return Poll::Ready(arrived);
        }
        // Polling it queues the notifications that have arrived.
        let result = self.result.as_mut().poll(task);
        if let Some(arrived) = self.pop_arrived() {
            if let Poll::Ready(result) = result {
                self.is_done = true;
                self.result = Box::pin(std::future::ready(result));
            }
            return Poll::Ready(arrived);
        }
        if let Poll::Ready(result) = result {
            self.is_done = true;
            return Poll::Ready(CallProgress::Done(result));
        }
        match self.questions.as_mut().map(|questions| questions.poll_recv(task)) {
            Some(Poll::Ready(Some(question))) => Poll::Ready(CallProgress::Question(*question)),
            _ => Poll::Pending,
        }
    }

    /// Returns what has arrived and was not returned yet. A task that the caller knows of is cancelled with the call.
    fn pop_arrived(&mut self) -> Option<CallProgress> {
        let arrived = self.notifications.pop()?;
        if matches!(arrived, CallProgress::Task(TaskReport::Created(_))) {
            self.creating = None;
        }
        Some(arrived)
    }

    /// Returns a question that has arrived already.
    pub(crate) fn take_question(&mut self) -> Option<OpenQuestion> {
        self.questions.as_mut()?.try_recv().ok().map(|question| *question)
    }
}

/// A call to be sent.
pub(crate) struct UpstreamRequest<'a> {
    pub(crate) method: String,
    pub(crate) params: RawObject,
    pub(crate) capabilities: RawObject,
    /// The level of log messages that it wants of a server with sessions.
    pub(crate) logs: Option<LevelGuard>,
    /// How it becomes a task of the server, if it may.
    pub(crate) tasks: Option<SessionTaskCall>,
    /// Whether the server is expected to make it a task.
    pub(crate) creates_task: bool,
    pub(crate) cx: &'a Cx,
}

/// Returns the headers of a request that repeat arguments, or the name of a request of an extension. Those that the schema of a tool
/// names are made of the arguments that are sent. Others of the client are passed on, if its revision has them and nothing decides by
/// such an argument, or has changed the arguments.
fn param_headers(cx: &Cx, params: &RawObject, link: &Lease) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if !link.connection.mirrors() {
        return headers;
    }
    let sent = || cx.http().into_iter().flat_map(|head| head.headers.iter());
    if cx.method() != method::TOOLS_CALL {
        // The client knows which param names a task, and that may not be the one of the caller.
        let is_of_tasks = || method::tasks_extension::REQUESTS.iter().any(|row| row.name == cx.method());
        if method::find(cx.method()).is_none() && !is_of_tasks() {
            headers.extend(sent().filter(|(name, _)| **name == MCP_NAME).map(owned));
        }
        return headers;
    }
    let annotated = name_in(params, "name").and_then(|name| link.catalogue.header_params(&name));
    let annotated = annotated.unwrap_or_default();
    let arguments: Option<&RawValue> = params.decode_member("arguments").ok().flatten();
    // An argument of another type has no header; the server behind says so.
    let _ = annotated.mirror(arguments, &mut headers);
    let is_unchanged = || Downstream::of(cx).sent_params().get("arguments") == params.get("arguments");
    if Streams::of(cx.peer().revision).mirrored && is_unchanged() {
        let is_unknown = |name: &HeaderName| {
            let label = name.as_str().strip_prefix("mcp-param-");
            label.is_some_and(|label| !Downstream::of(cx).is_judged_by(label))
                && annotated.iter().all(|param| param.header != *name)
        };
        headers.extend(sent().filter(|(name, _)| is_unknown(name)).map(owned));
    }
    headers
}

fn owned((name, value): (&HeaderName, &HeaderValue)) -> (HeaderName, HeaderValue) {
    (name.clone(), value.clone())
}

/// Sends a notification of the server behind to the client. If that server has ended its event stream early, so does this one.
pub(crate) async fn deliver(cx: &Cx, notification: ForwardEvent) {
    match notification {
        ForwardEvent::Progress(params) => Downstream::of(cx).progress(&params).await,
        ForwardEvent::Log(params) => Downstream::of(cx).log(&params).await,
        ForwardEvent::StreamPaused(wait) => cx.hang_up(wait).await,
        _ => {}
    }
}
