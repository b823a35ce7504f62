//! The tasks of a server.

use std::{
    collections::HashMap,
    fmt,
    future::{Future as _, poll_fn},
    io,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use pintle::server::{Cx, DetachedCall, DetachedEvent, Notice, Server, SessionHandle};
use pintle_proto::{RETRY_AFTER_MS, server::Outcome};
use pintle_types::{
    RawObject, RpcError, method,
    schema::{CallToolResult, ContentBlock, TaskStatus},
};
use tokio::time::{Sleep, sleep};

use super::{
    clock::StoreClock,
    owner::{account, is_owner, is_visible_to, may_watch, owner},
    random,
    record::{TaskOutcome, TaskRecord},
    running::{RunningTask, TaskRequest},
    saving::Saved,
    store::{StoredTask, TaskQuota, TaskStore},
    wire::{self, DetailedView},
};

/// The member of the filter of subscriptions that names tasks.
pub(super) const FILTER_MEMBER: &str = "taskIds";

/// The longest lifetime, in milliseconds: every store has numbers for the time at which it is over.
const MAX_TTL: u64 = 1 << 50;

/// The tasks of a server: the store, and those that this process runs.
#[derive(Debug)]
pub(super) struct TaskHost {
    pub(super) store: Arc<dyn TaskStore>,
    pub(super) quota: TaskQuota,
    pub(super) ttl: Duration,
    pub(super) max_ttl: Duration,
    pub(super) poll: Duration,
    /// How long after its last sign of life a process is taken for dead.
    pub(super) lease: Duration,
    /// The name of this process in the store.
    pub(super) holder: String,
    pub(super) running: Mutex<HashMap<String, Arc<RunningTask>>>,
    pub(super) clock: StoreClock,
    /// When the lease was last renewed.
    pub(super) renewed: AtomicU64,
    pub(super) is_sweeping: AtomicBool,
    pub(super) is_kept: AtomicBool,
    /// Notifies the clients that watch a task, if it is not one of the server itself.
    tell: Option<ClientNotifier>,
}

/// A function that notifies clients of a task.
struct ClientNotifier(Box<dyn Fn(Notice) + Send + Sync>);

impl fmt::Debug for ClientNotifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientNotifier")
    }
}

impl TaskHost {
    pub(super) fn new(
        store: Arc<dyn TaskStore>,
        quota: TaskQuota,
        (ttl, max_ttl): (Duration, Duration),
        (poll, lease): (Duration, Duration),
    ) -> Self {
        Self {
            store,
            quota,
            ttl,
            max_ttl,
            poll,
            lease,
            // Without random numbers no task is created.
            holder: random::name::<12>().unwrap_or_default(),
            running: Mutex::default(),
            clock: StoreClock::new(),
            renewed: AtomicU64::new(0),
            is_sweeping: AtomicBool::new(false),
            is_kept: AtomicBool::new(false),
            tell: None,
        }
    }

    /// Has clients notified with this function. The tasks are not those of the server itself.
    pub(super) fn telling(mut self, tell: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        self.tell = Some(ClientNotifier(Box::new(tell)));
        self
    }

    /// Returns whether the tasks are those of a provider, and not of the server itself.
    pub(super) fn is_of_provider(&self) -> bool {
        self.tell.is_some()
    }

    /// Returns the time of the store, in milliseconds of the Unix epoch.
    pub(super) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Reads the clock of the store, if that was not done yet.
    pub(super) async fn read_clock(&self) -> Result<(), RpcError> {
        self.clock.read_once(&*self.store).await.map_err(|error| unreachable_store(&error))
    }

    pub(super) fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<RunningTask>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a task of this caller that this process runs.
    pub(super) fn find_running(&self, cx: &Cx, id: &str) -> Option<Arc<RunningTask>> {
        let task = self.running().get(id).cloned()?;
        task.read(|record| is_owner(&record.owner, cx)).then_some(task)
    }

    /// Returns the record of a task that this process runs, if another process has changed it and this one has not read that yet. It does
    /// so at once.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be reached: another process may have cancelled the task, or have taken it over and ended it.
    pub(super) async fn changed_elsewhere(
        &self,
        cx: &Cx,
        task: &RunningTask,
    ) -> Result<Option<TaskRecord>, RpcError> {
        if !self.store.is_durable() {
            return Ok(None);
        }
        let id = task.read(|record| record.id.clone());
        match self.store.get(&id).await.map_err(|error| unreachable_store(&error))? {
            Some(stored) => self.if_newer(cx, task, stored),
            None => Ok(None),
        }
    }

