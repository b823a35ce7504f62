use std::{collections::HashSet, io, sync::Arc, time::Duration};

use pintle_proto::{inputs::AskError, server::Outcome};
use pintle_types::{
    JsonObject, RawObject, RawValue, RpcError, method,
    method::tasks_extension,
    schema::{
        InputRequest, ListParams, ListTasksResult, ServerTaskRequests, ServerTasksCapability, TaskMetadata,
        TaskParams, TaskSupport, Tool, ToolTasks, UpdateTaskParams,
    },
};
use serde_json::{Value, value::to_raw_value};
use tokio::{task::JoinSet, time::sleep};

use super::{
    EXTENSION, RESULT_TYPE,
    host::{self, FILTER_MEMBER, TaskHost, unreachable_store},
    keeper::TaskPlace,
    memory::MemoryTaskStore,
    owner::owner,
    record::{TaskOutcome, TaskRecord},
    store::{TaskQuota, TaskStore},
    wire::{self, DetailedView},
};
use crate::server::{Cx, Installation, ProtocolExtension, ToolStart};

/// The tasks of a server: calls of tools that go on after their response.
///
/// A tool becomes a task by [`ToolRoute::task`](crate::server::ToolRoute::task), if the client supports tasks. Its handler stays the
/// same. A server has both kinds of tasks: those of the extension for stateless clients, and those of 2025-11-25 for sessions.
///
/// ```
/// use std::time::Duration;
/// use pintle::{Server, server::{Cx, tool}, tasks::Tasks};
///
/// async fn index(cx: Cx) -> String {
///     for file in 1..=3 {
///         cx.progress_with(f64::from(file), 3.0, "indexing").await;
///     }
///     "3 files".to_owned()
/// }
///
/// let server = Server::new("search", "1.0.0")
///     .with(Tasks::new().ttl(Duration::from_secs(600)))
///     .tool(tool("index", index).task("optional"));
/// # server.check().unwrap();
/// ```
#[derive(Debug)]
pub struct Tasks {
    store: Arc<dyn TaskStore>,
    quota: TaskQuota,
    ttl: Duration,
    max_ttl: Duration,
    poll: Duration,
    lease: Duration,
}

impl Tasks {
    /// Creates tasks that are kept in memory for an hour, and polled once a second.
    pub fn new() -> Self {
        Self {
            store: Arc::new(MemoryTaskStore::new()),
            quota: TaskQuota::default(),
            ttl: Duration::from_secs(3600),
            max_ttl: Duration::from_secs(24 * 3600),
            poll: Duration::from_secs(1),
            lease: Duration::from_secs(15),
        }
    }

    /// Sets the store. With one that outlives the process, the server needs keys that do so too: see
    /// [`Server::state_keys`](crate::Server::state_keys). What it keeps is sealed with them.
    #[must_use]
    pub fn store(mut self, store: impl TaskStore) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// Sets how long a task is kept after its creation. One that runs longer is ended.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets the limit of the lifetime that a client may request. The default is a day.
    #[must_use]
    pub fn max_ttl(mut self, ttl: Duration) -> Self {
        self.max_ttl = ttl;
        self
    }

    /// Sets the interval in which clients should poll.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll = interval;
        self
    }

    /// Sets how long after its last sign of life a process is taken for dead, so that another one that shares its store takes over its
    /// tasks. The default is 15 seconds; a sign of life is given three times as often.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.max(Duration::from_millis(100));
        self
    }

    /// Sets the limits of what callers may make the store keep.
    #[must_use]
    pub fn quota(mut self, quota: TaskQuota) -> Self {
        self.quota = quota;
        self
    }
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new()
    }
}

impl ProtocolExtension for Tasks {
    fn name(&self) -> &str {
        EXTENSION
    }

