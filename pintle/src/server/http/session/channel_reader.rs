use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use pintle_proto::sse::Frame;
use tokio::time::Instant;

use super::{
    channel::Channel,
    log::{Event, EventId, MissedEvents, Replay},
};
use crate::server::http::edge::response::{EventSource, PIECE};

/// The reader of a stream for one connection.
pub(in crate::server::http) struct ChannelReader {
    pub(super) channel: Arc<Channel>,
    pub(super) number: u64,
    /// The events that the client missed.
    pub(super) replay: VecDeque<Event>,
    /// The position of the last event that was sent.
    pub(super) last: u64,
    pub(super) first: Vec<u8>,
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
            if id.is_none_or(|id| id.place_in_stream() > self.last) {
                self.last = id.map_or(self.last, EventId::place_in_stream);
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
        channel.detach();
    }
}

/// The reason why a stream cannot be resumed.
#[derive(Clone, Copy, Debug)]
pub(in crate::server::http) enum ResumeError {
    /// An event is no longer in the log.
    Gone,
    /// The log failed.
    Failed,
}

/// The reader of a resumed stream.
pub(in crate::server::http) struct ResumedReader {
    pub(super) reader: ChannelReader,
    /// The position of the newest event in the log.
    pub(super) newest: u64,
    /// Whether the stream has ended, so that the reader has all of it.
    pub(super) ended: bool,
    /// The description of the stream.
    pub(super) opening: Bytes,
}

/// Returns the events that a reader missed.
pub(super) fn missed(replay: std::io::Result<Replay>) -> Result<MissedEvents, ResumeError> {
    match replay {
        Ok(Replay::Events(missed)) => Ok(missed),
        Ok(Replay::Gone) => Err(ResumeError::Gone),
        Err(error) => {
            tracing::warn!(%error, "the event log failed: a stream cannot be resumed for now");
            Err(ResumeError::Failed)
        }
    }
}
