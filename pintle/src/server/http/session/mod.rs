pub(super) mod channel;
mod channel_reader;
pub(super) mod conversation;
pub(super) mod detached;
pub(super) mod exchange;
pub(super) mod get_stream;
pub(super) mod id;
pub mod log;
pub mod nodes;
pub(super) mod registry;
pub(super) mod store;
pub(super) mod table;
pub(super) mod two_endpoints;

mod asking;
mod handle;
mod lookup;
mod lost;
mod owner;
pub(super) mod push_queue;
pub(super) mod question_ids;
pub(super) mod record;
mod recording;

use std::{
    collections::HashMap,
    num::NonZeroU64,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Waker},
};

use http::Extensions;
use pintle_proto::{
    Peer,
    server::{Arrival, Call, Engine, Inbound, Outcome, Service, Ticket},
};
use pintle_types::{Frame, Message, RequestId, Response, RpcError, method};

use self::{
    channel::Channel,
    id::SessionId,
    lost::LostStreams,
    push_queue::{PushQueue, RemoteGetStream},
    record::RecordVersion,
    table::KeptSession,
};
use super::{edge::response::session_ended, frame::request_id};
use crate::{
    Ended,
    server::{
        Caller, Cx, Server,
        access::peer_address::AddressKey,
        changes::{ChangeInbox, OwnedPrincipal},
        clock::{now, sealed_at},
        core::{
            driver::{limit::WaitQueue, questions::OpenQuestions},
            hooks::Visit,
        },
        random,
    },
};

/// A session over HTTP, shared by its requests on all connections.
///
/// It has no task and no timer, and an idle session holds no queues or maps.
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) principal: Option<Box<str>>,
    /// The address of the client that opened it, if it is known.
    pub(super) address: Option<AddressKey>,
    pub(super) server: Server,
    /// The changes that its GET stream has not sent yet.
    pub(super) inbox: Arc<ChangeInbox>,
    core: Mutex<Core>,
    /// Whether it exists for one request only.
    pub(super) transient: bool,
    /// Whether its client has sent a message after the handshake.
    initialized: AtomicBool,
    /// Whether it is in the session store.
    written: AtomicBool,
    /// Held while its record is written or removed. Created for the first write.
    writes: OnceLock<Box<tokio::sync::Mutex<()>>>,
    /// The time of its last use, in milliseconds of the clock of its table.
    pub(super) seen: AtomicU64,
    /// `None` if it exists for one request only.
    kept: Option<Box<KeptSession>>,
}

struct Core {
    engine: Engine,
    /// `None` without a session store.
    record_version: Option<Box<RecordVersion>>,
    last_stream: u64,
    last_get_stream: u64,
    last_instance: u64,
    ended: bool,
    /// Whether its inbox collects changes.
    follows: bool,
    /// The number of calls that hold a slot of the concurrency limit.
    slots_used: u32,
    /// The running call, while it is the only one (see `bench/LEDGER.md`).
    running: Option<Cx>,
    /// `None` while it would be empty.
    busy: Option<Box<Busy>>,
    visit: Option<Box<Visit>>,
    /// Whether a hook has yet to accept the client. It runs without the lock.
    undecided: bool,
    /// Whether the session ends if others need the room that it is charged for.
    yields: bool,
}

/// The state of a session with more activity than one call without events.
#[derive(Default)]
struct Busy {
    questions: OpenQuestions,
    /// The running calls besides the first.
    running: HashMap<Ticket, Cx>,
    /// The drivers of calls that the concurrency limit holds back.
    queue: WaitQueue<Waker>,
    /// The resumable streams of running calls, by number.
    channels: HashMap<u64, Arc<Channel>>,
    /// The streams of the calls that are recorded, so that another process can go on with them.
    recorded: HashMap<Ticket, Arc<Channel>>,
    /// The open GET streams, the newest last: that one sends the messages.
    get_streams: Vec<OpenGetStream>,
    /// The messages for the GET stream.
    push_queue: PushQueue,
    /// The order of the newest GET stream of this process among those of all processes.
    get_order: u64,
    /// The newest GET stream, if another process has it.
    remote_get_stream: Option<RemoteGetStream>,
    /// The last GET stream of another process that was closed.
    closed_get_stream: Option<RemoteGetStream>,
    lost: LostStreams,
}

