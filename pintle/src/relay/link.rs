use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pintle_types::{
    Notification, RpcError,
    schema::{ClientCapabilities, InputRequest, LoggingLevel},
};
use serde_json::json;
use tokio::{
    runtime::Handle,
    sync::{mpsc, watch},
    task::AbortHandle,
    time::{sleep, timeout},
};

use super::{
    catalogue::LinkCatalogue,
    limits::{LinkLimits, LinkUsage, LinkUse},
    log_levels::{LevelGuard, LogLevels},
    meta::without_meta,
    upstream_call::{OpenQuestion, sending_to},
};
use crate::{
    Client, Connection, Result,
    client::{Event, RawHandler, RawQuestion},
    lock::lock,
    question_key,
    server::SessionHandle,
};

/// How long a call waits for the server to read the cancellation of another one.
const MAX_SETTLE_WAIT: Duration = Duration::from_secs(10);

/// A connection to the server behind a relay.
#[derive(Debug)]
pub(super) struct RelayLink {
    pub(super) connection: Connection,
    log_levels: Arc<LogLevels>,
    calls: Arc<LinkCalls>,
    pub(super) catalogue: LinkCatalogue,
    /// The task that forwards changes. It keeps the connection open.
    forwarding: Mutex<Option<AbortHandle>>,
    usage: Arc<LinkUsage>,
    /// The task that closes the connection in time.
    limiting: Mutex<Option<AbortHandle>>,
}

impl RelayLink {
    /// Creates a link over a connection that others have opened.
    pub(super) fn new(connection: Connection) -> Self {
        Self::over(connection, Arc::default())
    }

    /// Opens a connection on behalf of a client with these capabilities.
    pub(super) async fn open(
        connector: &OpenConnection,
        client: Client,
        capabilities: ClientCapabilities,
        session: Option<SessionHandle>,
    ) -> Result<Self> {
        let calls = Arc::<LinkCalls>::default();
        let client = client.forwarding(with_question_keys(capabilities), calls.clone().handler(session));
        let connection = connector(client).await?;
        Ok(Self::over(connection, calls))
    }

    fn over(connection: Connection, calls: Arc<LinkCalls>) -> Self {
        let (log_levels, forwarding, limiting) = (Arc::default(), Mutex::default(), Mutex::default());
        let (catalogue, usage) = (LinkCatalogue::default(), LinkUsage::new());
        Self { connection, log_levels, calls, catalogue, forwarding, usage, limiting }
    }

    /// Forwards changes of the server to a session, until this is dropped.
    pub(super) fn forward_changes(self: &Arc<Self>, session: SessionHandle) {
        let (connection, link) = (self.connection.clone(), Arc::downgrade(self));
        let task = tokio::spawn(async move {
            let Ok(mut changes) = connection.changes().await else { return };
            while let Some(event) = changes.next().await {
                let Some(link) = link.upgrade() else { return };
                for change in link.catalogue.note(&event) {
                    session.publish(change);
                }
                if let Event::Notification(Notification { method, params, .. }) = event
                    && let Err(error) = session.notify(&method, &params.unwrap_or_default())
                {
                    tracing::debug!(%error, "a client did not get a notification of the server behind a relay");
                }
            }
        });
        *lock(&self.forwarding) = Some(task.abort_handle());
    }

    /// Counts a use of the connection, until the value is dropped.
    pub(super) fn begin_use(&self) -> LinkUse {
        self.usage.begin()
    }

