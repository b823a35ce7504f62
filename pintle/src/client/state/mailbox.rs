use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use pintle_proto::client::{Outcome, SendError};
use pintle_types::{RawObject, RequestId};

use super::shared::Shared;
use crate::{Ended, transport::Failed};

/// How much progress of one call may wait for the caller to look: what is older is dropped first.
const MAX_PROGRESS: usize = 64;
/// And how many bytes of it: a step is a few words.
const MAX_PROGRESS_BYTES: usize = 64 << 10;

/// An update of a call, in order.
#[derive(Debug)]
pub(in crate::client) enum CallUpdate {
    /// It goes on.
    Progress(RawObject),
    /// It has ended. The number says which callbacks of the connection came before.
    End(Result<Outcome, CallFailure>, u64),
}

/// Why a request has no answer.
#[derive(Debug)]
pub(in crate::client) enum CallFailure {
    /// It was not sent.
    Unsent(SendError),
    /// The connection ended.
    Closed(Ended),
    /// It failed by itself; the connection goes on.
    Failed(Box<Failed>),
    /// It cannot be sent as it is.
    Misused(String),
    /// It is more than this side's limits, or the server's kindness, allow.
    Refused(String),
    /// The tools are others than those that the policy decided on: it was not sent.
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
    shared: Arc<Shared>,
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
    end: Option<(Result<Outcome, CallFailure>, u64)>,
    /// The request that the call has become.
    request: Option<RequestId>,
    /// Nothing more will be put in.
    closed: bool,
    /// Nobody will look.
    abandoned: bool,
    waker: Option<Waker>,
}

/// A mailbox for one call.
pub(in crate::client) fn mailbox(shared: &Arc<Shared>) -> (CallSender, CallReceiver) {
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

    pub(in crate::client) fn end(self, end: Result<Outcome, CallFailure>, notices: u64) {
        let mut inside = self.mailbox.lock();
        inside.end = Some((end, notices));
        // Dropping `self` wakes the caller.
    }

    /// The call has become this request. Says whether the caller still waits.
    pub(in crate::client) fn sent_as(&self, request: &RequestId) -> bool {
        let mut inside = self.mailbox.lock();
        inside.request = Some(request.clone());
        !inside.abandoned
    }

    /// Whether the caller has gone already.
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
    /// The next thing that happened. After the end there is nothing.
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

    pub(in crate::client) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// How much progress was dropped because the caller did not look in time.
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
