//! The order of the messages of a connection: those that depend on a request that still runs wait for it.
//!
//! If a request that others depend on (`initialize`, `logging/setLevel`, subscriptions) does not end with its first poll, later messages
//! wait. Answers, cancellations, `ping` and `server/discover` do not. A `ping` does not wait for its own layers either: if its driver does
//! not end with its first poll, it is answered, and the driver goes on as that of a notification (`CallDriver::is_ping`).

use std::{collections::VecDeque, sync::Arc, task::Context};

use bytes::Bytes;
use pintle_proto::server::{Arrival, Call, CarriedOut, Inbound, Listen, Outcome, Ticket};
use pintle_types::{Frame, Message, Request, RequestId, Response, RpcError, method, schema::CancelledParams};

use super::{OVERHEAD, StreamConnection, TURN, changes::OpenSubscription};
use crate::{
    server::{
        Principal,
        clock::now,
        core::{cx::Cx, dispatch, driver::sink::CallSink, refused, snapshot::Snapshot, subscription},
    },
    telemetry::{ConnectionFacts, ReceivedRequests},
};

/// Requests that later messages depend on, and the later messages, which wait.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    /// The requests. Empty once they are over and messages still wait.
    tickets: Vec<Ticket>,
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

    /// Passes a message to the engine.
    pub(super) fn admit_frame(&mut self, snapshot: &Arc<Snapshot>, frame: Frame) -> Inbound {
        let received = ReceivedRequests::of(&frame);
        self.show_cancellations(snapshot, &frame);
        let mut arrival = Arrival::with_clock(now);
        if let Some(principal) = &self.principal {
            arrival = arrival.by(principal);
        }
        let inbound = self.engine.admit(&snapshot.service, frame, &arrival);
        let facts = || ConnectionFacts {
            revision: self.engine.peer().map(|peer| peer.revision),
            session: None,
            transport: self.context.transport(),
        };
        refused::record(received, facts, &inbound);
        inbound
    }

    /// Lists a new session and starts to collect changes for it, and runs the hooks for it. Returns the error of a hook that refuses it.
    fn follow_session(&mut self) -> Option<RpcError> {
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
            self.inbox.follow(listener);
            self.follows = true;
            self.register_session();
        }
        None
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

    /// Returns a message that does not have to wait. The others wait for the requests that they depend on.
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
            // Its answer depends on nothing.
            Frame::One(Message::Request(request))
                if matches!(&*request.method, method::PING | method::SERVER_DISCOVER) =>
            {
                return Some(frame);
            }
            _ => {}
        }
        barrier.push(frame, length);
        None
    }

    /// Makes later messages wait for a call that runs, if they depend on it.
    pub(super) fn raise_barrier(&mut self, call: &Call) {
        if call.precedes_others() {
            self.barrier.get_or_insert_default().tickets.extend(call.ticket());
        }
    }

    /// Ends the wait for a call that is over.
    pub(super) fn lower_barrier(&mut self, ticket: Option<Ticket>) {
        if let Some(barrier) = &mut self.barrier {
            barrier.tickets.retain(|waited| Some(*waited) != ticket);
        }
    }

    /// Handles messages that waited. Returns whether there were any.
    pub(super) fn poll_barrier(&mut self, cx: &mut Context<'_>) -> bool {
        let mut taken = 0;
        while taken < TURN
            && let Some(barrier) = self.barrier.as_mut().filter(|barrier| barrier.tickets.is_empty())
        {
            match barrier.pop() {
                Some((frame, _)) => self.accept(frame, cx),
                None => self.barrier = None,
            }
            taken += 1;
        }
        taken > 0
    }

    /// Carries out what a call that is over has prepared. A hook may refuse the session that it opens.
    pub(super) fn carry_out(
        &mut self,
        snapshot: &Arc<Snapshot>,
        call: &Call,
        outcome: Outcome,
    ) -> CarriedOut {
        if !call.is_own() {
            return CarriedOut::Outcome(outcome);
        }
        let Self { server, context, sink, engine, .. } = self;
        let cx = || {
            let sink = CallSink::Shared(sink.of(call));
            Cx::new(call.clone(), server.clone(), snapshot.clone(), context.clone(), sink)
        };
        match subscription::carry_out(engine, snapshot, call, outcome, cx) {
            CarriedOut::Outcome(outcome) => {
                if self.follows {
                    self.update_session();
                }
                CarriedOut::Outcome(self.follow_session().map_or(outcome, Outcome::Failed))
            }
            listen @ CarriedOut::Listen(_) => listen,
        }
    }

    /// Opens a subscription.
    pub(super) fn listen(&mut self, listen: Listen) {
        let Listen { call, listener, acknowledgement, .. } = listen;
        self.send(acknowledgement.into());
        if let Some(ticket) = call.ticket() {
            self.inbox.follow(&listener);
            let subscriber = Principal::of(self.principal.as_deref(), self.context.extensions()).into();
            self.inbox.edit_owner(|owner| owner.subscriber = Some(Box::new(subscriber)));
            self.listens.insert(ticket, OpenSubscription { call, listener });
        }
    }

    /// Queues the cancellations among messages for the layers, which see them after the engine.
    fn show_cancellations(&mut self, snapshot: &Arc<Snapshot>, frame: &Frame) {
        for notification in dispatch::cancellations(&self.server, snapshot, frame) {
            let call =
                self.engine.notification_call(&snapshot.service, notification, self.principal.as_deref());
            self.queue_notification(snapshot, call);
        }
    }

    /// Queues a notification, if a layer or a handler wants it.
    pub(super) fn queue_notification(&mut self, snapshot: &Arc<Snapshot>, call: Call) {
        if dispatch::wants(&self.server, snapshot, call.method()) {
            let sink = CallSink::Shared(self.sink.of(&call));
            let cx = Cx::new(call, self.server.clone(), snapshot.clone(), self.context.clone(), sink);
            self.notices.push(cx);
        }
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
