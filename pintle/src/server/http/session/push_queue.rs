//! The GET streams of a session, and what they are to say.

use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::Extensions;

use super::{Busy, MAX_GET_STREAMS, OpenGetStream, Session, channel::Channel};
use crate::server::changes::Recipient;

/// As many messages may wait for a GET stream.
const CAPACITY: usize = 256;

impl Session {
    /// A GET stream is there. It is the newest, so it is the one that is told. Whoever had its number is shown out, and
    /// so are those that are too old.
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
        get_streams.push(OpenGetStream { number, instance, waker: None });
        self.inbox.set_read(true);
        drop(core);
        gone.into_iter().for_each(Waker::wake);
        // The one that was the newest has to see that it is not, or nobody could tell it that it is again.
        self.inbox.notify();
    }

    pub(in crate::server::http) fn remove_get_stream(&self, channel: &Channel) {
        let instance = channel.instance;
        let waker = {
            let mut core = self.lock();
            let waker = core.busy.as_mut().and_then(|busy| {
                busy.get_streams.retain(|stream| stream.instance != instance);
                self.inbox.set_read(!busy.get_streams.is_empty());
                busy.get_streams.last_mut().and_then(|stream| stream.waker.take())
            });
            core.rest();
            waker
        };
        // Now it is another one's turn.
        waker.into_iter().for_each(Waker::wake);
    }

    pub(in crate::server::http) fn has_get_stream(&self) -> bool {
        self.lock().busy.as_ref().is_some_and(|busy| !busy.get_streams.is_empty())
    }

    /// Has the GET stream say something.
    pub(in crate::server::http) fn push(&self, line: Bytes) {
        let mut core = self.lock();
        if core.ended {
            return;
        }
        let queue = &mut core.busy().push_queue;
        if queue.len() >= CAPACITY {
            tracing::debug!("a message was dropped: nobody reads the session's GET stream");
            queue.pop_front();
        }
        queue.push_back(line);
        drop(core);
        self.inbox.notify();
    }

    /// Returns a message that a GET stream has taken and will not send: another one sends it first.
    pub(in crate::server::http) fn push_front(&self, line: Bytes) {
        let mut core = self.lock();
        if core.ended {
            return;
        }
        let queue = &mut core.busy().push_queue;
        if queue.len() >= CAPACITY {
            return tracing::debug!("a message was dropped: nobody reads the session's GET stream");
        }
        queue.push_front(line);
        drop(core);
        self.inbox.notify();
    }

    /// Whether another GET stream has taken over what this one is to send.
    pub(in crate::server::http) fn is_replaced(&self, channel: &Channel) -> bool {
        let instance = channel.instance;
        let core = self.lock();
        let is_open = |busy: &Busy| busy.get_streams.iter().any(|stream| stream.instance == instance);
        !core.ended && !core.busy.as_deref().is_some_and(is_open)
    }

    /// What a GET stream is to say next; `None` if it is over.
    pub(in crate::server::http) fn poll_push(
        &self,
        channel: &Channel,
        extensions: &Extensions,
        task: &mut Context<'_>,
    ) -> Poll<Option<Bytes>> {
        let instance = channel.instance;
        let snapshot = self.server.snapshot();
        let mut guard = self.lock();
        let core = &mut *guard;
        if core.ended || self.inbox.is_closed() {
            return Poll::Ready(None);
        }
        let Some(busy) = &mut core.busy else { return Poll::Ready(None) };
        match busy.get_streams.last() {
            Some(newest) if newest.instance == instance => {}
            _ => {
                let Some(stream) = busy.get_streams.iter_mut().find(|stream| stream.instance == instance)
                else {
                    return Poll::Ready(None);
                };
                stream.waker = Some(task.waker().clone());
                return Poll::Pending;
            }
        }
        if let Some(line) = busy.push_queue.pop_front() {
            return Poll::Ready(Some(line));
        }
        let taken = self.inbox.take(task);
        let Some(peer) = &core.engine.peer().cloned() else { return Poll::Pending };
        let Some(listener) = core.engine.listener() else { return Poll::Pending };
        taken.iter().for_each(|taken| listener.merge(&taken.changes));
        let principal = self.principal.as_deref();
        let mut recipient = Recipient { snapshot: &snapshot, listener, peer, principal, extensions };
        recipient.withhold();
        recipient.next(&self.inbox).map_or(Poll::Pending, |line| Poll::Ready(Some(line.into())))
    }
}
