//! The task that owns a connection: its transport, and the protocol's side of it.

mod answer_reports;
mod attribution;
mod command;
mod direct_send;
mod opening;
mod own_messages;
mod polled_slot;
mod receiving;
mod subscriptions;

use std::{
    collections::{BTreeMap, HashMap},
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::HeaderMap;
use pintle_proto::{
    Revision,
    client::{Engine, Extras, Profile},
};
use pintle_types::{Message, Notification, RawObject, Request, RequestId, Response, RpcError, method};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, Id, JoinSet},
    time::{Instant, Sleep, sleep, sleep_until},
};

use super::{
    asking::TaskTable,
    state::{CallFailure, CallSender, ConnectionState},
};
use crate::{
    Ended,
    timeouts::after,
    transport::{DrivenTransport, Failed, MessageContext},
};

use answer_reports::AnswerReports;
use attribution::Cancellations;
pub(super) use command::{CallRequest, Command, GRANTED, WatchChange};
pub(super) use direct_send::DirectSend;
use direct_send::DriverSlot;
use own_messages::{LayerReply, OwnKind, OwnMessage};
use subscriptions::Subscriptions;

/// Capacity of the command queue. Callers wait when it is full. Commands are boxed: the queue has memory for 32 of them at once, and
/// is empty most of the time.
pub(super) const COMMANDS: usize = 256;
/// Units of work per poll, before other tasks run.
const BUDGET: usize = 64;
/// Limit of queued replies to a server that does not read. Above it, nothing is read from the server either.
const MAX_REPLIES: usize = 1024;
/// How long messages are still read after a write failed.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Limit of unanswered keepalives in a row.
const MAX_MISSES: u32 = 3;
/// After this time, a connection counts as stable and its losses are reset.
const STEADY: Duration = Duration::from_secs(30);

/// Runs a connection.
///
/// Reads while writing is blocked, routes each answer to its caller, and never waits for a callback.
#[derive(Debug)]
pub(super) struct Driver {
    shared: Arc<ConnectionState>,
    profile: Profile,
    transport: Box<dyn DrivenTransport>,
    engine: Engine,
    commands: mpsc::Receiver<Box<Command>>,
    /// Messages of the connection itself that are in the layers. Few, or one for each watched resource.
    own: Vec<OwnMessage>,
    /// Reports of answers, once the server has requested progress, or if answers may run as tasks.
    reports: Option<Box<AnswerReports>>,
    /// The answers that run as tasks, if the client has them.
    tasks: Option<Arc<TaskTable>>,
    /// The callers by the id of their request.
    waiting: BTreeMap<RequestId, Waiter>,
    /// Running handlers of input requests.
    thinking: JoinSet<(RequestId, Result<RawObject, RpcError>)>,
    questions: HashMap<RequestId, RunningAnswer>,
    cancellations: Cancellations,
    watching: Subscriptions,
    /// Whether the transport has unwritten bytes.
    backlog: bool,
    /// Requests sent by callers directly since the last write.
    unwritten: usize,
    /// The error of the last write, and the deadline for reading what the server sent before.
    broken: Option<(io::Error, Pin<Box<Sleep>>)>,
    /// Replies queued since everything was written.
    replies: usize,
    reply_bytes: usize,
    received: bool,
    misses: u32,
    keepalive: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
    /// How often in a row the connection was lost, and when it was last opened.
    losses: u32,
    since: Instant,
    /// Calls that a lost session did not accept. They fail when it is open again, and may be retried.
    stranded: Vec<(CallSender, Box<Failed>)>,
    /// The first line that was not a message, for errors of the opening.
    first_noise: Option<Box<str>>,
    /// The unknown request id of the last answer.
    stray: Option<Box<str>>,
}

/// A running handler of an input request.
#[derive(Debug)]
struct RunningAnswer {
    task: AbortHandle,
    /// The call that the input request belongs to, if known.
    call: Option<RequestId>,
}

/// The receiver of an answer.
#[derive(Debug)]
enum Waiter {
    /// A call of a handle.
    Call(CallSender),
    /// A subscription to this resource.
    Subscriber(CallSender, String),
    /// The layers, for a request of the connection itself.
    Own(LayerReply),
    /// The driver's keepalive.
    Life,
}

/// Why the driver stopped polling.
#[derive(Debug)]
enum DriverExit {
    Close,
    Lost(Ended),
}

