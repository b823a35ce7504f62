use std::{
    io,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    time::Duration,
};

use tokio::sync::{Mutex, MutexGuard};

use super::{Expected, GetOptions, Got, Key, Life, MemoryStore, Put, Space, Store, Stored};

/// A store in memory for tests, which counts how often it is asked for the time, and fails when it is told to.
#[derive(Debug, Default)]
pub(crate) struct WatchedStore {
    pub(crate) store: MemoryStore,
    lease: Option<Duration>,
    pub(crate) times: AtomicU32,
    pub(crate) is_down: AtomicBool,
    /// The next value is put, and the reply to that is lost.
    pub(crate) loses_put: AtomicBool,
    pub(crate) forgets_leases: AtomicBool,
    puts: Mutex<()>,
}

impl WatchedStore {
    /// Creates a store that processes with this lease share.
    pub(crate) fn with_lease(lease: Duration) -> Self {
        Self { lease: Some(lease), ..Self::default() }
    }

    /// Holds all that is put, until the returned guard is dropped.
    pub(crate) async fn hold_puts(&self) -> MutexGuard<'_, ()> {
        self.puts.lock().await
    }

    fn if_up<'a, T: Send + 'a>(&self, stored: Stored<'a, T>) -> Stored<'a, T> {
        match self.is_down.load(Ordering::SeqCst) {
            true => Stored::later(async { Err(io::Error::other("the store is down")) }),
            false => stored,
        }
    }
}

impl Store for WatchedStore {
    fn get<'a>(&'a self, key: Key<'a>, how: GetOptions) -> Stored<'a, Got> {
        if key.space == Space::Lease && self.forgets_leases.load(Ordering::SeqCst) {
            return Stored::now(Got::None);
        }
        self.if_up(self.store.get(key, how))
    }

    fn put<'a>(&'a self, key: Key<'a>, at: Expected, value: &'a [u8], life: Life) -> Stored<'a, Put> {
        self.if_up(Stored::later(async move {
            drop(self.puts.lock().await);
            let put = self.store.put(key, at, value, life).await?;
            match self.loses_put.swap(false, Ordering::SeqCst) {
                true => Err(io::Error::other("the connection was cut")),
                false => Ok(put),
            }
        }))
    }

    fn remove<'a>(&'a self, key: Key<'a>) -> Stored<'a, bool> {
        self.if_up(self.store.remove(key))
    }

    fn count<'a>(&'a self, key: Key<'a>, add: i64, life: Life) -> Stored<'a, i64> {
        self.if_up(self.store.count(key, add, life))
    }

    fn now(&self) -> Stored<'_, u64> {
        self.times.fetch_add(1, Ordering::SeqCst);
        self.if_up(self.store.now())
    }

    fn lease(&self) -> Option<Duration> {
        self.lease
    }
}
