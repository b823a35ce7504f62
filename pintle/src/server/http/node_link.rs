//! The connection of a service to the other processes of its fleet.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use pintle_proto::server::Change;
use tokio::{
    runtime::Handle,
    sync::Notify,
    task::AbortHandle,
    time::{sleep, timeout},
};

use super::{
    choice::Choice,
    node_events::ForwardedMessage,
    session::{
        Session,
        id::SessionId,
        nodes::{
            NodeId, Nodes,
            message::{MessageBody, NodeMessage, PublishedChanges, encode},
        },
    },
    shared::HttpShared,
};
use crate::server::changes::{Audience, ChangeLink, notice::Notice};

/// The state of a service in its fleet. It is empty without one.
#[derive(Default)]
pub(super) struct NodeLink {
    tasks: OnceLock<NodeTasks>,
    changes: Arc<UnpublishedChanges>,
    /// The streams of other processes that are read here.
    pub(super) followed: Mutex<HashMap<(SessionId, u64), Arc<FollowedStream>>>,
    /// How often messages of the others may have been lost.
    pub(super) gaps: AtomicU64,
}

/// The tasks that receive messages and publish changes, aborted on drop.
struct NodeTasks([AbortHandle; 2]);

impl Drop for NodeTasks {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

/// The changes that other processes have not been notified of, merged.
#[derive(Default)]
struct UnpublishedChanges {
    pending: Mutex<PublishedChanges>,
    added: Notify,
    /// Whether some are being published.
    publishing: AtomicBool,
    published: Notify,
}

/// The number of resources, and the bytes of their URIs, that are published one by one.
const MAX_UPDATES: usize = 1024;
const MAX_BYTES: usize = 64 << 10;

/// The time that a process takes to leave its fleet.
const LEAVE: Duration = Duration::from_secs(2);

/// How often a message that has to arrive is sent if it fails.
const ATTEMPTS: usize = 30;

/// The time after which a connection to the other processes that failed is tried again.
pub(super) const RETRY: Duration = Duration::from_secs(1);

impl UnpublishedChanges {
    fn add(&self, server: &str, change: &Change) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.server != server {
            server.clone_into(&mut pending.server);
        }
        match change {
            Change::Tools => pending.tools = true,
            Change::Prompts => pending.prompts = true,
            Change::Resources => pending.resources = true,
            Change::Resource(uri)
                if !pending.all && !pending.updated.iter().any(|other| **other == **uri) =>
            {
                let bytes: usize = pending.updated.iter().map(String::len).sum();
                if pending.updated.len() >= MAX_UPDATES || bytes + uri.len() > MAX_BYTES {
                    pending.all = true;
                    pending.updated = Vec::new();
                } else {
                    pending.updated.push(uri.to_string());
                }
            }
            _ => {}
        }
        drop(pending);
        self.added.notify_one();
    }

    /// Publishes the changes, as long as there is somebody who makes them.
    async fn publish(self: Arc<Self>, nodes: Arc<dyn Nodes>) {
        loop {
            self.added.notified().await;
            let changes = {
                let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
                self.publishing.store(true, Ordering::Release);
                std::mem::take(&mut *pending)
            };
            let changes = encode(&changes);
            while let Err(error) = nodes.publish(changes.clone()).await {
                tracing::warn!(%error, "a change could not be published to the other processes: it is tried again");
                sleep(RETRY).await;
            }
            self.publishing.store(false, Ordering::Release);
            self.published.notify_waiters();
        }
    }

    /// Waits until all changes are published.
    async fn flush(&self) {
        loop {
            // Created before looking, or a notification in between would be missed.
            let published = self.published.notified();
            let is_empty = self.pending.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
            if is_empty && !self.publishing.load(Ordering::Acquire) {
                return;
            }
            published.await;
        }
    }
}

/// Publishes the changes of a server to other processes.
struct PublishLink {
    shared: Weak<HttpShared>,
    changes: Arc<UnpublishedChanges>,
    server: Box<str>,
}

impl ChangeLink for PublishLink {
    fn is_alive(&self) -> bool {
        self.shared.strong_count() > 0
    }

    fn publish(&self, change: &Change) {
        if let Some(shared) = self.shared.upgrade() {
            self.changes.add(&self.server, change);
            shared.connect();
        }
    }

