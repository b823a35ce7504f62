//! A connection on a byte stream. One task owns it and its engine.
//!
//! A `tools/call` in a session over stdio. Paths without a crate are in `pintle/src/server`.
//!
//! | | file | function | decides |
//! |--:|---|---|---|
//! | 1 | `pintle/src/transport/stream.rs` | `line` | where a message ends, and whether it is too long |
//! | 2 | `stream/mod.rs` | `poll_input`, `receive` | whether more is read while output waits; the envelope (`stream/reading.rs`) |
//! | 3 | `pintle-proto/src/server/mod.rs` | `Engine::admit` | the era, by `_meta` |
//! | 4 | `pintle-proto/src/server/session.rs`, `in_flight.rs` | `admit`, `enter` | whether the session is open, the method offered, the id free; params raised |
//! | 5 | `stream/mod.rs` | `decide`, `begin` | whether the call starts or is queued; it is polled once here |
//! | 6 | `core/driver/call_driver.rs` and below | | as over HTTP; rights are checked in dispatch only |
//! | 7 | `stream/mod.rs`, `pintle-proto/src/server/mod.rs` | `finish`, `Engine::finish` | the id is free again; no response if the call was cancelled or a batch waits; then `Call::finish` |
//! | 8 | `pintle/src/transport/stream.rs` | `send`, `poll_flush` | small messages leave in one write |
//!
//! The task receives messages, polls each call once, and spawns only those that have to wait; the responses to one read leave in one
//! write. Reading never stops for writing: a slow reader makes handlers wait, not the answer that one of them waits for. Above a limit of
//! unwritten bytes no events are taken from handlers.

mod answers;
mod changes;
mod ending;
mod keepalive;
mod notices;
mod order;
pub(crate) mod reading;
mod serve;
mod session;

use std::{
    collections::HashMap,
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use pintle_proto::{
    ledger::Owner,
    server::{Arrival, Call, CarriedOut, Engine, Inbound, Outcome, Ticket},
};
use pintle_types::{Frame, Message, RawObject, Response, RpcError};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
    time::Sleep,
};

use self::{
    answers::Answers,
    changes::OpenSubscription,
    keepalive::Keepalive,
    notices::Notices,
    order::Barrier,
    reading::parse,
    session::{SessionEnd, StreamSession},
};
use super::core::{
    dispatch,
    driver::{
        batch,
        call_driver::{CallDriver, CallStep},
        context::RequestContext,
        limit::WaitQueue,
        questions::OpenQuestions,
        sink::{CAPACITY, CallEvent, CallSink, SharedSink},
    },
    hooks::Visit,
    sessions::LiveSession,
    snapshot::Snapshot,
};
use crate::{
    Ended, Result,
    server::{
        Caller, Server,
        access::peer_address::AddressKey,
        changes::ChangeInbox,
        clock::{now, sealed_at},
        serving::Stop,
    },
    transport::{Incoming, Oversized, Skipped, Transport},
};

/// A connection over a byte stream, driven by one task: it reads, polls each call once, spawns the calls that have to wait, and
/// writes.
///
/// While too much output is unwritten, no events are taken from handlers and no calls start, so that a peer that does not read
/// waits instead of filling memory. Reading continues meanwhile, up to the size of a large message: a peer may have to finish
/// writing before it reads, and may be sending an answer or a cancellation that handlers wait for.
pub(crate) struct StreamConnection {
    transport: Box<dyn Transport>,
    engine: Engine,
    server: Server,
    principal: Option<Box<str>>,
    context: Arc<RequestContext>,
    sink: SharedSink,
    events: mpsc::Receiver<(Option<Ticket>, CallEvent)>,
    tasks: JoinSet<()>,
    running: HashMap<Ticket, RunningCall>,
    /// The call that is polled for the first time.
    starting: Option<Ticket>,
    /// Calls that the concurrency limit holds back.
    queue: WaitQueue<Call>,
    questions: OpenQuestions,
    /// Answers to questions of calls that wait for the concurrency limit again.
    answers: Answers,
    notices: Notices,
    /// Messages that wait for a request that still runs.
    barrier: Option<Box<Barrier>>,
    listens: HashMap<Ticket, OpenSubscription>,
    inbox: Arc<ChangeInbox>,
    /// The end of the session that its handles reach.
    live: SessionEnd,
    /// Whether `inbox` collects changes for the session.
    follows: bool,
    /// Whether a listener may have pending changes.
    changed: bool,
    /// Whether there may be notifications of extensions.
    noticed: bool,
    /// Bytes that were passed to the transport since it was last flushed.
    unwritten: usize,
    /// Bytes that were read while the output is full.
    backlog: usize,
    /// Whether the last write had to wait for the peer.
    stuck: bool,
    stop: Arc<Stop>,
    keepalive: Option<Keepalive>,
    /// Set when the connection closes: the reason, and the time that running calls have.
    closing: Option<(Ended, Pin<Box<Sleep>>)>,
    visit: Option<Visit>,
    /// The error of a hook that refuses the connection.
    refused: Option<Box<RpcError>>,
}

