use std::collections::BTreeMap;

/// The number of calls by what came of them, and everything that must not happen.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: BTreeMap<String, usize>,
    pub(super) violations: Vec<String>,
}

impl Tally {
    pub(super) fn count(&mut self, what: impl Into<String>) {
        *self.counts.entry(what.into()).or_default() += 1;
    }

    pub(super) fn violate(&mut self, what: String) {
        self.violations.push(what);
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
