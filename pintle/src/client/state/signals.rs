use std::{
    future::poll_fn,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use pintle_types::RequestId;

/// Signals to the driver of a connection from code that cannot wait: destructors and callbacks.
///
/// Bounded, because each call is cancelled at most once.
#[derive(Debug, Default)]
pub(in crate::client) struct Signals(Mutex<SignalsInner>);

#[derive(Debug, Default)]
struct SignalsInner {
    raised: Raised,
    waker: Option<Waker>,
}

/// The signals since the last poll.
#[derive(Debug, Default)]
pub(in crate::client) struct Raised {
    /// Cancelled calls, with the reason.
    pub(in crate::client) given_up: Vec<(RequestId, &'static str)>,
    /// The client's roots have changed.
    pub(in crate::client) roots: bool,
    /// The connection is to be closed. Never reset.
    pub(in crate::client) close: bool,
}

impl Raised {
    fn is_nothing(&self) -> bool {
        self.given_up.is_empty() && !self.roots && !self.close
    }
}

impl Signals {
    pub(in crate::client) fn give_up(&self, request: RequestId, reason: &'static str) {
        self.raise(|raised| raised.given_up.push((request, reason)));
    }

    pub(in crate::client) fn roots_changed(&self) {
        self.raise(|raised| raised.roots = true);
    }

    pub(in crate::client) fn close(&self) {
        self.raise(|raised| raised.close = true);
    }

    /// Whether no signal is pending.
    pub(in crate::client) fn is_idle(&self) -> bool {
        self.lock().raised.is_nothing()
    }

    /// Takes the pending signals, or registers the task to be woken by the next one.
    pub(in crate::client) fn poll(&self, cx: &mut Context<'_>) -> Poll<Raised> {
        let mut inside = self.lock();
        if inside.raised.is_nothing() {
            match &mut inside.waker {
                Some(waker) => waker.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            return Poll::Pending;
        }
        let close = inside.raised.close;
        Poll::Ready(std::mem::replace(&mut inside.raised, Raised { close, ..Raised::default() }))
    }

    /// Ready when the connection is to be closed; leaves the rest for later.
    pub(in crate::client) async fn closing(&self) {
        poll_fn(|cx| {
            let mut inside = self.lock();
            if inside.raised.close {
                return Poll::Ready(());
            }
            inside.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn raise(&self, change: impl FnOnce(&mut Raised)) {
        let mut inside = self.lock();
        change(&mut inside.raised);
        let waker = inside.waker.take();
        drop(inside);
        waker.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, SignalsInner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
