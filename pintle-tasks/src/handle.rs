use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    future::{Future as _, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use pintle::{
    Error, Result,
    client::{CallStart, Unresolved},
    proto::TaskKind,
    types::{
        JsonObject, RawObject, RawValue, RpcError,
        method::{self, tasks_extension},
        schema::{
            CallToolResult, CreateTaskResult, DetailedTask, InputRequest, ProgressParams, Task, TaskParams,
            TaskStatus,
        },
    },
};
use tokio::{
    runtime::Handle,
    task::JoinSet,
    time::{sleep, timeout},
};

/// The limits of the interval between two polls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Intervals {
    pub(super) min: Duration,
    pub(super) max: Duration,
}

impl Default for Intervals {
    fn default() -> Self {
        Self { min: Duration::from_millis(100), max: Duration::from_secs(60) }
    }
}

/// The interval if the server recommends none.
const USUAL_INTERVAL: Duration = Duration::from_secs(1);
/// The time to cancel a task that nobody waits for.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// A task that runs on a server: the one that a call has become, or [`Connection::task`](crate::TaskRequests::task) of its id.
///
/// Dropping the handle does not end the task; dropping the future of [`result`](Self::result) neither.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// # #[cfg(feature = "server")] {
/// use std::time::Duration;
/// use pintle::{Client, Server, server::tool};
/// use pintle_tasks::{TaskHandle, TaskPolling, Tasks};
///
/// let server = Server::new("demo", "1.0.0").with(Tasks::new()).tool(
///     tool("slow", || async {
///         tokio::time::sleep(Duration::from_millis(10)).await;
///         "done"
///     })
///     .task("required"),
/// );
/// let connection = Client::new("demo", "1.0.0").with(TaskPolling::new()).connect(server.in_process()?).await?;
/// let task = TaskHandle::of(connection.call("slow").start().await?).expect("a task");
/// println!("{} is {}", task.id(), task.state().await?.status);
/// assert_eq!(task.result().await?.text(), "done");
/// # }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct TaskHandle {
    call: Unresolved,
    id: Arc<str>,
    first: TaskState,
    intervals: Intervals,
}

/// The state of a task.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct TaskState {
    /// The status.
    pub status: TaskStatus,
    /// The status for people.
    pub message: Option<String>,
    /// The time of the last change, as the server states it.
    pub updated: String,
    interval: Duration,
    questions: BTreeMap<String, InputRequest>,
    outcome: Option<Result<RawObject, RpcError>>,
}

impl TaskState {
    fn of(task: DetailedTask) -> Self {
        let result = task.result.and_then(|result: JsonObject| RawObject::from_serialize(&result).ok());
        Self {
            status: task.status,
            message: task.status_message,
            updated: task.last_updated_at,
            interval: interval(task.poll_interval_ms),
            questions: task.input_requests.unwrap_or_default(),
            outcome: result.map(Ok).or(task.error.map(Err)),
        }
    }

    fn of_session(task: Task) -> Self {
        Self {
            status: task.status,
            message: task.status_message,
            updated: task.last_updated_at,
            interval: interval(task.poll_interval),
            questions: BTreeMap::new(),
            outcome: None,
        }
    }
}

/// Returns the interval between two polls that a server recommends.
fn interval(millis: Option<i64>) -> Duration {
    millis.and_then(|millis| u64::try_from(millis).ok()).map_or(USUAL_INTERVAL, Duration::from_millis)
}

impl TaskHandle {
    /// Returns the task that a call has become, if it has.
    pub fn of(start: CallStart) -> Option<Self> {
        match start {
            CallStart::Unresolved(call) => Self::try_from(*call).ok(),
            _ => None,
        }
    }

