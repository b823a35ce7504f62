//! The resumable event streams of a session.
//!
//! A stream is not a connection. It has a number and owns its work ([`Channel`]); a connection is a reader of it. Each event is logged before
//! it is sent, so that a client can resume with the last id that it received. The newest reader replaces older ones.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use pintle_proto::{http::Streams, sse::Frame};
use pintle_types::RpcError;
use tokio::{sync::Notify, time::Instant};

use super::{
    Session,
    channel_reader::{ChannelReader, ResumeError, ResumedReader, missed},
    detached::{self, CallGroup},
    log::{Appended, Event, EventId, MissedEvents},
    nodes::{NodeId, message::MessageBody},
};
use crate::server::http::{edge::response::PIECE, shared::HttpShared};

/// An event stream of a session, independent of the connection that reads it.
///
/// It owns its work: the future of the calls that send on it, which the reader of the stream polls. If the reader disconnects,
/// the rest of the work becomes a task, and its messages go to the event log.
pub(in crate::server::http) struct Channel {
    pub(in crate::server::http) session: Arc<Session>,
    pub(in crate::server::http) number: u64,
    /// The unique number of this channel: a resumed stream may have another channel with the same stream number.
    pub(super) instance: u64,
    pub(super) shared: Arc<HttpShared>,
    /// Whether the stream can be resumed.
    resumable: bool,
    /// Whether the client can be asked to disconnect and resume.
    polled: bool,
    work: Mutex<Option<Work>>,
    /// The calls of the work.
    calls: Mutex<CallGroup>,
    /// Whether the work continues without a reader.
    outlives: AtomicBool,
    /// Whether its call is recorded in the log.
    pub(super) is_recorded: AtomicBool,
    /// Held while an event or the record of the call is written, if it is recorded: the record has to know the newest event.
    pub(super) writes: tokio::sync::Mutex<()>,
    state: Mutex<ChannelState>,
    pub(super) room: Notify,
    /// The position of the newest event in the log.
    place: AtomicU64,
    /// Whether the stream has ended in the log.
    closed: AtomicBool,
    /// Whether another process has taken over the stream. Then nothing more is logged.
    fenced: AtomicBool,
    /// Whether an event could not be logged. Then the stream cannot be resumed.
    lost: AtomicBool,
    /// The place of the next event that is not logged. 0 if all were.
    unlogged: AtomicU64,
    /// Whether a lost stream is still in the log, because forgetting it failed: other processes would resume it.
    unforgotten: AtomicBool,
}

pub(in crate::server::http) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Default)]
pub(super) struct ChannelState {
    pub(super) buffered: VecDeque<(Option<EventId>, Bytes)>,
    pub(super) bytes: usize,
    /// The number of readers so far. The newest one is the current reader.
    pub(super) readers: u64,
    /// Whether the newest reader is connected.
    pub(super) read: bool,
    /// When the newest reader disconnected.
    pub(super) left: Option<Instant>,
    pub(super) ended: bool,
    /// Whether no more producers are admitted.
    pub(super) closing: bool,
    /// The number of producers besides the work.
    pub(super) producers: usize,
    /// The bytes of the producers' requests and of their messages that wait for the reader.
    pub(super) backlog: usize,
    /// Set if the reader is to disconnect and resume after this many milliseconds.
    pub(super) hang_up: Option<u64>,
    /// The process that reads the stream, if it is another one.
    pub(super) follower: Option<NodeId>,
    pub(super) waker: Option<Waker>,
}

impl Channel {
    pub(in crate::server::http) fn new(
        shared: &Arc<HttpShared>,
        session: &Arc<Session>,
        number: u64,
        outlives: bool,
    ) -> Arc<Self> {
        let streams = session.peer().filter(|_| !session.transient).map(|peer| Streams::of(peer.revision));
        Arc::new(Self {
            session: session.clone(),
            number,
            instance: session.channel_instance(),
            shared: shared.clone(),
            resumable: streams.is_some_and(|streams| streams.resumable),
            polled: streams.is_some_and(|streams| streams.polled),
            work: Mutex::default(),
            calls: Mutex::default(),
            outlives: AtomicBool::new(outlives),
            is_recorded: AtomicBool::new(false),
            writes: tokio::sync::Mutex::default(),
            state: Mutex::default(),
            room: Notify::new(),
            place: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            fenced: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            unlogged: AtomicU64::new(0),
            unforgotten: AtomicBool::new(false),
        })
    }

