use std::time::Duration;

/// How a server that went away is connected to again.
///
/// ```
/// use std::time::Duration;
/// use pintle_host::Redial;
///
/// let redial = Redial::new(Duration::from_secs(1), Duration::from_secs(30)).attempts(10);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Redial {
    first: Duration,
    max: Duration,
    attempts: Option<u32>,
}

/// A connection that has held for so long is not blamed for having been lost before.
pub(super) const STEADY: Duration = Duration::from_secs(30);

impl Default for Redial {
    /// After half a second, then after twice the time before, at most a minute, without a limit of attempts.
    fn default() -> Self {
        Self::new(Duration::from_millis(500), Duration::from_secs(60))
    }
}

impl Redial {
    /// The delay before the first attempt, which doubles with every failure, and its maximum.
    pub fn new(first: Duration, max: Duration) -> Self {
        Self { first, max, attempts: None }
    }

    /// No second attempt, unless [`Group::redial`](super::Group::redial) asks for one.
    pub fn never() -> Self {
        Self { attempts: Some(0), ..Self::default() }
    }

    /// Sets how many attempts in a row may fail before it is given up.
    pub fn attempts(mut self, limit: u32) -> Self {
        self.attempts = Some(limit);
        self
    }

    /// The delay after so many failures in a row; `None` if it is given up.
    pub(super) fn delay(&self, failures: u32) -> Option<Duration> {
        if self.attempts.is_some_and(|limit| failures > limit) {
            return None;
        }
        let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        Some(self.first.saturating_mul(factor).min(self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_limit() {
        let redial = Redial::new(Duration::from_secs(1), Duration::from_secs(5)).attempts(40);
        let delays: Vec<_> = (1..=4).map(|failures| redial.delay(failures).unwrap().as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 5]);
        assert_eq!(redial.delay(40), Some(Duration::from_secs(5)));
        assert_eq!(redial.delay(41), None);
        assert_eq!(Redial::never().delay(1), None);
    }
}