impl Busy {
    fn is_idle(&self) -> bool {
        self.questions.is_empty()
            && self.running.is_empty()
            && self.queue.is_empty()
            && self.channels.is_empty()
            && self.recorded.is_empty()
            && self.get_streams.is_empty()
            && self.push_queue.is_empty()
            && self.remote_get_stream.is_none()
            && self.lost.is_empty()
    }
}

/// An open GET stream.
struct OpenGetStream {
    number: u64,
    /// [`Channel::instance`].
    instance: u64,
    waker: Option<Waker>,
    /// Whether its previous connection has logged a message since the stream was resumed.
    behind: bool,
}

/// The number of GET streams of a session that can be open or resumed. Older ones are forgotten.
const MAX_GET_STREAMS: u64 = 32;

impl Session {
    pub(super) fn new(id: SessionId, principal: Option<Box<str>>, server: Server, engine: Engine) -> Self {
        let inbox = server.changes().join();
        // Read from when there is a GET stream.
        inbox.set_read(false);
        Self::made(id, principal, server, engine, inbox, false)
    }

    /// Creates a session that exists for one request only.
    pub(super) fn transient(principal: Option<Box<str>>, server: Server, engine: Engine) -> Self {
        Self::made(SessionId::NIL, principal, server, engine, Arc::default(), true)
    }

    fn made(
        id: SessionId,
        principal: Option<Box<str>>,
        server: Server,
        engine: Engine,
        inbox: Arc<ChangeInbox>,
        transient: bool,
    ) -> Self {
        let core = Core {
            engine,
            record_version: None,
            last_stream: 0,
            last_get_stream: 0,
            last_instance: 0,
            ended: false,
            follows: transient,
            slots_used: 0,
            running: None,
            busy: None,
            visit: None,
            undecided: false,
            yields: false,
        };
        let session = Self {
            id,
            principal,
            address: None,
            server,
            inbox,
            core: Mutex::new(core),
            transient,
            initialized: AtomicBool::new(false),
            written: AtomicBool::new(false),
            writes: OnceLock::new(),
            seen: AtomicU64::new(0),
            kept: (!transient).then(Box::default),
        };
        session.follow(&mut session.lock());
        if let Some(kept) = &session.kept {
            session.inbox.edit_owner(|owner| {
                owner.session = NonZeroU64::new(kept.facts.number);
                owner.principal = session.principal.clone().map(|name| Box::new(OwnedPrincipal::Named(name)));
            });
        }
        session
    }

    /// Sets the address of the client that opened it.
    pub(super) fn at(self, address: Option<AddressKey>) -> Self {
        Self { address, ..self }
    }

    /// Returns whether its client has sent `notifications/initialized`, or any other message that needs the session.
    pub(super) fn is_initialized(&self) -> bool {
        self.initialized.load(Ordering::Relaxed)
    }

    /// Returns whether it is in the session store.
    pub(super) fn is_written(&self) -> bool {
        self.written.load(Ordering::Relaxed)
    }

    pub(super) fn set_written(&self) {
        self.written.store(true, Ordering::Relaxed);
    }

    pub(super) fn set_initialized(&self) {
        self.initialized.store(true, Ordering::Relaxed);
    }

    /// Sets the number that streams are numbered from: another process may have used smaller ones.
    pub(super) fn number_from(&self, number: u64) {
        let mut core = self.lock();
        core.last_stream = number;
        core.last_get_stream = number;
    }