    /// Opens the stream in the event log, and returns a reader from its start. `opening` describes it for other processes.
    pub(in crate::server::http) async fn begin(self: &Arc<Self>, opening: Bytes) -> ChannelReader {
        let mut reader = self.attach();
        if self.resumable {
            let (settings, id) = (self.shared.settings(), self.session.id.to_string());
            settings.log.set_owner(&id, &format!("{:?}", self.session.owner().network()));
            match settings.log.open(&id, self.number, opening).await {
                Ok(()) if self.polled => {
                    let retry = u64::try_from(self.shared.settings().retry.as_millis()).unwrap_or(u64::MAX);
                    let id = EventId::start(self.number).to_string();
                    let _ = Frame::priming(&id).with_retry(retry).write(&mut reader.first);
                }
                Ok(()) => {}
                Err(error) => tracing::warn!(%error, "the event log failed: a stream cannot be resumed"),
            }
        }
        reader
    }

    /// Returns a reader from an event on. `begin` runs once it is known that the stream can be resumed.
    pub(in crate::server::http) async fn resume(
        self: &Arc<Self>,
        last: EventId,
        begin: impl FnOnce(),
    ) -> Result<ResumedReader, ResumeError> {
        let missed = |replay| {
            // An event that was not logged is missing in the middle.
            if self.session.has_lost(self.number) { Err(ResumeError::Gone) } else { missed(replay) }
        };
        if !last.can_be_logged() {
            return Err(ResumeError::Gone);
        }
        let log = &self.shared.settings().log;
        let session = self.session.id.to_string();
        // Read once before the current reader is replaced, and again after it, when no event can be missed.
        missed(log.after(&session, last).await)?;
        let mut reader = self.attach();
        begin();
        let MissedEvents { events, ended, opening } = missed(log.after(&session, last).await)?;
        let newest = events.last().map_or(last.place, |event| event.id.place);
        // The writer of a stream that others can take over knows its place: it must not write after them.
        if !self.is_recorded.load(Ordering::Relaxed) {
            self.place.fetch_max(newest, Ordering::Relaxed);
        }
        reader.replay = events.into();
        reader.last = last.place;
        Ok(ResumedReader { reader, newest, ended, opening })
    }

    /// Returns a new reader, which replaces the current one.
    fn attach(self: &Arc<Self>) -> ChannelReader {
        let mut state = self.lock();
        state.readers += 1;
        state.read = true;
        state.left = None;
        state.follower = None;
        // The log has the events that the last reader did not send.
        state.buffered.clear();
        state.bytes = 0;
        state.hang_up = None;
        let number = state.readers;
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        self.room.notify_waiters();
        ChannelReader { channel: self.clone(), number, replay: VecDeque::new(), last: 0, first: Vec::new() }
    }

    /// Sets the work of this stream.
    pub(in crate::server::http) fn set_work(&self, work: Work) {
        *self.work.lock().unwrap_or_else(PoisonError::into_inner) = Some(work);
    }

    /// Sets the calls of the work.
    pub(super) fn set_calls(&self, calls: CallGroup) {
        *self.calls.lock().unwrap_or_else(PoisonError::into_inner) = calls;
    }

    /// Returns the time since the reader disconnected; `None` while there is one.
    fn away(&self) -> Option<Duration> {
        let state = self.lock();
        state.left.filter(|_| !state.read).map(|left| left.elapsed())
    }

    /// Logs a message and sends it to the reader, waiting for capacity. Without a reader it is only logged.
    pub(in crate::server::http) async fn send(&self, line: Bytes) {
        // Logged first, so that a client that disconnects while this waits for capacity can resume with it.
        let id = self.record(&line, Position::Next).await;
        self.deliver(id, line).await;
    }