    pub(super) fn new(call: Unresolved, intervals: Intervals) -> Result<Self> {
        let undecodable =
            |error: serde_json::Error| Error::Decode(format!("the task of `{}`: {error}", call.method()));
        let (id, first) = match call.connection().facts().tasks {
            TaskKind::Extension => {
                let task: DetailedTask = call.result().decode().map_err(undecodable)?;
                (task.task_id.clone(), TaskState::of(task))
            }
            _ => {
                let task = match call.method() {
                    method::TASKS_GET => call.result().decode().map_err(undecodable)?,
                    _ => call.result().decode::<CreateTaskResult>().map_err(undecodable)?.task,
                };
                (task.task_id.clone(), TaskState::of_session(task))
            }
        };
        Ok(Self { call, id: id.into(), first, intervals })
    }

    /// Returns the id of the task.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits until the next poll.
    async fn wait(&self, state: &TaskState) {
        sleep(state.interval.clamp(self.intervals.min, self.intervals.max)).await;
    }

    fn params(&self) -> TaskParams {
        TaskParams::new(&*self.id)
    }

    /// Polls the state of the task.
    ///
    /// # Errors
    ///
    /// The task has expired, or the server did not answer.
    pub async fn state(&self) -> Result<TaskState> {
        let connection = self.call.connection();
        match connection.facts().tasks {
            TaskKind::Extension => {
                connection.request(method::TASKS_GET, self.params()).await.map(TaskState::of)
            }
            _ => connection.request(method::TASKS_GET, self.params()).await.map(TaskState::of_session),
        }
    }

    /// Cancels the task. A server may complete it nevertheless.
    ///
    /// # Errors
    ///
    /// The task has expired, or the server did not answer; in a session also if it has ended.
    pub async fn cancel(&self) -> Result<()> {
        let cancelled: RawObject =
            self.call.connection().request(method::TASKS_CANCEL, self.params()).await?;
        drop(cancelled);
        Ok(())
    }

    /// Waits for the result. Questions of the task go to the handlers of the call, and its status to the progress callback.
    ///
    /// # Errors
    ///
    /// The call failed, the task was cancelled or has expired, or a question has no answer.
    pub async fn result(&self) -> Result<CallToolResult> {
        let result = self.raw_result().await?;
        result.decode().map_err(|error| Error::Decode(format!("the result of the task: {error}")))
    }

    pub(super) async fn raw_result(&self) -> Result<RawObject> {
        match self.call.connection().facts().tasks {
            TaskKind::Extension => self.poll_result().await,
            _ => self.session_result().await,
        }
    }

    /// Polls a task of the extension to its end.
    async fn poll_result(&self) -> Result<RawObject> {
        let mut state = self.first.clone();
        let mut reporter = Reporter::default();
        let mut answered = BTreeSet::new();
        loop {
            reporter.report(&self.call, &state);
            if let Some(ended) = ended(&state) {
                return ended;
            }
            let open: Vec<_> = std::mem::take(&mut state.questions)
                .into_iter()
                .filter(|(key, _)| !answered.contains(key))
                .collect();
            if open.is_empty() {
                self.wait(&state).await;
            } else {
                answered.extend(open.iter().map(|(key, _)| key.clone()));
                self.answer(open).await?;
            }
            state = self.state().await?;
        }
    }

    /// Answers questions of the task, concurrently.
    async fn answer(&self, open: Vec<(String, InputRequest)>) -> Result<()> {
        let mut asking = JoinSet::new();
        for (key, request) in open {
            let call = self.call.clone();
            asking.spawn(async move {
                let params =
                    request.params.as_deref().map_or("{}", RawValue::get).parse().unwrap_or_default();
                let answer = call.answer(&key, &request.method, params).await;
                (key, answer)
            });
        }
        let mut answers = BTreeMap::new();
        while let Some(answer) = asking.join_next().await {
            let Ok((key, answer)) = answer else {
                return Err(Error::Refused("the handler of a question was aborted".into()));
            };
            match answer {
                Ok(answer) => drop(answers.insert(key, answer)),
                Err(error) => {
                    return Err(Error::Refused(format!(
                        "the server's question `{key}` was not answered: {error}"
                    )));
                }
            }
        }
        let params = serde_json::json!({ "taskId": &*self.id, "inputResponses": answers });
        let updated: RawObject =
            self.call.connection().request(tasks_extension::TASKS_UPDATE, params).await?;
        drop(updated);
        Ok(())
    }

