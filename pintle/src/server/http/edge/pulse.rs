use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// A sign of life after each so long a silence. There is no timer before somebody waits.
pub(in crate::server::http) struct Pulse {
    every: Duration,
    /// When there was something last; `None` if that was now, and nobody has waited since.
    last: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

/// No silence is longer: far enough, and no clock runs over.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

impl Pulse {
    pub(in crate::server::http) fn new(every: Duration) -> Self {
        Self { every: every.clamp(Duration::from_millis(1), LONGEST), last: None, sleep: None }
    }

    /// Something was said.
    pub(super) fn beat(&mut self) {
        self.last = None;
    }

    /// Ready when it is time for a sign of life.
    pub(in crate::server::http) fn poll(&mut self, task: &mut Context<'_>) -> Poll<()> {
        let due = *self.last.get_or_insert_with(Instant::now) + self.every;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(due)));
        // The timer is not moved with every word; here it catches up.
        while sleep.as_mut().poll(task).is_ready() {
            if Instant::now() >= due {
                self.last = None;
                sleep.as_mut().reset(Instant::now() + self.every);
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
    async fn silence_is_counted_from_the_last_word() {
        let mut pulse = Pulse::new(Duration::from_secs(10));
        let start = Instant::now();
        let beat = async |pulse: &mut Pulse| {
            poll_fn(|task| pulse.poll(task)).await;
            (Instant::now() - start).as_secs()
        };
        assert_eq!(beat(&mut pulse).await, 10);
        assert!(tokio::time::timeout(Duration::from_secs(6), beat(&mut pulse)).await.is_err());
        pulse.beat();
        assert_eq!(beat(&mut pulse).await, 26);
    }
}
