use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use pintle_proto::client::{RequestOutcome, SendError};
use pintle_types::{RawObject, RequestId};

use super::connection_state::ConnectionState;
use crate::{Ended, transport::Failed};

/// Limit of queued progress notifications of a call. The oldest are dropped first.
const MAX_PROGRESS: usize = 64;
/// Limit of their size in bytes.
const MAX_PROGRESS_BYTES: usize = 64 << 10;

/// An update of a call, in order.
#[derive(Debug)]
pub(in crate::client) enum CallUpdate {
    /// A progress notification.
    Progress(RawObject),
    /// The end, and how many callback events came before it.
    End(Result<RequestOutcome, CallFailure>, u64),
}

/// Why a request has no answer.
#[derive(Debug)]
pub(in crate::client) enum CallFailure {
    /// The request could not be sent.
    Unsent(SendError),
    /// The connection ended.
    Closed(Ended),
    /// This request failed; the connection is not affected.
    Failed(Box<Failed>),
    /// The arguments cannot be sent.
    Misused(String),
    /// The request exceeds a limit of the client, or the server refused it.
    Refused(String),
    /// The tools changed after the policy decided; the request was not sent.
    Outdated,
}

/// The driver's end of a call. Dropping it without [`end`](Self::end) reports that the connection is closed.
#[derive(Debug)]
pub(in crate::client) struct CallSender {
    mailbox: Arc<Mailbox>,
}

/// The caller's end of a call. Dropping it before the end cancels the call.
#[derive(Debug)]
pub(in crate::client) struct CallReceiver {
    mailbox: Arc<Mailbox>,
    shared: Arc<ConnectionState>,
    reason: &'static str,
    ended: bool,
}

#[derive(Debug, Default)]
struct Mailbox(Mutex<MailboxState>);

#[derive(Debug, Default)]
struct MailboxState {
    progress: VecDeque<RawObject>,
    progress_bytes: usize,
    dropped: u64,
    end: Option<(Result<RequestOutcome, CallFailure>, u64)>,
    /// The id of the call's request, once it is sent.
    request: Option<RequestId>,
    /// Whether the sender was dropped.
    closed: bool,
    /// Whether the receiver was dropped.
    abandoned: bool,
    waker: Option<Waker>,
}

/// Creates the mailbox of one call.
pub(in crate::client) fn mailbox(shared: &Arc<ConnectionState>) -> (CallSender, CallReceiver) {
    let mailbox = Arc::<Mailbox>::default();
    let post = CallSender { mailbox: mailbox.clone() };
    (post, CallReceiver { mailbox, shared: shared.clone(), reason: "no longer wanted", ended: false })
}

impl CallSender {
    pub(in crate::client) fn progress(&self, params: RawObject) {
        let mut inside = self.mailbox.lock();
        let bytes = params.as_str().len();
        while inside.progress.len() >= MAX_PROGRESS || inside.progress_bytes + bytes > MAX_PROGRESS_BYTES {
            inside.dropped += 1;
            if inside.pop_progress().is_none() {
                break;
            }
        }
        if bytes <= MAX_PROGRESS_BYTES {
            inside.progress_bytes += bytes;
            inside.progress.push_back(params);
        }
        inside.wake();
    }

    pub(in crate::client) fn end(self, end: Result<RequestOutcome, CallFailure>, notices: u64) {
        let mut inside = self.mailbox.lock();
        inside.end = Some((end, notices));
        // Dropping `self` wakes the caller.
    }

    /// Sets the id of the call's request. Returns whether the caller still waits.
    pub(in crate::client) fn sent_as(&self, request: &RequestId) -> bool {
        let mut inside = self.mailbox.lock();
        inside.request = Some(request.clone());
        !inside.abandoned
    }

    /// Whether the caller no longer waits.
    pub(in crate::client) fn is_abandoned(&self) -> bool {
        self.mailbox.lock().abandoned
    }
}

impl Drop for CallSender {
    fn drop(&mut self) {
        let mut inside = self.mailbox.lock();
        inside.closed = true;
        inside.wake();
    }
}

impl CallReceiver {
    /// Returns the next update. Not to be called after the end.
    pub(in crate::client) async fn next(&mut self) -> CallUpdate {
        let letter = poll_fn(|cx| self.mailbox.poll_next(cx)).await;
        match letter {
            Some(letter) => {
                self.ended |= matches!(letter, CallUpdate::End(..));
                letter
            }
            None => {
                self.ended = true;
                CallUpdate::End(Err(CallFailure::Closed(self.shared.how_ended())), 0)
            }
        }
    }

    pub(in crate::client) fn shared(&self) -> &Arc<ConnectionState> {
        &self.shared
    }

    /// Returns how many progress notifications were dropped because the queue was full.
    pub(in crate::client) fn dropped(&self) -> u64 {
        self.mailbox.lock().dropped
    }

    /// Sets the reason that is sent to the server when this is dropped.
    pub(in crate::client) fn because(&mut self, reason: &'static str) {
        self.reason = reason;
    }
}

impl Drop for CallReceiver {
    fn drop(&mut self) {
        if !self.ended {
            let mut inside = self.mailbox.lock();
            inside.abandoned = true;
            let request = inside.request.take();
            drop(inside);
            // What was not sent yet is not sent any more.
            if let Some(request) = request {
                self.shared.signals.give_up(request, self.reason);
            }
        }
    }
}

impl Mailbox {
    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<CallUpdate>> {
        let mut inside = self.lock();
        if let Some(params) = inside.pop_progress() {
            return Poll::Ready(Some(CallUpdate::Progress(params)));
        }
        if let Some((end, notices)) = inside.end.take() {
            return Poll::Ready(Some(CallUpdate::End(end, notices)));
        }
        if inside.closed {
            return Poll::Ready(None);
        }
        match &mut inside.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, MailboxState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MailboxState {
    fn pop_progress(&mut self) -> Option<RawObject> {
        let params = self.progress.pop_front()?;
        self.progress_bytes -= params.as_str().len();
        Some(params)
    }

    fn wake(&mut self) {
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_that_waits_is_bounded_in_bytes() {
        let post = CallSender { mailbox: Arc::default() };
        let step = |bytes: usize| format!(r#"{{"x":"{}"}}"#, "x".repeat(bytes)).parse::<RawObject>().unwrap();
        (0..3).for_each(|_| post.progress(step(30 << 10)));
        post.progress(step(1));
        let held = |post: &CallSender| {
            let inside = post.mailbox.lock();
            (inside.progress.len(), inside.dropped, inside.progress_bytes)
        };
        assert_eq!(held(&post), (3, 1, 2 * ((30 << 10) + 8) + 9));
        // One that nobody would read is none.
        post.progress(step(1 << 20));
        assert_eq!(held(&post), (0, 5, 0));
    }
}
