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

use bytes::Bytes;
use pintle_proto::server::Change;
use pintle_types::{Frame, Message, method};
use tokio::{
    runtime::Handle,
    sync::Notify,
    task::AbortHandle,
    time::{sleep, timeout},
};

use super::{
    choice::Choice,
    session::{
        Session,
        id::SessionId,
        nodes::{
            NodeEvent, NodeId, Nodes,
            message::{MessageBody, NodeMessage, PublishedChanges, decode, encode},
        },
    },
    shared::HttpShared,
};
use crate::{
    Ended,
    server::changes::{Audience, ChangeLink, notice::Notice},
};

/// The state of a service in its fleet. It is empty without one.
#[derive(Default)]
pub(super) struct NodeLink {
    tasks: OnceLock<NodeTasks>,
    changes: Arc<UnpublishedChanges>,
    /// The streams of other processes that are read here.
    followed: Mutex<HashMap<(SessionId, u64), Arc<FollowedStream>>>,
    /// How often messages of the others may have been lost.
    gaps: AtomicU64,
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
}

/// The number of resources, and the bytes of their URIs, that are published one by one.
const MAX_UPDATES: usize = 1024;
const MAX_BYTES: usize = 64 << 10;

/// The time after which a connection to the other processes that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);

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
            let changes = std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
            let changes = encode(&changes);
            while let Err(error) = nodes.publish(changes.clone()).await {
                tracing::warn!(%error, "a change could not be published to the other processes: it is tried again");
                sleep(RETRY).await;
            }
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
    advanced: Notify,
    /// Whether the other process does not know the stream.
    abandoned: AtomicBool,
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
    pub(super) fn follow(self: &Arc<Self>, session: SessionId, stream: u64) -> Following {
        let (key, followed) = ((session, stream), Arc::<FollowedStream>::default());
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
            let receiver = runtime.spawn(receive(Arc::downgrade(self), nodes.clone()));
            let publisher = runtime.spawn(self.link.changes.clone().publish(nodes));
            NodeTasks([receiver.abort_handle(), publisher.abort_handle()])
        });
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
        runtime.spawn(async move {
            if let Err(error) = shared.send_to_others(session, body).await {
                tracing::warn!(%error, "a message did not reach the other processes of a session");
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

    /// Sends answers and cancellations that are not for a call of this process to the others.
    pub(super) async fn forward(&self, session: SessionId, messages: Vec<Bytes>) -> io::Result<()> {
        for message in messages {
            let message = String::from_utf8_lossy(&message).into_owned();
            self.send_to_others(session, MessageBody::Deliver { message }).await?;
        }
        Ok(())
    }

    /// Joins the other processes that have a session.
    pub(super) async fn join_others(self: &Arc<Self>, session: SessionId) -> io::Result<()> {
        let settings = self.settings();
        let Some(nodes) = &settings.nodes else { return Ok(()) };
        self.connect();
        nodes.join(&session.to_string(), settings.idle_session).await
    }

    /// Joins the other processes that have a session again, if they may have found since that this process was gone.
    pub(super) async fn rejoin_others(self: &Arc<Self>, session: &Session) -> io::Result<()> {
        let gaps = self.link.gaps.load(Ordering::Acquire);
        if !session.is_joined_after(gaps) {
            self.join_others(session.id).await?;
            session.set_joined_after(gaps);
        }
        Ok(())
    }

    /// Leaves the other processes that have a session.
    pub(super) async fn leave_others(&self, session: SessionId) {
        if let Some(nodes) = &self.settings().nodes {
            // If it fails, it expires.
            let _ = nodes.leave(&session.to_string()).await;
        }
    }

    async fn handle(self: &Arc<Self>, received: NodeEvent) {
        match received {
            NodeEvent::Message(bytes) => {
                let message: Option<NodeMessage> = decode(&bytes);
                if let Some((message, id)) =
                    message.and_then(|message| SessionId::parse(&message.session).map(|id| (message, id)))
                    && let Ok(node) = message.node.parse()
                {
                    self.handle_message(id, node, message.body);
                }
            }
            NodeEvent::Change(bytes) => {
                if let Some(changes) = decode(&bytes) {
                    self.handle_changes(&changes);
                }
            }
            NodeEvent::Gap => {
                tracing::warn!("messages of other processes were lost: all clients are notified of changes");
                self.link.gaps.fetch_add(1, Ordering::AcqRel);
                self.change_hub.publish_all();
                self.lose_answers();
                let shared = Arc::downgrade(self);
                drop(tokio::spawn(rejoin_all(shared)));
            }
        }
    }

    fn handle_changes(&self, changes: &PublishedChanges) {
        if let Choice::One(server) = &self.settings().choice
            && server.snapshot().service.info().name != changes.server
        {
            return;
        }
        let lists = [
            (changes.tools, Change::Tools),
            (changes.prompts, Change::Prompts),
            (changes.resources, Change::Resources),
        ];
        lists.iter().filter(|(changed, _)| *changed).for_each(|(_, change)| self.change_hub.publish(change));
        for uri in &changes.updated {
            self.change_hub.publish(&Change::Resource(uri.as_str().into()));
        }
        if changes.all {
            self.change_hub.publish_all();
        }
    }

    fn handle_message(self: &Arc<Self>, id: SessionId, node: NodeId, body: MessageBody) {
        if let MessageBody::Advance { stream, running } = body {
            let followed = self.link.followed.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(followed) = followed.get(&(id, stream)) {
                followed.abandoned.store(!running, Ordering::Relaxed);
                followed.advanced.notify_one();
            }
            return;
        }
        let session = self.sessions.find(id);
        if let MessageBody::Follow { stream } = body {
            let channel = session.and_then(|session| session.channel(stream));
            let running = channel.is_some();
            if let Some(channel) = channel {
                channel.follow(node);
            }
            let shared = self.clone();
            drop(tokio::spawn(async move {
                let _ = shared.send_to_node(node, id, MessageBody::Advance { stream, running }).await;
            }));
            return;
        }
        let Some(session) = session else { return };
        match body {
            MessageBody::Deliver { message } => session.deliver(message.as_bytes()),
            MessageBody::End => {
                self.sessions.remove(id);
                session.end(Ended::Stopped);
                let shared = self.clone();
                drop(tokio::spawn(async move { shared.leave_others(id).await }));
            }
            MessageBody::Record => {
                let settings = self.settings();
                drop(tokio::spawn(async move {
                    if let Some(store) = &settings.store
                        && let Ok(Some(stored)) = store.get(&id.to_string(), settings.idle_session).await
                    {
                        session.adopt(&stored);
                    }
                }));
            }
            MessageBody::Listen { stream } => {
                for line in session.set_remote_get_stream(node, stream) {
                    session.push(line);
                }
            }
            MessageBody::Unlisten => session.clear_remote_get_stream(node),
            MessageBody::Joined if session.has_own_get_stream() => {
                let shared = self.clone();
                drop(tokio::spawn(async move {
                    let _ = shared.send_to_node(node, id, MessageBody::Listen { stream: None }).await;
                }));
            }
            MessageBody::Push { line } => session.push_here(line.into()),
            _ => {}
        }
    }
}

/// Tells the others which sessions this process uses, until that works.
async fn rejoin_all(shared: Weak<HttpShared>) {
    while let Some(shared) = shared.upgrade() {
        let Some(store) = shared.settings().store.clone() else { return };
        match shared.keep_written(&*store).await {
            Ok(()) => return,
            Err(error) => {
                tracing::warn!(%error, "the sessions of this process could not be joined: it is tried again")
            }
        }
        drop((store, shared));
        sleep(RETRY).await;
    }
}

async fn receive(shared: Weak<HttpShared>, nodes: Arc<dyn Nodes>) {
    loop {
        let received = nodes.receive().await;
        let Some(shared) = shared.upgrade() else { return };
        match received {
            Ok(received) => shared.handle(received).await,
            Err(error) => {
                tracing::warn!(%error, "messages of other processes cannot be received: it is tried again");
                drop(shared);
                sleep(RETRY).await;
            }
        }
    }
}

impl Session {
    /// Handles a message that the client has sent to another process.
    fn deliver(&self, message: &[u8]) {
        use pintle_proto::server::Inbound;
        let Ok(frame @ Frame::One(Message::Response(_) | Message::Notification(_))) =
            Frame::parse(message, 1)
        else {
            return;
        };
        match self.receive(&self.server.snapshot().service, frame) {
            Inbound::Answer(answer) => self.answer(answer),
            Inbound::Cancel(ticket) => self.cancel(ticket),
            // The call has ended, or another process runs it.
            _ => {}
        }
    }
}

impl HttpShared {
    /// Returns the answers and cancellations among messages, if there are other processes: they may be for a call of theirs.
    pub(super) fn forwardable(&self, frame: &Frame) -> Vec<Bytes> {
        if self.settings().nodes.is_none() {
            return Vec::new();
        }
        let is_forwardable = |message: &&Message| match message {
            Message::Response(_) => true,
            Message::Notification(notification) => notification.method == method::NOTIFICATIONS_CANCELLED,
            Message::Request(_) => false,
        };
        match frame {
            Frame::One(message) => Some(message)
                .filter(is_forwardable)
                .map(|message| message.to_vec().into())
                .into_iter()
                .collect(),
            Frame::Batch(items) => {
                let messages = items.iter().filter_map(|item| item.as_ref().ok()).filter(is_forwardable);
                messages.map(|message| message.to_vec().into()).collect()
            }
        }
    }
}
