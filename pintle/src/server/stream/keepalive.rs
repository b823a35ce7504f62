use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep};

/// Finds out whether a silent peer is still there.
#[derive(Debug)]
pub(crate) struct Keepalive {
    every: Duration,
    /// When the peer was last heard of.
    last_received: Instant,
    sleep: Pin<Box<Sleep>>,
    misses: u32,
}

/// What there is to do about a silent peer.
#[derive(Debug)]
pub(crate) enum Silence {
    /// Ask whether it is there.
    Ask,
    /// It did not answer: it is gone.
    Dead,
}

/// Pings that may go unanswered.
const MISSES: u32 = 2;
/// No interval is longer: far enough, and no clock runs over.
const MAX_INTERVAL: Duration = Duration::from_secs(365 * 24 * 3600);

impl Keepalive {
    pub(crate) fn new(every: Duration) -> Self {
        // The clock counts milliseconds; less than one would never end.
        let every = every.clamp(Duration::from_millis(1), MAX_INTERVAL);
        Self { every, last_received: Instant::now(), sleep: Box::pin(sleep(every)), misses: 0 }
    }

    /// The peer gave a sign of life.
    pub(crate) fn received(&mut self) {
        self.last_received = Instant::now();
        self.misses = 0;
    }

    /// A question was sent; the answer is owed.
    pub(crate) fn asked(&mut self) {
        self.misses += 1;
    }

    /// Ready when the peer was silent for too long.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Silence> {
        while self.sleep.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let due = self.last_received + self.every;
            if self.misses == 0 && due > now {
                // The timer is not moved with every message; here it catches up.
                self.sleep.as_mut().reset(due);
                continue;
            }
            self.sleep.as_mut().reset(now + self.every);
            return Poll::Ready(if self.misses >= MISSES { Silence::Dead } else { Silence::Ask });
        }
        Poll::Pending
    }
}
