//! The tasks of a server.

use std::{
    collections::HashMap,
    future::{Future as _, poll_fn},
    io,
    net::IpAddr,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use pintle_proto::server::Outcome;
use pintle_types::{
    RawObject, RpcError, method,
    schema::{CallToolResult, ContentBlock, TaskStatus},
};
use tokio::time::{Instant, Sleep, sleep};

use super::{
    running::RunningTask,
    store::{TaskOutcome, TaskQuota, TaskRecord, TaskStore, Updated},
    wire::{self, DetailedView},
};
use crate::server::{Cx, DetachedCall, DetachedEvent, Notice, Principal, Server, call::random};

/// The member of the filter of subscriptions that names tasks.
pub(super) const FILTER_MEMBER: &str = "taskIds";

/// The tasks of a server: the store, and those that this process runs.
#[derive(Debug)]
pub(super) struct TaskHost {
    pub(super) store: Arc<dyn TaskStore>,
    pub(super) quota: TaskQuota,
    pub(super) ttl: Duration,
    pub(super) max_ttl: Duration,
    pub(super) poll: Duration,
    running: Mutex<HashMap<String, Arc<RunningTask>>>,
    /// The time of creation, on both clocks.
    epoch: (u64, Instant),
    is_sweeping: AtomicBool,
}

impl TaskHost {
    pub(super) fn new(
        store: Arc<dyn TaskStore>,
        quota: TaskQuota,
        (ttl, max_ttl): (Duration, Duration),
        poll: Duration,
    ) -> Self {
        Self {
            store,
            quota,
            ttl,
            max_ttl,
            poll,
            running: Mutex::default(),
            epoch: (crate::server::unix_millis(), Instant::now()),
            is_sweeping: AtomicBool::new(false),
        }
    }

    /// Returns the time in milliseconds of the Unix epoch. It never goes back.
    pub(super) fn now(&self) -> u64 {
        let (then, instant) = self.epoch;
        then.saturating_add(u64::try_from(instant.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<RunningTask>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a task of this caller that this process runs.
    pub(super) fn find_running(&self, cx: &Cx, id: &str) -> Option<Arc<RunningTask>> {
        let task = self.running().get(id).cloned()?;
        task.read(|record| record.owner == owner(cx)).then_some(task)
    }

    /// Returns whether a caller with this principal may be notified of a task.
    pub(super) fn may_watch(&self, id: &str, principal: Option<&str>) -> bool {
        let Some(task) = self.running().get(id).cloned() else { return false };
        task.read(|record| match principal {
            Some(name) => record.owner == named_owner(name),
            None => matches!(record.owner.as_str(), LOCAL | ANONYMOUS),
        })
    }

    /// Returns the record of a task of this caller.
    pub(super) async fn find(&self, cx: &Cx, id: &str) -> Result<TaskRecord, RpcError> {
        if let Some(task) = self.find_running(cx, id) {
            return Ok(task.record());
        }
        let found = self.store.get(id).await.map_err(|error| unreachable_store(&error))?;
        let now = self.now();
        found.filter(|record| record.owner == owner(cx) && record.expires() > now).ok_or_else(|| unknown(id))
    }

    /// Makes a call a task. Returns the outcome of its request, once the task is stored.
    pub(super) async fn adopt(self: Arc<Self>, call: DetachedCall, ttl: Option<Duration>) -> Outcome {
        let cx = call.cx().clone();
        let Ok(id) = random::bytes::<18>() else {
            return Outcome::Failed(RpcError::internal(
                "the system has no random numbers: see the server's log",
            ));
        };
        let tool: String = cx.params().decode_member("name").ok().flatten().unwrap_or_default();
        let mut record = TaskRecord::new(URL_SAFE_NO_PAD.encode(id), owner(&cx), tool, self.now());
        record.account = account(&cx);
        let ttl = ttl.unwrap_or(self.ttl).min(self.max_ttl);
        record.ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).max(1);
        match self.store.create(&record, &self.quota).await {
            Ok(true) => {}
            Ok(false) => {
                let message =
                    "too many tasks: wait for those that run, or for the expiry of those that have ended";
                return Outcome::Failed(RpcError::overloaded(message, self.poll_ms()));
            }
            Err(error) => return Outcome::Failed(unreachable_store(&error)),
        }
        let session = cx.session().filter(|_| !cx.peer().revision.is_stateless());
        let task = Arc::new(RunningTask::new(record.clone(), session));
        self.running().insert(record.id.clone(), task.clone());
        let outcome = wire::created(&cx, &record, self.poll);
        tokio::spawn(self.clone().run(task, call, ttl));
        self.sweep();
        outcome
    }

    fn poll_ms(&self) -> u64 {
        u64::try_from(self.poll.as_millis()).unwrap_or(u64::MAX)
    }

    /// Runs a task to its end.
    async fn run(self: Arc<Self>, task: Arc<RunningTask>, mut call: DetachedCall, ttl: Duration) {
        let server = call.cx().server().clone();
        let mut expiry = pin!(sleep(ttl));
        loop {
            match next_step(&task, &mut call, expiry.as_mut()).await {
                Step::Stopped => break,
                Step::Event(DetachedEvent::Question(question)) => {
                    task.open(question, self.now());
                    self.save(&task).await;
                }
                Step::Event(DetachedEvent::QuestionAbandoned) => task.remove_abandoned(self.now()),
                Step::Event(DetachedEvent::Progress { done, total, message }) => {
                    task.report(progress_text(done, total, message), self.now());
                }
                Step::Event(DetachedEvent::Done(outcome)) => {
                    let (status, outcome) = ended(outcome);
                    let message = match &outcome {
                        TaskOutcome::Error(error) => Some(error.message.to_string()),
                        TaskOutcome::Result(_) => None,
                    };
                    // A task that was cancelled stays so.
                    if task.end(status, Some(outcome), message, self.now()) {
                        self.save(&task).await;
                    }
                    break;
                }
                Step::Expired => {
                    let error = RpcError::internal("the task took longer than it is kept, and was ended");
                    let message = Some(error.message.to_string());
                    task.end(TaskStatus::Failed, Some(TaskOutcome::Error(error)), message, self.now());
                    break;
                }
            }
            self.announce(&server, &task);
        }
        // The handler is dropped before anybody is notified of the end.
        drop(call);
        self.announce(&server, &task);
        let id = task.read(|record| record.id.clone());
        self.running().remove(&id);
    }

    /// Cancels a task. Returns `false` if it has ended.
    pub(super) async fn cancel(&self, task: &Arc<RunningTask>) -> bool {
        let cancelled = task.end(TaskStatus::Cancelled, None, Some("cancelled".to_owned()), self.now());
        if cancelled {
            self.save(task).await;
            task.stop.notify_one();
        }
        cancelled
    }

    /// Stores the record of a task.
    pub(super) async fn save(&self, task: &RunningTask) {
        let mut record = task.next_version();
        for _ in 0..2 {
            match self.store.update(&record, &self.quota).await {
                Ok(Updated::Stored) => return,
                Ok(Updated::Full) if record.outcome.is_some() => {
                    let message = format!(
                        "the result takes {} bytes, more than the caller may keep: ask for less",
                        record.bytes()
                    );
                    let outcome = TaskOutcome::Error(RpcError::internal(message));
                    task.replace_outcome(TaskStatus::Failed, outcome);
                    task.undo_version();
                    record = task.next_version();
                }
                Ok(updated) => {
                    task.undo_version();
                    return tracing::debug!(
                        ?updated,
                        tool = record.tool,
                        "the record of a task was not stored"
                    );
                }
                Err(error) => {
                    task.undo_version();
                    return tracing::error!(%error, tool = record.tool, "the record of a task could not be stored");
                }
            }
        }
    }

    /// Notifies the client of the status.
    fn announce(&self, server: &Server, task: &RunningTask) {
        if let Some(session) = &task.session {
            let status = task.read(|record| wire::session_task(record, self.poll));
            // The client polls as well.
            let _ = session.notify(method::NOTIFICATIONS_TASKS_STATUS, &status);
            return;
        }
        let (id, params) = task.read(|record| {
            (record.id.clone(), serde_json::to_value(DetailedView::of(record, self.poll)).unwrap_or_default())
        });
        let watched = id.clone();
        let notice = Notice::new(FILTER_MEMBER, method::tasks_extension::NOTIFICATIONS_TASKS, params)
            .to(move |granted| granted.as_array().is_some_and(|ids| ids.iter().any(|id| *id == watched)));
        server.tell(notice.key(id));
    }

    /// Removes expired tasks as long as there are any, whether or not anybody asks for them.
    fn sweep(self: &Arc<Self>) {
        if self.is_sweeping.swap(true, Ordering::AcqRel) {
            return;
        }
        let host = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                let Some(current) = host.upgrade() else { return };
                let wait = match current.store.remove_expired(current.now()).await {
                    Ok(Some(next)) => Duration::from_millis(next.saturating_sub(current.now()).max(1)),
                    Ok(None) => {
                        current.is_sweeping.store(false, Ordering::Release);
                        return;
                    }
                    Err(error) => {
                        tracing::error!(%error, "expired tasks could not be removed");
                        Duration::from_secs(60)
                    }
                };
                drop(current);
                sleep(wait.min(Duration::from_secs(600))).await;
            }
        });
    }
}