struct RunningCall {
    call: Call,
    task: AbortHandle,
}

/// The limit of unwritten output in bytes. Above it handlers wait.
const FULL: usize = 1 << 20;
/// The output in bytes that is flushed without waiting for more.
const GROUP: usize = 64 << 10;
/// The limit of bytes that are read while the output is full.
const BACKLOG: usize = 16 << 20;
/// The size that a message is counted with in the backlog besides its bytes: an error response to it.
const OVERHEAD: usize = 512;
/// The number of messages that are handled before other work of the connection, and of such rounds before other tasks run.
const TURN: usize = 64;
const TURNS: usize = 8;

impl StreamConnection {
    pub(crate) fn new(server: Server, transport: Box<dyn Transport>, stop: Arc<Stop>) -> Self {
        let inbox = server.changes().join();
        let live = StreamSession::new(server.clone(), inbox.clone(), stop.clone());
        let live: Arc<StreamSession> = Arc::new(live);
        let session: Arc<dyn LiveSession> = live.clone();
        let (sink, events) = SharedSink::new(Arc::downgrade(&session));
        Self {
            transport,
            engine: Engine::new(),
            principal: None,
            context: Arc::default(),
            sink,
            events,
            tasks: JoinSet::new(),
            running: HashMap::new(),
            starting: None,
            queue: WaitQueue::default(),
            questions: OpenQuestions::default(),
            answers: Answers::default(),
            notices: Notices::default(),
            barrier: None,
            listens: HashMap::new(),
            inbox,
            live: SessionEnd(live),
            follows: false,
            changed: false,
            noticed: false,
            unwritten: 0,
            backlog: 0,
            stuck: false,
            stop,
            keepalive: server.snapshot().settings.timeouts.keepalive.map(Keepalive::new),
            closing: None,
            visit: None,
            refused: None,
            server,
        }
    }

    /// Sets the caller at the other end.
    pub(crate) fn known(mut self, caller: Caller) -> Self {
        self.principal = caller.name().map(Into::into);
        caller.name().into_iter().for_each(|principal| self.live.0.set_principal(principal));
        self.context = Arc::new(RequestContext::new(caller.extensions.clone()));
        let address = self.context.address().map(|peer| AddressKey::of(peer.0.ip()));
        let owner = match &self.principal {
            Some(name) => Some(Owner::Principal(name.as_ref().into())),
            None => address.map(AddressKey::owner),
        };
        if let Some(owner) = owner {
            let account = self.server.snapshot().service.ledger().account(&owner);
            self.engine = std::mem::take(&mut self.engine).charged_to(account);
        }
        self.live.0.set_transport(self.context.transport());
        let visit = Visit::begin(self.server.clone(), caller, self.live.0.facts().number);
        self.refused = visit.refused().cloned().map(Box::new);
        self.visit = Some(visit);
        self
    }

    fn poll_all(&mut self, cx: &mut Context<'_>) -> Poll<Result<Ended>> {
        for turn in 1.. {
            let mut busy = self.poll_events(cx);
            busy |= self.poll_tasks(cx);
            busy |= self.poll_queue(cx);
            busy |= self.barrier.is_some() && self.poll_barrier(cx);
            self.poll_changes(cx);
            self.poll_handles();
            busy |= self.poll_input(cx)?;
            let last = turn == TURNS;
            if !busy || last || self.unwritten >= GROUP {
                match self.poll_flush(cx) {
                    Ok(relieved) => busy |= relieved,
                    // A write error is expected once the connection closes.
                    Err(error) => {
                        return Poll::Ready(
                            self.closing.as_ref().map_or(Err(error.into()), |(ended, _)| Ok(ended.clone())),
                        );
                    }
                }
            }
            if !busy {
                break;
            }
            if last {
                cx.waker().wake_by_ref();
                break;
            }
        }
        self.poll_stop(cx);
        if self.poll_keepalive(cx).is_ready() {
            return Poll::Ready(Ok(Ended::Dead));
        }
        self.poll_closing(cx)
    }