    /// Logs the last message of the stream, and sends it to the reader.
    pub(super) async fn send_last(&self, line: Bytes) {
        let id = self.record(&line, Position::Last).await;
        self.deliver(id, line).await;
    }

    /// Appends a message to the log, if the stream can be resumed. Returns its id, which may be one that is
    /// [in no log](EventId::can_be_logged).
    pub(super) async fn record(&self, line: &Bytes, position: Position) -> Option<EventId> {
        self.forget_if_lost().await;
        let is_logged = self.resumable
            && !self.lost.load(Ordering::Relaxed)
            && !self.fenced.load(Ordering::Relaxed)
            && !self.session.is_over();
        let id = if is_logged { self.append(line, position).await } else { None };
        // Without an id, a client that resumes the stream would get the message once more if the log has it after all: a log that
        // failed may have done what it was asked for.
        id.or_else(|| self.resumable.then(|| self.unlogged_id()))
    }

    /// Returns the id of the next event that is not logged. Its place follows those of all before it, so that a reader that has found the
    /// event in the log after all does not send it again.
    fn unlogged_id(&self) -> EventId {
        let first = self.place.load(Ordering::Relaxed) + 1;
        let place = Some(self.unlogged.load(Ordering::Relaxed)).filter(|place| *place > 0).unwrap_or(first);
        self.unlogged.store(place + 1, Ordering::Relaxed);
        EventId::unlogged(self.number, place)
    }

    async fn append(&self, line: &Bytes, position: Position) -> Option<EventId> {
        let _writes = match self.is_recorded.load(Ordering::Relaxed) {
            true => Some(self.writes.lock().await),
            false => None,
        };
        let session = self.session.id.to_string();
        for _ in 0..MAX_TAKEN {
            let id = EventId { stream: self.number, place: self.place.load(Ordering::Relaxed) + 1 };
            let log = &self.shared.settings().log;
            let appended = match position {
                Position::Next => log.append(&session, id, line.clone()).await,
                Position::Last => log.append_last(&session, id, line.clone()).await,
            };
            match appended {
                Ok(Appended::Done) => {
                    self.place.store(id.place, Ordering::Relaxed);
                    self.closed.store(position == Position::Last, Ordering::Relaxed);
                    self.notify_follower().await;
                    return Some(id);
                }
                // A GET stream that was resumed: its previous connection has logged another message meanwhile.
                Ok(Appended::Taken) if self.is_get() && !self.session.is_replaced(self) => {
                    self.catch_up().await?;
                }
                // Another process writes the stream or has ended it, or the session is over.
                Ok(Appended::Taken | Appended::Gone) => {
                    self.unlogged.store(id.place, Ordering::Relaxed);
                    self.fence();
                    return None;
                }
                Err(error) => {
                    tracing::warn!(%error, "the event log failed: a stream cannot be resumed");
                    // A reader that was attached meanwhile may have found it.
                    self.unlogged.store(id.place, Ordering::Relaxed);
                    self.lose().await;
                    return None;
                }
            }
        }
        None
    }

    /// Sends the events that others have appended to the stream. Returns `None` if they are not known.
    pub(super) async fn catch_up(&self) -> Option<()> {
        let newest = EventId { stream: self.number, place: self.place.load(Ordering::Relaxed) };
        let replay = self.shared.settings().log.after(&self.session.id.to_string(), newest).await;
        let Ok(MissedEvents { events, .. }) = missed(replay) else {
            self.lose().await;
            return None;
        };
        for Event { id, data } in events {
            self.place.store(id.place, Ordering::Relaxed);
            self.deliver(Some(id), data).await;
        }
        Some(())
    }

    /// Notifies the process that reads the stream that there is more in the log.
    async fn notify_follower(&self) {
        let Some(node) = self.lock().follower else { return };
        let advance = MessageBody::Advance { stream: self.number, running: true };
        // If the message is lost, the reader looks for itself.
        if let Ok(false) = self.shared.send_to_node(node, self.session.id, advance).await {
            self.lock().follower.take_if(|follower| *follower == node);
        }
    }

