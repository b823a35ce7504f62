//! Event streams of sessions, that a client may leave and come back to.

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

/// One stream of a session, whatever connection it is on at the moment.
///
/// Its work, the calls that speak on it, lies in here: whoever reads the stream drives it. If the reader goes, what is
/// left of the work becomes a task, and what is said goes to the log.
pub(in crate::server::http) struct Channel {
    pub(in crate::server::http) session: Arc<Session>,
    pub(in crate::server::http) number: u64,
    /// Tells channels of one number apart: a stream that is resumed may have another channel.
    pub(super) instance: u64,
    shared: Arc<HttpShared>,
    /// Whether somebody who lost it may come back.
    resumable: bool,
    /// Whether somebody may be sent away, to come back.
    polled: bool,
    work: Mutex<Option<Work>>,
    /// The calls that it is about.
    calls: Mutex<CallGroup>,
    /// Whether the work goes on when nobody reads.
    outlives: bool,
    state: Mutex<ChannelState>,
    room: Notify,
    /// Whether the log could not keep an event: then nobody can come back.
    lost: AtomicBool,
}

pub(super) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Default)]
struct ChannelState {
    buffered: VecDeque<(Option<EventId>, Bytes)>,
    bytes: usize,
    /// How many readers there were: the last one is the reader.
    readers: u64,
    /// Whether the last one is still there.
    read: bool,
    /// When the last one left.
    left: Option<Instant>,
    ended: bool,
    /// Whether nobody else may begin to speak on it.
    closing: bool,
    /// How many speak on it besides its work.
    producers: usize,
    /// Bytes of their requests, and of what they have to say and has no place yet.
    backlog: usize,
    /// After how many milliseconds the reader is to come back.
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
        })
    }

    /// Makes the stream known to the log, and a reader for it from its beginning.
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

    /// A reader that goes on after an event, and what is to be done once it is clear that it can.
    pub(in crate::server::http) async fn resume(
        self: &Arc<Self>,
        last: EventId,
        begin: impl FnOnce(),
    ) -> Result<ChannelReader, ResumeError> {
        let missed = |replay| {
            // What could not be kept is missing in the middle, whatever the log has.
            if self.session.has_lost(self.number) { Err(ResumeError::Gone) } else { missed(replay) }
        };
        let log = &self.shared.settings().log;
        let session = self.session.id.to_string();
        // Looked for before anybody is disturbed, and again when nothing can slip between the log and the reader.
        missed(log.after(&session, last).await)?;
        let mut reader = self.attach();
        begin();
        reader.replay = missed(log.after(&session, last).await)?.into();
        reader.last = last.place;
        Ok(reader)
    }

    /// A reader; whoever read before reads no more.
    fn attach(self: &Arc<Self>) -> ChannelReader {
        let mut state = self.lock();
        state.readers += 1;
        state.read = true;
        state.left = None;
        // The log has what the last one was not given.
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

    /// What is to be done for this stream.
    pub(super) fn set_work(&self, work: Work) {
        *self.work.lock().unwrap_or_else(PoisonError::into_inner) = Some(work);
    }

    /// Which calls the work is about.
    pub(super) fn set_calls(&self, calls: CallGroup) {
        *self.calls.lock().unwrap_or_else(PoisonError::into_inner) = calls;
    }

    /// For how long nobody has read it; `None` while somebody does.
    fn away(&self) -> Option<Duration> {
        let state = self.lock();
        state.left.filter(|_| !state.read).map(|left| left.elapsed())
    }

    /// Sends a message when the reader has room for it. Without a reader it is only logged.
    pub(in crate::server::http) async fn send(&self, line: Bytes) {
        // Logged first: if the reader goes while this waits for room, it can still come back for it.
        let id = self.record(&line).await;
        self.deliver(id, line).await;
    }

    /// Appends a message to the log, if the stream can be resumed.
    pub(super) async fn record(&self, line: &Bytes) -> Option<EventId> {
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

    /// Hands a message to the reader when it has room for it, if there is one.
    pub(super) async fn deliver(&self, id: Option<EventId>, line: Bytes) {
        loop {
            // Made before looking, or room made in between would go unnoticed.
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

    /// Lets nobody come back from here on: what is missing must not look as if it had never been said.
    async fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
        self.session.lose_stream(self.number);
        let _ = self.shared.settings().log.forget_stream(&self.session.id.to_string(), self.number).await;
    }

    /// Has the reader go and come back.
    pub(in crate::server::http) fn hang_up(&self, milliseconds: u64) {
        if self.polled {
            let mut state = self.lock();
            state.hang_up = Some(milliseconds);
            wake(state);
        }
    }

    /// One who speaks on it besides its work, for as long as this is there, and whose request has so many bytes. `None` if
    /// too much waits for the stream to be read. A single request always fits.
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

    /// Waits until only its work speaks.
    pub(in crate::server::http) async fn until_no_producers(&self) {
        poll_fn(|task| {
            let mut state = self.lock();
            if state.producers == 0 {
                return Poll::Ready(());
            }
            // Who drives the work is who reads.
            state.waker = Some(task.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Who speaks on it comes to an end, and nobody else begins.
    pub(in crate::server::http) fn close(&self) {
        self.lock().closing = true;
    }

    pub(super) fn is_closing(&self) -> bool {
        self.lock().closing
    }

    /// Nothing more will be said.
    pub(in crate::server::http) async fn end(&self) {
        if self.lost.load(Ordering::Relaxed) {
            // It may have failed to forget it before.
            self.lose().await;
        } else if self.resumable {
            let _ = self.shared.settings().log.end(&self.session.id.to_string(), self.number).await;
        }
        self.over();
        self.session.release(self.number);
    }

    /// The same, where nobody has to be told but the reader.
    pub(in crate::server::http) fn over(&self) {
        let mut state = self.lock();
        state.ended = true;
        wake(state);
    }

    /// Whether somebody reads it at the moment.
    pub(super) fn is_read(&self) -> bool {
        self.lock().read
    }

    /// Has the reader look again.
    pub(in crate::server::http) fn wake(&self) {
        wake(self.lock());
    }

    /// Drives the work as far as it comes, for the reader of this number.
    fn drive(&self, reader: u64, task: &mut Context<'_>) {
        match self.work.try_lock() {
            // One that was replaced would have the work wake it up, and not the one who waits. This is looked at when
            // nobody else can drive: whoever comes later does so later.
            Ok(_) if self.lock().readers != reader => {}
            Ok(mut work) => {
                if work.as_mut().is_some_and(|work| work.as_mut().poll(task).is_ready()) {
                    *work = None;
                }
            }
            // The reader before is just being shown out.
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

/// Why a stream cannot be gone on with.
#[derive(Clone, Copy, Debug)]
pub(in crate::server::http) enum ResumeError {
    /// Something that followed is not kept any more.
    Gone,
    /// The log cannot say at the moment.
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

/// As many bytes of requests and answers may wait for a stream that is shared by all calls of its session.
pub(in crate::server::http) const BACKLOG: usize = 4 << 20;

/// What a request takes besides its bytes, about: its task and its call.
const OVERHEAD: usize = 1 << 10;

/// See [`Channel::speaker`].
pub(in crate::server::http) struct Producer {
    channel: Arc<Channel>,
    bytes: usize,
}

impl Producer {
    /// So many more bytes wait, for as long as this is there.
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

/// See [`Speaker::waits`].
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

/// One connection's view of a stream.
pub(in crate::server::http) struct ChannelReader {
    channel: Arc<Channel>,
    number: u64,
    /// What was said while nobody read.
    replay: VecDeque<Event>,
    /// The place of the last event that was given out.
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
        // Whatever runs when its session ends is still answered.
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
    // What we print is UTF-8.
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
    /// Has an event come first.
    pub(super) fn begin_with(&mut self, event: &Frame<'_>) {
        let _ = event.write(&mut self.first);
    }

    /// Reads no more. What is still to be done becomes a task, unless somebody else reads.
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
            // The client has hung up; that must not cancel anything in a session.
            let calls = channel.calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let read = channel.clone();
            detached::spawn(&channel.shared, &channel.session, calls, work, move || read.away());
        }
    }
}
