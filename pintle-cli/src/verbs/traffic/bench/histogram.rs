use std::time::Duration;

/// The number of buckets of each power of two is 2 to this: a value is known to 1.6 %.
const PRECISION: u32 = 6;
const PER_POWER: usize = 1 << PRECISION;

/// Counts of times, in buckets whose width grows with the time. Its size does not depend on how many there are.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Histogram {
    pub(super) fn new() -> Self {
        let buckets = (64 - PRECISION as usize + 1) * PER_POWER;
        Self { counts: vec![0; buckets], count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    pub(super) fn record(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanos)] += 1;
        self.count += 1;
        self.sum += u128::from(nanos);
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn min(&self) -> Duration {
        Duration::from_nanos(if self.count == 0 { 0 } else { self.min })
    }

    pub(super) fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    pub(super) fn mean(&self) -> Duration {
        let mean = self.sum / u128::from(self.count.max(1));
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// Returns the time that a share of the values does not exceed.
    pub(super) fn quantile(&self, share: f64) -> Duration {
        let rank = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(end_of(at).clamp(self.min.min(self.max), self.max));
            }
        }
        self.max()
    }

    /// Returns the number of values below each of these times that are not below the one before.
    pub(super) fn below(&self, ends: &[Duration]) -> Vec<u64> {
        let mut counts = vec![0; ends.len()];
        for (at, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let time = Duration::from_nanos(start_of(at));
            if let Some(row) = ends.iter().position(|end| time < *end) {
                counts[row] += count;
            }
        }
        counts
    }
}

fn bucket(nanos: u64) -> usize {
    let shift = (64 - nanos.leading_zeros()).saturating_sub(PRECISION + 1);
    match shift {
        0 => nanos as usize,
        shift => (shift as usize) * PER_POWER + (nanos >> shift) as usize,
    }
}

/// Returns the smallest value of a bucket.
fn start_of(bucket: usize) -> u64 {
    match (bucket / PER_POWER).saturating_sub(1) {
        0 => bucket as u64,
        shift => ((bucket - shift * PER_POWER) as u64) << shift,
    }
}

/// Returns the largest value of a bucket.
fn end_of(bucket: usize) -> u64 {
    let width = 1u64 << (bucket / PER_POWER).saturating_sub(1);
    start_of(bucket).saturating_add(width - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_its_bucket() {
        let samples = (0..64).flat_map(|power| {
            let power = 1u64 << power;
            [power - 1, power, power + 1, power + power / 3]
        });
        for value in samples.chain([0, u64::MAX]) {
            let bucket = bucket(value);
            assert!(start_of(bucket) <= value && value <= end_of(bucket), "{value}: {bucket}");
            assert!((end_of(bucket) - start_of(bucket)) as f64 <= value as f64 / 32.0, "{value}");
        }
        let mut all = Histogram::new();
        all.record(Duration::from_nanos(u64::MAX));
        all.record(Duration::MAX);
        assert_eq!(all.count(), 2);
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut histogram = Histogram::new();
        assert_eq!((histogram.quantile(0.5), histogram.mean(), histogram.min()), Default::default());
        (1..=1000).for_each(|value| histogram.record(Duration::from_micros(value)));
        for (share, micros) in [(0.0, 1.0), (0.5, 500.0), (0.9, 900.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found = histogram.quantile(share).as_secs_f64() * 1e6;
            assert!((found - micros).abs() <= micros * 0.02, "{share}: {found}");
        }
        assert_eq!(histogram.mean(), Duration::from_nanos(500_500));
        assert_eq!((histogram.min(), histogram.max()), (Duration::from_micros(1), Duration::from_millis(1)));
        let rows = histogram.below(&[Duration::from_micros(100), Duration::from_millis(10)]);
        assert_eq!(rows.iter().sum::<u64>(), 1000);
        assert!((95..=103).contains(&rows[0]), "{rows:?}");
    }
}
