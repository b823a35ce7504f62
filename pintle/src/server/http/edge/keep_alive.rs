use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// A timer that fires after each interval without output. It is created when it is first polled.
pub(in crate::server::http) struct KeepAlive {
    interval: Duration,
    /// The time of the last output; `None` stands for an instant that was not read yet.
    last: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

/// The limit on the interval, so that instants do not overflow.
const MAX_INTERVAL: Duration = Duration::from_secs(365 * 24 * 3600);

impl KeepAlive {
    pub(in crate::server::http) fn new(interval: Duration) -> Self {
        let interval = interval.clamp(Duration::from_millis(1), MAX_INTERVAL);
        Self { interval, last: None, sleep: None }
    }

    /// Restarts the interval after output.
    pub(super) fn restart(&mut self) {
        self.last = None;
    }

    /// Ready when the interval has passed without output.
    pub(in crate::server::http) fn poll(&mut self, task: &mut Context<'_>) -> Poll<()> {
        let due = *self.last.get_or_insert_with(Instant::now) + self.interval;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(due)));
        // The timer is not reset at every output; it catches up here.
        while sleep.as_mut().poll(task).is_ready() {
            if Instant::now() >= due {
                self.last = None;
                sleep.as_mut().reset(Instant::now() + self.interval);
                return Poll::Ready(());
            }
            sleep.as_mut().reset(due);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_interval_counts_from_the_last_output() {
        let mut keep_alive = KeepAlive::new(Duration::from_secs(10));
        let start = Instant::now();
        let fired = async |keep_alive: &mut KeepAlive| {
            poll_fn(|task| keep_alive.poll(task)).await;
            (Instant::now() - start).as_secs()
        };
        assert_eq!(fired(&mut keep_alive).await, 10);
        assert!(tokio::time::timeout(Duration::from_secs(6), fired(&mut keep_alive)).await.is_err());
        keep_alive.restart();
        assert_eq!(fired(&mut keep_alive).await, 26);
    }
}
