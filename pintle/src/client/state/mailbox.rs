use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use http::HeaderMap;
use pintle_proto::client::{RequestOutcome, SendError};
use pintle_types::{RawObject, RequestId};

use super::connection_state::ConnectionState;
use crate::{Ended, client::asking::Handlers, transport::Failed};

/// Limits of queued progress notifications of a call, in number and bytes. The oldest are dropped first.
const MAX_PROGRESS: (usize, usize) = (64, 64 << 10);
/// Limits of queued log messages of a call, in number and bytes. The oldest are dropped first.
const MAX_LOGS: (usize, usize) = (1024, 1 << 20);

/// An update of a call, in order.
#[derive(Debug)]
pub(in crate::client) enum CallUpdate {
    /// A progress notification.
    Progress(RawObject),
    /// A log message of this call.
    Log(RawObject),
    /// The server ended the stream of this call for now. It is resumed after this time.
    StreamPaused(Duration),
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
    /// The handlers of this call alone.
    handlers: Option<Arc<CallHandlers>>,
}

/// The handlers of one call, which take precedence over those of the client.
#[derive(Clone, Debug, Default)]
pub(in crate::client) struct CallHandlers {
    pub(in crate::client) questions: Handlers,
    /// The client's capabilities with these handlers, if they add to those of the client.
    pub(in crate::client) capabilities: Option<RawObject>,
    /// Whether the call has a callback for log messages.
    pub(in crate::client) logs: bool,
    /// Headers that repeat arguments which no known schema names, of another client.
    pub(in crate::client) headers: HeaderMap,
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
    notices: VecDeque<CallNotice>,
    progress: QueueSize,
    logs: QueueSize,
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

/// A notification of a call.
#[derive(Debug)]
enum CallNotice {
    Progress(RawObject),
    Log(RawObject),
    StreamPaused(Duration),
}

/// The number and the size of queued notices of one kind.
#[derive(Debug, Default)]
struct QueueSize {
    count: usize,
    bytes: usize,
}

/// Creates the mailbox of one call.
pub(in crate::client) fn mailbox(shared: &Arc<ConnectionState>) -> (CallSender, CallReceiver) {
    let mailbox = Arc::<Mailbox>::default();
    let post = CallSender { mailbox: mailbox.clone(), handlers: None };
    (post, CallReceiver { mailbox, shared: shared.clone(), reason: "no longer wanted", ended: false })
}

impl CallSender {
    /// Sets the handlers of this call.
    pub(in crate::client) fn with_handlers(self, handlers: Option<Arc<CallHandlers>>) -> Self {
        // `CallSender` has a destructor, so its fields cannot be moved out.
        let mut sender = self;
        sender.handlers = handlers;
        sender
    }

    /// The handlers of this call, if it has any.
    pub(in crate::client) fn handlers(&self) -> Option<&Arc<CallHandlers>> {
        self.handlers.as_ref()
    }

    pub(in crate::client) fn progress(&self, params: RawObject) {
        self.push(CallNotice::Progress(params));
    }

    pub(in crate::client) fn log(&self, params: RawObject) {
        self.push(CallNotice::Log(params));
    }

    pub(in crate::client) fn stream_paused(&self, wait: Duration) {
        self.push(CallNotice::StreamPaused(wait));
    }