impl Driver {
    pub(super) fn new(
        shared: Arc<ConnectionState>,
        profile: Profile,
        transport: Box<dyn DrivenTransport>,
        commands: mpsc::Receiver<Box<Command>>,
    ) -> Self {
        let engine = Engine::new(profile.clone(), shared.settings.limits.clone());
        let watching = Subscriptions::new(shared.settings.on_change.is_some());
        let (reports, tasks) = AnswerReports::of_tasks(&shared).unzip();
        Self {
            profile,
            transport,
            engine,
            commands,
            own: Vec::new(),
            reports,
            tasks,
            waiting: BTreeMap::new(),
            thinking: JoinSet::new(),
            questions: HashMap::new(),
            cancellations: Cancellations::default(),
            watching,
            backlog: false,
            unwritten: 0,
            broken: None,
            replies: 0,
            reply_bytes: 0,
            received: false,
            misses: 0,
            keepalive: None,
            timer: None,
            losses: 0,
            since: Instant::now(),
            stranded: Vec::new(),
            first_noise: None,
            stray: None,
            shared,
        }
    }

    /// Drives an open connection until it is closed, or lost for good.
    ///
    /// A connection is idle most of the time: what is awaited only when it opens or ends is boxed, and its memory freed.
    pub(super) async fn run(self: Box<Self>, direct: Arc<DirectSend>) {
        let slot = DriverSlot(direct);
        let mut driver = self;
        let ended = loop {
            let Some((turn, back)) = slot.run(driver).await else { return };
            driver = back;
            match turn {
                DriverExit::Close => {
                    Box::pin(driver.leave()).await;
                    break Ended::Stopped;
                }
                DriverExit::Lost(ended) => {
                    tracing::debug!(%ended, "the connection is lost");
                    driver.lose(&ended);
                    match Box::pin(driver.open_again_unless_closing()).await {
                        Some(true) => {}
                        Some(false) => break ended,
                        None => break Ended::Stopped,
                    }
                    driver.free_stranded();
                }
            }
        };
        driver.shared.end(ended.clone());
        driver.lose(&ended);
        driver.free_stranded();
    }