    /// Passes messages to the engine.
    pub(super) fn receive(&self, service: &Service, frame: Frame) -> Inbound {
        let mut core = self.lock();
        let mut arrival = Arrival::with_clock(now);
        if let Some(principal) = &self.principal {
            arrival = arrival.by(principal);
        }
        if core.undecided && core.engine.peer().is_some() {
            const REASON: &str = "the session is not open yet: wait for the response to `initialize`";
            return request_id(&frame).map_or(Inbound::Ignore(REASON), |id| {
                Inbound::Reply(Response::new(Some(id.clone()), Err(RpcError::invalid_request(REASON))))
            });
        }
        if !self.is_initialized() && needs_session(&frame) {
            self.set_initialized();
        }
        core.engine.admit(service, frame, &arrival)
    }

    /// Starts to collect changes for the listener of the session, once the handshake is done.
    fn follow(&self, core: &mut Core) {
        if !core.follows
            && let Some(listener) = core.engine.listener()
        {
            self.inbox.follow(listener);
            core.follows = true;
        }
    }

    /// Returns the client. `None` before the handshake.
    pub(super) fn peer(&self) -> Option<Arc<Peer>> {
        self.lock().engine.peer().cloned()
    }

    /// Returns whether the handshake is done.
    pub(super) fn is_open(&self) -> bool {
        self.lock().engine.peer().is_some()
    }

    /// Returns whether its revision has batches.
    pub(super) fn takes_batches(&self) -> bool {
        self.lock().engine.takes_batches()
    }

    /// Runs the hooks for a new session, if there are any. Returns the error of a hook that refuses it.
    pub(super) fn opened(&self, extensions: &Extensions) -> Result<(), RpcError> {
        let snapshot = self.server.snapshot();
        if snapshot.hooks.is_empty() && snapshot.providers.is_empty() {
            return Ok(());
        }
        let caller = Caller { principal: self.principal.clone(), extensions: extensions.clone() };
        let number = self.kept.as_ref().map_or(0, |kept| kept.facts.number);
        let mut visit = Visit::begin(self.server.clone(), caller, number);
        let refused = visit.refused().cloned();
        let peer = self.peer();
        let done = refused.map_or_else(|| visit.note_session(peer.as_ref()), Err);
        let mut core = self.lock();
        core.visit = Some(Box::new(visit));
        core.undecided = peer.is_none();
        done
    }

    /// Runs the session hooks, if the client was not known when the session was opened. Returns the error of a hook that
    /// refuses it; the session is not open then.
    pub(super) fn note_peer(&self) -> Result<(), RpcError> {
        let (peer, visit) = {
            let mut core = self.lock();
            (core.engine.peer().cloned(), core.visit.take())
        };
        let Some(mut visit) = visit else { return Ok(()) };
        let done = visit.note_session(peer.as_ref());
        let mut core = self.lock();
        core.visit = Some(visit);
        match &done {
            Ok(()) => core.undecided &= peer.is_none(),
            Err(_) => core.engine.close_session(),
        }
        done
    }

    /// Adds a running call, so that it can be cancelled. Returns `false` if the session has ended.
    pub(super) fn begin(&self, call: &Call, cx: &Cx) -> bool {
        let mut core = self.lock();
        if core.ended {
            return false;
        }
        match call.ticket() {
            None => {}
            Some(_) if core.running.is_none() => core.running = Some(cx.clone()),
            Some(ticket) => drop(core.busy().running.insert(ticket, cx.clone())),
        }
        true
    }

    /// Acquires a slot of the concurrency limit for a call. If there is none, the call is queued, and the task is woken when
    /// there is one. `again` is whether the call is queued already.
    pub(super) fn acquire_slot(&self, call: &Call, limit: usize, again: bool, task: &Context<'_>) -> bool {
        let Some(ticket) = call.ticket() else { return true };
        let mut core = self.lock();
        let fits = core.ended || (core.slots_used as usize) < limit;
        if fits {
            core.slots_used += 1;
        }
        if fits && !again {
            return true;
        }
        let busy = core.busy();
        if fits {
            busy.queue.remove(ticket);
        } else if let Some(waker) = busy.queue.get_mut(ticket) {
            waker.clone_from(task.waker());
        } else {
            busy.queue.push(Some(ticket), task.waker().clone());
        }
        fits
    }