    fn install(self, installation: Installation) -> Installation {
        let Self { store, quota, ttl, max_ttl, poll, lease } = self;
        let is_durable = store.is_durable();
        let host = Arc::new(TaskHost::new(store, quota, (ttl.min(max_ttl), max_ttl), (poll, lease)));
        let (got, updated, cancelled, waited, listed) =
            (host.clone(), host.clone(), host.clone(), host.clone(), host.clone());
        let (granting, deciding, detaching, starting) = (host.clone(), host.clone(), host.clone(), host);
        installation
            .stateless_only()
            .check(move |keys| (is_durable && keys.is_random()).then(|| UNOPENABLE.to_owned()))
            .on_start(move |server| starting.keep(server))
            .result_type(RESULT_TYPE)
            .named_by(method::TASKS_GET, "taskId")
            .named_by(tasks_extension::TASKS_UPDATE, "taskId")
            .named_by(method::TASKS_CANCEL, "taskId")
            .listens(FILTER_MEMBER)
            .grants(move |_, wanted, principal| {
                let ids = wanted.as_array()?.iter();
                let ids = ids.filter(|id| id.as_str().is_some_and(|id| granting.may_watch(id, principal)));
                Some(ids.cloned().collect())
            })
            .capabilities(|can| can.tasks = Some(session_capability()))
            .intercept_tools(move |cx, tool| decide(&deciding, cx, tool))
            .takes_detached(move |cx| {
                let host = detaching.clone();
                let Wish::Task { ttl, .. } = Wish::of(cx) else { return None };
                Some(ToolStart::detach(true, move |call| host.adopt(call, ttl)))
            })
            .method(method::TASKS_GET, move |cx, params| get(got.clone(), cx, params))
            .method(tasks_extension::TASKS_UPDATE, move |cx, params| update(updated.clone(), cx, params))
            .method(method::TASKS_CANCEL, move |cx, params| cancel(cancelled.clone(), cx, params))
            .session_method(method::TASKS_RESULT, move |cx, params| result(waited.clone(), cx, params))
            .session_method(method::TASKS_LIST, move |cx, params| list(listed.clone(), cx, params))
    }
}

/// The fault of a server whose tasks outlive its keys.
const UNOPENABLE: &str = "the tasks are kept in a store that outlives the process, but the keys that seal them do not: set them with \
                          `Server::state_keys`";

/// Returns the capability of the revision that has tasks of its own.
fn session_capability() -> ServerTasksCapability {
    let mut tools = ToolTasks::new();
    tools.call = Some(JsonObject::new());
    let mut requests = ServerTaskRequests::new();
    requests.tools = Some(tools);
    let mut tasks = ServerTasksCapability::new();
    tasks.list = Some(JsonObject::new());
    tasks.cancel = Some(JsonObject::new());
    tasks.requests = Some(requests);
    tasks
}

/// Whether a call can or has to become a task.
enum Wish {
    /// The client supports tasks, and asks for one if `explicit` is set.
    Task { ttl: Option<Duration>, explicit: bool },
    /// The client supports tasks, but not in this request.
    Plain,
    /// The revision of the client has no tasks.
    Unknown,
}

impl Wish {
    fn of(cx: &Cx) -> Self {
        if cx.peer().revision.is_stateless() {
            return match cx.extension(EXTENSION) {
                Some(_) => Self::Task { ttl: None, explicit: false },
                None => Self::Plain,
            };
        }
        if !cx.peer().revision.has_method(method::TASKS_RESULT) {
            return Self::Unknown;
        }
        match cx.params().decode_member::<TaskMetadata>("task") {
            Ok(Some(task)) => {
                let ttl = task.ttl.and_then(|ttl| u64::try_from(ttl).ok()).map(Duration::from_millis);
                Self::Task { ttl, explicit: true }
            }
            _ => Self::Plain,
        }
    }
}