    /// Listeners are known in this process only.
    fn publish_to(&self, _: &Change, _: &Audience<'_>) {}

    /// Notifications of extensions stay in this process.
    fn publish_notice(&self, _: &Arc<Notice>) {}

    fn refresh(&self) {}
}

/// A stream of another process that is read here.
#[derive(Default)]
pub(super) struct FollowedStream {
    pub(super) advanced: Notify,
    /// The process that writes it.
    pub(super) owner: Option<NodeId>,
    /// Whether the other process does not know the stream, or is gone.
    pub(super) abandoned: AtomicBool,
}

impl FollowedStream {
    /// Waits until the stream has more events. Returns `false` if it has none for a while.
    pub(super) async fn advance(&self, limit: Duration) -> bool {
        timeout(limit, self.advanced.notified()).await.is_ok()
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }
}

/// The registration of a [`FollowedStream`], removed on drop.
pub(super) struct Following {
    shared: Arc<HttpShared>,
    key: (SessionId, u64),
    pub(super) stream: Arc<FollowedStream>,
}

impl Drop for Following {
    fn drop(&mut self) {
        let mut followed = self.shared.link.followed.lock().unwrap_or_else(PoisonError::into_inner);
        // A newer reader may have replaced it.
        if followed.get(&self.key).is_some_and(|stream| Arc::ptr_eq(stream, &self.stream)) {
            followed.remove(&self.key);
        }
    }
}

impl HttpShared {
    /// Registers the reader of a stream of another process.
    pub(super) fn follow(
        self: &Arc<Self>,
        session: SessionId,
        stream: u64,
        owner: Option<NodeId>,
    ) -> Following {
        let followed = Arc::new(FollowedStream { owner, ..FollowedStream::default() });
        let key = (session, stream);
        let mut all = self.link.followed.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(key, followed.clone());
        drop(all);
        Following { shared: self.clone(), key, stream: followed }
    }

    /// Publishes the changes of the server to the other processes from now on.
    pub(super) fn link_changes(self: &Arc<Self>) {
        if let Choice::One(server) = &self.settings().choice {
            let name = server.snapshot().service.info().name.as_str().into();
            let (shared, changes) = (Arc::downgrade(self), self.link.changes.clone());
            server.changes().link(Arc::new(PublishLink { shared, changes, server: name }));
        }
    }

    /// Starts to receive the messages of other processes, unless it is done already.
    pub(super) fn connect(self: &Arc<Self>) {
        if self.link.tasks.get().is_some() {
            return;
        }
        let Some((nodes, runtime)) = self.settings().nodes.clone().zip(Handle::try_current().ok()) else {
            return;
        };
        self.link.tasks.get_or_init(|| {
            let receiver = crate::runtime::spawn_on(&runtime, receive(Arc::downgrade(self), nodes.clone()));
            let publisher = crate::runtime::spawn_on(&runtime, self.link.changes.clone().publish(nodes));
            NodeTasks([receiver.abort_handle(), publisher.abort_handle()])
        });
    }

