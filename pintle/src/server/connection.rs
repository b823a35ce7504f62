use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::Extensions;
use pintle_proto::{
    inputs::AskError,
    server::{Arrival, Call, Engine, Inbound, Listen, Listener, Outcome, Ticket},
};
use pintle_types::{Frame, Message, RawObject, RequestId, Response, RpcError};
use tokio::{
    sync::{mpsc, oneshot},
    task::{AbortHandle, JoinSet},
    time::{Instant, Sleep},
};

use super::{
    Cx, Server,
    dispatch::{self, Start},
    ears::{Ear, News},
    port::{Port, Said},
    run::Run,
    serving::{Ended, Stop},
};
use crate::{
    Result,
    transport::{Incoming, Transport},
};

/// One connection, driven by one task: it reads, runs what is quick, hands the rest to tasks and writes.
///
/// Answers before questions: as long as much is unwritten, no more is taken from handlers, and a peer that only writes
/// is made to wait instead of this side's memory. Reading goes on while writing waits, or an answer that a handler
/// waits for would never arrive.
pub(crate) struct Connection {
    transport: Box<dyn Transport>,
    engine: Engine,
    server: Server,
    principal: Option<Box<str>>,
    extensions: Arc<Extensions>,
    port: Port,
    said: mpsc::Receiver<Said>,
    tasks: JoinSet<()>,
    running: HashMap<Ticket, Running>,
    /// Calls that wait because enough run already.
    queued: VecDeque<Call>,
    waiting: HashMap<RequestId, oneshot::Sender<Result<RawObject, AskError>>>,
    listens: HashMap<Ticket, (Call, Listener)>,
    ear: Arc<Ear>,
    /// Bytes that were queued since the transport was last empty.
    unwritten: usize,
    stop: Arc<Stop>,
    keepalive: Option<Keepalive>,
    /// Set when no more is read: how long the rest may take.
    closing: Option<(Ended, Pin<Box<Sleep>>)>,
}

struct Running {
    call: Call,
    task: AbortHandle,
}

struct Keepalive {
    every: Duration,
    sleep: Pin<Box<Sleep>>,
    misses: u32,
}

/// Above this much unwritten output handlers wait.
const FULL: usize = 1 << 20;
/// Messages handled before other tasks get a turn.
const TURN: usize = 64;
/// Pings that may go unanswered.
const MISSES: u32 = 2;

impl Connection {
    pub(crate) fn new(server: Server, transport: Box<dyn Transport>, stop: Arc<Stop>) -> Self {
        let (port, said) = Port::new();
        let keepalive = server.state().settings.keepalive.map(|every| Keepalive {
            every,
            sleep: Box::pin(tokio::time::sleep(every)),
            misses: 0,
        });
        Self {
            transport,
            engine: Engine::new(),
            principal: None,
            extensions: Arc::default(),
            port,
            said,
            tasks: JoinSet::new(),
            running: HashMap::new(),
            queued: VecDeque::new(),
            waiting: HashMap::new(),
            listens: HashMap::new(),
            ear: server.ears().join(),
            unwritten: 0,
            stop,
            keepalive,
            closing: None,
            server,
        }
    }

    /// Whom the other side is known to be, and what is known of it.
    pub(crate) fn known(mut self, principal: Option<Box<str>>, extensions: Extensions) -> Self {
        self.principal = principal;
        self.extensions = Arc::new(extensions);
        self
    }

