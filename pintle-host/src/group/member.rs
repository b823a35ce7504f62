use std::{
    collections::BTreeSet,
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use pintle::{Connection, Ended, Error, Result};
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::{Instant, sleep},
};

use super::{
    changes::{EventHub, GroupEvent},
    redial::{Redial, STEADY},
};
use crate::config::ToolFilter;

/// The maximum number of subscriptions to resources of a member.
const MAX_RESOURCES: usize = 256;

/// Opens a connection to a member.
pub(super) type Dial =
    Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<Connection>> + Send>> + Send + Sync>;

/// The state of a member of a group.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum MemberState {
    /// A connection is being opened.
    Opening,
    /// The connection is open.
    Open(Connection),
    /// There is no connection.
    Closed {
        /// The reason.
        reason: String,
        /// The moment since when.
        since: Instant,
        /// The delay after that until the next attempt; `None` if there will be none by itself.
        retry: Option<Duration>,
    },
}

impl fmt::Display for MemberState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opening => f.write_str("opening"),
            Self::Open(connection) => write!(f, "open, {}", connection.revision()),
            Self::Closed { reason, retry: Some(_), .. } => write!(f, "closed, to be opened again: {reason}"),
            Self::Closed { reason, retry: None, .. } => write!(f, "closed: {reason}"),
        }
    }
}

/// A server of a group. Dropping it ends its task.
pub(super) struct Member {
    pub(super) tools: ToolFilter,
    shared: Arc<MemberShared>,
    task: JoinHandle<()>,
}

struct MemberShared {
    name: String,
    state: watch::Sender<MemberState>,
    /// Somebody does not want to wait for the next attempt.
    retry: Notify,
    /// The resources to subscribe to on every connection.
    resources: Mutex<BTreeSet<String>>,
    hub: Arc<EventHub>,
}

impl Member {
    pub(super) fn connected(name: String, connection: Connection, hub: Arc<EventHub>) -> Self {
        let state = MemberState::Open(connection.clone());
        Self::start(name, state, hub, ToolFilter::default(), |shared| async move {
            shared.hub.push(&GroupEvent::Opened { member: shared.name.clone() });
            let ended = shared.observe(&connection).await;
            shared.close(ended.to_string(), None);
            // Nobody can open it again.
            std::future::pending::<()>().await;
        })
    }

    pub(super) fn dialled(
        name: String,
        dial: Dial,
        redial: Redial,
        hub: Arc<EventHub>,
        tools: ToolFilter,
    ) -> Self {
        Self::start(name, MemberState::Opening, hub, tools, |shared| async move {
            shared.keep_open(dial, redial).await;
        })
    }

    fn start<F: Future<Output = ()> + Send + 'static>(
        name: String,
        state: MemberState,
        hub: Arc<EventHub>,
        tools: ToolFilter,
        run: impl FnOnce(Arc<MemberShared>) -> F,
    ) -> Self {
        let state = watch::Sender::new(state);
        let shared =
            Arc::new(MemberShared { name, state, retry: Notify::new(), resources: Mutex::default(), hub });
        let running = run(shared.clone());
        let end = TaskEnd(shared.clone());
        let task = tokio::spawn(async move {
            let _end = end;
            running.await;
        });
        Self { tools, shared, task }
    }

    pub(super) fn state(&self) -> MemberState {
        self.shared.state.borrow().clone()
    }

    pub(super) fn redial(&self) {
        self.shared.retry.notify_one();
    }

    pub(super) fn subscribe(&self, uri: &str) -> Result<()> {
        let mut resources = self.shared.resources();
        if resources.len() >= MAX_RESOURCES && !resources.contains(uri) {
            let name = &self.shared.name;
            let reason = format!("`{name}` already has {MAX_RESOURCES} subscriptions: cancel one");
            return Err(Error::Misuse(reason));
        }
        resources.insert(uri.to_owned());
        Ok(())
    }

    pub(super) fn unsubscribe(&self, uri: &str) {
        self.shared.resources().remove(uri);
    }

    /// Waits while a connection is being opened.
    pub(super) fn connection(&self) -> impl Future<Output = Result<Connection>> + Send + use<> {
        let mut state = self.shared.state.subscribe();
        let name = self.shared.name.clone();
        async move {
            let opened = state.wait_for(|state| !matches!(state, MemberState::Opening)).await;
            match opened.as_deref() {
                Ok(MemberState::Open(connection)) => Ok(connection.clone()),
                Ok(MemberState::Closed { reason, since, retry }) => Err(down(&name, reason, *since, *retry)),
                // It was removed meanwhile.
                _ => Err(down(&name, "it was removed from the group", Instant::now(), None)),
            }
        }
    }
}

