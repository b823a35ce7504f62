use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// The retry policy of the HTTP transport.
///
/// A request is sent again only if the server did not process it: the connection failed, or the status was 429 or 503 with
/// `Retry-After`. Broken streams are resumed where the revision supports it.
///
/// ```
/// use pintle::client::http::Retry;
///
/// let mut retry = Retry::default();
/// retry.requests = 0;
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Retry {
    /// Retries of a request that the server did not process. Default: 2.
    pub requests: u32,
    /// Limit of resumptions of a stream in a row without a new event. Default: 5.
    pub resumes: u32,
    /// The first delay; it doubles with each retry. Default: 250 milliseconds.
    pub first_wait: Duration,
    /// The maximum delay. Default: 30 seconds.
    pub max_wait: Duration,
}

/// The minimum delay, even if the server asks for 0.
const SOONEST: Duration = Duration::from_millis(20);

impl Default for Retry {
    fn default() -> Self {
        Self {
            requests: 2,
            resumes: 5,
            first_wait: Duration::from_millis(250),
            max_wait: Duration::from_secs(30),
        }
    }
}

impl Retry {
    /// Returns the delay after this many failures in a row, with up to 25 % of jitter.
    pub(in crate::client::http) fn wait(&self, failures: u32) -> Duration {
        let wait = self.first_wait.saturating_mul(2u32.saturating_pow(failures.min(16))).min(self.max_wait);
        wait + wait.mul_f64(chance() / 4.0)
    }

    /// Returns the delay before a stream is resumed. The server's `retry` is used as is the first time, and is a minimum later.
    pub(in crate::client::http) fn resume_wait(
        &self,
        server_delay: Option<Duration>,
        failures: u32,
    ) -> Duration {
        match server_delay {
            Some(server_delay) if failures == 0 => server_delay.max(SOONEST),
            Some(server_delay) => server_delay.max(self.wait(failures)),
            None => self.wait(failures),
        }
    }
}

/// A random number from 0 to 1, for jitter only.
fn chance() -> f64 {
    let bits = RandomState::new().hash_one(0u8) >> 11;
    bits as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_point_and_differ() {
        let retry = Retry::default();
        for (failures, least) in [(0, 250), (1, 500), (4, 4_000), (9, 30_000), (u32::MAX, 30_000)] {
            let wait = retry.wait(failures).as_millis();
            assert!((least..=least * 5 / 4).contains(&wait), "{failures}: {wait}");
        }
        let waits: std::collections::HashSet<_> = (0..20).map(|_| retry.wait(3)).collect();
        assert!(waits.len() > 1);
    }

    #[test]
    fn what_the_server_says_is_obeyed_to_the_millisecond() {
        let retry = Retry::default();
        let server_delay = Some(Duration::from_millis(500));
        assert_eq!(retry.resume_wait(server_delay, 0), Duration::from_millis(500));
        assert!(retry.resume_wait(server_delay, 6) > Duration::from_secs(15));
        assert_eq!(retry.resume_wait(Some(Duration::ZERO), 0), SOONEST);
        assert!(retry.resume_wait(Some(Duration::from_secs(60)), 3) >= Duration::from_secs(60));
    }
}
