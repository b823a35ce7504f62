//! The open GET streams of a session, and the queue of messages for them.

use std::{
    collections::VecDeque,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::Extensions;
use pintle_proto::ledger::{Charge, FREE, Full, Held};
use tokio::runtime::Handle;

use super::{
    Busy, MAX_GET_STREAMS, OpenGetStream, Session,
    channel::Channel,
    nodes::{NodeId, message::MessageBody},
};
use crate::server::{changes::Recipient, clock::now, core::sessions::handle::SessionError};

/// The capacity of the queue, and the bytes up to which handles of the session may fill it.
const CAPACITY: usize = 256;
const CAPACITY_BYTES: usize = 1 << 20;
/// The limits while no stream is open: for a client that connects again. Some clients never open one.
const CAPACITY_WITHOUT_STREAM: usize = 16;
const CAPACITY_BYTES_WITHOUT_STREAM: usize = 16 << 10;

/// A GET stream of another process.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct RemoteGetStream {
    node: NodeId,
    order: u64,
}

/// The next step of a GET stream.
pub(super) enum Pushed {
    Message(Bytes),
    /// Messages that are in the log have to be sent.
    Behind,
    End,
}

/// The outcome of a message about a GET stream of another process.
pub(in crate::server::http) enum RemoteOutcome {
    /// The stream is the newest one. The messages of the queue go there.
    Newest(PushQueue),
    /// A stream of this process with this order is newer.
    Older(u64),
    Ignored,
}

/// The messages that wait for a GET stream. Their bytes are charged to the session's client.
#[derive(Default)]
pub(in crate::server::http) struct PushQueue {
    lines: VecDeque<Bytes>,
    charge: Charge,
}

impl PushQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    fn len(&self) -> usize {
        self.lines.len()
    }

    fn bytes(&self) -> usize {
        self.charge.bytes()
    }

    pub(in crate::server::http) fn pop(&mut self) -> Option<Bytes> {
        let line = self.lines.pop_front()?;
        self.charge.force(self.charge.bytes() - line.len());
        Some(line)
    }

    /// Charges for a message, if the limits allow it.
    fn charge(&mut self, line: &Bytes, session: &Session) -> Result<(), Full> {
        let bytes = self.charge.bytes() + line.len();
        if bytes > FREE && self.charge.account().is_none() {
            self.charge = Charge::new(session.account(), Held::Push);
            self.charge.force(bytes - line.len());
        }
        self.charge.set(bytes, session.server.snapshot().service.bounds().ceiling(Held::Push))
    }

    /// Adds a message. The oldest ones are dropped if there is no room.
    fn push(&mut self, line: Bytes, session: &Session) {
        let is_full = |queue: &Self| {
            queue.len() >= CAPACITY || (!queue.is_empty() && queue.bytes() + line.len() > CAPACITY_BYTES)
        };
        while is_full(self) || self.charge(&line, session).is_err() {
            tracing::debug!("a message was dropped: the session's GET stream has no reader");
            if self.pop().is_none() {
                return;
            }
        }
        self.lines.push_back(line);
    }
}

impl Busy {
    /// Returns the order of a new GET stream: later than all that are known, and than those of other processes by the clock.
    fn next_get_order(&self) -> u64 {
        let known = self.remote_get_stream.map_or(0, |remote| remote.order).max(self.get_order);
        known.saturating_add(1).max(now())
    }

    fn has_get_stream(&self) -> bool {
        !self.get_streams.is_empty() || self.remote_get_stream.is_some()
    }
}

impl Session {
    /// Adds a GET stream. As the newest one it sends the messages of the queue. An older stream with the same number, and
    /// streams that are too old, are closed.
    pub(in crate::server::http) fn add_get_stream(&self, channel: &Channel) {
        let mut core = self.lock();
        if core.ended {
            return;
        }
        let Channel { number, instance, .. } = *channel;
        let get_streams = &mut core.busy().get_streams;
        let gone = |other: &mut OpenGetStream| {
            other.number == number || other.number + 2 * MAX_GET_STREAMS <= number
        };
        let gone: Vec<_> = get_streams.extract_if(.., gone).filter_map(|stream| stream.waker).collect();
        get_streams.push(OpenGetStream { number, instance, waker: None, behind: false });
        let busy = core.busy();
        busy.get_order = busy.next_get_order();
        busy.remote_get_stream = None;
        self.inbox.set_read(true);
        drop(core);
        self.want_pushes();
        gone.into_iter().for_each(Waker::wake);
        // The previous newest stream registers its own waker when it finds that it is no longer the newest.
        self.inbox.notify();
    }

