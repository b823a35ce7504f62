//! The resumable event streams of a session.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use pintle_proto::{http::Streams, sse::Frame};
use tokio::{sync::Notify, time::Instant};

use super::{
    Session,
    detached::{self, CallGroup},
    log::{Event, EventId, Replay},
};
use crate::server::http::{
    edge::response::{EventSource, PIECE},
    shared::HttpShared,
};

/// An event stream of a session, independent of the connection that reads it.
///
/// It owns its work: the future of the calls that send on it, which the reader of the stream polls. If the reader disconnects,
/// the rest of the work becomes a task, and its messages go to the event log.
pub(in crate::server::http) struct Channel {
    pub(in crate::server::http) session: Arc<Session>,
    pub(in crate::server::http) number: u64,
    /// The unique number of this channel: a resumed stream may have another channel with the same stream number.
    pub(super) instance: u64,
    shared: Arc<HttpShared>,
    /// Whether the stream can be resumed.
    resumable: bool,
    /// Whether the client can be asked to disconnect and resume.
    polled: bool,
    work: Mutex<Option<Work>>,
    /// The calls of the work.
    calls: Mutex<CallGroup>,
    /// Whether the work continues without a reader.
    outlives: bool,
    state: Mutex<ChannelState>,
    room: Notify,
    /// Whether an event could not be logged. Then the stream cannot be resumed.
    lost: AtomicBool,
    /// Whether a lost stream is still in the log, because forgetting it failed: other processes would resume it.
    unforgotten: AtomicBool,
}