    /// Waits for the result of a task of a session. Its questions come with the request for the result, which is sent once the task
    /// has questions or has ended; meanwhile its status is polled.
    async fn session_result(&self) -> Result<RawObject> {
        let mut state = self.first.clone();
        let mut reporter = Reporter::default();
        while state.status == TaskStatus::Working {
            reporter.report(&self.call, &state);
            self.wait(&state).await;
            state = self.state().await?;
        }
        let params = RawObject::from_serialize(&self.params())
            .map_err(|error| Error::Misuse(format!("the params cannot be printed: {error}")))?;
        let mut result = pin!(self.call.request(method::TASKS_RESULT, params));
        loop {
            reporter.report(&self.call, &state);
            let step = {
                let mut polled = pin!(async {
                    self.wait(&state).await;
                    self.state().await
                });
                poll_fn(|task| match result.as_mut().poll(task) {
                    Poll::Ready(result) => Poll::Ready(Err(result)),
                    Poll::Pending => polled.as_mut().poll(task).map(Ok),
                })
                .await
            };
            match step {
                Err(result) => return result,
                // If the status cannot be polled, the request for the result fails with the reason.
                Ok(polled) => state = polled.unwrap_or(state),
            }
        }
    }

    /// Cancels the task on drop, unless it has ended.
    pub(super) fn cancel_on_drop(&self) -> CancelOnDrop<'_> {
        CancelOnDrop { task: self, is_over: AtomicBool::new(false) }
    }
}

/// Returns the result of a task that has ended.
fn ended(state: &TaskState) -> Option<Result<RawObject>> {
    Some(match (&state.status, &state.outcome) {
        (TaskStatus::Completed, Some(Ok(result))) => Ok(result.clone()),
        (TaskStatus::Failed, Some(Err(error))) => Err(Error::Rpc(error.clone())),
        (TaskStatus::Cancelled, _) => Err(Error::Refused("the task was cancelled".into())),
        (status, _) if status.is_terminal() => {
            Err(Error::Decode(format!("the task is `{status}`, but has no outcome")))
        }
        _ => return None,
    })
}

/// The task of a call that has become one, or of a `tasks/get`.
impl TryFrom<Unresolved> for TaskHandle {
    type Error = Error;

    fn try_from(call: Unresolved) -> Result<Self> {
        Self::new(call, Intervals::default())
    }
}

impl fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHandle").field("state", &self.first.status).finish_non_exhaustive()
    }
}

/// Reports changes of the status as progress.
#[derive(Default)]
struct Reporter {
    last: Option<String>,
    count: f64,
}

impl Reporter {
    fn report(&mut self, call: &Unresolved, state: &TaskState) {
        if state.message.is_some() && state.message != self.last {
            self.last.clone_from(&state.message);
            self.count += 1.0;
            let mut progress = ProgressParams::new(0, self.count);
            progress.message.clone_from(&state.message);
            call.progress(&progress);
        }
    }
}

/// Cancels a task on drop, unless it has ended.
pub(super) struct CancelOnDrop<'a> {
    task: &'a TaskHandle,
    is_over: AtomicBool,
}

impl CancelOnDrop<'_> {
    pub(super) fn disarm(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self.is_over.load(Ordering::Relaxed) {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            let task = self.task.clone();
            drop(runtime.spawn(async move {
                if let Ok(Err(error)) = timeout(CANCEL_TIMEOUT, task.cancel()).await {
                    tracing::debug!(%error, "an abandoned task was not cancelled");
                }
            }));
        }
    }
}