    /// Notes that the client has a GET stream, here or at another process.
    fn want_pushes(&self) {
        if let Some(demand) = self.kept.as_ref().and_then(|kept| kept.facts.push_demand.get()) {
            demand.want();
        }
    }

    pub(in crate::server::http) fn remove_get_stream(&self, channel: &Channel) {
        let instance = channel.instance;
        let (waker, closed) = {
            let mut core = self.lock();
            let mut closed = None;
            let waker = core.busy.as_mut().and_then(|busy| {
                busy.get_streams.retain(|stream| stream.instance != instance);
                closed = busy.get_streams.is_empty().then_some(busy.get_order);
                self.inbox.set_read(!busy.get_streams.is_empty());
                busy.get_streams.last_mut().and_then(|stream| stream.waker.take())
            });
            core.rest();
            (waker, closed.filter(|_| !core.ended))
        };
        // Also if another process has a newer one: it may take this one for the newest.
        if let Some((order, shared)) = closed.zip(self.kept.as_ref().and_then(|kept| kept.shared.upgrade())) {
            shared.notify_until_sent(self.id, MessageBody::Unlisten { order });
        }
        // The next newest stream takes over.
        waker.into_iter().for_each(Waker::wake);
    }

    /// Returns whether the client has an open GET stream, here or at another process.
    pub(in crate::server::http) fn has_get_stream(&self) -> bool {
        self.lock().busy.as_ref().is_some_and(|busy| busy.has_get_stream())
    }

    /// Returns the order of the newest open GET stream of this process.
    pub(in crate::server::http) fn own_get_order(&self) -> Option<u64> {
        let core = self.lock();
        core.busy.as_ref().filter(|busy| !busy.get_streams.is_empty()).map(|busy| busy.get_order)
    }

    /// Notes that another process has a GET stream, and closes the one that it has taken over. `own` is this process.
    pub(in crate::server::http) fn set_remote_get_stream(
        &self,
        own: NodeId,
        node: NodeId,
        order: u64,
        taken_over: Option<u64>,
    ) -> RemoteOutcome {
        let mut core = self.lock();
        if core.ended {
            return RemoteOutcome::Ignored;
        }
        let busy = core.busy();
        let is_closed = busy.closed_get_stream.is_some_and(|last| last.node == node && last.order >= order);
        let is_outdated = busy.remote_get_stream.is_some_and(|newest| newest.order > order);
        let gone = |stream: &mut OpenGetStream| Some(stream.number) == taken_over;
        let gone: Vec<_> = busy.get_streams.extract_if(.., gone).filter_map(|stream| stream.waker).collect();
        let outcome = if is_closed || is_outdated {
            RemoteOutcome::Ignored
        } else if !busy.get_streams.is_empty() && (busy.get_order, own) > (order, node) {
            RemoteOutcome::Older(busy.get_order)
        } else {
            busy.remote_get_stream = Some(RemoteGetStream { node, order });
            RemoteOutcome::Newest(std::mem::take(&mut busy.push_queue))
        };
        core.rest();
        drop(core);
        self.want_pushes();
        gone.into_iter().for_each(Waker::wake);
        self.inbox.notify();
        outcome
    }

    /// Notes that another process has no GET stream any more, since the one with this order.
    pub(in crate::server::http) fn close_remote_get_stream(&self, node: NodeId, order: u64) {
        let is_closed = |remote: &RemoteGetStream| remote.node == node && remote.order <= order;
        self.clear_remote_get_stream(is_closed, Some(RemoteGetStream { node, order }));
    }

    /// Forgets the GET stream of a process that is gone.
    pub(in crate::server::http) fn forget_remote_get_stream(&self, node: NodeId) {
        self.clear_remote_get_stream(|remote| remote.node == node, None);
    }

    /// Forgets the GET stream of another process, because messages about it may have been lost. Returns whether there was one.
    pub(in crate::server::http) fn doubt_remote_get_stream(&self) -> bool {
        self.clear_remote_get_stream(|_| true, None)
    }

