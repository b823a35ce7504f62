//! Requests and notifications of a connection whose server has layers: the order that the engine alone would keep.

use std::{collections::VecDeque, sync::Arc, task::Context};

use bytes::Bytes;
use pintle_proto::{
    Peer,
    server::{Arrival, Call, Inbound, Listen, Outcome, Performed, Ticket},
};
use pintle_types::{
    Frame, Message, Notification, RawObject, Request, RequestId, Response, RpcError, method,
    schema::CancelledParams,
};
use tokio::sync::oneshot;
use tracing::Span;

use super::{OVERHEAD, StreamConnection, TURN, changes::OpenSubscription};
use crate::{
    server::{
        OnNotification, Principal,
        call::{cx::Cx, sink::CallSink},
        clock::now,
        dispatch,
        snapshot::Snapshot,
    },
    telemetry::ReceivedRequests,
};

/// A notification that waits for its turn.
pub(super) enum PendingNotification {
    Handled(Arc<OnNotification>, Notification, Option<Arc<Peer>>),
    /// A notification that goes through the layers of the server.
    Layered(Cx),
}

impl PendingNotification {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Handled(_, notification, _) => {
                notification.params.as_ref().map_or(0, |params| params.as_str().len())
            }
            Self::Layered(cx) => cx.call().params().as_str().len(),
        }
    }
}

/// A request that later messages depend on is in the layers. The later messages wait.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    /// The request. `None` once it is over and messages still wait.
    ticket: Option<Ticket>,
    messages: VecDeque<(Frame, usize)>,
    bytes: usize,
}

impl Barrier {
    /// Returns the bytes of the messages that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn push(&mut self, frame: Frame, length: usize) {
        self.bytes += length;
        self.messages.push_back((frame, length));
    }

    fn pop(&mut self) -> Option<(Frame, usize)> {
        let popped = self.messages.pop_front();
        self.bytes -= popped.as_ref().map_or(0, |(_, length)| *length);
        popped
    }

    /// Removes a request that waits, because it was cancelled. It gets no response.
    fn cancel(&mut self, id: &RequestId) {
        let waits =
            |frame: &Frame| matches!(frame, Frame::One(Message::Request(request)) if request.id == *id);
        if let Some(at) = self.messages.iter().position(|(frame, _)| waits(frame))
            && let Some((_, length)) = self.messages.remove(at)
        {
            self.bytes -= length;
        }
    }
}

impl StreamConnection {
    /// Handles a message that waited.
    pub(super) fn accept(&mut self, frame: Frame, cx: &mut Context<'_>) {
        let snapshot = self.server.snapshot();
        let inbound = self.admit_frame(&snapshot, frame);
        self.decide(&snapshot, inbound, cx);
    }

    /// Passes a message to the engine. A hook may refuse the session that it opens.
    pub(super) fn admit_frame(&mut self, snapshot: &Arc<Snapshot>, frame: Frame) -> Inbound {
        let received = ReceivedRequests::of(&frame);
        if snapshot.layered.is_some() {
            self.show_cancellations(snapshot, &frame);
        }
        let mut arrival = Arrival::with_clock(now);
        if let Some(principal) = &self.principal {
            arrival = arrival.by(principal);
        }
        let inbound = self.engine.receive(&snapshot.service, frame, &arrival);
        let inbound = self.refuse_session(inbound);
        if !received.is_empty() {
            self.record_spans(received, &inbound);
        }
        inbound
    }

    /// Lists a new session and starts to collect changes for it, and runs the hooks for it. Returns the error of a hook that refuses it.
    pub(super) fn follow_session(&mut self) -> Option<RpcError> {
        if self.follows {
            return None;
        }
        let peer = self.engine.peer().cloned();
        peer.as_ref()?;
        if let Some(error) = self.visit.as_mut().and_then(|visit| visit.note_session(peer.as_ref()).err()) {
            self.engine.close_session();
            return Some(error);
        }
        if let Some(listener) = self.engine.listener() {
            self.inbox.follow(listener.watched());
            self.follows = true;
            self.register_session();
        }
        None
    }

    /// Replaces the response to `initialize` if a hook refuses the session.
    fn refuse_session(&mut self, inbound: Inbound) -> Inbound {
        // A handshake is answered at once.
        if self.follows && matches!(inbound, Inbound::Reply(_)) {
            self.update_session();
        }
        match (self.follow_session(), inbound) {
            (Some(error), Inbound::Reply(response)) => Inbound::Reply(Response::new(response.id, Err(error))),
            (_, inbound) => inbound,
        }
    }

    /// Sends the responses to a message of a connection that a hook refuses. Unread ones count for the backlog, as those to any
    /// message.
    pub(super) fn refuse(&mut self, responses: Vec<Response>, length: usize) {
        for response in responses {
            let line = Bytes::from(Message::Response(response).to_vec());
            if self.is_full() {
                self.backlog += line.len();
            }
            self.send(line);
        }
        if self.is_full() {
            self.backlog += length + OVERHEAD;
        }
    }