    /// Releases a slot, and wakes the next call in the queue.
    pub(super) fn release_slot(&self) {
        let next = {
            let mut core = self.lock();
            core.slots_used = core.slots_used.saturating_sub(1);
            let next = core.busy.as_mut().and_then(|busy| busy.queue.pop());
            core.rest();
            next
        };
        next.into_iter().for_each(Waker::wake);
    }

    /// Removes a call from the queue.
    pub(super) fn leave_queue(&self, call: &Call) {
        let next = {
            let mut core = self.lock();
            let Some((busy, ticket)) = core.busy.as_mut().zip(call.ticket()) else { return };
            // If it was woken for a slot already, the next one is woken.
            if busy.queue.remove(ticket).is_none() { busy.queue.pop() } else { None }
        };
        next.into_iter().for_each(Waker::wake);
    }

    /// Cancels a call.
    pub(super) fn cancel(&self, ticket: Ticket) {
        let cx = self.lock().take_running(ticket);
        if let Some(sink) = cx.as_ref().and_then(Cx::own_sink) {
            sink.cancel();
        }
    }

    /// Ends a call. Returns the cancellations of its questions, and its response. There is none if it was cancelled, or if a
    /// batch waits for other responses.
    pub(super) fn finish(
        &self,
        service: &Service,
        call: &Call,
        outcome: Outcome,
    ) -> (Vec<Vec<u8>>, Option<Vec<u8>>) {
        // A stateless request may come in a session too, and its state is sealed.
        let sealed_at = sealed_at(&outcome);
        self.close(call, |engine| engine.finish(service, call, outcome, sealed_at))
    }

    /// Ends a call that was cancelled. There is a response if a batch waited for it.
    pub(super) fn cancelled(&self, call: &Call) -> (Vec<Vec<u8>>, Option<Vec<u8>>) {
        self.close(call, |engine| engine.cancelled(call))
    }

    /// Ends a call whose driver was dropped.
    pub(super) fn forget(&self, call: &Call) {
        self.close(call, |engine| {
            engine.forget(call);
            None
        });
    }

    fn close(
        &self,
        call: &Call,
        end: impl FnOnce(&mut Engine) -> Option<Vec<u8>>,
    ) -> (Vec<Vec<u8>>, Option<Vec<u8>>) {
        let (cx, taken_back, bytes);
        {
            let mut core = self.lock();
            bytes = end(&mut core.engine);
            cx = call.ticket().and_then(|ticket| core.take_running(ticket));
            let busy = call.ticket().zip(core.busy.as_mut());
            let ids = busy.map(|(ticket, busy)| {
                busy.recorded.remove(&ticket);
                busy.questions.of(ticket)
            });
            let ids = ids.unwrap_or_default();
            taken_back = core.take_back(&ids);
            core.rest();
        }
        // Dropped without the lock: the drop of a handler's values may do anything.
        drop(cx);
        (taken_back, bytes)
    }

    /// Returns a number for a channel that no other channel of the session has.
    fn channel_instance(&self) -> u64 {
        let mut core = self.lock();
        core.last_instance += 1;
        core.last_instance
    }

    /// Returns a number for the stream of a POST. They are odd.
    pub(super) fn stream_number(&self) -> u64 {
        let mut core = self.lock();
        core.last_stream += 1;
        2 * core.last_stream + 1
    }

    /// Returns a number for a GET stream, and the number of the one that is forgotten for it. They are even.
    pub(super) fn get_stream_number(&self) -> (u64, Option<u64>) {
        let mut core = self.lock();
        core.last_get_stream += 1;
        let outdated = core.last_get_stream.checked_sub(MAX_GET_STREAMS).filter(|old| *old > 0);
        (2 * core.last_get_stream, outdated.map(|old| 2 * old))
    }

