use std::{
    collections::HashMap,
    future::ready,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::server::{RateFuture, RateLease, RateRequest, RateStore};

/// The limit of buckets. The one that was used least recently is dropped for a new one.
const MAX_BUCKETS: usize = 10_000;

/// A [`RateStore`] in memory, for services of one process and for tests.
///
/// ```
/// use std::time::Duration;
/// use pintle::server::{MemoryRateStore, RateRequest, RateStore as _};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// let rates = MemoryRateStore::new();
/// let request = RateRequest::new("ann", 1, Duration::from_secs(60));
/// assert_eq!(rates.take(&request).await?.calls, 1);
/// assert_eq!(rates.take(&request).await?.calls, 0);
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct MemoryRateStore(Mutex<HashMap<String, (f64, Instant)>>);

impl MemoryRateStore {
    /// Creates a store whose buckets are full.
    pub fn new() -> Self {
        Self::default()
    }
}

impl RateStore for MemoryRateStore {
    fn take<'a>(&'a self, request: &'a RateRequest) -> RateFuture<'a> {
        let now = Instant::now();
        let capacity = f64::from(request.calls.max(1));
        let per_second = capacity / request.window.as_secs_f64().max(0.001);
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(&request.bucket) {
            let oldest = buckets.iter().min_by_key(|(_, (_, at))| *at).map(|(key, _)| key.clone());
            oldest.map(|oldest| buckets.remove(&oldest));
        }
        let (left, at) = buckets.entry(request.bucket.clone()).or_insert((capacity, now));
        let since = now.saturating_duration_since(*at).as_secs_f64();
        let filled = (*left + since * per_second).min(capacity) - f64::from(request.spent);
        let filled = filled.max(-capacity);
        let taken = filled.floor().clamp(0.0, f64::from(request.wanted));
        (*left, *at) = (filled - taken, now);
        let missing = (1.0 - *left).max(0.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is at most what was wanted"
        )]
        let lease = RateLease::new(taken as u32, Duration::from_secs_f64(missing / per_second));
        Box::pin(ready(Ok(lease)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn buckets_are_bounded() {
        let rates = MemoryRateStore::new();
        for number in 0..=MAX_BUCKETS {
            let request = RateRequest::new(number.to_string(), 1, Duration::from_secs(60));
            assert_eq!(rates.take(&request).await.unwrap().calls, 1);
        }
        assert_eq!(rates.0.lock().unwrap().len(), MAX_BUCKETS);
    }
}
