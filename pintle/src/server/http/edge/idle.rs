//! The deadlines of a connection on which nothing happens.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Instant;

use crate::server::access::peer_address::PeerAddress;

/// The limits on the time a connection may spend without activity.
#[derive(Clone, Copy, Debug)]
pub(in crate::server::http) struct IdleLimits {
    /// From the opening of the connection, or the first byte of a request, to the end of the request's head.
    pub(in crate::server::http) head: Duration,
    /// From the end of a response to the first byte of the next request.
    pub(in crate::server::http) idle: Duration,
    /// For output that the client does not read.
    pub(in crate::server::http) write: Duration,
}

/// The activity of one connection, and the deadline that follows from it.
///
/// The connection has one timer for its whole life, which consults this clock when it fires: a timer for each request
/// would cost more than the rest of this module.
#[derive(Debug)]
pub(in crate::server::http) struct IdleClock {
    limits: IdleLimits,
    /// The client's address, for a service that looks it up here instead of in the extensions of a request.
    pub(in crate::server::http) lazy_peer_address: Option<PeerAddress>,
    has_request: AtomicBool,
    state: Mutex<IdleState>,
}

#[derive(Debug)]
struct IdleState {
    requests: usize,
    /// The end of the last response, or the first byte after it; `None` if that is now, and nobody has read the clock yet.
    since: Option<Instant>,
    limit: Duration,
    /// The instant since which the client has read none of the pending output.
    stalled: Option<Instant>,
    /// Whether a request was answered before its whole body had been read.
    unread: bool,
}

/// The interval between two checks while a request is active: a limit of zero must not make the timer spin.
const MIN_CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl IdleClock {
    pub(in crate::server::http) fn new(
        limits: IdleLimits,
        lazy_peer_address: Option<PeerAddress>,
    ) -> Arc<Self> {
        let state = IdleState {
            requests: 0,
            since: Some(Instant::now()),
            limit: limits.head,
            stalled: None,
            unread: false,
        };
        Arc::new(Self {
            limits,
            lazy_peer_address,
            has_request: AtomicBool::new(false),
            state: Mutex::new(state),
        })
    }

    /// Returns the instant at which the connection is closed unless a request arrives or pending output is read. `None`
    /// while a request is active and output is not stalled. Call it after every event.
    pub(in crate::server::http) fn deadline(&self) -> Option<Instant> {
        let mut state = self.lock();
        if let Some(stalled) = state.stalled {
            return Some(stalled + self.limits.write);
        }
        if state.requests > 0 {
            return None;
        }
        Some(*state.since.get_or_insert_with(Instant::now) + state.limit)
    }

    /// Returns the instant at which the timer checks the deadline again.
    pub(super) fn next_check(&self) -> Instant {
        let interval = || self.limits.head.min(self.limits.idle).max(MIN_CHECK_INTERVAL);
        self.deadline().unwrap_or_else(|| Instant::now() + interval())
    }

    /// Counts a request as active until the returned guard is dropped.
    pub(in crate::server::http) fn start_request(self: &Arc<Self>) -> ActiveRequest {
        let mut state = self.lock();
        state.requests += 1;
        self.has_request.store(true, Ordering::Relaxed);
        drop(state);
        ActiveRequest(self.clone())
    }

    /// Returns whether a request is active.
    pub(super) fn has_request(&self) -> bool {
        self.has_request.load(Ordering::Relaxed)
    }

    /// Records that a request's body was dropped before its end: the client may still be sending it.
    pub(super) fn body_left_unread(&self) {
        self.lock().unread = true;
    }

    /// Returns whether a request's body was dropped before its end.
    pub(super) fn has_unread_body(&self) -> bool {
        self.lock().unread
    }

    /// Records whether the client has stopped reading pending output.
    pub(super) fn set_stalled(&self, stalled: bool) {
        let mut state = self.lock();
        state.stalled = if stalled { state.stalled.or_else(|| Some(Instant::now())) } else { None };
        if !stalled && state.requests == 0 {
            // A response that is still being read counts as activity.
            state.since = Some(Instant::now());
        }
    }

    /// Records received bytes: the start of a request's head, unless a request is active.
    pub(super) fn bytes_received(&self) {
        let mut state = self.lock();
        // The limit counts from the first byte, not from the latest: a head sent byte by byte does not extend it.
        if state.requests == 0 && state.limit == self.limits.idle && self.limits.head < self.limits.idle {
            // Most heads are complete, and then their request is active before anybody asks for the deadline.
            state.since = None;
            state.limit = self.limits.head;
        }
    }

    fn lock(&self) -> MutexGuard<'_, IdleState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard for a request whose response has not been sent completely.
#[derive(Debug)]
pub(in crate::server::http) struct ActiveRequest(Arc<IdleClock>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.requests -= 1;
        if state.requests == 0 {
            self.0.has_request.store(false, Ordering::Relaxed);
            state.since = Some(Instant::now());
            state.limit = self.0.limits.idle;
        }
    }
}

pin_project! {
    /// A response body that keeps its request active until it is dropped.
    pub(in crate::server::http) struct TrackedBody<B> {
        #[pin]
        body: B,
        request: ActiveRequest,
    }
}

impl<B> TrackedBody<B> {
    pub(in crate::server::http) fn new(body: B, request: ActiveRequest) -> Self {
        Self { body, request }
    }
}

impl<B: Body> Body for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_idle_limit_of_zero_does_not_make_the_timer_spin() {
        let clock = IdleClock::new(
            IdleLimits { head: Duration::from_secs(30), idle: Duration::ZERO, write: Duration::MAX },
            None,
        );
        let request = clock.start_request();
        assert_eq!(clock.deadline(), None);
        assert!(clock.next_check() >= Instant::now() + MIN_CHECK_INTERVAL);
        drop(request);
        assert_eq!(clock.deadline(), Some(Instant::now()), "the connection is closed at once");
    }
}
