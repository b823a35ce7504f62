use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{ALL, KINDS, account::AccountEntry};

/// Numbers of bytes: of each kind, and of all.
#[derive(Debug, Default)]
pub(super) struct Tally([AtomicUsize; KINDS + 1]);

impl Tally {
    pub(super) fn get(&self, place: usize) -> usize {
        self.0[place].load(Ordering::Relaxed)
    }

    /// Adds bytes, and returns the sums of their kind and of all.
    pub(super) fn add(&self, kind: usize, bytes: usize) -> [usize; 2] {
        [kind, ALL].map(|place| self.0[place].fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes))
    }

    pub(super) fn subtract(&self, kind: usize, bytes: usize) {
        for place in [kind, ALL] {
            self.0[place].fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// Accounts by their level and number.
type RankedAccounts = BTreeMap<(usize, u32), Weak<AccountEntry>>;

/// The accounts that hold much, for each kind and for all.
#[derive(Default)]
pub(super) struct Ranking {
    ranked: Mutex<[RankedAccounts; KINDS + 1]>,
    /// The number of accounts that were looked at.
    #[cfg(test)]
    steps: AtomicUsize,
}

/// The bytes below which an account is not ranked.
const RANKED: usize = 64 << 10;

/// The number of accounts that are looked at for one newcomer.
const CANDIDATES: usize = 8;

/// Returns the level of a number of bytes: levels are a quarter of a power of two apart, so that an account is seldom ranked again.
pub(super) fn level(bytes: usize) -> usize {
    match bytes / RANKED {
        0 => 0,
        _ => {
            let power = bytes.ilog2();
            4 * power as usize + (bytes >> (power - 2) & 3)
        }
    }
}

impl Ranking {
    /// Ranks an account again if its level has changed.
    pub(super) fn update(&self, kind: usize, entry: &Arc<AccountEntry>) {
        let AccountEntry { number, tally, levels, .. } = &**entry;
        if [kind, ALL].iter().all(|place| level(tally.get(*place)) == levels.get(*place)) {
            return;
        }
        let mut ranked = self.lock();
        for place in [kind, ALL] {
            // Under the lock, so that the last change is the one that stays.
            let (before, after) = (levels.get(place), level(tally.get(place)));
            if before == after {
                continue;
            }
            levels.0[place].store(after, Ordering::Relaxed);
            if before > 0 {
                ranked[place].remove(&(before, *number));
            }
            if after > 0 {
                ranked[place].insert((after, *number), Arc::downgrade(entry));
            }
        }
    }

    /// Removes an account that is gone.
    pub(super) fn remove(&self, number: u32, levels: &Tally) {
        if (0..=ALL).all(|place| levels.get(place) == 0) {
            return;
        }
        let mut ranked = self.lock();
        for place in 0..=ALL {
            ranked[place].remove(&(levels.get(place), number));
        }
    }

    /// Returns the accounts above a level, the largest first.
    pub(super) fn above(&self, place: usize, level: usize) -> Vec<Weak<AccountEntry>> {
        let ranked = self.lock();
        let above = ranked[place].iter().rev().take_while(|((other, _), _)| *other > level);
        let above: Vec<_> = above.map(|(_, entry)| entry.clone()).take(CANDIDATES).collect();
        #[cfg(test)]
        self.steps.fetch_add(above.len(), Ordering::Relaxed);
        above
    }

    fn lock(&self) -> MutexGuard<'_, [RankedAccounts; KINDS + 1]> {
        self.ranked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().iter().all(BTreeMap::is_empty)
    }

    #[cfg(test)]
    pub(super) fn steps(&self) -> usize {
        self.steps.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn forget_steps(&self) {
        self.steps.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_a_quarter_of_a_power_of_two() {
        let kib = |number: usize| level(number << 10);
        assert_eq!((level(0), level(RANKED - 1)), (0, 0));
        let steps = [64, 80, 96, 112, 128, 160, 192, 224, 256, 320].map(kib);
        assert_eq!(steps, std::array::from_fn(|step| kib(64) + step), "one more at each");
        for (step, next) in [(64, 80), (112, 128), (128, 160), (224, 256)] {
            assert_eq!(level((next << 10) - 1), kib(step), "the same until {next} KiB");
        }
    }
}
