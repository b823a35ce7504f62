use std::time::Duration;

use tokio::time::Instant;

/// How often something may happen: a burst at once, then so many a second.
#[derive(Debug)]
pub(crate) struct Rate {
    left: f64,
    at: Option<Instant>,
}

/// Messages that may come at once.
const BURST: f64 = 256.0;
/// How many more each second brings.
const PER_SECOND: f64 = 100.0;

impl Default for Rate {
    fn default() -> Self {
        Self { left: BURST, at: None }
    }
}

impl Rate {
    /// Takes one. `false` if there is none left for now.
    pub(crate) fn take(&mut self) -> bool {
        // As long as the burst lasts nobody looks at the clock.
        if self.left < 1.0 {
            let now = Instant::now();
            let since = self.at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
            self.at = Some(now);
            self.left = (self.left + since.as_secs_f64() * PER_SECOND).min(BURST);
        }
        let enough = self.left >= 1.0;
        if enough {
            self.left -= 1.0;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_and_then_a_trickle() {
        let mut rate = Rate::default();
        let mut taken = |times: usize| (0..times).filter(|_| rate.take()).count();
        assert_eq!(taken(10_000), 256);
        tokio::time::advance(Duration::from_millis(105)).await;
        assert_eq!(taken(10_000), 10);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(taken(10_000), 256);
    }
}
