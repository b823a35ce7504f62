//! Which call a question or a log message of the server belongs to.

use std::sync::atomic::Ordering;

use pintle_types::{RequestId, method};

use super::{Driver, Waiter};

/// The cancellations after which a message without a stream may still belong to the cancelled call.
///
/// A server that has not read a cancellation may ask something for the cancelled call. An answer to a request that was sent
/// later shows that it has read it.
#[derive(Debug, Default)]
pub(super) struct Cancellations {
    /// The highest id that was in use when the last call was cancelled.
    unread: Option<i64>,
}

impl Cancellations {
    pub(super) fn add(&mut self, id: &RequestId) {
        self.unread = self.unread.max(id.as_number());
    }

    pub(super) fn answered(&mut self, id: &RequestId) {
        self.unread.take_if(|highest| id.as_number().is_some_and(|id| id > *highest));
    }

    pub(super) fn clear(&mut self) {
        self.unread = None;
    }
}

impl Driver {
    /// The call that the message which was received last belongs to, if that is certain: the call on whose HTTP stream it arrived,
    /// or, over a pipe or HTTP+SSE, the only call in flight.
    pub(super) fn call_of_message(&self) -> Option<RequestId> {
        if let Some(id) = self.transport.stream_request() {
            return Some(id.clone());
        }
        if self.shared.has_streams.load(Ordering::Relaxed) || self.cancellations.unread.is_some() {
            return None;
        }
        let mut calls = self.waiting.iter().filter(|(id, waiter)| self.may_ask(id, waiter));
        calls.next().filter(|_| calls.next().is_none()).map(|(id, _)| id.clone())
    }

    /// Records that a call was cancelled. Called before the engine forgets it.
    pub(super) fn note_cancellation(&mut self, id: &RequestId, waiter: &Waiter) {
        if self.may_ask(id, waiter) {
            self.cancellations.add(id);
            self.waiting.keys().for_each(|open| self.cancellations.add(open));
        }
    }

    /// Whether the server may ask something for this request: a call, a read, a prompt, the result of a task, or a custom method.
    fn may_ask(&self, id: &RequestId, waiter: &Waiter) -> bool {
        let Waiter::Call(_) = waiter else { return false };
        let row = self.engine.method(id).and_then(method::find);
        row.is_none_or(|row| row.may_ask || row.name == method::TASKS_RESULT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancellation_is_read_when_a_later_request_is_answered() {
        let mut cancellations = Cancellations::default();
        cancellations.add(&3.into());
        cancellations.add(&5.into());
        cancellations.add(&2.into());
        cancellations.answered(&5.into());
        assert_eq!(cancellations.unread, Some(5));
        cancellations.answered(&6.into());
        assert_eq!(cancellations.unread, None);
    }
}
