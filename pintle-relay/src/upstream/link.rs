use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pintle::{
    Client, Connection, Error, Result,
    client::Event,
    forward::{PushDemand, question_keys},
    server::{ListKind, SessionHandle},
    types::{
        RpcError, method,
        schema::{ClientCapabilities, LoggingLevel, LoggingMessageParams},
    },
};
use serde_json::json;
use tokio::{
    runtime::Handle,
    sync::mpsc,
    task::AbortHandle,
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{backend_name, listeners::LinkListener};
use crate::{
    link_state::{
        calls::{EnteredCall, LinkCalls, OpenQuestion},
        catalogue::{ChangeMark, LinkCatalogue},
        limits::{LinkLimits, LinkUsage, LinkUse},
        log_levels::{LevelGuard, LogLevels},
        watched::{WatchRequest, WatchTask, WatchedResources},
    },
    lock::lock,
    tasks::{self, session},
};

/// How long a call waits for the server to read the cancellation of another one.
const MAX_SETTLE_WAIT: Duration = Duration::from_secs(10);
/// How long a new connection waits for the server to ask something before the first call.
const MAX_FIRST_WAIT: Duration = Duration::from_secs(2);

/// How long a client waits until the server behind has answered its subscription.
pub(crate) const MAX_SUBSCRIBE_WAIT: Duration = Duration::from_secs(5);

/// A connection to the server behind a relay.
#[derive(Debug)]
pub(crate) struct RelayLink {
    pub(crate) connection: Connection,
    /// Whether calls of tools can become tasks of the session.
    has_session_tasks: bool,
    /// Whether they can become tasks of the extension.
    has_task_extension: bool,
    log_levels: Arc<LogLevels>,
    calls: Arc<LinkCalls>,
    /// The lists that it has read, which may outlive it.
    pub(crate) catalogue: Arc<LinkCatalogue>,
    /// The task that forwards changes. It keeps the connection open.
    forwarding: Mutex<Option<AbortHandle>>,
    usage: Arc<LinkUsage>,
    /// The task that closes the connection in time.
    limiting: Mutex<Option<AbortHandle>>,
    /// The resources that are watched over it, if it is not the first one.
    pub(crate) watched: WatchedResources,
    /// A use, as long as resources are watched.
    watching: Mutex<Option<LinkUse>>,
    /// From when messages that belong to no call are wanted.
    pushes: PushDemand,
    /// Whether changes may have been missed because of it.
    is_deaf: AtomicBool,
}

impl RelayLink {
    /// Creates a link over a connection that others have opened.
    pub(crate) fn new(connection: Connection) -> Self {
        Self::over(connection, Arc::default(), PushDemand::always())
    }

    /// Opens a connection on behalf of a client with these capabilities. If it has a session without a stream for messages that belong to
    /// no call, there is none to the server either, until it is wanted.
    pub(crate) async fn open(
        connector: &OpenConnection,
        client: Client,
        capabilities: ClientCapabilities,
        session: Option<SessionHandle>,
    ) -> Result<Self> {
        let calls = Arc::<LinkCalls>::default();
        let pushes = session.as_ref().map_or_else(PushDemand::always, SessionHandle::push_demand);
        let handler = calls.clone().handler(session.clone());
        let mut client = client.forwarding(with_question_keys(capabilities), handler);
        if let Some(session) = session {
            client = client.forwarding_logs(move |message| forward_log(&session, message));
        }
        let connection = connector(client.defer_pushes(pushes.clone())).await?;
        Ok(Self::over(connection, calls, pushes))
    }

    fn over(connection: Connection, calls: Arc<LinkCalls>, pushes: PushDemand) -> Self {
        let (log_levels, forwarding, limiting) = (Arc::default(), Mutex::default(), Mutex::default());
        let (catalogue, usage) = (Arc::default(), LinkUsage::new());
        let (watched, watching) = (WatchedResources::default(), Mutex::default());
        let (has_session_tasks, has_task_extension) =
            (session::has_tasks(&connection), tasks::has_extension(&connection));
        Self {
            connection,
            has_session_tasks,
            has_task_extension,
            log_levels,
            calls,
            catalogue,
            forwarding,
            usage,
            limiting,
            watched,
            watching,
            is_deaf: AtomicBool::new(!pushes.is_wanted()),
            pushes,
        }
    }

    /// Forwards changes of the server to those that depend on this connection, until this is dropped. Returns when the server
    /// reports them.
    pub(crate) async fn forward_changes(self: &Arc<Self>, listener: LinkListener) {
        let link = Arc::downgrade(self);
        let Ok(mut changes) = self.connection.changes().await else { return };
        let task = tokio::spawn(async move {
            while let Some(event) = changes.next().await {
                let Some(link) = link.upgrade() else { return };
                listener.publish(link.catalogue.note(&event));
                if let Event::Notification(notification) = event {
                    listener.notify(notification);
                }
            }
        });
        *lock(&self.forwarding) = Some(task.abort_handle());
    }

    /// Has the server send messages that belong to no call. What is sent to it from now on arrives after that.
    pub(crate) fn want_pushes(&self) {
        self.pushes.want();
        if self.is_deaf.swap(false, Ordering::SeqCst) {
            // The lists were read when nobody would have heard of a change.
            self.catalogue.note(&Event::Reopened);
        }
    }

    /// Returns the mark of a list that is requested now.
    pub(crate) fn mark(&self, list: ListKind) -> ChangeMark {
        self.catalogue.mark(list, self.connection.change_period())
    }

    /// Whether a list is known and may be relied on: changes of it are wanted, so that one would be reported.
    pub(crate) fn is_fresh(&self, list: ListKind) -> bool {
        !self.is_deaf.load(Ordering::SeqCst) && self.catalogue.is_fresh(list, self.connection.change_period())
    }

    /// Whether a list was read a moment ago, when a change would have been reported, and none was.
    pub(crate) fn was_just_read(&self, list: ListKind) -> bool {
        !self.is_deaf.load(Ordering::SeqCst) && self.catalogue.was_just_read(list)
    }

    /// Watches a resource. [`WatchedResources::settled`] returns once the server has answered.
    pub(crate) fn watch(self: &Arc<Self>, uri: &str) {
        self.want_pushes();
        self.watched.insert(uri);
        self.send_subscriptions();
    }

    /// Watches a resource no longer.
    pub(crate) fn unwatch(self: &Arc<Self>, uri: &str) {
        self.watched.remove(uri);
        self.send_subscriptions();
    }

    /// Watches resources, and waits a bounded time until the server has answered. Returns those that it refused.
    pub(crate) async fn watch_all(self: &Arc<Self>, uris: &[impl AsRef<str>]) -> Vec<(String, RpcError)> {
        uris.iter().for_each(|uri| self.watch(uri.as_ref()));
        let late = Instant::now() + MAX_SUBSCRIBE_WAIT;
        let mut refused = Vec::new();
        for uri in uris.iter().map(AsRef::as_ref) {
            let settled = timeout_at(late, self.watched.settled(uri)).await;
            if let Err(error) = settled.unwrap_or_else(|_| Err(no_subscription(&self.connection))) {
                refused.push((uri.to_owned(), error));
            }
        }
        refused
    }

    /// Watches what was watched over the connection before this one. Returns it.
    pub(crate) fn watch_again(self: &Arc<Self>, before: &Self) -> Vec<Box<str>> {
        self.watched.inherit(&before.watched);
        if !self.watched.is_empty() {
            self.want_pushes();
        }
        self.send_subscriptions();
        self.watched.all()
    }

    /// Sends the subscriptions that are wanted to the server, one after the other.
    fn send_subscriptions(self: &Arc<Self>) {
        {
            let mut watching = lock(&self.watching);
            match self.watched.is_empty() {
                true => *watching = None,
                false => drop(watching.get_or_insert_with(|| self.usage.begin())),
            }
        }
        if self.watched.begin() == WatchTask::NotNeeded {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return self.watched.end() };
        let link = Arc::downgrade(self);
        runtime.spawn(async move {
            loop {
                let Some(link) = link.upgrade() else { return };
                let Some(request) = link.watched.next() else { return };
                let refused = send_subscription(&link.connection, &request).await;
                link.watched.answered(&request, refused);
            }
        });
    }

    /// Whether calls of tools can become tasks of the session.
    pub(crate) fn has_session_tasks(&self) -> bool {
        self.has_session_tasks
    }

    /// Whether calls of tools can become tasks of the extension.
    pub(crate) fn has_task_extension(&self) -> bool {
        self.has_task_extension
    }

    /// Whether a call or a subscription uses the connection.
    pub(crate) fn is_used(&self) -> bool {
        self.usage.is_used()
    }

    /// Whether a call or a subscription has used the connection.
    pub(crate) fn was_used(&self) -> bool {
        self.usage.was_used()
    }

    /// Closes the connection, if it is not used. Returns whether it does.
    pub(crate) fn retire(&self) -> bool {
        let is_retired = self.usage.retire();
        if is_retired {
            self.close();
        }
        is_retired
    }

    /// Closes the connection.
    pub(crate) fn close(&self) {
        if let Ok(runtime) = Handle::try_current() {
            let connection = self.connection.clone();
            runtime.spawn(async move { connection.close().await });
        }
    }

    /// Counts a use of the connection, until the value is dropped.
    pub(crate) fn begin_use(&self) -> LinkUse {
        self.usage.begin()
    }

    /// Has the connection closed as the limits say. The first ones count.
    pub(crate) fn limit(self: &Arc<Self>, limits: LinkLimits) {
        let mut limiting = lock(&self.limiting);
        if limits.is_unlimited() || limiting.is_some() {
            return;
        }
        let (connection, usage) = (self.connection.clone(), self.usage.clone());
        let task = tokio::spawn(async move {
            while let Some(wait) = limits.remaining(&usage) {
                sleep(wait).await;
            }
            connection.close().await;
        });
        *limiting = Some(task.abort_handle());
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.connection.is_closed() || self.is_over()
    }

    /// Whether the connection is being closed because of its limits.
    pub(crate) fn is_over(&self) -> bool {
        self.usage.is_over()
    }

    /// Has the server of a session send log messages of this level, for a call. Lower levels that others want are kept.
    pub(crate) async fn want_logs(&self, level: Option<LoggingLevel>) -> Option<LevelGuard> {
        let level = level?;
        if self.connection.facts().level_by_call || self.connection.capabilities().logging.is_none() {
            return None;
        }
        let (guard, changed) = self.log_levels.enter(level);
        if let Some(level) = changed
            && let Err(error) = Box::pin(self.connection.set_log_level(level)).await
        {
            tracing::debug!(%error, "the server behind a relay did not set the log level");
        }
        Some(guard)
    }

    /// Records that a call was cancelled. Over a pipe, the server may ask something for it until it has read the cancellation:
    /// calls wait for that. The connection is used for it in the background.
    pub(crate) fn cancelled(self: &Arc<Self>) {
        if self.connection.has_streams() || !self.connection.facts().asks_by_request || self.is_closed() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        self.calls.unread_cancellations.send_modify(|count| *count += 1);
        let link = self.clone();
        runtime.spawn(async move {
            // The first may be sent before the cancellation, the second may not.
            for _ in 0..2 {
                let _ = link.connection.ping().await;
            }
            link.calls.unread_cancellations.send_modify(|count| *count -= 1);
        });
    }

    /// Waits until the server has read all cancellations, or does not answer.
    pub(crate) async fn settle(&self) {
        if *self.calls.unread_cancellations.borrow() > 0 {
            let mut unread = self.calls.unread_cancellations.subscribe();
            let _ = timeout(MAX_SETTLE_WAIT, unread.wait_for(|count| *count == 0)).await;
        }
    }

    /// Waits a bounded time until the server has read that the connection is open, and has asked what it asks then.
    pub(crate) async fn receive_questions(&self) {
        ping_twice(&self.connection).await;
    }

    /// Returns a future that is ready when the questions that were asked before a call have their answers; `None` if there are none.
    pub(crate) fn answered_before(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let (mut open, connection) = (self.calls.outside.subscribe(), self.connection.clone());
        let is_open = *open.borrow() > 0;
        is_open.then_some(async move {
            let _ = open.wait_for(|count| *count == 0).await;
            // The answers are sent before the second, and read.
            ping_twice(&connection).await;
        })
    }

    /// Enters a call, to which questions go that cannot be attributed otherwise.
    pub(crate) fn enter(&self, questions: mpsc::Sender<Box<OpenQuestion>>) -> EnteredCall {
        LinkCalls::enter(&self.calls, questions)
    }
}

impl Drop for RelayLink {
    fn drop(&mut self) {
        for task in [&self.forwarding, &self.limiting] {
            if let Some(task) = lock(task).take() {
                task.abort();
            }
        }
    }
}

/// Waits a bounded time for two answers of the server. What it sends when it reads the first comes before its answer to the second.
async fn ping_twice(connection: &Connection) {
    let answered = async {
        for _ in 0..2 {
            if connection.ping().await.is_err() {
                return;
            }
        }
    };
    let _ = timeout(MAX_FIRST_WAIT, answered).await;
}

/// Sends a subscription, or the end of one. Returns the error if it was refused.
pub(crate) async fn send_subscription(connection: &Connection, request: &WatchRequest) -> Option<RpcError> {
    let answered = match request.subscribes {
        true => connection.subscribe(&*request.uri).await,
        false => connection.unsubscribe(&*request.uri).await,
    };
    let error = answered.err()?;
    tracing::debug!(%error, "the server behind a relay refused a subscription");
    Some(match error {
        Error::Rpc(error) => error,
        error => RpcError::internal(format!(
            "`{}`, the server behind this one, did not answer: {error}; subscribe again later",
            backend_name(connection)
        )),
    })
}

/// Returns the error of a subscription that was not answered.
pub(crate) fn no_subscription(connection: &Connection) -> RpcError {
    RpcError::internal(format!(
        "`{}`, the server behind this one, did not answer the subscription within {MAX_SUBSCRIBE_WAIT:?}; subscribe again later",
        backend_name(connection)
    ))
}

/// Opens a connection of a client to the server behind.
type OpenConnection = dyn Fn(Client) -> OpeningConnection + Send + Sync;

/// A connection that is being opened.
pub(crate) type OpeningConnection = std::pin::Pin<Box<dyn Future<Output = Result<Connection>> + Send>>;

/// Sends the client of a session a log message that belongs to no call, unless it has requested more important ones only.
fn forward_log(session: &SessionHandle, message: &LoggingMessageParams) {
    let wanted = session.peer().and_then(|peer| peer.log_level);
    if wanted.is_none_or(|wanted| message.level >= wanted)
        && let Err(error) = session.notify(method::NOTIFICATIONS_MESSAGE, message)
    {
        tracing::debug!(%error, "a client did not get a log message of the server behind a relay");
    }
}

/// Declares that keys of questions are wanted. They become the keys that clients without a session see.
fn with_question_keys(mut capabilities: ClientCapabilities) -> ClientCapabilities {
    capabilities.extensions.get_or_insert_default().insert(question_keys::EXTENSION.to_owned(), json!({}));
    capabilities
}