pub(super) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Default)]
struct ChannelState {
    buffered: VecDeque<(Option<EventId>, Bytes)>,
    bytes: usize,
    /// The number of readers so far. The newest one is the current reader.
    readers: u64,
    /// Whether the newest reader is connected.
    read: bool,
    /// When the newest reader disconnected.
    left: Option<Instant>,
    ended: bool,
    /// Whether no more producers are admitted.
    closing: bool,
    /// The number of producers besides the work.
    producers: usize,
    /// The bytes of the producers' requests and of their messages that wait for the reader.
    backlog: usize,
    /// Set if the reader is to disconnect and resume after this many milliseconds.
    hang_up: Option<u64>,
    waker: Option<Waker>,
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
            outlives,
            state: Mutex::default(),
            room: Notify::new(),
            lost: AtomicBool::new(false),
            unforgotten: AtomicBool::new(false),
        })
    }

    /// Opens the stream in the event log, and returns a reader from its start.
    pub(in crate::server::http) async fn begin(self: &Arc<Self>) -> ChannelReader {
        let mut reader = self.attach();
        if self.resumable {
            let id = self.shared.settings().log.open(&self.session.id.to_string(), self.number).await;
            match id {
                Ok(id) if self.polled => {
                    let retry = u64::try_from(self.shared.settings().retry.as_millis()).unwrap_or(u64::MAX);
                    let _ = Frame::priming(&id.to_string()).with_retry(retry).write(&mut reader.first);
                }
                Ok(_) => {}
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
    ) -> Result<ChannelReader, ResumeError> {
        let missed = |replay| {
            // An event that was not logged is missing in the middle.
            if self.session.has_lost(self.number) { Err(ResumeError::Gone) } else { missed(replay) }
        };
        let log = &self.shared.settings().log;
        let session = self.session.id.to_string();
        // Read once before the current reader is replaced, and again after it, when no event can be missed.
        missed(log.after(&session, last).await)?;
        let mut reader = self.attach();
        begin();
        reader.replay = missed(log.after(&session, last).await)?.into();
        reader.last = last.place;
        Ok(reader)
    }

    /// Returns a new reader, which replaces the current one.
    fn attach(self: &Arc<Self>) -> ChannelReader {
        let mut state = self.lock();
        state.readers += 1;
        state.read = true;
        state.left = None;
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
    pub(super) fn set_work(&self, work: Work) {
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
        let id = self.record(&line).await;
        self.deliver(id, line).await;
    }

    /// Appends a message to the log, if the stream can be resumed.
    pub(super) async fn record(&self, line: &Bytes) -> Option<EventId> {
        if self.unforgotten.load(Ordering::Relaxed) {
            self.forget().await;
        }
        if self.resumable && !self.lost.load(Ordering::Relaxed) && !self.session.is_over() {
            let session = self.session.id.to_string();
            match self.shared.settings().log.append(&session, self.number, line.clone()).await {
                Ok(id) => return Some(id),
                Err(error) => {
                    tracing::warn!(%error, "the event log failed: a stream cannot be resumed");
                    self.lose().await;
                }
            }
        }
        None
    }

    /// Passes a message to the reader, if there is one, waiting for capacity.
    pub(super) async fn deliver(&self, id: Option<EventId>, line: Bytes) {
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

    /// Makes the stream not resumable, because an event is missing in the log.
    async fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
        self.session.lose_stream(self.number);
        for _ in 0..FORGET_ATTEMPTS {
            if self.forget().await {
                break;
            }
        }
    }

    /// Removes the stream from the log. If that fails, it is tried again with the next message, and at the end.
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
        } else if self.resumable {
            let _ = self.shared.settings().log.end(&self.session.id.to_string(), self.number).await;
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

    /// Returns whether the stream has a reader.
    pub(super) fn is_read(&self) -> bool {
        self.lock().read
    }

    /// Wakes the reader.
    pub(in crate::server::http) fn wake(&self) {
        wake(self.lock());
    }

    /// Polls the work, for the reader of this number.
    fn drive(&self, reader: u64, task: &mut Context<'_>) {
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

    fn lock(&self) -> MutexGuard<'_, ChannelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(mut state: MutexGuard<'_, ChannelState>) {
    let waker = state.waker.take();
    drop(state);
    waker.into_iter().for_each(Waker::wake);
}

/// The reason why a stream cannot be resumed.
#[derive(Clone, Copy, Debug)]
pub(in crate::server::http) enum ResumeError {
    /// An event is no longer in the log.
    Gone,
    /// The log failed.
    Failed,
}

fn missed(replay: std::io::Result<Replay>) -> Result<Vec<Event>, ResumeError> {
    match replay {
        Ok(Replay::Events(events)) => Ok(events),
        Ok(Replay::Gone) => Err(ResumeError::Gone),
        Err(error) => {
            tracing::warn!(%error, "the event log failed: a stream cannot be resumed for now");
            Err(ResumeError::Failed)
        }
    }
}

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

/// The reader of a stream for one connection.
pub(in crate::server::http) struct ChannelReader {
    channel: Arc<Channel>,
    number: u64,
    /// The events that the client missed.
    replay: VecDeque<Event>,
    /// The position of the last event that was sent.
    last: u64,
    first: Vec<u8>,
}

impl EventSource for ChannelReader {
    fn poll(&mut self, task: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()> {
        out.append(&mut self.first);
        while out.len() < PIECE
            && let Some(event) = self.replay.pop_front()
        {
            self.last = event.id.place;
            write(out, Some(event.id), &event.data);
        }
        if !self.replay.is_empty() {
            return Poll::Pending;
        }
        self.channel.drive(self.number, task);
        let mut state = self.channel.lock();
        if state.readers != self.number {
            return Poll::Ready(());
        }
        while out.len() < PIECE
            && let Some((id, line)) = state.buffered.pop_front()
        {
            state.bytes -= line.len();
            if id.is_none_or(|id| id.place > self.last) {
                self.last = id.map_or(self.last, |id| id.place);
                write(out, id, &line);
            }
        }
        let rest = !state.buffered.is_empty();
        // Calls that run when their session ends are still answered.
        let over = !rest && state.ended;
        if !rest
            && !over
            && let Some(milliseconds) = state.hang_up.take()
        {
            let _ = Frame::retry(milliseconds).write(out);
            drop(state);
            self.leave();
            return Poll::Ready(());
        }
        state.waker = Some(task.waker().clone());
        drop(state);
        self.channel.room.notify_waiters();
        if over { Poll::Ready(()) } else { Poll::Pending }
    }
}

fn write(out: &mut Vec<u8>, id: Option<EventId>, line: &[u8]) {
    // Serialized messages are UTF-8.
    let Ok(text) = std::str::from_utf8(line) else { return };
    let id = id.map(|id| id.to_string());
    let frame = Frame::data(text);
    let _ = id.as_deref().map_or(frame, |id| frame.id(id)).write(out);
}

impl Drop for ChannelReader {
    fn drop(&mut self) {
        self.leave();
    }
}

impl ChannelReader {
    /// Sends an event before all others.
    pub(super) fn begin_with(&mut self, event: &Frame<'_>) {
        let _ = event.write(&mut self.first);
    }

    /// Disconnects the reader. The rest of the work becomes a task, unless there is a newer reader.
    fn leave(&self) {
        let channel = &self.channel;
        {
            let mut state = channel.lock();
            if state.readers != self.number || !state.read {
                return;
            }
            state.read = false;
            state.left = Some(Instant::now());
            state.buffered.clear();
            state.bytes = 0;
        }
        channel.room.notify_waiters();
        channel.session.touch(channel.shared.sessions.now());
        let work = channel.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        if channel.outlives
            && let Some(work) = work
        {
            // A closed connection cancels nothing in a session.
            let calls = channel.calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let read = channel.clone();
            detached::spawn(&channel.shared, &channel.session, calls, work, move || read.away());
        }
    }
}
