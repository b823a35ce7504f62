//! The clock of a store of tasks, as this process knows it.

use std::{
    io,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use tokio::time::Instant;

use super::store::TaskStore;

/// The clock of a [`TaskStore`]. Between two readings the time goes on with this process.
#[derive(Debug)]
pub(super) struct StoreClock {
    created: Instant,
    /// The time of creation, in milliseconds of the Unix epoch.
    start: AtomicU64,
    /// Whether the store was asked.
    is_read: AtomicBool,
}

impl StoreClock {
    /// Creates a clock with the time of this process.
    pub(super) fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start = AtomicU64::new(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
        Self { created: Instant::now(), start, is_read: AtomicBool::new(false) }
    }

    /// Returns the time in milliseconds of the Unix epoch.
    pub(super) fn now(&self) -> u64 {
        self.start.load(Ordering::Acquire).saturating_add(self.elapsed())
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.created.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Reads the clock of the store, if it has one.
    pub(super) async fn read(&self, store: &dyn TaskStore) -> io::Result<()> {
        if let Some(now) = store.now().await? {
            self.start.store(now.saturating_sub(self.elapsed()), Ordering::Release);
        }
        self.is_read.store(true, Ordering::Release);
        Ok(())
    }

    /// Reads the clock of the store if that was not done yet.
    pub(super) async fn read_once(&self, store: &dyn TaskStore) -> io::Result<()> {
        if self.is_read.load(Ordering::Acquire) { Ok(()) } else { self.read(store).await }
    }
}