/// Decides whether the call of a tool becomes a task.
fn decide(host: &Arc<TaskHost>, cx: &Cx, tool: &Tool) -> ToolStart {
    let support = tool.execution.as_ref().and_then(|execution| execution.task_support.as_ref());
    let refuse = |error| ToolStart::Refuse(Outcome::Failed(error));
    let not_found = |reason: &str| {
        let mut error = RpcError::method_not_found(method::TOOLS_CALL);
        error.message = format!("the tool `{}` {reason}", tool.name).into();
        error
    };
    let is_required = match support {
        Some(TaskSupport::Optional) => false,
        Some(TaskSupport::Required) => true,
        _ => {
            return match Wish::of(cx) {
                Wish::Task { explicit: true, .. } => {
                    refuse(not_found("cannot be called as a task: call it without `task`"))
                }
                _ => ToolStart::Run,
            };
        }
    };
    match Wish::of(cx) {
        Wish::Task { ttl, explicit } => {
            let host = host.clone();
            ToolStart::detach(is_required || explicit, move |call| host.adopt(call, ttl))
        }
        Wish::Plain | Wish::Unknown if !is_required => ToolStart::Run,
        Wish::Plain if cx.peer().revision.is_stateless() => match cx.require_extension(EXTENSION) {
            Err(error) => refuse(error),
            Ok(()) => ToolStart::Run,
        },
        Wish::Plain => refuse(not_found("has to be called as a task: call it with `task`")),
        Wish::Unknown => {
            let text = format!("`{}` runs as a task, and this client's revision has no tasks.", tool.name);
            ToolStart::Refuse(match RawObject::from_serialize(&host::error_result(text)) {
                Ok(result) => Outcome::Complete(result.into()),
                Err(error) => Outcome::Failed(RpcError::internal(error.to_string())),
            })
        }
    }
}

/// Prints a task in the shapes of the caller.
fn shown(host: &TaskHost, cx: &Cx, record: &TaskRecord) -> Result<RawObject, RpcError> {
    let printed = match cx.peer().revision.is_stateless() {
        true => RawObject::from_serialize(&DetailedView::of(record, host.poll)),
        false => RawObject::from_serialize(&wire::session_task(record, host.poll)),
    };
    printed.map_err(|error| RpcError::internal(error.to_string()))
}

async fn get(host: Arc<TaskHost>, cx: Cx, params: TaskParams) -> Result<RawObject, RpcError> {
    host.keep(cx.server());
    if let Some(task) = host.find_running(&cx, &params.task_id) {
        return task.read(|record| shown(&host, &cx, record));
    }
    shown(&host, &cx, &host.find(&cx, &params.task_id).await?)
}

/// Returns where a task of the caller runs.
async fn place(host: &Arc<TaskHost>, cx: &Cx, id: &str) -> Result<TaskPlace, RpcError> {
    host.keep(cx.server());
    match host.find_running(cx, id) {
        Some(task) => Ok(TaskPlace::Here(task)),
        None => host.find(cx, id).await.map(|record| TaskPlace::Elsewhere(Box::new(record))),
    }
}

async fn update(host: Arc<TaskHost>, cx: Cx, params: UpdateTaskParams) -> Result<JsonObject, RpcError> {
    let task = place(&host, &cx, &params.task_id).await?;
    let is_open = |key: &str| match &task {
        TaskPlace::Here(task) => task.read(|record| record.body.questions.contains_key(key)),
        TaskPlace::Elsewhere(record) => record.body.questions.contains_key(key),
    };
    let mut answers = Vec::with_capacity(params.input_responses.len());
    for (key, answer) in params.input_responses {
        match RawObject::from_serialize(&answer) {
            // Answers to unknown questions are ignored.
            _ if !is_open(&key) => {}
            Ok(answer) => answers.push((key, Ok(answer))),
            Err(_) => {
                return Err(RpcError::invalid_params(format!(
                    "the answer to `{key}` is not an object: send one"
                )));
            }
        }
    }
    if !answers.is_empty() {
        host.answer(cx.server(), task, answers).await?;
    }
    Ok(JsonObject::new())
}

async fn cancel(host: Arc<TaskHost>, cx: Cx, params: TaskParams) -> Result<RawObject, RpcError> {
    let task = place(&host, &cx, &params.task_id).await?;
    let (record, is_cancelled) = host.cancel(cx.server(), task).await?;
    match cx.peer().revision.is_stateless() {
        true => Ok(RawObject::empty()),
        false if is_cancelled => shown(&host, &cx, &record),
        false => Err(RpcError::invalid_params("the task has ended: it cannot be cancelled")),
    }
}