    /// Has the connection closed as the limits say. The first ones count.
    pub(super) fn limit(self: &Arc<Self>, limits: LinkLimits) {
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
    pub(super) fn is_closed(&self) -> bool {
        self.connection.is_closed() || self.is_over()
    }

    /// Whether the connection is being closed because of its limits.
    pub(super) fn is_over(&self) -> bool {
        self.usage.is_over()
    }

    /// Has the server of a session send log messages of this level, for a call. Lower levels that others want are kept.
    pub(super) async fn want_logs(&self, level: Option<LoggingLevel>) -> Option<LevelGuard> {
        let level = level?;
        if self.connection.revision().is_stateless() || self.connection.capabilities().logging.is_none() {
            return None;
        }
        let (guard, changed) = self.log_levels.enter(level);
        if let Some(level) = changed
            && let Err(error) = self.connection.set_log_level(level).await
        {
            tracing::debug!(%error, "the server behind a relay did not set the log level");
        }
        Some(guard)
    }

    /// Records that a call was cancelled. Over a pipe, the server may ask something for it until it has read the cancellation:
    /// calls wait for that. The connection is used for it in the background.
    pub(super) fn cancelled(self: &Arc<Self>) {
        if self.connection.has_streams() || self.connection.revision().is_stateless() || self.is_closed() {
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
    pub(super) async fn settle(&self) {
        let mut unread = self.calls.unread_cancellations.subscribe();
        let settled = unread.wait_for(|count| *count == 0);
        if *self.calls.unread_cancellations.borrow() > 0 {
            let _ = timeout(MAX_SETTLE_WAIT, settled).await;
        }
    }

    /// Enters a call, to which questions go that cannot be attributed otherwise.
    pub(super) fn enter(&self, questions: mpsc::Sender<OpenQuestion>) -> EnteredCall {
        let id = self.calls.last.fetch_add(1, Ordering::Relaxed);
        lock(&self.calls.senders).push((id, questions));
        EnteredCall { id, calls: self.calls.clone() }
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

/// Opens a connection of a client to the server behind.
pub(super) type OpenConnection =
    dyn Fn(Client) -> std::pin::Pin<Box<dyn Future<Output = Result<Connection>> + Send>> + Send + Sync;

/// The calls that are open on a link.
#[derive(Debug, Default)]
struct LinkCalls {
    last: AtomicU64,
    senders: Mutex<Vec<(u64, mpsc::Sender<OpenQuestion>)>>,
    /// The number of cancellations that the server may not have read.
    unread_cancellations: watch::Sender<usize>,
}

impl LinkCalls {
    /// Returns the handler of questions that cannot be attributed to a call: they go to the newest one, or else to the session.
    fn handler(self: Arc<Self>, session: Option<SessionHandle>) -> RawHandler {
        Arc::new(move |question| {
            let newest = lock(&self.senders).last().map(|(_, sender)| sender.clone());
            let session = session.clone();
            let may_be_late = *self.unread_cancellations.borrow() > 0;
            Box::pin(async move {
                match (newest, session) {
                    // Whose it is cannot be known.
                    (Some(_), None) | (None, _) if may_be_late => {
                        Err(RpcError::internal("the call was cancelled"))
                    }
                    (Some(newest), _) => sending_to(newest)(question).await,
                    (None, Some(session)) => ask_session(&session, question).await,
                    (None, None) => Err(RpcError::method_not_found(&question.method)),
                }
            })
        })
    }
}

/// Asks the client of a session a question that belongs to no call.
async fn ask_session(
    session: &SessionHandle,
    question: RawQuestion,
) -> Result<pintle_types::RawObject, RpcError> {
    let RawQuestion { method, params, .. } = question;
    let request = InputRequest::new(method, &without_meta(params, &[question_key::META]));
    let request = request.map_err(|error| RpcError::internal(error.to_string()))?;
    session.forward_request(request).await.map_err(|error| RpcError::internal(error.to_string()))
}

/// A call that is open on a link, until this is dropped.
#[derive(Debug)]
pub(super) struct EnteredCall {
    id: u64,
    calls: Arc<LinkCalls>,
}

impl Drop for EnteredCall {
    fn drop(&mut self) {
        lock(&self.calls.senders).retain(|(id, _)| *id != self.id);
    }
}

/// Declares that keys of questions are wanted. They become the keys that clients without a session see.
fn with_question_keys(mut capabilities: ClientCapabilities) -> ClientCapabilities {
    capabilities.extensions.get_or_insert_default().insert(question_key::EXTENSION.to_owned(), json!({}));
    capabilities
}
