use std::time::Duration;

/// The upper bounds of the buckets, in seconds: those of the OpenTelemetry conventions for MCP, and two below them.
const BOUNDS: [f64; 16] =
    [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// Counts of durations, in buckets.
#[derive(Clone, Debug, Default)]
pub(in crate::verbs::gateway) struct Durations {
    counts: [u64; BOUNDS.len()],
    /// Those above the last bound.
    above: u64,
    sum: Duration,
}

impl Durations {
    pub(in crate::verbs::gateway) fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BOUNDS.iter().zip(&mut self.counts).find(|(bound, _)| seconds <= **bound);
        *bucket.map_or(&mut self.above, |(_, count)| count) += 1;
        self.sum += duration;
    }

    /// Adds what another one has counted.
    pub(in crate::verbs::gateway) fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self.above += other.above;
        self.sum += other.sum;
    }

    /// Returns the upper bound of each bucket, and the count of durations up to it. The last one has no bound.
    pub(in crate::verbs::gateway) fn buckets(&self) -> impl Iterator<Item = (Option<f64>, u64)> {
        let bounds = BOUNDS.iter().map(|bound| Some(*bound)).chain([None]);
        let counts = self.counts.iter().copied().chain([self.above]);
        bounds.zip(counts).scan(0, |all, (bound, count)| {
            *all += count;
            Some((bound, *all))
        })
    }

    pub(in crate::verbs::gateway) fn count(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.above
    }

    pub(in crate::verbs::gateway) fn sum(&self) -> Duration {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_by_each_bound_that_it_is_not_above() {
        let mut durations = Durations::default();
        for millis in [1, 2, 400, 400_000] {
            durations.add(Duration::from_millis(millis));
        }
        let buckets: Vec<_> = durations.buckets().collect();
        assert_eq!(
            (buckets[0], buckets[1], buckets[6]),
            ((Some(0.001), 1), (Some(0.005), 2), (Some(0.2), 2))
        );
        assert_eq!((buckets[7], buckets[15], buckets[16]), ((Some(0.5), 3), (Some(300.0), 3), (None, 4)));
        assert_eq!((durations.count(), durations.sum()), (4, Duration::from_millis(400_403)));
    }
}
