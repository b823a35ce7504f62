use std::time::Duration;

use tokio::time::Instant;

/// A token bucket: a burst, then a fixed number of events per second.
#[derive(Debug)]
pub(crate) struct Rate {
    left: f64,
    at: Option<Instant>,
}

/// The capacity of the bucket.
const BURST: f64 = 256.0;
/// The tokens that are added per second.
const PER_SECOND: f64 = 100.0;

impl Default for Rate {
    fn default() -> Self {
        Self { left: BURST, at: None }
    }
}

impl Rate {
    /// Takes a token. Returns `false` if there is none.
    pub(crate) fn take(&mut self) -> bool {
        // The clock is not read while the burst lasts.
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