    fn clear_remote_get_stream(
        &self,
        is_cleared: impl Fn(&RemoteGetStream) -> bool,
        closed: Option<RemoteGetStream>,
    ) -> bool {
        let mut core = self.lock();
        let Some(busy) = core.busy.as_mut() else { return false };
        busy.closed_get_stream = closed.or(busy.closed_get_stream);
        let is_cleared = busy.remote_get_stream.take_if(|remote| is_cleared(remote)).is_some();
        let waker = busy.get_streams.last_mut().filter(|_| is_cleared).and_then(|stream| stream.waker.take());
        core.rest();
        drop(core);
        waker.into_iter().for_each(Waker::wake);
        is_cleared
    }

    /// Sends a message to the process that has the GET stream. Returns `false` if there is none.
    fn push_remote(&self, line: &Bytes) -> bool {
        let Some(remote) = self.lock().busy.as_ref().and_then(|busy| busy.remote_get_stream) else {
            return false;
        };
        let Some(shared) = self.kept.as_ref().and_then(|kept| kept.shared.upgrade()) else { return false };
        let Ok(runtime) = Handle::try_current() else { return false };
        let (id, line) = (self.id, line.clone());
        crate::runtime::spawn_on(&runtime, async move {
            let text = String::from_utf8_lossy(&line).into_owned();
            if let Ok(true) = shared.send_to_node(remote.node, id, MessageBody::Push { line: text }).await {
                return;
            }
            // That process is gone: the message waits for the next stream.
            if let Some(session) = shared.sessions.find(id) {
                session.forget_remote_get_stream(remote.node);
                session.push_here(line);
            }
        });
        true
    }

    pub(super) fn is_push_queue_full(&self) -> bool {
        self.lock().busy.as_ref().is_some_and(|busy| busy.push_queue.len() >= CAPACITY)
    }

    /// Queues a message for the GET stream. The oldest one is dropped if the queue is full.
    pub(in crate::server::http) fn push(&self, line: Bytes) {
        if !self.push_remote(&line) {
            self.push_here(line);
        }
    }

    /// Queues a message for the GET stream of this process.
    pub(in crate::server::http) fn push_here(&self, line: Bytes) {
        let mut core = self.lock();
        if core.ended {
            return;
        }
        core.busy().push_queue.push(line, self);
        drop(core);
        self.inbox.notify();
    }

    /// Queues a message for the GET stream, unless the queue is full. It is a short one while no stream is open.
    pub(super) fn try_push(&self, line: Bytes) -> Result<(), SessionError> {
        let mut core = self.lock();
        if core.ended {
            return Err(SessionError::Ended);
        }
        if core.busy.as_ref().is_some_and(|busy| busy.remote_get_stream.is_some()) {
            drop(core);
            self.push(line);
            return Ok(());
        }
        let has_stream = core.busy.as_ref().is_some_and(|busy| !busy.get_streams.is_empty());
        let queued = core.busy.as_ref().map(|busy| &busy.push_queue);
        let count = queued.map_or(0, PushQueue::len);
        let bytes = queued.map_or(0, PushQueue::bytes) + line.len();
        if !has_stream && (count >= CAPACITY_WITHOUT_STREAM || bytes > CAPACITY_BYTES_WITHOUT_STREAM) {
            return Err(SessionError::NoStream);
        }
        if count > 0 && (count >= CAPACITY || bytes > CAPACITY_BYTES) {
            return Err(SessionError::Full);
        }
        let queue = &mut core.busy().push_queue;
        queue.charge(&line, self).map_err(|_| SessionError::Full)?;
        queue.lines.push_back(line);
        drop(core);
        self.inbox.notify();
        Ok(())
    }

    /// Puts back a message that a GET stream has taken and will not send. Another one sends it first.
    pub(in crate::server::http) fn push_front(&self, line: Bytes) {
        if self.push_remote(&line) {
            return;
        }
        let mut core = self.lock();
        if core.ended {
            return;
        }
        let queue = &mut core.busy().push_queue;
        if queue.len() >= CAPACITY || queue.charge(&line, self).is_err() {
            return tracing::debug!("a message was dropped: the session's GET stream has no reader");
        }
        queue.lines.push_front(line);
        drop(core);
        self.inbox.notify();
    }

