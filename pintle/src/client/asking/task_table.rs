//! Answers that run as tasks, in the one revision that has them.
//!
//! An answer that a server of 2025-11-25 asks for as a task is in the [`TaskTable`] of its connection's driver, and the server polls it within
//! `Cx::ask` (`server/core/cx/client_task.rs`). Nothing of it is stored.

use std::{
    collections::BTreeMap,
    fmt,
    future::{Future as _, poll_fn},
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::{Duration, SystemTime},
};

use pintle_proto::{Part, Revision, TaskKind};
use pintle_types::{
    RawObject, RpcError, keys, method,
    schema::{
        CreateTaskResult, ListParams, ListTasksResult, RelatedTask, Task, TaskMetadata, TaskParams,
        TaskStatus,
    },
};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    task::AbortHandle,
    time::{Instant, sleep_until, timeout_at},
};
use tracing::{Instrument as _, Span};

use super::{
    answer::Asker,
    answer_tasks::AnswerTasks,
    handlers::{BoxFuture, Handlers, decode, print},
};
use crate::{lock::lock, message_log::timestamp::iso8601_micros, timeouts::after};

/// Sends the params of a status notification.
type NotifyStatus = dyn Fn(RawObject) -> BoxFuture<()> + Send + Sync;

/// The answers of one connection that run as tasks.
///
/// Only the server at the other end can name them, so their ids are numbers.
pub(in crate::client) struct TaskTable {
    limits: AnswerTasks,
    /// Limit of the bytes of all questions that are being answered, and of the answers that are kept.
    max_bytes: usize,
    notify: Arc<NotifyStatus>,
    tasks: Mutex<BTreeMap<u64, AnswerTask>>,
}

/// An answer that runs as a task, or has ended and is kept.
struct AnswerTask {
    state: Arc<watch::Sender<AnswerState>>,
    bytes: usize,
    runner: AbortHandle,
}

/// The state of an answer that runs as a task.
#[derive(Clone)]
struct AnswerState {
    task: Task,
    /// The method of the question.
    method: Arc<str>,
    outcome: Option<Result<RawObject, RpcError>>,
}

impl AnswerState {
    /// Ends the task, unless it has ended. Returns whether it had not.
    fn end(&mut self, status: TaskStatus, outcome: Result<RawObject, RpcError>) -> bool {
        if self.outcome.is_some() {
            return false;
        }
        self.task.status = status;
        self.task.status_message = outcome.as_ref().err().map(|error| error.message.clone().into());
        self.task.last_updated_at = timestamp();
        self.outcome = Some(outcome);
        true
    }

    fn bytes(&self) -> usize {
        match &self.outcome {
            Some(Ok(result)) => result.as_str().len(),
            _ => 0,
        }
    }
}

impl TaskTable {
    pub(in crate::client) fn new(
        limits: AnswerTasks,
        max_bytes: usize,
        notify: impl Fn(RawObject) -> BoxFuture<()> + Send + Sync + 'static,
    ) -> Self {
        Self { limits, max_bytes, notify: Arc::new(notify), tasks: Mutex::default() }
    }

    /// Ends all tasks, as their session has ended.
    pub(in crate::client) fn clear(&self) {
        for task in std::mem::take(&mut *lock(&self.tasks)).into_values() {
            task.runner.abort();
        }
    }

    fn state(&self, id: &str) -> Result<Arc<watch::Sender<AnswerState>>, RpcError> {
        let number: Option<u64> = id.parse().ok();
        let found = number.and_then(|number| lock(&self.tasks).get(&number).map(|task| task.state.clone()));
        found.ok_or_else(|| RpcError::invalid_params("there is no such task: it may have expired"))
    }

    /// Sets how many bytes a task holds.
    fn resize(&self, number: u64, bytes: usize) {
        if let Some(task) = lock(&self.tasks).get_mut(&number) {
            task.bytes = bytes;
        }
    }
}

impl Drop for TaskTable {
    fn drop(&mut self) {
        self.clear();
    }
}

impl fmt::Debug for TaskTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskTable").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// The tasks of a connection whose revision has them.
#[derive(Clone, Debug)]
pub(in crate::client) struct SessionTasks {
    table: Arc<TaskTable>,
    revision: Revision,
}

impl SessionTasks {
    /// Returns the tasks, if the revision has them.
    pub(in crate::client) fn new(table: &Arc<TaskTable>, revision: Revision) -> Option<Self> {
        (revision.facts().tasks == TaskKind::Protocol).then(|| Self { table: table.clone(), revision })
    }

    /// Returns whether a method is one of tasks.
    pub(super) fn has_method(&self, method: &str) -> bool {
        matches!(method, method::TASKS_GET | method::TASKS_RESULT | method::TASKS_LIST | method::TASKS_CANCEL)
    }

    /// Returns whether a question asks for a task.
    pub(super) fn is_wanted(&self, method: &str, params: &RawObject) -> bool {
        matches!(method, method::SAMPLING_CREATE_MESSAGE | method::ELICITATION_CREATE)
            && params.get("task").is_some_and(|task| task != "null")
    }