    fn poll_all(&mut self, cx: &mut Context<'_>) -> Poll<Result<Ended>> {
        for turn in 0.. {
            let mut busy = self.poll_said(cx);
            self.poll_changes(cx);
            busy |= self.poll_input(cx)?;
            if let Poll::Ready(flushed) = self.transport.poll_flush(cx) {
                flushed?;
                self.unwritten = 0;
            }
            if !busy {
                break;
            }
            if turn == 8 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        while let Poll::Ready(Some(_)) = self.tasks.poll_join_next(cx) {}
        if self.closing.is_none() && self.stop.is_asked(cx) {
            self.close(Ended::Stopped);
            cx.waker().wake_by_ref();
        }
        if let Some(dead) = self.poll_keepalive(cx) {
            return Poll::Ready(Ok(dead));
        }
        self.poll_closing(cx)
    }

    /// Takes what handlers say. `true` if there was something.
    fn poll_said(&mut self, cx: &mut Context<'_>) -> bool {
        for taken in 0..TURN {
            if self.unwritten >= FULL {
                return taken > 0;
            }
            match self.said.poll_recv(cx) {
                Poll::Ready(Some(said)) => self.heed(said),
                _ => return taken > 0,
            }
        }
        true
    }

    fn heed(&mut self, said: Said) {
        match said {
            Said::Notice(line) => self.send(line),
            Said::Ask(request, reply) => match self.engine.ask(&request) {
                Some(Ok((id, line))) => {
                    self.send(line.into());
                    self.waiting.insert(id, reply);
                }
                // The one who asked may be gone already.
                Some(Err(unsayable)) => drop(reply.send(Err(AskError::Unsayable(unsayable)))),
                None => drop(reply.send(Err(AskError::CallOver))),
            },
            Said::Done(call, outcome) => {
                if let Some(ticket) = call.ticket() {
                    self.running.remove(&ticket);
                }
                self.finish(&call, outcome);
                self.abandon();
            }
        }
    }

    fn finish(&mut self, call: &Call, outcome: Outcome) {
        let state = self.server.state();
        if let Some(line) = self.engine.finish(&state.service, call, outcome, now()) {
            self.send(line.into());
        }
    }

    fn send(&mut self, line: Bytes) {
        self.unwritten += line.len();
        self.transport.send(line);
    }

    /// Takes back questions whose askers are gone.
    fn abandon(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let gone: Vec<_> =
            self.waiting.iter().filter(|(_, reply)| reply.is_closed()).map(|(id, _)| id.clone()).collect();
        for id in gone {
            self.waiting.remove(&id);
            if let Some(line) = self.engine.abandon(&id) {
                self.send(line.into());
            }
        }
    }

    fn poll_changes(&mut self, cx: &mut Context<'_>) {
        let news = self.ear.take(cx);
        if !news.is_empty() {
            for listener in
                self.listens.values_mut().map(|(_, listener)| listener).chain(self.engine.listener())
            {
                for news in &news {
                    match news {
                        News::One(change) => drop(listener.note(change)),
                        News::EveryResource => listener.note_all(),
                    }
                }
            }
        }
        // A slow reader is told when it has read; until then what it has missed is merged.
        while self.unwritten < FULL {
            let mut listeners =
                self.listens.values_mut().map(|(_, listener)| listener).chain(self.engine.listener());
            let Some(line) = listeners.find_map(Listener::next_notice) else { break };
            self.send(line.into());
        }
    }

    fn poll_input(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        for taken in 0..TURN {
            if self.closing.is_some() || (self.unwritten >= FULL && self.waiting.is_empty()) {
                return Ok(taken > 0);
            }
            match self.transport.poll_recv(cx)? {
                Poll::Pending => return Ok(taken > 0),
                Poll::Ready(None) => {
                    self.close(Ended::ByPeer);
                    return Ok(true);
                }
                Poll::Ready(Some(incoming)) => {
                    if let Some(keepalive) = &mut self.keepalive {
                        keepalive.misses = 0;
                        keepalive.sleep.as_mut().reset(Instant::now() + keepalive.every);
                    }
                    self.receive(&incoming, cx);
                }
            }
        }
        Ok(true)
    }

    fn receive(&mut self, incoming: &Incoming, cx: &mut Context<'_>) {
        let state = self.server.state();
        let inbound = match incoming {
            Incoming::Oversized => Inbound::Reply(Engine::oversized(&state.service)),
            Incoming::Message(bytes) => match Frame::parse(bytes, state.service.bounds().batch) {
                Ok(frame) => {
                    let mut arrival = Arrival::at(now());
                    if let Some(principal) = &self.principal {
                        arrival = arrival.by(principal);
                    }
                    self.engine.receive(&state.service, frame, &arrival)
                }
                Err(malformed) => self.engine.malformed(&malformed),
            },
        };
        self.decide(inbound, cx);
    }

    fn decide(&mut self, inbound: Inbound, cx: &mut Context<'_>) {
        match inbound {
            Inbound::Call(call) if self.running.len() >= self.server.state().settings.running => {
                self.queued.push_back(call);
            }
            Inbound::Call(call) => self.begin(call, cx),
            Inbound::Listen(Listen { call, listener, acknowledgement, .. }) => {
                self.send(acknowledgement.into());
                if let Some(ticket) = call.ticket() {
                    self.listens.insert(ticket, (call, listener));
                }
            }
            Inbound::Reply(response) => self.send(Message::Response(response).to_vec().into()),
            Inbound::BatchReply(bytes) => self.send(bytes.into()),
            Inbound::Answer(response) => self.answer(response),
            Inbound::Cancel(ticket) => self.cancel(ticket),
            Inbound::Notify(notification, peer) => {
                let heard = self.server.notified(notification, peer);
                heard.into_iter().for_each(|handling| drop(self.tasks.spawn(handling)));
            }
            Inbound::Ignore(why) => tracing::debug!(why, "a message was ignored"),
            Inbound::Many(several) => several.into_iter().for_each(|inbound| self.decide(inbound, cx)),
        }
    }

    /// Runs a call. Its first steps are taken here and now; only what has to wait becomes a task.
    fn begin(&mut self, call: Call, task: &mut Context<'_>) {
        let state = self.server.state();
        let timeout = state.settings.timeout;
        let cx =
            Cx::new(call.clone(), self.server.clone(), state, self.extensions.clone(), self.port.clone());
        let started = catch_unwind(AssertUnwindSafe(|| dispatch::start(cx.clone())));
        let handling = match started {
            Ok(Start::Run(handling)) => handling,
            Ok(Start::Done(outcome)) => return self.finish(&call, outcome),
            Err(_) => {
                tracing::error!(method = call.method(), "a handler panicked before it began");
                let error = RpcError::internal("the handler failed: see the server's log");
                return self.finish(&call, Outcome::Failed(error));
            }
        };
        let mut run = Run::new(handling, cx, timeout);
        if let Poll::Ready(outcome) = Pin::new(&mut run).poll(task) {
            let last = run.last_words();
            drop(run);
            // What it said comes before its end.
            while let Ok(said) = self.said.try_recv() {
                self.heed(said);
            }
            last.into_iter().for_each(|line| self.send(line));
            return self.finish(&call, outcome);
        }
        let (port, running) = (self.port.clone(), call.clone());
        let task = self.tasks.spawn(async move {
            let outcome = (&mut run).await;
            for line in run.last_words() {
                port.say(Said::Notice(line)).await;
            }
            drop(run);
            port.say(Said::Done(call, outcome)).await;
        });
        if let Some(ticket) = running.ticket() {
            self.running.insert(ticket, Running { call: running, task });
        }
    }

    fn answer(&mut self, Response { id, result, .. }: Response) {
        let reply = id.and_then(|id| self.waiting.remove(&id));
        if let Some(reply) = reply {
            // The one who asked may be gone.
            let _ = reply.send(result.map_err(AskError::Refused));
        }
    }

    fn cancel(&mut self, ticket: Ticket) {
        self.listens.remove(&ticket);
        let ended = if let Some(Running { call, task }) = self.running.remove(&ticket) {
            task.abort();
            Some(call)
        } else {
            let at = self.queued.iter().position(|call| call.ticket() == Some(ticket));
            at.and_then(|at| self.queued.remove(at))
        };
        let line = ended.and_then(|call| self.engine.cancelled(&call));
        line.into_iter().for_each(|line| self.send(line.into()));
        self.abandon();
    }

    fn poll_keepalive(&mut self, cx: &mut Context<'_>) -> Option<Ended> {
        let keepalive = self.keepalive.as_mut()?;
        while keepalive.sleep.as_mut().poll(cx).is_ready() {
            if keepalive.misses >= MISSES {
                return Some(Ended::Dead);
            }
            keepalive.sleep.as_mut().reset(Instant::now() + keepalive.every);
            if let Some((_, line)) = self.engine.ping() {
                keepalive.misses += 1;
                self.transport.send(line.into());
                cx.waker().wake_by_ref();
            }
        }
        None
    }

    /// Reads no more. What runs may come to its end, but not what waits for an answer of the other side.
    fn close(&mut self, ended: Ended) {
        let grace = self.stop.grace();
        self.closing = Some((ended, Box::pin(tokio::time::sleep(grace))));
        self.waiting.clear();
        let state = self.server.state();
        for (_, (call, _)) in std::mem::take(&mut self.listens) {
            for line in self.engine.unlisten(&state.service, &call, now()) {
                self.send(line.into());
            }
        }
    }

    fn poll_closing(&mut self, cx: &mut Context<'_>) -> Poll<Result<Ended>> {
        while self.running.len() < self.server.state().settings.running
            && let Some(call) = self.queued.pop_front()
        {
            self.begin(call, cx);
            cx.waker().wake_by_ref();
        }
        let Some((ended, sleep)) = &mut self.closing else { return Poll::Pending };
        let idle = self.running.is_empty() && self.queued.is_empty() && self.unwritten == 0;
        if idle || sleep.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(*ended));
        }
        Poll::Pending
    }
}

impl Future for Connection {
    type Output = Result<Ended>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Ended>> {
        self.poll_all(cx)
    }
}

/// Milliseconds of the Unix epoch.
pub(crate) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