    /// Has another process read the stream, instead of the current reader.
    pub(in crate::server::http) fn follow(self: &Arc<Self>, node: NodeId) {
        let waker = {
            let mut state = self.lock();
            state.follower = Some(node);
            state.left = Some(Instant::now());
            if !state.read {
                return;
            }
            state.readers += 1;
            state.read = false;
            state.buffered.clear();
            state.bytes = 0;
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
        self.room.notify_waiters();
        self.detach();
    }

    /// Continues the work in a task: a closed connection cancels nothing in a session.
    pub(super) fn detach(self: &Arc<Self>) {
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        if self.outlives.load(Ordering::Relaxed)
            && let Some(work) = work
        {
            let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let read = self.clone();
            detached::spawn(&self.shared, &self.session, calls, work, move || read.away());
        }
    }

    /// Returns whether it is the stream of a GET, and not of a POST.
    fn is_get(&self) -> bool {
        self.number.is_multiple_of(2)
    }

    /// Passes a message to the reader, if there is one, waiting for capacity.
    pub(in crate::server::http) async fn deliver(&self, id: Option<EventId>, line: Bytes) {
        loop {
            // Created before looking, or a notification in between would be missed.
            let room = self.room.notified();
            {
                let mut state = self.lock();
                if !state.read {
                    return;
                }
                if state.bytes < PIECE {
                    state.bytes += line.len();
                    state.buffered.push_back((id, line));
                    return wake(state);
                }
            }
            room.await;
        }
    }

    /// Notes that another process writes the stream, or has ended it. If it goes on with the call, this one does not.
    pub(super) fn fence(&self) {
        self.fenced.store(true, Ordering::Relaxed);
        if self.is_recorded.load(Ordering::Relaxed) {
            let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
            calls.fail(&RpcError::internal("another process has gone on with the call"));
        }
    }

    pub(super) fn is_fenced(&self) -> bool {
        self.fenced.load(Ordering::Relaxed)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Returns whether the stream can be resumed.
    pub(super) fn is_resumable(&self) -> bool {
        self.resumable
    }

    /// Returns the newest event in the log.
    pub(super) fn newest(&self) -> EventId {
        EventId { stream: self.number, place: self.place.load(Ordering::Relaxed) }
    }

    /// Makes this process the writer of a stream of another one, after this event.
    pub(super) fn take_over(&self, newest: EventId) {
        self.place.store(newest.place, Ordering::Relaxed);
        self.is_recorded.store(true, Ordering::Relaxed);
        self.outlives.store(true, Ordering::Relaxed);
    }

    /// Makes the stream not resumable, because an event is missing in the log.
    async fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
        self.session.lose_stream(self.number);
        for _ in 0..FORGET_ATTEMPTS {
            if self.forget().await {
                // It does not wait for what is not there any more.
                return self.notify_follower().await;
            }
        }
    }

    /// Removes the stream from the log if an event is missing in it, and that has failed so far. Returns `false` if it fails again.
    pub(in crate::server::http) async fn forget_if_lost(&self) -> bool {
        !self.unforgotten.load(Ordering::Relaxed) || self.forget().await
    }

    /// Removes the stream from the log. If that fails, it is tried again with the next message, when another process reads the stream, and at
    /// the end.
    async fn forget(&self) -> bool {
        let log = &self.shared.settings().log;
        let done = log.forget_stream(&self.session.id.to_string(), self.number).await.is_ok();
        self.unforgotten.store(!done, Ordering::Relaxed);
        done
    }

    /// Asks the reader to disconnect and to resume after this time.
    pub(in crate::server::http) fn hang_up(&self, milliseconds: u64) {
        if self.polled {
            let mut state = self.lock();
            state.hang_up = Some(milliseconds);
            wake(state);
        }
    }

    /// Adds a producer besides the work, for a request of this many bytes. Returns `None` if the backlog of the stream is full.
    /// A single request is always admitted.
    pub(super) fn add_producer(self: &Arc<Self>, bytes: usize) -> Option<Producer> {
        let mut state = self.lock();
        let bytes = bytes.saturating_add(OVERHEAD);
        if state.backlog > 0 && state.backlog.saturating_add(bytes) > BACKLOG {
            return None;
        }
        state.producers += 1;
        state.backlog = state.backlog.saturating_add(bytes);
        Some(Producer { channel: self.clone(), bytes })
    }

    /// Waits until there are no producers besides the work.
    pub(in crate::server::http) async fn until_no_producers(&self) {
        poll_fn(|task| {
            let mut state = self.lock();
            if state.producers == 0 {
                return Poll::Ready(());
            }
            // The work is polled by the reader.
            state.waker = Some(task.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Stops admitting producers. Those that exist complete.
    pub(in crate::server::http) fn close(&self) {
        self.lock().closing = true;
    }

    pub(super) fn is_closing(&self) -> bool {
        self.lock().closing
    }

    /// Ends the stream: no more messages will be sent.
    pub(in crate::server::http) async fn end(&self) {
        if self.lost.load(Ordering::Relaxed) {
            // Repeated, because forgetting the stream may have failed before.
            self.lose().await;
        } else if self.resumable
            && !self.closed.load(Ordering::Relaxed)
            && !self.fenced.load(Ordering::Relaxed)
        {
            let _ = self.shared.settings().log.end(&self.session.id.to_string(), self.number).await;
            self.notify_follower().await;
        }
        self.over();
        self.session.release(self.number);
    }

    /// Ends the stream for the reader only, without the log and the session.
    pub(in crate::server::http) fn over(&self) {
        let mut state = self.lock();
        state.ended = true;
        wake(state);
    }

    /// Returns whether the stream has a reader, here or at another process.
    pub(super) fn is_read(&self) -> bool {
        let state = self.lock();
        state.read || state.follower.is_some()
    }

    /// Wakes the reader.
    pub(in crate::server::http) fn wake(&self) {
        wake(self.lock());
    }

    /// Polls the work, for the reader of this number.
    pub(super) fn drive(&self, reader: u64, task: &mut Context<'_>) {
        match self.work.try_lock() {
            // A replaced reader must not poll: the work would wake it and not the current one. Checked under the lock, so
            // that a newer reader polls afterwards.
            Ok(_) if self.lock().readers != reader => {}
            Ok(mut work) => {
                if work.as_mut().is_some_and(|work| work.as_mut().poll(task).is_ready()) {
                    *work = None;
                }
            }
            // The previous reader is being replaced.
            Err(TryLockError::WouldBlock) => task.waker().wake_by_ref(),
            Err(TryLockError::Poisoned(_)) => {}
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ChannelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(mut state: MutexGuard<'_, ChannelState>) {
    let waker = state.waker.take();
    drop(state);
    waker.into_iter().for_each(Waker::wake);
}

/// The position of a message in its stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Position {
    Next,
    /// No message follows.
    Last,
}

/// How often a message is logged again because another connection of its GET stream has taken its position.
const MAX_TAKEN: usize = 8;

/// How often a stream is tried to be removed from the log when an event could not be logged.
const FORGET_ATTEMPTS: usize = 2;

/// The capacity in bytes of the backlog of a stream that all calls of its session share.
pub(in crate::server::http) const BACKLOG: usize = 4 << 20;

/// The approximate size of a request besides its bytes: its task and its call.
const OVERHEAD: usize = 1 << 10;

/// A producer of messages: see [`Channel::add_producer`].
pub(in crate::server::http) struct Producer {
    channel: Arc<Channel>,
    bytes: usize,
}

impl Producer {
    /// Adds bytes to the backlog, until the returned guard is dropped.
    pub(in crate::server::http) fn add_backlog(&self, bytes: usize) -> BacklogShare<'_> {
        let mut state = self.channel.lock();
        state.backlog = state.backlog.saturating_add(bytes);
        BacklogShare { channel: &self.channel, bytes }
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        let mut state = self.channel.lock();
        state.producers -= 1;
        state.backlog = state.backlog.saturating_sub(self.bytes);
        wake(state);
    }
}

/// Bytes in the backlog of a stream, removed on drop.
pub(in crate::server::http) struct BacklogShare<'a> {
    channel: &'a Channel,
    bytes: usize,
}

impl Drop for BacklogShare<'_> {
    fn drop(&mut self) {
        let mut state = self.channel.lock();
        state.backlog = state.backlog.saturating_sub(self.bytes);
    }
}
