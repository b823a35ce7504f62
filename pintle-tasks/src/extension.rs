use std::{sync::Arc, time::Duration};

use pintle::{
    proto::TaskKind,
    server::{Cx, Installation, Outcome, ProtocolExtension, ToolStart, method, raw_method},
    types::{
        JsonObject, RawObject, RpcError,
        method::{self, tasks_extension},
        schema::{ServerTaskRequests, ServerTasksCapability, TaskMetadata, TaskSupport, Tool, ToolTasks},
    },
};

use super::{
    EXTENSION, RESULT_TYPE,
    host::{self, FILTER_MEMBER, TaskHost},
    memory::MemoryTaskStore,
    methods::{cancel, get, list, result, update},
    store::{TaskQuota, TaskStore},
};

/// The tasks of a server: calls of tools that go on after their response.
///
/// A tool becomes a task by [`ToolRoute::task`](pintle::server::ToolRoute::task), if the client supports tasks. Its handler stays the
/// same. A server has both kinds of tasks: those of the extension for stateless clients, and those of 2025-11-25 for sessions.
///
/// ```
/// use std::time::Duration;
/// use pintle::{Server, server::{Cx, tool}};
/// use pintle_tasks::Tasks;
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
    /// [`Server::state_keys`](pintle::Server::state_keys). What it keeps is sealed with them.
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

impl Tasks {
    /// Returns what runs the tasks.
    pub(super) fn into_host(self) -> TaskHost {
        let Self { store, quota, ttl, max_ttl, poll, lease } = self;
        TaskHost::new(store, quota, (ttl, max_ttl), (poll, lease))
    }

    /// Returns the capability of the revision that has tasks of its own.
    pub fn session_capability() -> ServerTasksCapability {
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
        let host = Arc::new(self.into_host());
        let is_durable = host.store.is_durable();
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
            .capabilities(|can| can.tasks = Some(Self::session_capability()))
            .intercept_tools(move |cx, tool| decide(&deciding, cx, tool))
            .takes_detached(move |cx| {
                let ttl = match cx.facts().tasks {
                    TaskKind::Extension => cx.extension(EXTENSION).map(|_| None)?,
                    _ => requested_ttl(cx)?,
                };
                Some(detach(&detaching, ttl))
            })
            .method(raw_method(method::TASKS_GET, move |cx| get(got.clone(), cx)))
            .method(method(tasks_extension::TASKS_UPDATE, move |cx, params| {
                update(updated.clone(), cx, params)
            }))
            .method(method(method::TASKS_CANCEL, move |cx, params| cancel(cancelled.clone(), cx, params)))
            .session_method(method(method::TASKS_RESULT, move |cx, params| {
                result(waited.clone(), cx, params)
            }))
            .session_method(method(method::TASKS_LIST, move |cx, params| list(listed.clone(), cx, params)))
    }
}

/// The fault of a server whose tasks outlive its keys.
const UNOPENABLE: &str = "the tasks are kept in a store that outlives the process, but the keys that seal them do not: set them with \
                          `Server::state_keys`";

/// Returns the lifetime that the client of a session requests of a call that is to be a task: `None` if it is not to be one, and
/// `Some(None)` if any lifetime will do.
pub fn requested_ttl(cx: &Cx) -> Option<Option<Duration>> {
    let task: TaskMetadata = cx.params().decode_member("task").ok()??;
    let millis = task.ttl.and_then(|ttl| u64::try_from(ttl).ok());
    (cx.facts().tasks == TaskKind::Protocol).then(|| millis.map(Duration::from_millis))
}

/// Detaches a call whatever its handler does.
fn detach(host: &Arc<TaskHost>, ttl: Option<Duration>) -> ToolStart {
    let host = host.clone();
    ToolStart::detach(true, move |call| host.adopt(call, ttl))
}

/// Decides whether the call of a tool becomes a task.
fn decide(host: &Arc<TaskHost>, cx: &Cx, tool: &Tool) -> ToolStart {
    let support = tool.execution.as_ref().and_then(|execution| execution.task_support.as_ref());
    let is_required = matches!(support, Some(TaskSupport::Required));
    if cx.facts().tasks != TaskKind::Extension {
        // Most calls have no such member.
        let is_plain = !is_required && cx.params().get("task").is_none();
        return if is_plain { ToolStart::Run } else { decide_in_session(host, cx, tool) };
    }
    match support {
        // Most handlers do not wait: whether the client follows tasks is looked up for those that do.
        Some(TaskSupport::Optional) => ToolStart::DetachOnWait,
        Some(TaskSupport::Required) => match cx.require_extension(EXTENSION) {
            Ok(()) => detach(host, None),
            Err(error) => ToolStart::Refuse(Outcome::Failed(error)),
        },
        _ => ToolStart::Run,
    }
}

/// Decides whether the call of a tool in a session becomes a task, if its client requests one or the tool requires it.
#[cold]
fn decide_in_session(host: &Arc<TaskHost>, cx: &Cx, tool: &Tool) -> ToolStart {
    let support = tool.execution.as_ref().and_then(|execution| execution.task_support.as_ref());
    let refuse = |reason: &str| {
        let mut error = RpcError::method_not_found(method::TOOLS_CALL);
        error.message = format!("the tool `{}` {reason}", tool.name).into();
        ToolStart::Refuse(Outcome::Failed(error))
    };
    match (support, requested_ttl(cx)) {
        (Some(TaskSupport::Optional | TaskSupport::Required), Some(ttl)) => {
            return detach(host, ttl);
        }
        (Some(TaskSupport::Required), None) => {}
        (_, Some(_)) => return refuse("cannot be called as a task: call it without `task`"),
        (_, None) => return ToolStart::Run,
    }
    if cx.peer().revision.has_method(method::TASKS_RESULT) {
        return refuse("has to be called as a task: call it with `task`");
    }
    let text = format!("`{}` runs as a task, and this client's revision has no tasks.", tool.name);
    ToolStart::Refuse(match RawObject::from_serialize(&host::error_result(text)) {
        Ok(result) => Outcome::Complete(result.into()),
        Err(error) => Outcome::Failed(RpcError::internal(error.to_string())),
    })
}
