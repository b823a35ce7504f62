use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep};

/// Detects a dead peer with pings.
#[derive(Debug)]
pub(crate) struct Keepalive {
    every: Duration,
    /// The time of the last message of the peer.
    last_received: Instant,
    sleep: Pin<Box<Sleep>>,
    misses: u32,
}

/// The action for a silent peer.
#[derive(Debug)]
pub(crate) enum Silence {
    /// Send a ping.
    Ask,
    /// Close the connection: too many pings were not answered.
    Dead,
}

/// The number of pings that may remain unanswered.
const MISSES: u32 = 2;
/// The longest interval, so that instants do not overflow.
const MAX_INTERVAL: Duration = Duration::from_secs(365 * 24 * 3600);

impl Keepalive {
    pub(crate) fn new(every: Duration) -> Self {
        // The timer has a resolution of milliseconds; a shorter interval would fire without end.
        let every = every.clamp(Duration::from_millis(1), MAX_INTERVAL);
        Self { every, last_received: Instant::now(), sleep: Box::pin(sleep(every)), misses: 0 }
    }

    /// Notes that the peer is alive.
    pub(crate) fn received(&mut self) {
        self.last_received = Instant::now();
        self.misses = 0;
    }

    /// Notes that a ping was sent.
    pub(crate) fn asked(&mut self) {
        self.misses += 1;
    }

    /// Ready when the peer has been silent for an interval.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Silence> {
        while self.sleep.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let due = self.last_received + self.every;
            if self.misses == 0 && due > now {
                // The timer is not reset by every message, but here.
                self.sleep.as_mut().reset(due);
                continue;
            }
            self.sleep.as_mut().reset(now + self.every);
            return Poll::Ready(if self.misses >= MISSES { Silence::Dead } else { Silence::Ask });
        }
        Poll::Pending
    }
}