fn down(name: &str, reason: &str, since: Instant, retry: Option<Duration>) -> Error {
    let next = match retry.map(|retry| retry.saturating_sub(since.elapsed()).as_secs_f64().ceil()) {
        Some(seconds) => format!("the next attempt is in {seconds} s"),
        None => "it is not tried again by itself".to_owned(),
    };
    let seconds = since.elapsed().as_secs();
    let reason = format!("the server `{name}` has not been connected for {seconds} s: {reason}; {next}");
    Error::Closed(Ended::Failed { reason: reason.into() })
}

impl MemberShared {
    /// Opens the connection, and opens it again when it is lost.
    async fn keep_open(&self, dial: Dial, redial: Redial) {
        let mut failures = 0;
        loop {
            self.state.send_replace(MemberState::Opening);
            let reason = match dial().await {
                Ok(connection) => {
                    let opened = Instant::now();
                    self.state.send_replace(MemberState::Open(connection.clone()));
                    self.hub.push(&GroupEvent::Opened { member: self.name.clone() });
                    let ended = self.observe(&connection).await;
                    if opened.elapsed() >= STEADY {
                        failures = 0;
                    }
                    failures += 1;
                    // Who closed it wants it closed.
                    if ended == Ended::Stopped { Err(ended.to_string()) } else { Ok(ended.to_string()) }
                }
                // It would be so again.
                Err(error @ Error::Misuse(_)) => Err(error.to_string()),
                Err(error) => {
                    failures += 1;
                    Ok(error.to_string())
                }
            };
            let (reason, retry) = match reason {
                Ok(reason) => (reason, redial.delay(failures)),
                Err(reason) => (reason, None),
            };
            tracing::debug!(member = self.name, reason, ?retry, "a server of the group is not connected");
            self.close(reason, retry);
            match retry {
                Some(delay) => {
                    race(self.retry.notified(), sleep(delay)).await;
                }
                None => self.retry.notified().await,
            }
        }
    }

    fn resources(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.resources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subscribes again on a new connection.
    async fn subscribe_again(&self, connection: &Connection) {
        let resources: Vec<String> = self.resources().iter().cloned().collect();
        for uri in resources {
            if let Err(error) = connection.subscribe(uri.as_str()).await {
                let reason = format!("updates of `{uri}` are not sent: {error}");
                self.hub.push(&GroupEvent::Unobserved { member: self.name.clone(), reason });
            }
        }
    }

    /// Passes on changes of the server until the connection ends.
    async fn observe(&self, connection: &Connection) -> Ended {
        if let Either::First(ended) = race(connection.wait(), self.subscribe_again(connection)).await {
            return ended;
        }
        if let Either::First(ended) = race(connection.wait(), self.hub.wanted()).await {
            return ended;
        }
        let mut changes = match race(connection.wait(), connection.changes()).await {
            Either::First(ended) => return ended,
            Either::Second(Ok(changes)) => changes,
            Either::Second(Err(error)) => {
                let (member, reason) = (self.name.clone(), error.to_string());
                self.hub.push(&GroupEvent::Unobserved { member, reason });
                return connection.wait().await;
            }
        };
        while let Some(event) = changes.next().await {
            self.hub.push(&GroupEvent::Server { member: self.name.clone(), event });
        }
        connection.wait().await
    }

    fn close(&self, reason: String, retry: Option<Duration>) {
        self.state.send_replace(MemberState::Closed { reason: reason.clone(), since: Instant::now(), retry });
        self.hub.push(&GroupEvent::Closed { member: self.name.clone(), reason });
    }
}

/// A guard that marks a member as closed when its task ends, so that nobody waits for it.
struct TaskEnd(Arc<MemberShared>);

impl Drop for TaskEnd {
    fn drop(&mut self) {
        let reason = match *self.0.state.borrow() {
            MemberState::Closed { .. } => return,
            _ if std::thread::panicking() => "opening a connection to it panicked",
            _ => "it was removed from the group",
        };
        let (reason, since) = (reason.to_owned(), Instant::now());
        self.0.state.send_replace(MemberState::Closed { reason, since, retry: None });
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("state", &*self.shared.state.borrow()).finish_non_exhaustive()
    }
}

enum Either<A, B> {
    First(A),
    Second(B),
}

/// Whichever is ready first. If both are, it is the first.
async fn race<A, B>(first: impl Future<Output = A>, second: impl Future<Output = B>) -> Either<A, B> {
    let (mut first, mut second) = (pin!(first), pin!(second));
    poll_fn(|cx| match first.as_mut().poll(cx) {
        Poll::Ready(ready) => Poll::Ready(Either::First(ready)),
        Poll::Pending => second.as_mut().poll(cx).map(Either::Second),
    })
    .await
}