    fn push(&self, notice: CallNotice) {
        let mut inside = self.mailbox.lock();
        inside.push(notice);
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
        if let Some(notice) = inside.pop() {
            return Poll::Ready(Some(match notice {
                CallNotice::Progress(params) => CallUpdate::Progress(params),
                CallNotice::Log(params) => CallUpdate::Log(params),
                CallNotice::StreamPaused(wait) => CallUpdate::StreamPaused(wait),
            }));
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
    /// Queues a notice, in place of the oldest of its kind if the queue is full.
    fn push(&mut self, notice: CallNotice) {
        // One that was not read yet says the same.
        if notice.is_pause() && self.notices.iter().any(CallNotice::is_pause) {
            return;
        }
        let (is_log, bytes) = (notice.is_log(), notice.bytes());
        let (max_count, max_bytes) = if is_log { MAX_LOGS } else { MAX_PROGRESS };
        loop {
            let size = self.size_of(is_log);
            if size.count < max_count && size.bytes + bytes <= max_bytes {
                break;
            }
            self.dropped += 1;
            let oldest = self.notices.iter().position(|notice| notice.is_log() == is_log);
            let Some(oldest) = oldest.and_then(|at| self.notices.remove(at)) else { return };
            self.forget(&oldest);
        }
        let size = self.size_of(is_log);
        size.count += 1;
        size.bytes += bytes;
        self.notices.push_back(notice);
    }

    fn pop(&mut self) -> Option<CallNotice> {
        let notice = self.notices.pop_front()?;
        self.forget(&notice);
        Some(notice)
    }

    fn forget(&mut self, notice: &CallNotice) {
        let size = self.size_of(notice.is_log());
        size.count -= 1;
        size.bytes -= notice.bytes();
    }

    fn size_of(&mut self, is_log: bool) -> &mut QueueSize {
        if is_log { &mut self.logs } else { &mut self.progress }
    }

    fn wake(&mut self) {
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

impl CallNotice {
    fn is_log(&self) -> bool {
        matches!(self, Self::Log(_))
    }

    fn is_pause(&self) -> bool {
        matches!(self, Self::StreamPaused(_))
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Progress(params) | Self::Log(params) => params.as_str().len(),
            Self::StreamPaused(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_that_waits_is_bounded_in_bytes() {
        let post = CallSender { mailbox: Arc::default(), handlers: None };
        let step = |bytes: usize| format!(r#"{{"x":"{}"}}"#, "x".repeat(bytes)).parse::<RawObject>().unwrap();
        (0..3).for_each(|_| post.progress(step(30 << 10)));
        post.progress(step(1));
        let held = |post: &CallSender| {
            let inside = post.mailbox.lock();
            (inside.progress.count, inside.dropped, inside.progress.bytes)
        };
        assert_eq!(held(&post), (3, 1, 2 * ((30 << 10) + 8) + 9));
        // One that nobody would read is none.
        post.progress(step(1 << 20));
        assert_eq!(held(&post), (0, 5, 0));
    }

    #[test]
    fn a_server_that_ends_a_stream_again_and_again_fills_no_queue() {
        let post = CallSender { mailbox: Arc::default(), handlers: None };
        post.progress("{}".parse().unwrap());
        (0..2000).for_each(|_| post.stream_paused(Duration::from_millis(20)));
        let mut inside = post.mailbox.lock();
        assert_eq!((inside.notices.len(), inside.dropped), (2, 0));
        assert!(matches!(inside.pop(), Some(CallNotice::Progress(_))));
        assert!(matches!(inside.pop(), Some(CallNotice::StreamPaused(_))));
        assert_eq!((inside.progress.count, inside.progress.bytes), (0, 0));
    }

    #[test]
    fn log_messages_that_wait_are_bounded_and_do_not_displace_progress() {
        let post = CallSender { mailbox: Arc::default(), handlers: None };
        let notice =
            |bytes: usize| format!(r#"{{"x":"{}"}}"#, "x".repeat(bytes)).parse::<RawObject>().unwrap();
        post.progress(notice(1));
        (0..2000).for_each(|_| post.log(notice(1)));
        let held = |post: &CallSender| {
            let inside = post.mailbox.lock();
            (inside.progress.count, inside.logs.count, inside.logs.bytes, inside.notices.len())
        };
        assert_eq!(held(&post), (1, 1024, 1024 * 9, 1025));
        (0..3).for_each(|_| post.log(notice(600 << 10)));
        assert_eq!(held(&post), (1, 1, (600 << 10) + 8, 2));
        // One that is larger than the whole buffer displaces all others of its kind.
        post.log(notice(2 << 20));
        assert_eq!(held(&post), (1, 0, 0, 1));
        assert_eq!(post.mailbox.lock().dropped, 2004);
    }
}
