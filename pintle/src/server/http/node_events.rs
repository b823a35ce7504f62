//! The handling of messages and changes of the other processes of a fleet.

use std::sync::{Arc, PoisonError, Weak, atomic::Ordering};

use bytes::Bytes;
use pintle_proto::server::{Change, Inbound};
use pintle_types::{Frame, Message, Notification, RawObject, RequestId, method, schema::CancelledParams};
use tokio::time::sleep;

use super::{
    choice::Choice,
    node_link::RETRY,
    session::{
        Session,
        id::SessionId,
        nodes::{
            NodeEvent, NodeId,
            message::{MessageBody, NodeMessage, PublishedChanges, decode},
        },
        push_queue::RemoteOutcome,
        question_ids::QuestionIds,
    },
    shared::HttpShared,
};
use crate::Ended;

impl HttpShared {
    pub(super) async fn handle_node_event(self: &Arc<Self>, received: NodeEvent) {
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
            NodeEvent::MissedChanges => {
                tracing::warn!("changes of other processes were lost: all clients are notified of changes");
                self.change_hub.publish_all();
            }
            NodeEvent::Gone(node) => {
                tracing::warn!(%node, "a process is gone: all clients are notified of changes");
                // It may have had changes that it had not published.
                self.change_hub.publish_all();
                self.forget_node(node);
            }
            NodeEvent::Gap => {
                tracing::warn!("messages of other processes were lost: all clients are notified of changes");
                self.link.gaps.fetch_add(1, Ordering::AcqRel);
                self.change_hub.publish_all();
                self.lose_answers();
                let shared = Arc::downgrade(self);
                drop(crate::runtime::spawn(rejoin_all(shared)));
            }
        }
    }

    /// Notes that another process is gone.
    fn forget_node(&self, node: NodeId) {
        for session in self.sessions.in_use() {
            session.forget_remote_get_stream(node);
        }
        let followed = self.link.followed.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in followed.values().filter(|stream| stream.owner == Some(node)) {
            stream.abandoned.store(true, Ordering::Relaxed);
            stream.advanced.notify_one();
        }
    }

    /// Tells the other processes of the GET streams of this one, and asks for theirs.
    fn announce_get_streams(self: &Arc<Self>) {
        for session in self.sessions.in_use() {
            let was_remote = session.doubt_remote_get_stream();
            if let Some(order) = session.own_get_order() {
                self.notify_others(session.id, MessageBody::Listen { stream: None, order });
            }
            if was_remote {
                self.notify_others(session.id, MessageBody::Joined);
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
            if let Some(channel) = &channel {
                channel.follow(node);
            }
            let shared = self.clone();
            drop(crate::runtime::spawn(async move {
                if let Some(channel) = channel {
                    // The reader would wait for an event that is not in the log.
                    channel.forget_if_lost().await;
                }
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
                drop(crate::runtime::spawn(async move { shared.leave_others(id).await }));
            }
            MessageBody::Record => {
                let settings = self.settings();
                drop(crate::runtime::spawn(async move {
                    if let Some(store) = &settings.store
                        && let Ok(Some(stored)) = store.get(&id.to_string(), settings.idle_session).await
                    {
                        session.adopt(&stored);
                    }
                }));
            }
            MessageBody::Listen { stream, order } => {
                let Some(own) = self.settings().nodes.as_ref().map(|nodes| nodes.id()) else { return };
                match session.set_remote_get_stream(own, node, order, stream) {
                    RemoteOutcome::Newest(mut queue) => {
                        std::iter::from_fn(|| queue.pop()).for_each(|line| session.push(line))
                    }
                    RemoteOutcome::Older(order) => self.tell_of_get_stream(node, id, order),
                    RemoteOutcome::Ignored => {}
                }
            }
            MessageBody::Unlisten { order } => session.close_remote_get_stream(node, order),
            MessageBody::Joined => {
                if let Some(order) = session.own_get_order() {
                    self.tell_of_get_stream(node, id, order);
                }
            }
            MessageBody::Push { line } => session.push_here(line.into()),
            _ => {}
        }
    }

    /// Tells another process of the newest GET stream of this one.
    fn tell_of_get_stream(self: &Arc<Self>, node: NodeId, session: SessionId, order: u64) {
        let shared = self.clone();
        drop(crate::runtime::spawn(async move {
            let _ = shared.send_to_node(node, session, MessageBody::Listen { stream: None, order }).await;
        }));
    }
}

/// Tells the others which sessions this process uses, until that works.
async fn rejoin_all(shared: Weak<HttpShared>) {
    while let Some(shared) = shared.upgrade() {
        let Some(store) = shared.settings().store.clone() else { return };
        match shared.keep_written(&store).await {
            Ok(()) => return shared.announce_get_streams(),
            Err(error) => {
                tracing::warn!(%error, "the sessions of this process could not be joined: it is tried again")
            }
        }
        drop((store, shared));
        sleep(RETRY).await;
    }
}

impl Session {
    /// Handles a message that the client has sent to another process.
    fn deliver(&self, message: &[u8]) {
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

/// A message of a client for a call of another process.
pub(super) struct ForwardedMessage {
    /// The process that asked, and the id of its question. A cancellation is for all that have the session.
    pub(super) question: Option<(NodeId, Box<str>)>,
    pub(super) message: Bytes,
}

/// The longest id of a request whose cancellation is forwarded.
const MAX_ID: usize = 1024;

impl ForwardedMessage {
    /// Returns the message, if it is an answer to a question of another process, or a cancellation.
    fn of(message: &Message, ids: Option<&QuestionIds>, own: NodeId) -> Option<Self> {
        match message {
            Message::Response(response) => {
                let Some(RequestId::String(id)) = &response.id else { return None };
                let node = ids?.asker(id).filter(|node| *node != own)?;
                Some(Self { question: Some((node, (&**id).into())), message: message.to_vec().into() })
            }
            Message::Notification(notification) if notification.method == method::NOTIFICATIONS_CANCELLED => {
                let params = notification.params.as_ref()?.decode::<CancelledParams>().ok()?;
                let id = params.request_id.filter(|id| id.to_string().len() <= MAX_ID)?;
                // Without the reason, which may be long and which nobody reads there.
                let params = RawObject::from_serialize(&serde_json::json!({ "requestId": id })).ok();
                let cancelled = Notification::new(notification.method.clone(), params);
                Some(Self { question: None, message: Message::Notification(cancelled).to_vec().into() })
            }
            _ => None,
        }
    }
}

impl HttpShared {
    /// Returns the messages that are for calls of other processes, if there are any.
    pub(super) fn forwardable(&self, session: &Session, frame: &Frame) -> Vec<ForwardedMessage> {
        let Some(own) = self.settings().nodes.as_ref().map(|nodes| nodes.id()) else { return Vec::new() };
        let forwarded = |message| ForwardedMessage::of(message, session.question_ids(), own);
        match frame {
            Frame::One(message) => forwarded(message).into_iter().collect(),
            Frame::Batch(items) => items.iter().flatten().filter_map(forwarded).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_goes_to_the_process_that_asked_and_no_other_answer_goes_anywhere() {
        let (own, other) = (NodeId::new(1), NodeId::new(2));
        let ids = QuestionIds::random().unwrap();
        let of = |text: String| {
            let Ok(Frame::One(message)) = Frame::parse(text.as_bytes(), 1) else { panic!("{text}") };
            ForwardedMessage::of(&message, Some(&ids), own)
        };
        let answer = |id: String| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"x":"long"}}}}"#);
        let id = ids.names(other).id(7);
        let forwarded = of(answer(format!("\"{id}\""))).unwrap();
        assert_eq!(forwarded.question, Some((other, (&*id).into())));
        assert!(forwarded.message.ends_with(b"}"));
        for id in [
            "7".to_owned(),
            "\"7\"".into(),
            format!("\"{}\"", ids.names(own).id(7)),
            format!("\"{other}-8\""),
        ] {
            assert!(of(answer(id.clone())).is_none(), "{id}");
        }
        let cancel = |id: &str| {
            let reason = "y".repeat(1 << 20);
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"{reason}"}}}}"#
            )
        };
        let forwarded = of(cancel("9")).unwrap();
        assert!(forwarded.question.is_none() && forwarded.message.len() < 100, "without the reason");
        assert!(of(cancel(&format!("\"{}\"", "z".repeat(5000)))).is_none());
    }
}