    /// Returns the stored record of a task that this process runs, if another process has changed it.
    pub(super) fn if_newer(
        &self,
        cx: &Cx,
        task: &RunningTask,
        stored: StoredTask,
    ) -> Result<Option<TaskRecord>, RpcError> {
        if stored.version <= task.read(|record| record.version) {
            return Ok(None);
        }
        // If too many requests wait, the next look at the store finds it.
        let _ = task.request(TaskRequest::Read);
        TaskRecord::open(cx.server(), stored).map(Some).map_err(|error| unreachable_store(&error))
    }

    /// Returns whether a caller with this principal may be notified of a task.
    pub(super) fn may_watch(&self, id: &str, principal: Option<&str>) -> bool {
        let task = self.running().get(id).cloned();
        task.is_some_and(|task| {
            let may_watch = task.read(|record| may_watch(&record.owner, principal));
            task.is_watched.fetch_or(may_watch, Ordering::AcqRel);
            may_watch
        })
    }

    /// Returns the record of a task of this caller.
    pub(super) async fn find(&self, cx: &Cx, id: &str) -> Result<TaskRecord, RpcError> {
        if let Some(task) = self.find_running(cx, id) {
            return Ok(task.record());
        }
        self.read_clock().await?;
        let found = self.store.get(id).await.map_err(|error| unreachable_store(&error))?;
        let now = self.now();
        let found = found.filter(|stored| is_owner(&stored.owner, cx) && stored.expires > now);
        let stored = found.ok_or_else(|| unknown(id))?;
        TaskRecord::open(cx.server(), stored).map_err(|error| unreachable_store(&error))
    }

    /// Makes a call a task. Returns the outcome of its request, once the task is stored.
    pub(super) async fn adopt(self: Arc<Self>, call: DetachedCall, ttl: Option<Duration>) -> Outcome {
        let cx = call.cx().clone();
        match self.create(&cx, ttl).await {
            Ok(record) => {
                let session = cx.session().map(|session| (session, call.task_id_for_client(&record.id)));
                let outcome = wire::created(&cx, &record, self.poll);
                self.start(record, session, call);
                self.keep(cx.server());
                outcome
            }
            Err(error) => Outcome::Failed(error),
        }
    }

