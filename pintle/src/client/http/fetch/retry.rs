use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// What is tried again, and when.
///
/// A request is sent again only if the server did not take it: no connection could be made, or it said to come back
/// later (429 or 503 with `Retry-After`). Streams that broke are taken up again where the protocol has that.
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
    /// How often a request is sent again that did not arrive. 2.
    pub requests: u32,
    /// How often in a row a call's stream is taken up again without anything new coming. 5.
    pub resumes: u32,
    /// The first wait; each is twice the one before. 250 milliseconds.
    pub first: Duration,
    /// The longest wait. 30 seconds.
    pub longest: Duration,
}

/// However little a server asks for: one that says 0 and hangs up each time would keep us busy with nothing.
const SOONEST: Duration = Duration::from_millis(20);

impl Default for Retry {
    fn default() -> Self {
        Self { requests: 2, resumes: 5, first: Duration::from_millis(250), longest: Duration::from_secs(30) }
    }
}

impl Retry {
    /// How long to wait after so many failures in a row. Up to a quarter longer than it need be, by chance, so that
    /// those who lost the same server do not all come back at once.
    pub(in crate::client::http) fn wait(&self, failures: u32) -> Duration {
        let wait = self.first.saturating_mul(2u32.saturating_pow(failures.min(16))).min(self.longest);
        wait + wait.mul_f64(chance() / 4.0)
    }

    /// The same for a stream whose server has said how long to wait: exactly that, the first time, if it is any time.
    pub(in crate::client::http) fn wait_told(&self, told: Option<Duration>, failures: u32) -> Duration {
        match told {
            Some(told) if failures == 0 => told.max(SOONEST),
            Some(told) => told.max(self.wait(failures)),
            None => self.wait(failures),
        }
    }
}

/// From 0 to 1. Good enough to spread waits, and for nothing else.
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
        let told = Some(Duration::from_millis(500));
        assert_eq!(retry.wait_told(told, 0), Duration::from_millis(500));
        assert!(retry.wait_told(told, 6) > Duration::from_secs(15));
        assert_eq!(retry.wait_told(Some(Duration::ZERO), 0), SOONEST);
        assert!(retry.wait_told(Some(Duration::from_secs(60)), 3) >= Duration::from_secs(60));
    }
}
