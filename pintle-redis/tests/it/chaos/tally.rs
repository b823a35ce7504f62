use std::collections::BTreeMap;

use super::trace::Trace;

/// The number of calls by what came of them, and everything that must not happen.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: BTreeMap<String, usize>,
    /// What must not happen, and what the client did and got before it.
    pub(super) violations: Vec<(String, Trace)>,
}

impl Tally {
    pub(super) fn count(&mut self, what: impl Into<String>) {
        *self.counts.entry(what.into()).or_default() += 1;
    }

    /// Notes something that must not happen, with the trace of the client.
    pub(super) fn violate(&mut self, what: String, trace: &mut Trace) {
        trace.add("violated");
        self.violations.push((what, std::mem::take(trace)));
    }

    pub(super) fn add(&mut self, other: Self) {
        for (what, count) in other.counts {
            *self.counts.entry(what).or_default() += count;
        }
        self.violations.extend(other.violations);
    }

    pub(super) fn of(&self, what: &str) -> usize {
        self.counts.iter().filter(|(name, _)| name.starts_with(what)).map(|(_, count)| count).sum()
    }

    /// Prints the counts, a line each.
    pub(super) fn print(&self) {
        for (what, count) in &self.counts {
            eprintln!("{count:>9}  {what}");
        }
    }
}