/// A step of a task.
enum Step {
    /// The task was cancelled.
    Stopped,
    Event(DetachedEvent),
    /// The lifetime of the task is over.
    Expired,
}

async fn next_step(task: &RunningTask, call: &mut DetachedCall, mut expiry: Pin<&mut Sleep>) -> Step {
    let (mut stopped, mut event) = (pin!(task.stop.notified()), pin!(call.next()));
    poll_fn(|cx| {
        if stopped.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Step::Stopped);
        }
        if let Poll::Ready(event) = event.as_mut().poll(cx) {
            return Poll::Ready(Step::Event(event));
        }
        expiry.as_mut().poll(cx).map(|()| Step::Expired)
    })
    .await
}

/// Returns the error for a task that does not exist, or is another caller's.
pub(super) fn unknown(id: &str) -> RpcError {
    let shown: String = id.chars().take(64).collect();
    RpcError::invalid_params(format!("no such task: `{shown}`; it may have expired"))
}

fn unreachable_store(error: &io::Error) -> RpcError {
    tracing::error!(%error, "the store of tasks cannot be reached");
    RpcError::internal("the tasks cannot be reached now: try again later")
}

const LOCAL: &str = "local";
const ANONYMOUS: &str = "anonymous";

fn named_owner(name: &str) -> String {
    format!("name:{name}")
}