    fn is_full(&self) -> bool {
        self.unwritten >= FULL
    }

    /// Flushes the transport. Returns whether the output was full and is not any more.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        match self.transport.poll_flush(cx)? {
            Poll::Pending => {
                self.stuck = true;
                Ok(false)
            }
            Poll::Ready(()) => {
                // A peer that reads output that was stuck is alive. A write that succeeds at once proves nothing.
                if std::mem::take(&mut self.stuck)
                    && let Some(keepalive) = &mut self.keepalive
                {
                    keepalive.received();
                }
                let relieved = self.is_full();
                self.unwritten = 0;
                self.backlog = 0;
                Ok(relieved)
            }
        }
    }

    /// Receives the events of running calls. Returns whether there were any.
    fn poll_events(&mut self, cx: &mut Context<'_>) -> bool {
        let mut taken = 0;
        while taken < TURN && !self.is_full() {
            // `try_recv` first: `poll_recv` consumes the task budget of tokio, and would yield before the output is written.
            let Some((ticket, event)) = self.events.try_recv().ok().or_else(|| self.poll_next_event(cx))
            else {
                break;
            };
            self.handle(ticket, event);
            taken += 1;
        }
        if self.sink.take_abandoned() {
            let ids = self.questions.given_up();
            self.take_back(&ids);
        }
        taken > 0
    }

    fn poll_next_event(&mut self, cx: &mut Context<'_>) -> Option<(Option<Ticket>, CallEvent)> {
        match self.events.poll_recv(cx) {
            Poll::Ready(event) => event,
            Poll::Pending => None,
        }
    }

    fn handle(&mut self, ticket: Option<Ticket>, event: CallEvent) {
        // A task of a handler may outlive it, and its event may have waited for capacity since.
        let current =
            ticket.is_none_or(|ticket| self.starting == Some(ticket) || self.running.contains_key(&ticket));
        match event {
            CallEvent::Notification(line) if current => self.send(line),
            // Dropping `reply` ends the question of a call that is over.
            CallEvent::Ask(request, reply) if current && self.closing.is_none() && !reply.is_closed() => {
                self.ask(ticket, &request, reply);
            }
            CallEvent::Notification(_) | CallEvent::Ask(..) | CallEvent::AskAbandoned => {}
            // A byte stream cannot be resumed.
            #[cfg(feature = "http-server")]
            CallEvent::HangUp(_) => {}
            CallEvent::Done(call, outcome) => {
                if let Some(ticket) = call.ticket() {
                    self.running.remove(&ticket);
                }
                let snapshot = self.server.snapshot();
                self.finish(&snapshot, &call, outcome);
            }
        }
    }

    fn finish(&mut self, snapshot: &Arc<Snapshot>, call: &Call, outcome: Outcome) {
        self.lower_barrier(call.ticket());
        let outcome = match self.carry_out(snapshot, call, outcome) {
            CarriedOut::Outcome(outcome) => outcome,
            CarriedOut::Listen(listen) => return self.listen(listen),
        };
        let sealed_at = sealed_at(&outcome);
        let line = self.engine.finish(&snapshot.service, call, outcome, sealed_at);
        self.over(call);
        line.into_iter().for_each(|line| self.send(line.into()));
    }

    fn send(&mut self, line: Bytes) {
        self.unwritten += line.len();
        self.transport.send(line);
    }

    /// Joins the tasks that have ended, and starts the next notification handler. Returns whether there was one.
    fn poll_tasks(&mut self, cx: &mut Context<'_>) -> bool {
        while let Poll::Ready(Some(joined)) = self.tasks.poll_join_next_with_id(cx) {
            let id = match joined {
                Ok((id, ())) => id,
                Err(error) => {
                    if error.is_panic() {
                        tracing::error!(%error, "a notification's handler or a dropped call panicked");
                    }
                    error.id()
                }
            };
            if self.notices.handling == Some(id) {
                self.notices.handling = None;
            }
        }
        if self.notices.handling.is_some() {
            return false;
        }
        let Some(notification) = self.notices.pop() else { return false };
        let task = self.tasks.spawn(dispatch::notify(notification));
        self.notices.handling = Some(task.id());
        true
    }

    /// Starts queued calls, within the concurrency limit. Returns whether there were any.
    fn poll_queue(&mut self, cx: &mut Context<'_>) -> bool {
        self.hand_out_answers();
        if self.queue.is_empty() {
            return false;
        }
        let snapshot = self.server.snapshot();
        let mut begun = 0;
        while begun < TURN && !self.is_full() && self.active() < snapshot.settings.calls.running {
            let Some(call) = self.queue.pop() else { break };
            self.begin(&snapshot, call, cx);
            begun += 1;
        }
        begun > 0
    }

    /// Receives messages. Returns whether the connection has to be polled again before it is flushed.
    fn poll_input(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        let (mut taken, mut waits) = (0, false);
        while taken < TURN
            && self.closing.is_none()
            && self.backlog < BACKLOG
            && !self.notices.is_full()
            && self.barrier.as_ref().is_none_or(|barrier| barrier.bytes() < BACKLOG)
        {
            match self.transport.poll_recv(cx)? {
                Poll::Pending => {
                    waits = true;
                    break;
                }
                Poll::Ready(None) => {
                    self.close(Ended::ByPeer { known: self.transport.close_reason().map(Into::into) })
                }
                Poll::Ready(Some(incoming)) => self.receive(incoming, cx),
            }
            taken += 1;
        }
        if taken > 0
            && let Some(keepalive) = &mut self.keepalive
        {
            keepalive.received();
        }
        // Everything else wakes this task, so a call that completed with its first poll needs no second round (see
        // `bench/LEDGER.md`).
        let settled =
            waits && self.tasks.is_empty() && self.queue.is_empty() && self.notices.waiting.is_empty();
        Ok(taken > 0 && !settled)
    }

    fn receive(&mut self, incoming: Incoming, cx: &mut Context<'_>) {
        let snapshot = self.server.snapshot();
        let mut length = 0;
        let inbound = match incoming {
            Incoming::Oversized(oversized) => self.skipped(&snapshot, oversized),
            Incoming::Message(bytes) => {
                length = bytes.len();
                match parse(&bytes, snapshot.service.bounds().batch) {
                    Ok(frame) => {
                        if let Some(refused) = &self.refused {
                            let (responses, is_last) = order::refusal(&frame, refused);
                            self.refuse(responses, length);
                            if is_last {
                                self.close(Ended::Stopped);
                            }
                            return;
                        }
                        let Some(frame) = self.pass_barrier(frame, length + OVERHEAD) else { return };
                        self.admit_frame(&snapshot, frame)
                    }
                    Err(malformed) => self.engine.malformed(&malformed),
                }
            }
            // The question of the handler times out.
            Incoming::Failed(failed) => {
                tracing::debug!(%failed, "a question will have no answer");
                return;
            }
        };
        if self.is_full() {
            self.backlog += length + OVERHEAD;
        }
        self.decide(&snapshot, inbound, cx);
    }

    /// Returns what an oversized message is answered with.
    fn skipped(&mut self, snapshot: &Snapshot, Oversized { limit, what, .. }: Oversized) -> Inbound {
        match what {
            Skipped::Answer(id) => {
                // The question fails now, because the client will not answer again.
                let message = format!("the client's answer has more than {limit} bytes: ask for less");
                let answer = Response::new(Some(id), Err(RpcError::invalid_request(message)));
                self.engine.admit(
                    &snapshot.service,
                    Frame::One(Message::Response(answer)),
                    &Arrival::with_clock(now),
                )
            }
            Skipped::Call(id) => Inbound::Reply(Engine::oversized(limit, id)),
            Skipped::Noise | Skipped::Unknown => Inbound::Reply(Engine::oversized(limit, None)),
        }
    }

    fn decide(&mut self, snapshot: &Arc<Snapshot>, inbound: Inbound, cx: &mut Context<'_>) {
        match inbound {
            Inbound::Call(call) => self.admit(snapshot, call, cx),
            Inbound::Listen(listen) => self.listen(listen),
            Inbound::Reply(response) => self.send(Message::Response(response).to_vec().into()),
            Inbound::BatchReply(bytes) => self.send(bytes.into()),
            Inbound::Answer(response) => self.answer(response),
            Inbound::Cancel(ticket) => self.cancel(ticket),
            Inbound::Notify(notification, peer) => {
                let principal = self.principal.as_deref();
                let call = Call::of_notification(&snapshot.service, notification, peer, principal);
                self.queue_notification(snapshot, call);
            }
            Inbound::Ignore(why) => tracing::debug!(why, "a message was ignored"),
            Inbound::Many(several) => self.decide_many(snapshot, several, cx),
        }
    }

    fn decide_many(&mut self, snapshot: &Arc<Snapshot>, several: Vec<Inbound>, cx: &mut Context<'_>) {
        for inbound in batch::without_cancelled(several) {
            match inbound {
                Ok(inbound) => self.decide(snapshot, inbound, cx),
                Err(call) => {
                    let line = self.engine.cancelled(&call);
                    line.into_iter().for_each(|line| self.send(line.into()));
                }
            }
        }
    }

    /// Starts a call, or queues it if the concurrency limit is reached. It does not apply to what the engine does itself.
    fn admit(&mut self, snapshot: &Arc<Snapshot>, call: Call, cx: &mut Context<'_>) {
        let has_slot =
            self.queue.is_empty() && !self.is_full() && self.active() < snapshot.settings.calls.running;
        if has_slot || call.is_own() {
            return self.begin(snapshot, call, cx);
        }
        self.queue.push(call.ticket(), call);
    }

    /// Runs a call. It is polled once here; only a call that has to wait becomes a task.
    fn begin(&mut self, snapshot: &Arc<Snapshot>, call: Call, task: &mut Context<'_>) {
        let sink = CallSink::Shared(self.sink.of(&call));
        let mut driver = CallDriver::start(&self.server, snapshot, &self.context, call, sink);
        let ticket = driver.call().ticket();
        while let Poll::Ready(step) = driver.poll(task) {
            self.drain_events(ticket);
            match step {
                CallStep::Event(event) => {
                    self.starting = ticket;
                    self.handle(ticket, event);
                    self.starting = None;
                }
                CallStep::Done(outcome) => return self.finish(snapshot, driver.call(), outcome),
                CallStep::Cancelled => return,
            }
        }
        if driver.is_ping() {
            return self.answer_ping(snapshot, driver);
        }
        let call = driver.call().clone();
        self.raise_barrier(&call);
        let task = self.tasks.spawn(driver.run());
        if let Some(ticket) = ticket {
            self.running.insert(ticket, RunningCall { call, task });
        }
    }

    /// Answers a `ping` whose layers have to wait: it asks whether the server is alive. They go on as those of a notification do.
    fn answer_ping(&mut self, snapshot: &Arc<Snapshot>, driver: CallDriver) {
        self.finish(snapshot, driver.call(), Outcome::Complete(RawObject::empty().into()));
        if self.tasks.len() < snapshot.settings.calls.running {
            self.tasks.spawn(driver.run());
        }
    }

    /// Handles the events that a call emitted before its outcome. Only those that are queued by now: other calls may go on
    /// emitting.
    fn drain_events(&mut self, call: Option<Ticket>) {
        // Looking is cheaper than receiving nothing.
        if self.events.is_empty() {
            return;
        }
        self.starting = call;
        for _ in 0..CAPACITY {
            let Ok((ticket, event)) = self.events.try_recv() else { break };
            self.handle(ticket, event);
        }
        self.starting = None;
    }

    fn cancel(&mut self, ticket: Ticket) {
        self.lower_barrier(Some(ticket));
        self.listens.remove(&ticket);
        let ended = match self.running.remove(&ticket) {
            Some(RunningCall { call, task }) => {
                task.abort();
                Some(call)
            }
            None => self.queue.remove(ticket),
        };
        let Some(call) = ended else { return };
        let line = self.engine.cancelled(&call);
        line.into_iter().for_each(|line| self.send(line.into()));
        self.over(&call);
    }
}

impl Future for StreamConnection {
    type Output = Result<Ended>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Ended>> {
        let polled = self.poll_all(cx);
        if let Some(visit) = &mut self.visit
            && let Poll::Ready(Ok(ended)) = &polled
        {
            visit.ended = Some(ended.clone());
        }
        polled
    }
}