    /// Ends the session: its calls are ended with an error, its streams end, and no more questions are asked.
    pub(super) fn end(&self, why: Ended) {
        let (running, busy, visit) = {
            let mut core = self.lock();
            core.ended = true;
            (core.running.take(), core.busy.take(), core.visit.take())
        };
        if let Some(mut visit) = visit {
            visit.ended = Some(why);
        }
        self.inbox.close();
        if let Some(kept) = &self.kept {
            kept.facts.values.close();
            self.server.session_registry().remove(self);
        }
        if let Some(sink) = running.as_ref().and_then(Cx::own_sink) {
            sink.fail(session_ended());
        }
        let Some(busy) = busy else { return };
        for sink in busy.running.values().filter_map(Cx::own_sink) {
            sink.fail(session_ended());
        }
        busy.channels.values().for_each(|channel| channel.wake());
        busy.get_streams.into_iter().filter_map(|stream| stream.waker).for_each(Waker::wake);
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().ended
    }

    pub(super) fn touch(&self, now: u64) {
        self.seen.store(now, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    fn busy(&mut self) -> &mut Busy {
        self.busy.get_or_insert_default()
    }

    fn take_running(&mut self, ticket: Ticket) -> Option<Cx> {
        match &self.running {
            Some(cx) if cx.ticket() == Some(ticket) => self.running.take(),
            _ => self.busy.as_mut()?.running.remove(&ticket),
        }
    }

    /// Drops the state that an idle session does not need.
    fn rest(&mut self) {
        self.busy.take_if(|busy| busy.is_idle());
    }

    fn take_back(&mut self, questions: &[RequestId]) -> Vec<Vec<u8>> {
        questions.iter().filter_map(|id| self.engine.abandon(id)).collect()
    }
}

/// Returns whether messages show that the client uses the session. `initialize` and `ping` may come before that.
fn needs_session(frame: &Frame) -> bool {
    match frame {
        Frame::One(Message::Request(request)) => {
            !matches!(&*request.method, method::INITIALIZE | method::PING)
        }
        _ => true,
    }
}

/// Returns a random number that is very likely larger than all that another process has used.
pub(super) fn fresh_number() -> i64 {
    // Without random numbers there are no session ids either.
    let bytes = random::bytes().unwrap_or_default();
    i64::from(u32::from_ne_bytes(bytes)) << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_runs_in_a_session_before_its_hook_has_accepted_the_client() {
        let message = |id: i64, method: &str, params: serde_json::Value| {
            let message = serde_json::json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            Frame::parse(message.to_string().as_bytes(), 1).unwrap()
        };
        for accepts in [true, false] {
            let decide = move |_: &crate::server::Opened| match accepts {
                true => Ok(()),
                false => Err(RpcError::invalid_request("not you")),
            };
            let tool = crate::server::tool("t", || async { "fine" });
            let server = Server::new("s", "0").tool(tool).on_session(decide);
            let snapshot = server.snapshot();
            let mut revisions = snapshot.service.revisions().iter();
            let revision = revisions.find(|revision| revision.facts().keeps_session).unwrap().as_str();
            let session = Session::new(SessionId::NIL, None, server, Engine::new_session());
            session.opened(&Extensions::new()).unwrap();
            let client = serde_json::json!({"name": "c", "version": "0"});
            let params =
                serde_json::json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
            let opened = session.receive(&snapshot.service, message(1, "initialize", params));
            let Inbound::Call(opened) = opened else { panic!("{opened:?}") };
            let (outcome, effect) = snapshot.service.prepare(&opened, opened.params()).unwrap();
            opened.set_effect(effect);
            session.lock().engine.carry_out(&snapshot.service, &opened, outcome);
            let call = |id| session.receive(&snapshot.service, message(id, "tools/list", Default::default()));
            let early = call(2);
            assert!(matches!(&early, Inbound::Reply(reply) if reply.result.is_err()), "{early:?}");
            assert_eq!(session.note_peer().is_ok(), accepts);
            let late = call(3);
            assert_eq!(matches!(late, Inbound::Call(_)), accepts, "{late:?}");
        }
    }

    #[test]
    fn an_idle_session_is_small() {
        // Most of the rest of the promised kilobyte is the client's description, which sessions of one kind share.
        let size = size_of::<Session>() + size_of::<ChangeInbox>();
        assert!(size <= 600, "{size}");
    }
}