    /// Leaves the fleet, once all changes are published. If that takes too long, the others find that this process is gone.
    pub(super) async fn leave_fleet(&self) {
        let Some(nodes) = self.settings().nodes.clone() else { return };
        let leaving = async {
            self.link.changes.flush().await;
            nodes.close().await
        };
        match timeout(LEAVE, leaving).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(%error, "the other processes could not be notified that this one stops")
            }
            Err(_) => {
                tracing::warn!("changes could not be published to the other processes before this one stops")
            }
        }
    }

    /// Sends a message to the other processes that have a session. Returns their number.
    pub(super) async fn send_to_others(&self, session: SessionId, body: MessageBody) -> io::Result<usize> {
        let Some(nodes) = self.settings().nodes.clone() else { return Ok(0) };
        let id = session.to_string();
        let message = NodeMessage { session: id.clone(), node: nodes.id().to_string(), body };
        nodes.send(&id, encode(&message)).await
    }

    /// Sends a message to the other processes that have a session, in a task.
    pub(super) fn notify_others(self: &Arc<Self>, session: SessionId, body: MessageBody) {
        if self.settings().nodes.is_none() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let shared = self.clone();
        crate::runtime::spawn_on(&runtime, async move {
            if let Err(error) = shared.send_to_others(session, body).await {
                tracing::warn!(%error, "a message did not reach the other processes of a session");
            }
        });
    }

    /// Sends a message to the other processes that have a session, in a task, until they have it. It may arrive twice.
    pub(super) fn notify_until_sent(self: &Arc<Self>, session: SessionId, body: MessageBody) {
        if self.settings().nodes.is_none() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let shared = Arc::downgrade(self);
        crate::runtime::spawn_on(&runtime, async move {
            for _ in 0..ATTEMPTS {
                let Some(shared) = shared.upgrade() else { return };
                match shared.send_to_others(session, body.clone()).await {
                    Ok(_) => return,
                    Err(error) => tracing::warn!(
                        %error,
                        "a message did not reach the other processes of a session: it is sent again"
                    ),
                }
                drop(shared);
                sleep(RETRY).await;
            }
        });
    }

    /// Sends a message to one process. Returns `false` if it is gone.
    pub(super) async fn send_to_node(
        &self,
        node: NodeId,
        session: SessionId,
        body: MessageBody,
    ) -> io::Result<bool> {
        let Some(nodes) = self.settings().nodes.clone() else { return Ok(false) };
        let message = NodeMessage { session: session.to_string(), node: nodes.id().to_string(), body };
        nodes.send_to(node, encode(&message)).await
    }

    /// Sends answers to the process that asked, and cancellations to all others that have the session. If it fails, the client may send all
    /// of them again.
    pub(super) async fn forward(&self, session: &Session, messages: Vec<ForwardedMessage>) -> io::Result<()> {
        let (ids, mut begun) = (session.question_ids(), Vec::new());
        for ForwardedMessage { question, message } in messages {
            if let Some((_, id)) = &question {
                if !ids.is_some_and(|ids| ids.forward(id)) {
                    continue;
                }
                begun.push(id.clone());
            }
            let body = MessageBody::Deliver { message: String::from_utf8_lossy(&message).into_owned() };
            let sent = match question {
                // If it is gone, so is the call that asked.
                Some((node, _)) => self.send_to_node(node, session.id, body).await.map(drop),
                None => self.send_to_others(session.id, body).await.map(drop),
            };
            if let Err(error) = sent {
                ids.into_iter().for_each(|ids| begun.iter().for_each(|id| ids.retry(id)));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Joins the other processes that have a session.
    ///
    /// If they may have found since the last time that this process was gone, the answers to what it has asked meanwhile may be lost.
    pub(super) async fn join_others(self: &Arc<Self>, session: &Session) -> io::Result<()> {
        let settings = self.settings();
        let Some(nodes) = &settings.nodes else { return Ok(()) };
        self.connect();
        let gaps = self.link.gaps.load(Ordering::Acquire);
        // Until it is done again, the session may be used for so long.
        let life = settings.idle_session.saturating_add(settings.idle_session / 4);
        nodes.join(&session.id.to_string(), life).await?;
        let was_gone = !session.is_joined_after(gaps);
        session.set_joined_after(gaps);
        if was_gone {
            session.lose_answers();
        }
        Ok(())
    }

    /// Joins the other processes that have a session again, if they may have found since that this process was gone, or will forget it
    /// before the session expires.
    pub(super) async fn rejoin_others(self: &Arc<Self>, session: &Session) -> io::Result<()> {
        let is_joined = session.is_joined_after(self.link.gaps.load(Ordering::Acquire));
        match is_joined && !session.is_joined_before(self.settings().idle_session / 4) {
            true => Ok(()),
            false => self.join_others(session).await,
        }
    }

    /// Leaves the other processes that have a session.
    pub(super) async fn leave_others(&self, session: SessionId) {
        if let Some(nodes) = &self.settings().nodes {
            // If it fails, it expires.
            let _ = nodes.leave(&session.to_string()).await;
        }
    }
}

async fn receive(shared: Weak<HttpShared>, nodes: Arc<dyn Nodes>) {
    loop {
        let received = nodes.receive().await;
        let Some(shared) = shared.upgrade() else { return };
        match received {
            Ok(received) => shared.handle_node_event(received).await,
            Err(error) => {
                tracing::warn!(%error, "messages of other processes cannot be received: it is tried again");
                drop(shared);
                sleep(RETRY).await;
            }
        }
    }
}