    /// Stores a new task.
    async fn create(&self, cx: &Cx, ttl: Option<Duration>) -> Result<TaskRecord, RpcError> {
        let id = random::name::<18>()
            .map_err(|_| RpcError::internal("the system has no random numbers: see the server's log"))?;
        self.read_clock().await?;
        let tool: String = cx.params().decode_member("name").ok().flatten().unwrap_or_default();
        let mut record = TaskRecord::new(id, owner(cx), tool, self.now());
        record.account = account(cx);
        record.holder = Some(self.holder.clone());
        let ttl = ttl.unwrap_or(self.ttl).min(self.max_ttl);
        record.body.ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).clamp(1, MAX_TTL);
        let is_resumable = self.store.is_durable() && cx.is_resumable();
        record.body.call = is_resumable.then(|| Box::new(cx.record()));
        self.renew_lease().await.map_err(|error| unreachable_store(&error))?;
        let stored = record.seal(cx.server(), false).map_err(|error| unreachable_store(&error))?;
        match self.store.create(&stored, &self.quota).await {
            Ok(true) => Ok(record),
            Ok(false) if stored.bytes() > self.quota.task_bytes => {
                Err(RpcError::invalid_params(too_large(stored.bytes(), "the arguments")))
            }
            Ok(false) => {
                let message =
                    "too many tasks: wait for those that run, or for the expiry of those that have ended";
                Err(RpcError::overloaded(message, self.poll_ms()))
            }
            Err(error) => Err(unreachable_store(&error)),
        }
    }

    /// Runs a task that is stored.
    pub(super) fn start(
        self: &Arc<Self>,
        record: TaskRecord,
        session: Option<(SessionHandle, String)>,
        call: DetachedCall,
    ) {
        let left = Duration::from_millis(record.expires().saturating_sub(self.now()));
        let id = record.id.clone();
        let task = Arc::new(RunningTask::new(record, session));
        self.running().insert(id, task.clone());
        tokio::spawn(self.clone().run(task, call, left));
        self.sweep();
    }

    fn poll_ms(&self) -> u64 {
        u64::try_from(self.poll.as_millis()).unwrap_or(u64::MAX)
    }

    /// Runs a task to its end.
    async fn run(self: Arc<Self>, task: Arc<RunningTask>, mut call: DetachedCall, left: Duration) {
        let cx = call.cx().clone();
        let server = cx.server().clone();
        let mut expiry = pin!(sleep(left));
        loop {
            let saved = match next_step(&task, &mut call, expiry.as_mut()).await {
                Step::Request(request) => self.obey(&cx, &task, request).await,
                Step::Event(DetachedEvent::Question(question)) => {
                    task.open(question, self.now());
                    self.save_or_fail(&cx, &task).await
                }
                Step::Event(DetachedEvent::QuestionAbandoned) => {
                    task.remove_abandoned(self.now());
                    Saved::Stored
                }
                Step::Event(DetachedEvent::Progress { done, total, message }) => {
                    task.report(progress_text(done, total, message), self.now());
                    Saved::Stored
                }
                Step::Event(DetachedEvent::Status { message }) => {
                    task.report(message, self.now());
                    Saved::Stored
                }
                Step::Event(DetachedEvent::Checkpoint(checkpoint)) => {
                    self.checkpoint(&cx, &task, checkpoint).await
                }
                Step::Event(DetachedEvent::Done(outcome)) => {
                    let (status, outcome) = ended(outcome);
                    self.finish(&cx, &task, status, outcome).await
                }
                Step::Expired => {
                    let error = RpcError::internal("the task took longer than it is kept, and was ended");
                    let mut record = task.record();
                    record.fail(error, self.now());
                    task.set_record(record);
                    Saved::Stored
                }
            };
            if matches!(saved, Saved::Gone) {
                tracing::warn!(
                    "a task was removed, or another process has taken it over: its handler is ended here"
                );
                break;
            }
            if task.read(TaskRecord::is_ended) {
                break;
            }
            self.announce(&server, &task);
        }
        // The handler is dropped before anybody is notified of the end.
        drop(call);
        if task.read(TaskRecord::is_ended) {
            self.announce(&server, &task);
        }
        let id = task.read(|record| record.id.clone());
        // Another process may have run the task meanwhile, and this one may run it again.
        let mut running = self.running();
        if running.get(&id).is_some_and(|running| Arc::ptr_eq(running, &task)) {
            running.remove(&id);
        }
        drop(running);
        // Those who wait read what is stored.
        task.close();
    }

    /// Notifies the client of the status.
    fn announce(&self, server: &Server, task: &RunningTask) {
        if let Some((session, id)) = &task.session {
            let mut status = task.read(|record| wire::session_task(record, self.poll));
            status.task_id.clone_from(id);
            // The client polls as well.
            let _ = session.notify(method::NOTIFICATIONS_TASKS_STATUS, &status);
            return;
        }
        // Every connection is told of a notice, so there is none that nobody wants.
        if !task.is_watched.load(Ordering::Acquire) {
            return;
        }
        let (id, owner, params) = task.read(|record| {
            let id = (record.id.clone(), record.owner.clone());
            (id.0, id.1, serde_json::to_value(DetailedView::of(record, self.poll)).unwrap_or_default())
        });
        let notice = Notice::new(FILTER_MEMBER, method::tasks_extension::NOTIFICATIONS_TASKS, params)
            .about_task(id)
            .visible_to(move |caller| is_visible_to(&owner, caller));
        match &self.tell {
            Some(ClientNotifier(tell)) => tell(notice),
            None => server.tell(notice),
        }
    }
}

/// A step of a task.
enum Step {
    Request(TaskRequest),
    Event(DetachedEvent),
    /// The lifetime of the task is over.
    Expired,
}

async fn next_step(task: &RunningTask, call: &mut DetachedCall, mut expiry: Pin<&mut Sleep>) -> Step {
    let (mut requested, mut event) = (pin!(task.next_request()), pin!(call.next()));
    poll_fn(|cx| {
        if let Poll::Ready(request) = requested.as_mut().poll(cx) {
            return Poll::Ready(Step::Request(request));
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

pub(super) fn unreachable_store(error: &io::Error) -> RpcError {
    tracing::error!(%error, "the store of tasks cannot be reached");
    let message = "the tasks cannot be reached now: try again later";
    match error.kind() {
        // The key is another one, or the version is: nothing changes by waiting.
        io::ErrorKind::InvalidData => RpcError::internal(message),
        _ => RpcError::unavailable(message, RETRY_AFTER_MS),
    }
}

/// Returns the message for a record that is too large because of `what`.
pub(super) fn too_large(bytes: usize, what: &str) -> String {
    format!("the task takes {bytes} bytes with {what}, more than the caller may keep: send or ask for less")
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