    /// Starts to answer a question, and returns the task.
    pub(super) fn start(
        &self,
        handlers: Handlers,
        asker: Asker,
        method: &str,
        params: &RawObject,
    ) -> Result<RawObject, RpcError> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let wanted: Option<TaskMetadata> = params
            .decode_member("task")
            .map_err(|error| RpcError::invalid_params(format!("`task` cannot be read: {error}")))?;
        let table = &self.table;
        let AnswerTasks { ttl, max_ttl, max_tasks, poll } = table.limits;
        let wanted = wanted.and_then(|task| task.ttl).and_then(|ttl| u64::try_from(ttl).ok());
        let ttl = wanted.map_or(ttl, Duration::from_millis).min(max_ttl);
        let params = params.without(&["task"]);
        let bytes = params.as_str().len();

        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let mut task = Task::new(number.to_string(), timestamp());
        task.ttl = Some(millis(ttl));
        task.poll_interval = Some(millis(poll));
        let created = print(&CreateTaskResult::new(task.clone()))?;
        let method: Arc<str> = method.into();
        let state = AnswerState { task, method: method.clone(), outcome: None };
        let state = Arc::new(watch::Sender::new(state));

        // Locked until the task is in it, so that it cannot end before.
        let mut tasks = lock(&table.tasks);
        let held: usize = tasks.values().map(|task| task.bytes).sum();
        if tasks.len() >= max_tasks || held.saturating_add(bytes) > table.max_bytes {
            let reason = format!(
                "the client has {} tasks with {held} bytes: ask without `task`, or wait until some have expired",
                tasks.len()
            );
            return Err(RpcError::overloaded(reason, u64::try_from(poll.as_millis()).unwrap_or(u64::MAX)));
        }
        let answer: BoxFuture<_> = Box::pin(async move {
            let asker = Asker { tasks: None, ..asker };
            handlers.answer(asker, &method, &params).await
        });
        let expires = after(Instant::now(), ttl);
        let (running, owner, notify) = (state.clone(), Arc::downgrade(table), table.notify.clone());
        let runner = crate::runtime::spawn(
            async move {
                let is_ended = run(&running, answer, expires).await;
                let (task, bytes) = {
                    let state = running.borrow();
                    (print(&state.task), state.bytes())
                };
                if let Some(table) = owner.upgrade() {
                    table.resize(number, bytes);
                }
                // Whoever cancels a task is told by the response.
                if let (Ok(task), true) = (task, is_ended) {
                    notify(task).await;
                }
                sleep_until(expires).await;
                if let Some(table) = owner.upgrade() {
                    lock(&table.tasks).remove(&number);
                }
            }
            .instrument(Span::current()),
        );
        tasks.insert(number, AnswerTask { state, bytes, runner: runner.abort_handle() });
        Ok(created)
    }

    /// Answers a request about tasks.
    pub(super) async fn serve(&self, method: &str, params: &RawObject) -> Result<RawObject, RpcError> {
        if method == method::TASKS_LIST {
            return self.list(&decode(params)?);
        }
        let TaskParams { task_id, .. } = decode(params)?;
        let state = self.table.state(&task_id)?;
        match method {
            method::TASKS_RESULT => self.result(&task_id, &state).await,
            method::TASKS_CANCEL => {
                let cancelled = || Err(RpcError::invalid_params("the task was cancelled"));
                match state.send_if_modified(|state| state.end(TaskStatus::Cancelled, cancelled())) {
                    true => print(&state.borrow().task),
                    false => Err(RpcError::invalid_params("the task has ended: it cannot be cancelled")),
                }
            }
            _ => print(&state.borrow().task),
        }
    }

    fn list(&self, params: &ListParams) -> Result<RawObject, RpcError> {
        if params.cursor.is_some() {
            return Err(RpcError::invalid_params("the list has one page: send no `cursor`"));
        }
        let tasks = lock(&self.table.tasks);
        print(&ListTasksResult::new(tasks.values().map(|task| task.state.borrow().task.clone()).collect()))
    }

    /// Waits for the outcome of a task.
    async fn result(&self, id: &str, state: &watch::Sender<AnswerState>) -> Result<RawObject, RpcError> {
        let mut changes = state.subscribe();
        let ended = changes.wait_for(|state| state.outcome.is_some()).await.map(|state| state.clone());
        let Ok(AnswerState { method, outcome: Some(outcome), .. }) = ended else {
            return Err(RpcError::internal("the task was lost"));
        };
        let mut result: Value = outcome?.decode().map_err(|error| RpcError::internal(error.to_string()))?;
        self.revision
            .lower(Part::Result(&method), &mut result)
            .map_err(|unsayable| RpcError::internal(unsayable.to_string()))?;
        if let Some(members) = result.as_object_mut()
            && let Some(meta) = members.entry("_meta").or_insert_with(|| json!({})).as_object_mut()
        {
            meta.insert(keys::RELATED_TASK.to_owned(), json!(RelatedTask::new(id)));
        }
        print(&result)
    }
}

/// Runs an answer until it is there, its task is cancelled or its time is over. Returns whether it has ended by itself.
async fn run(
    state: &watch::Sender<AnswerState>,
    answer: BoxFuture<Result<RawObject, RpcError>>,
    expires: Instant,
) -> bool {
    let answered = {
        let mut changes = state.subscribe();
        let mut cancelled = pin!(changes.wait_for(|state| state.outcome.is_some()));
        let mut answered = pin!(timeout_at(expires, answer));
        poll_fn(|cx| match cancelled.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(None),
            Poll::Pending => answered.as_mut().poll(cx).map(Some),
        })
        .await
    };
    let Some(answered) = answered else { return false };
    let outcome = answered.unwrap_or_else(|_| Err(RpcError::invalid_params("the task has expired")));
    let status = if outcome.is_ok() { TaskStatus::Completed } else { TaskStatus::Failed };
    state.send_if_modified(|state| state.end(status, outcome))
}

fn timestamp() -> String {
    iso8601_micros(SystemTime::now()).unwrap_or_else(|| "9999-12-31T23:59:59Z".to_owned())
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