    /// Returns a message that does not have to wait. The others wait for the request that is in the layers.
    pub(super) fn pass_barrier(&mut self, frame: Frame, length: usize) -> Option<Frame> {
        let Some(barrier) = &mut self.barrier else { return Some(frame) };
        match &frame {
            // A handler waits for it.
            Frame::One(Message::Response(_)) => return Some(frame),
            Frame::One(Message::Notification(notification))
                if notification.method == method::NOTIFICATIONS_CANCELLED =>
            {
                let params = notification.params.as_ref().and_then(|params| params.decode().ok());
                if let Some(CancelledParams { request_id: Some(id), .. }) = params {
                    barrier.cancel(&id);
                }
                return Some(frame);
            }
            _ => {}
        }
        barrier.push(frame, length);
        None
    }

    /// Makes later messages wait for a call, if they depend on it.
    pub(super) fn raise_barrier(&mut self, call: &Call) {
        if call.precedes_others()
            && let Some(ticket) = call.ticket()
        {
            self.barrier.get_or_insert_default().ticket = Some(ticket);
        }
    }

    /// Ends the wait for a call that is over. Returns whether there was one.
    pub(super) fn lower_barrier(&mut self, ticket: Option<Ticket>) -> bool {
        let Some(barrier) = &mut self.barrier else { return false };
        let over = ticket.is_some() && barrier.ticket == ticket;
        if over {
            barrier.ticket = None;
        }
        over
    }

    /// Handles messages that waited. Returns whether there were any.
    pub(super) fn poll_barrier(&mut self, cx: &mut Context<'_>) -> bool {
        let mut taken = 0;
        while taken < TURN
            && let Some(barrier) = self.barrier.as_mut().filter(|barrier| barrier.ticket.is_none())
        {
            match barrier.pop() {
                Some((frame, _)) => self.accept(frame, cx),
                None => self.barrier = None,
            }
            taken += 1;
        }
        taken > 0
    }

    /// Carries out a request that the layers have passed on.
    pub(super) fn perform(
        &mut self,
        ticket: Option<Ticket>,
        params: &RawObject,
        reply: oneshot::Sender<Outcome>,
    ) {
        let Some(call) =
            ticket.and_then(|ticket| self.running.get(&ticket)).map(|running| running.call.clone())
        else {
            return;
        };
        let snapshot = self.server.snapshot();
        let outcome = match self.engine.perform(&snapshot.service, &call, params) {
            Ok(Performed::Outcome(outcome)) => outcome,
            Ok(Performed::Listen(listen)) => {
                // The call has a span.
                self.listen(listen, Span::none());
                Outcome::Complete(RawObject::empty().into())
            }
            Err(error) => Outcome::Failed(error),
        };
        if self.follows {
            self.update_session();
        }
        let outcome = self.follow_session().map_or(outcome, Outcome::Failed);
        // The layers may have ended meanwhile.
        let _ = reply.send(outcome);
    }

    /// Opens a subscription. The span of its request ends with it.
    pub(super) fn listen(&mut self, listen: Listen, span: Span) {
        let Listen { call, listener, acknowledgement, .. } = listen;
        self.send(acknowledgement.into());
        if let Some(ticket) = call.ticket() {
            self.inbox.follow(listener.watched());
            let subscriber = Principal::of(self.principal.as_deref(), self.context.extensions()).into();
            self.inbox.edit_owner(|owner| owner.subscriber = Some(Box::new(subscriber)));
            self.listens.insert(ticket, OpenSubscription { call, listener, _span: span });
        }
    }

    /// Returns whether a call that the layers have passed on is a subscription that stays open. One that a layer fails ends.
    pub(super) fn stays_open(&mut self, call: &Call, outcome: &Outcome) -> bool {
        let Some(ticket) = call.ticket().filter(|ticket| self.listens.contains_key(ticket)) else {
            return false;
        };
        if !matches!(outcome, Outcome::Failed(_)) {
            return true;
        }
        self.listens.remove(&ticket);
        false
    }

    /// Queues the cancellations among messages for the layers, which see them after the engine.
    pub(super) fn show_cancellations(&mut self, snapshot: &Arc<Snapshot>, frame: &Frame) {
        for notification in dispatch::cancellations(frame) {
            let call =
                self.engine.notification_call(&snapshot.service, notification, self.principal.as_deref());
            self.queue_layered(snapshot, call);
        }
    }

    /// Queues a notification for the layers.
    pub(super) fn queue_layered(&mut self, snapshot: &Arc<Snapshot>, call: Call) {
        let sink = CallSink::Shared(self.sink.of(&call));
        let cx = Cx::new(call, self.server.clone(), snapshot.clone(), self.context.clone(), sink);
        self.notices.push(PendingNotification::Layered(cx));
    }
}

/// Returns the responses to messages of a connection that a hook refuses, and whether it is closed after them. A probe of the
/// newest revision is not the end: a handshake of an older one may follow, and gets the error too.
pub(super) fn refusal(frame: &Frame, error: &RpcError) -> (Vec<Response>, bool) {
    let requests: Vec<&Request> = match frame {
        Frame::One(Message::Request(request)) => vec![request],
        Frame::One(_) => Vec::new(),
        Frame::Batch(items) => items
            .iter()
            .flatten()
            .filter_map(|message| match message {
                Message::Request(request) => Some(request),
                _ => None,
            })
            .collect(),
    };
    let is_last = requests.iter().any(|request| request.method != method::SERVER_DISCOVER);
    let response = |request: &Request| Response::new(Some(request.id.clone()), Err(error.clone()));
    (requests.into_iter().map(response).collect(), is_last)
}
