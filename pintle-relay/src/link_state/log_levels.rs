use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use pintle::types::schema::LoggingLevel;
use tokio::time::Instant;

use crate::lock::lock;

/// The time for which a level is kept that no call wants any more, so that calls in turn do not change it each time.
const KEEP: Duration = Duration::from_secs(60);

/// The levels of log messages that the calls over one connection want. The server gets the lowest.
#[derive(Debug, Default)]
pub(crate) struct LogLevels(Mutex<WantedLevels>);

#[derive(Debug, Default)]
struct WantedLevels {
    set: Option<LoggingLevel>,
    by_level: BTreeMap<LoggingLevel, LevelUse>,
}

#[derive(Debug)]
struct LevelUse {
    calls: usize,
    released: Instant,
}

/// A level that a call wants, until this is dropped.
#[derive(Debug)]
pub(crate) struct LevelGuard {
    level: LoggingLevel,
    levels: Arc<LogLevels>,
}

impl LogLevels {
    /// Enters a call that wants this level. Returns the level that the server is to be set to, if it has another.
    pub(crate) fn enter(self: &Arc<Self>, level: LoggingLevel) -> (LevelGuard, Option<LoggingLevel>) {
        let mut wanted = lock(&self.0);
        let now = Instant::now();
        wanted.by_level.entry(level).or_insert(LevelUse { calls: 0, released: now }).calls += 1;
        wanted.by_level.retain(|_, used| used.calls > 0 || used.released.elapsed() < KEEP);
        let lowest = wanted.by_level.keys().next().copied();
        let changed = lowest.filter(|lowest| wanted.set != Some(*lowest));
        wanted.set = lowest;
        drop(wanted);
        (LevelGuard { level, levels: self.clone() }, changed)
    }
}

impl Drop for LevelGuard {
    fn drop(&mut self) {
        if let Some(used) = lock(&self.levels.0).by_level.get_mut(&self.level) {
            used.calls -= 1;
            used.released = Instant::now();
        }
    }
}