/// Returns the caller that a task belongs to. Of an anonymous caller without a session nothing is known: the id of the task is what
/// only it has.
pub(super) fn owner(cx: &Cx) -> String {
    match cx.identity() {
        Principal::Local => LOCAL.to_owned(),
        Principal::Named(name) => named_owner(name),
        Principal::Anonymous => match cx.session().and_then(|session| session.id()) {
            Some(number) => format!("session:{number}"),
            None => ANONYMOUS.to_owned(),
        },
    }
}

/// Returns the caller that a task is counted for, so that an anonymous one does not fill what others have.
fn account(cx: &Cx) -> String {
    match (cx.identity(), cx.peer_address().map(|address| address.ip())) {
        (Principal::Anonymous, Some(IpAddr::V4(ip))) => format!("address:{ip}"),
        // A network of the last 64 bits has one user.
        (Principal::Anonymous, Some(IpAddr::V6(ip))) => {
            let [a, b, c, d, ..] = ip.segments();
            format!("address:{a:x}:{b:x}:{c:x}:{d:x}")
        }
        _ => owner(cx),
    }
}

/// Returns the status and the outcome of a task whose handler has completed.
fn ended(outcome: Outcome) -> (TaskStatus, TaskOutcome) {
    let error = |error| (TaskStatus::Failed, TaskOutcome::Error(error));
    match outcome {
        Outcome::Complete(body) | Outcome::Cacheable(body, _) => {
            (TaskStatus::Completed, TaskOutcome::Result((*body).clone()))
        }
        Outcome::BadArguments(text) => match RawObject::from_serialize(&error_result(text)) {
            Ok(result) => (TaskStatus::Completed, TaskOutcome::Result(result)),
            Err(failed) => error(RpcError::internal(failed.to_string())),
        },
        Outcome::NotFound { uri } => error(RpcError::invalid_params(format!("no such resource: `{uri}`"))),
        Outcome::Failed(failed) => error(failed),
        _ => error(RpcError::internal("the call ended without a result")),
    }
}

/// Returns a result that reports an error to the model.
pub(super) fn error_result(text: impl Into<String>) -> CallToolResult {
    let mut result = CallToolResult::new(vec![ContentBlock::text(text)]);
    result.is_error = Some(true);
    result
}

/// Returns a progress report as the status of a task.
fn progress_text(done: f64, total: Option<f64>, message: Option<String>) -> String {
    let numbers = match total {
        Some(total) => format!("{done} of {total}"),
        None => done.to_string(),
    };
    match message {
        Some(message) => format!("{message} ({numbers})"),
        None => numbers,
    }
}