    /// Returns whether this GET stream was replaced.
    pub(in crate::server::http) fn is_replaced(&self, channel: &Channel) -> bool {
        let instance = channel.instance;
        let core = self.lock();
        let is_open = |busy: &Busy| busy.get_streams.iter().any(|stream| stream.instance == instance);
        !core.ended && !core.busy.as_deref().is_some_and(is_open)
    }

    /// Has the connection that has replaced this one send the messages that this one has logged. Returns `false` if there is none.
    pub(super) fn hand_over(&self, channel: &Channel) -> bool {
        let mut core = self.lock();
        let Some(busy) = &mut core.busy else { return false };
        let Some(stream) = busy.get_streams.iter_mut().find(|stream| stream.number == channel.number) else {
            return false;
        };
        stream.behind = true;
        let waker = stream.waker.take();
        drop(core);
        waker.into_iter().for_each(Waker::wake);
        self.inbox.notify();
        true
    }

    /// Polls the next message of a GET stream.
    pub(super) fn poll_push(
        &self,
        channel: &Channel,
        extensions: &Extensions,
        task: &mut Context<'_>,
    ) -> Poll<Pushed> {
        let instance = channel.instance;
        let snapshot = self.server.snapshot();
        let mut guard = self.lock();
        let core = &mut *guard;
        if core.ended || self.inbox.is_closed() {
            return Poll::Ready(Pushed::End);
        }
        let Some(busy) = &mut core.busy else { return Poll::Ready(Pushed::End) };
        let own = busy.get_streams.iter_mut().find(|stream| stream.instance == instance);
        if own.is_some_and(|stream| std::mem::take(&mut stream.behind)) {
            return Poll::Ready(Pushed::Behind);
        }
        match busy.get_streams.last() {
            Some(newest) if newest.instance == instance && busy.remote_get_stream.is_none() => {}
            _ => {
                let Some(stream) = busy.get_streams.iter_mut().find(|stream| stream.instance == instance)
                else {
                    return Poll::Ready(Pushed::End);
                };
                stream.waker = Some(task.waker().clone());
                return Poll::Pending;
            }
        }
        if let Some(line) = busy.push_queue.pop() {
            return Poll::Ready(Pushed::Message(line));
        }
        let taken = self.inbox.take(task);
        let Some(peer) = &core.engine.peer().cloned() else { return Poll::Pending };
        let Some(listener) = core.engine.listener() else { return Poll::Pending };
        taken.iter().for_each(|taken| listener.merge(&taken.changes));
        let principal = self.principal.as_deref();
        let mut recipient = Recipient { snapshot: &snapshot, listener, peer, principal, extensions };
        recipient.withhold();
        recipient.next(&self.inbox).map_or(Poll::Pending, |line| Poll::Ready(Pushed::Message(line.into())))
    }
}

#[cfg(test)]
mod tests {
    use pintle_proto::{Limits, server::Engine};

    use super::*;
    use crate::{Server, server::http::session::id::SessionId};

    #[test]
    fn what_waits_for_a_stream_is_bounded_in_bytes_of_a_session_and_of_a_client() {
        let mut limits = Limits::default();
        limits.held_bytes = 64 << 20;
        let server = Server::new("s", "0").limits(limits);
        let session = || Session::new(SessionId::NIL, Some("ann".into()), server.clone(), Engine::new());
        let waiting = |session: &Session| {
            let core = session.lock();
            core.busy.as_ref().map_or((0, 0), |busy| (busy.push_queue.len(), busy.push_queue.bytes()))
        };
        let line = Bytes::from(vec![b'x'; 300 << 10]);
        let sessions: Vec<_> = (0..10).map(|_| session()).collect();
        for session in &sessions {
            (0..10).for_each(|_| session.push_here(line.clone()));
        }
        assert_eq!(waiting(&sessions[0]), (3, 3 * line.len()), "the newest");
        let all: usize = sessions.iter().map(|session| waiting(session).1).sum();
        // The client has a quarter of an eighth of all.
        assert!(all > 1 << 20 && all <= (2 << 20) + sessions.len() * FREE, "{all}");
        let ledger = server.snapshot().service.ledger().clone();
        assert!(ledger.bytes() > 0);
        drop(sessions);
        assert_eq!(ledger.bytes(), 0);
    }
}
