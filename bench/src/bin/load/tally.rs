//! The results of a measurement, in total and per request.

use std::time::{Duration, Instant};

/// The maximum number of requests and time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) requests: usize,
    pub(crate) time: Duration,
}

/// How long each answer took, and how long all of it.
#[derive(Debug)]
pub(crate) struct Tally {
    waits: Vec<Duration>,
    bounds: Bounds,
    begun: usize,
    began: Instant,
    ended: Instant,
    /// Adds an earlier tally.
    before: Duration,
}

/// One figure of one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// The cost per request: microseconds of CPU time, or bytes.
    pub(crate) cost: f64,
    /// The wall-clock times.
    pub(crate) wall: Option<Wall>,
}

/// Requests in a second, and microseconds that one takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wall {
    pub(crate) per_second: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Tally {
    pub(crate) fn begin(bounds: Bounds) -> Self {
        let now = Instant::now();
        Self {
            waits: Vec::with_capacity(bounds.requests),
            bounds,
            begun: 0,
            began: now,
            ended: now,
            before: Duration::ZERO,
        }
    }

    /// Whether one more may be asked; if so, it is counted as begun.
    pub(crate) fn may_ask(&mut self) -> bool {
        let may = self.begun < self.bounds.requests && self.ended - self.began < self.bounds.time;
        self.begun += usize::from(may);
        may
    }

    /// One was answered that was asked at `since`. When that was.
    pub(crate) fn answered(&mut self, since: Instant) -> Instant {
        self.ended = Instant::now();
        self.waits.push(self.ended - since);
        self.ended
    }

    /// How many were answered.
    pub(crate) fn requests(&self) -> usize {
        self.waits.len()
    }

    /// This, and what was asked before.
    pub(crate) fn after(mut self, other: Self) -> Self {
        self.before += other.wall();
        self.waits.extend(other.waits);
        self
    }

    /// One of which nothing is known but how long it took.
    #[cfg(test)]
    pub(crate) fn lasting(time: Duration) -> Self {
        Self { before: time, ..Self::begin(Bounds { requests: 0, time }) }
    }

    /// How long all of it took.
    pub(crate) fn wall(&self) -> Duration {
        self.before + (self.ended - self.began)
    }

    /// Returns the sample per request for a total cost.
    pub(crate) fn sample(mut self, cpu: Duration) -> Sample {
        self.waits.sort_unstable();
        let requests = self.waits.len().max(1) as f64;
        let wall = Wall {
            per_second: requests / self.wall().as_secs_f64(),
            p50: micros(percentile(&self.waits, 50)),
            p99: micros(percentile(&self.waits, 99)),
        };
        Sample { cost: micros(cpu) / requests, wall: Some(wall) }
    }
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Of sorted values the one that so many in a hundred are not above.
fn percentile(sorted: &[Duration], hundredths: usize) -> Duration {
    let rank = (sorted.len() * hundredths).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_came() {
        let values: Vec<_> = (1..=200).map(Duration::from_micros).collect();
        assert_eq!(percentile(&values, 50), Duration::from_micros(100));
        assert_eq!(percentile(&values, 99), Duration::from_micros(198));
        assert_eq!(percentile(&values[..1], 99), Duration::from_micros(1));
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }

    #[test]
    fn no_more_is_asked_than_may_be() {
        let mut tally = Tally::begin(Bounds { requests: 2, time: Duration::from_secs(600) });
        assert_eq!([tally.may_ask(), tally.may_ask(), tally.may_ask()], [true, true, false]);
        let since = Instant::now();
        tally.answered(since);
        let mut more = Tally::begin(Bounds { requests: 1, time: Duration::from_secs(600) });
        more.answered(since);
        let (first, second) = (tally.wall(), more.wall());
        let tally = more.after(tally);
        assert_eq!((tally.requests(), tally.wall()), (2, first + second));
        assert_eq!(tally.sample(Duration::from_micros(30)).cost, 15.0);
        assert!(!Tally::begin(Bounds { requests: 2, time: Duration::ZERO }).may_ask());
    }
}