async fn list(host: Arc<TaskHost>, cx: Cx, params: ListParams) -> Result<ListTasksResult, RpcError> {
    const PAGE: usize = 100;
    let owner = owner(&cx);
    let after = params.cursor.as_deref();
    let unreachable = |error: io::Error| unreachable_store(&error);
    let mut found = host.store.list(&owner, after, PAGE + 1).await.map_err(unreachable)?;
    let is_last = found.len() <= PAGE;
    found.truncate(PAGE);
    let now = host.now();
    let next = found.last().filter(|_| !is_last).map(|record| record.id.clone());
    let mut tasks = Vec::with_capacity(found.len());
    for stored in found.into_iter().filter(|stored| stored.expires > now) {
        tasks.push(match host.find_running(&cx, &stored.id) {
            Some(task) => task.read(|record| wire::session_task(record, host.poll)),
            None => {
                wire::session_task(&TaskRecord::open(cx.server(), stored).map_err(unreachable)?, host.poll)
            }
        });
    }
    let mut result = ListTasksResult::new(tasks);
    result.next_cursor = next;
    Ok(result)
}

/// Waits for the result of a task. Meanwhile its questions are sent to the client, with this request.
async fn result(host: Arc<TaskHost>, cx: Cx, params: TaskParams) -> Result<Value, RpcError> {
    host.keep(cx.server());
    let id = params.task_id;
    let mut asking = JoinSet::new();
    // The questions that this request carries.
    let (mut sent, mut held) = (HashSet::new(), Vec::new());
    loop {
        let Some(task) = host.find_running(&cx, &id) else {
            let record = host.find(&cx, &id).await?;
            if record.is_ended() {
                return ended(&cx, &id, &record);
            }
            for (key, asked) in &record.body.questions {
                if sent.insert(key.clone()) {
                    let (cx, host, id) = (cx.clone(), host.clone(), id.clone());
                    asking.spawn(ask(cx, host, id, key.clone(), asked.request.clone()));
                }
            }
            sleep(host.poll).await;
            continue;
        };
        let mut changes = task.changes();
        loop {
            changes.mark_unchanged();
            if task.read(TaskRecord::is_ended) {
                return ended(&cx, &id, &task.record());
            }
            for question in task.take_unsent() {
                if !sent.insert(question.key.clone()) {
                    // It was sent when the task ran elsewhere.
                    held.push(question);
                    continue;
                }
                let (cx, host, id) = (cx.clone(), host.clone(), id.clone());
                asking.spawn(async move {
                    ask(cx, host, id, question.key.clone(), question.request.clone()).await;
                    // Until here no other request carries it.
                    drop(question);
                });
            }
            if changes.changed().await.is_err() || host.find_running(&cx, &id).is_none() {
                break;
            }
        }
        if task.read(TaskRecord::is_ended) {
            return ended(&cx, &id, &task.record());
        }
    }
}

/// Sends a question of a task to the client, and passes the answer on.
async fn ask(cx: Cx, host: Arc<TaskHost>, id: String, key: String, request: InputRequest) {
    let answer = match related(&request, &id) {
        Ok(request) => cx.ask_for_another(request).await,
        Err(error) => Err(AskError::Unprintable { reason: error.to_string() }),
    };
    // If this request is over, the next one carries the question.
    if matches!(answer, Err(AskError::CallOver)) {
        return;
    }
    let Ok(task) = place(&host, &cx, &id).await else { return };
    if let Err(error) = host.answer(cx.server(), task, vec![(key, answer)]).await {
        tracing::debug!(reason = &*error.message, "the answer to a question of a task was not stored");
    }
}

/// Adds the task that a question belongs to.
fn related(request: &InputRequest, id: &str) -> serde_json::Result<InputRequest> {
    let params = request.params.as_deref().map_or("{}", RawValue::get);
    let mut params: Value = serde_json::from_str(params)?;
    wire::add_related_task(&mut params, id);
    let mut request = request.clone();
    request.params = Some(to_raw_value(&params)?);
    Ok(request)
}

/// Returns what the call of a task would have returned.
fn ended(cx: &Cx, id: &str, record: &TaskRecord) -> Result<Value, RpcError> {
    match &record.body.outcome {
        Some(TaskOutcome::Result(result)) => wire::session_result(cx, id, result),
        Some(TaskOutcome::Error(error)) => Err(error.clone()),
        None => Err(RpcError::invalid_params("the task was cancelled: it has no result")),
    }
}