    /// Opens the connection again. Returns whether it succeeded; `None` if the connection is being closed.
    async fn open_again_unless_closing(&mut self) -> Option<bool> {
        let shared = self.shared.clone();
        let mut closing = pin!(shared.signals.closing());
        let mut again = pin!(self.open_again());
        poll_fn(|cx| match closing.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => again.as_mut().poll(cx).map(Some),
        })
        .await
    }

    fn free_stranded(&mut self) {
        let notices = self.shared.noticed();
        for (post, failed) in self.stranded.drain(..) {
            post.end(Err(CallFailure::Failed(failed)), notices);
        }
    }

    /// Polls everything until nothing is ready.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<DriverExit> {
        for _ in 0..BUDGET {
            // Whether something was not looked at to its end, so that nobody would be woken for the rest. (What was is
            // not looked at twice: measured, a call over HTTP takes two rounds, not four.)
            let mut more = false;
            if let Poll::Ready(raised) = self.shared.signals.poll(cx) {
                more = true;
                for (id, reason) in raised.given_up {
                    self.give_up(&id, reason);
                }
                if raised.roots {
                    let changed = OwnKind::Notification(method::NOTIFICATIONS_ROOTS_LIST_CHANGED);
                    // A revision that has no word for it asks again with every call.
                    self.send_own(changed, RawObject::empty());
                    // Before the commands that came after it.
                    self.poll_own(cx);
                }
                if raised.close {
                    return Poll::Ready(DriverExit::Close);
                }
            }
            match self.poll_incoming(cx) {
                Ok(left) => more |= left,
                Err(ended) => return Poll::Ready(DriverExit::Lost(ended)),
            }
            more |= self.poll_reports(cx);
            // After what may have begun to think.
            while let Poll::Ready(Some(thought)) = self.thinking.poll_join_next_with_id(cx) {
                // What failed to join was withdrawn.
                if let Ok((task, (id, answer))) = thought {
                    self.answer(task, &id, answer);
                }
            }
            // A server that does not read makes callers wait, not this queue grow.
            for obeyed in 1..=BUDGET {
                if self.backlog {
                    break;
                }
                match self.commands.poll_recv(cx) {
                    Poll::Ready(Some(command)) => self.obey(*command),
                    // Every handle is gone.
                    Poll::Ready(None) => return Poll::Ready(DriverExit::Close),
                    Poll::Pending => break,
                }
                more |= obeyed == BUDGET;
            }
            match self.poll_timer(cx) {
                Ok(rang) => more |= rang,
                Err(ended) => return Poll::Ready(DriverExit::Lost(ended)),
            }
            // After what may have entered the layers.
            more |= self.poll_own(cx);
            let waited = self.backlog;
            if let Poll::Ready(ended) = self.poll_write(cx) {
                return Poll::Ready(DriverExit::Lost(ended));
            }
            more |= waited && !self.backlog;
            if !more {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether callers may send directly: only if no signal is pending, for the order of cancellation and request.
    fn has_room(&self) -> bool {
        !self.backlog && self.broken.is_none() && self.unwritten < BUDGET && self.shared.signals.is_idle()
    }

    /// Writes a directly sent request. With several open calls, the write is left to the driver, which merges them.
    fn write_soon(&mut self, cx: &mut Context<'_>) {
        self.unwritten += 1;
        if self.waiting.len() > 1 || self.poll_write(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }

    /// Flushes the transport. Ready when the connection is lost.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        if self.broken.is_none() {
            match self.transport.poll_flush(cx) {
                Poll::Ready(Ok(())) => {
                    self.unwritten = 0;
                    self.replies = 0;
                    self.reply_bytes = 0;
                    self.backlog = false;
                }
                Poll::Ready(Err(error)) => {
                    self.backlog = true;
                    // What cannot be written to may have said something before it went.
                    self.broken = Some((error, Box::pin(sleep(LAST_WORDS))));
                }
                Poll::Pending => self.backlog = true,
            }
        }
        let Some((error, grace)) = &mut self.broken else { return Poll::Pending };
        ready!(grace.as_mut().poll(cx));
        let error = io::Error::from(error.kind());
        Poll::Ready(self.failed(&error))
    }

    /// Reads incoming messages, up to a budget. Returns whether there may be more.
    fn poll_incoming(&mut self, cx: &mut Context<'_>) -> Result<bool, Ended> {
        for read in 0..BUDGET {
            if self.owes_much() {
                return Ok(read > 0);
            }
            let received = self.transport.poll_recv(cx);
            while let Some(pause) = self.transport.take_stream_pause() {
                self.stream_paused(&pause);
            }
            match received {
                Poll::Ready(Ok(Some(incoming))) => self.receive(incoming),
                Poll::Ready(Ok(None)) => return Err(self.went_away()),
                Poll::Ready(Err(error)) => return Err(self.failed(&error)),
                Poll::Pending => return Ok(false),
            }
        }
        Ok(true)
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Result<bool, Ended> {
        let next = [self.keepalive, self.watching.retry].into_iter().flatten().min();
        let Some(next) = next else {
            self.timer = None;
            return Ok(false);
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(next)));
        if timer.deadline() != next {
            timer.as_mut().reset(next);
        }
        if timer.as_mut().poll(cx).is_pending() {
            return Ok(false);
        }
        let now = Instant::now();
        if self.watching.retry.is_some_and(|retry| retry <= now) {
            self.watching.retry = None;
            self.watch();
        }
        if self.keepalive.is_some_and(|due| due <= now) {
            self.check_life(now)?;
        }
        Ok(true)
    }

    /// Sends a keepalive if nothing was received for a while.
    fn check_life(&mut self, now: Instant) -> Result<(), Ended> {
        let Some(every) = self.shared.settings.timeouts.keepalive else { return Ok(()) };
        self.keepalive = Some(after(now, every));
        if std::mem::take(&mut self.received) {
            self.misses = 0;
            return Ok(());
        }
        if self.misses >= MAX_MISSES {
            return Err(Ended::Dead);
        }
        self.misses += 1;
        let alive = self.engine.request(method::PING, &RawObject::empty(), &Extras::default());
        match alive {
            Ok(request) => self.send_request(request, Waiter::Life),
            // Where there is no such question the transport has to notice.
            Err(_) => self.keepalive = None,
        }
        Ok(())
    }

    fn give_up(&mut self, id: &RequestId, reason: &str) {
        if let Some(waiter) = self.waiting.remove(id) {
            self.note_cancellation(id, &waiter);
            self.cancel(id, reason);
            self.stop_thinking_for(id);
        }
    }

    /// Aborts the handlers of input requests that belong to a cancelled call. The stream on which the server would cancel them is
    /// no longer read.
    fn stop_thinking_for(&mut self, call: &RequestId) {
        if self.questions.is_empty() {
            return;
        }
        let asked = self.questions.iter().filter(|(_, thought)| thought.call.as_ref() == Some(call));
        let asked: Vec<RequestId> = asked.map(|(id, _)| id.clone()).collect();
        for id in asked {
            let Some(thought) = self.questions.remove(&id) else { continue };
            thought.task.abort();
            self.shared.questions.fetch_sub(1, Ordering::Relaxed);
            let answer = Err(RpcError::invalid_request("the call that this was asked for was given up"));
            if let Some(response) = self.engine.reply(&id, answer) {
                self.reply(response);
            }
        }
    }

    /// Cancels a request. Notifies the server unless closing the stream does so.
    fn cancel(&mut self, id: &RequestId, reason: &str) {
        let learns = self.transport.abandon(id);
        if let (Some(notification), false) = (self.engine.cancel(id, Some(reason)), learns) {
            self.send_notification(notification);
        }
    }

    fn answer(&mut self, task: Id, id: &RequestId, answer: Result<RawObject, RpcError>) {
        // A server may use an id again once it has withdrawn the question; this would be the answer to the old one.
        if self.questions.get(id).is_none_or(|thought| thought.task.id() != task) {
            return;
        }
        self.flush_reports();
        self.questions.remove(id);
        self.shared.questions.fetch_sub(1, Ordering::Relaxed);
        if let Some(response) = self.engine.reply(id, answer) {
            self.reply(response);
        }
    }

    fn reply(&mut self, response: Response) {
        let message = Message::Response(response);
        let bytes = Bytes::from(message.to_vec());
        self.replies += 1;
        self.reply_bytes += bytes.len();
        let about = MessageContext::new(std::slice::from_ref(&message), self.engine.revision());
        self.transport.send_with(bytes, about);
    }

    /// Whether too many replies are queued to read on. The server determines their number, and, by ids and repeated params, their
    /// size.
    fn owes_much(&self) -> bool {
        self.replies >= MAX_REPLIES || self.reply_bytes >= self.shared.settings.limits.queued_bytes
    }

    fn send_request(&mut self, request: Request, waiting: Waiter) {
        if let Waiter::Call(post) | Waiter::Subscriber(post, _) = &waiting {
            post.sent_as(&request.id);
        }
        self.waiting.insert(request.id.clone(), waiting);
        self.send(&Message::Request(request));
    }

    fn send_notification(&mut self, notification: Notification) {
        self.send(&Message::Notification(notification));
    }

    fn send(&mut self, message: &Message) {
        self.send_as(message, self.engine.revision(), HeaderMap::new());
    }

    fn send_as(&mut self, message: &Message, revision: Option<Revision>, headers: HeaderMap) {
        let mut about = MessageContext::new(std::slice::from_ref(message), revision);
        about.headers = headers;
        self.transport.send_with(Bytes::from(message.to_vec()), about);
    }

    /// Fails everything that is open.
    fn lose(&mut self, ended: &Ended) {
        self.engine.lose();
        let notices = self.shared.noticed();
        for (_, waiting) in std::mem::take(&mut self.waiting) {
            if let Waiter::Call(post) | Waiter::Subscriber(post, _) = waiting {
                post.end(Err(CallFailure::Closed(ended.clone())), notices);
            }
        }
        self.watching.lose(ended);
        self.own.clear();
        self.shared.tools_unsubscribed();
        self.thinking = JoinSet::new();
        self.tasks.iter().for_each(|tasks| tasks.clear());
        let questions = self.questions.drain().count();
        self.shared.questions.fetch_sub(questions, Ordering::Relaxed);
        self.cancellations.clear();
        self.clear_line();
    }

    fn clear_line(&mut self) {
        self.broken = None;
        self.backlog = false;
        self.unwritten = 0;
        self.replies = 0;
        self.reply_bytes = 0;
    }

    /// Cancels open requests, writes what is queued, and closes the transport.
    async fn leave(&mut self) {
        let open: Vec<RequestId> = self.waiting.keys().cloned().collect();
        for id in open {
            self.cancel(&id, "the client is closing");
        }
        let wait = self.shared.settings.timeouts.shutdown;
        let written = poll_fn(|cx| {
            // A server may only read again once it has written; nobody wants to know what.
            for _ in 0..BUDGET {
                if !matches!(self.transport.poll_recv(cx), Poll::Ready(Ok(Some(_)))) {
                    return self.transport.poll_flush(cx);
                }
            }
            cx.waker().wake_by_ref();
            self.transport.poll_flush(cx)
        });
        // A server that does not read any more has its transport closed on it.
        let _ = tokio::time::timeout(wait, written).await;
        // What is not gone by then goes in the background.
        let _ = tokio::time::timeout(wait, poll_fn(|cx| self.transport.poll_close(cx))).await;
    }

    fn went_away(&self) -> Ended {
        Ended::ByPeer { known: self.transport.close_reason().map(Into::into) }
    }

    fn failed(&self, error: &io::Error) -> Ended {
        match self.transport.close_reason() {
            Some(known) => Ended::ByPeer { known: Some(known.into()) },
            None if error.kind() == io::ErrorKind::BrokenPipe => Ended::ByPeer { known: None },
            None => Ended::Failed { reason: error.to_string().into() },
        }
    }
}

/// Reports the end even if the driver's task is aborted.
impl Drop for Driver {
    fn drop(&mut self) {
        self.shared.end(Ended::ByPeer { known: None });
    }
}
