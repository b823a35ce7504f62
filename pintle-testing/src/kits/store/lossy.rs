use std::{
    io,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pintle::server::store::{Expected, GetOptions, Got, Key, Life, Put, Space, Store, Stored};

/// A store whose connection is cut when a test says so: for tests of what uses a store, which must not take that for an answer.
#[derive(Debug, Default)]
pub struct LossyStore<S> {
    store: S,
    lost: Mutex<Option<Space>>,
    is_down: AtomicBool,
}

impl<S: Store> LossyStore<S> {
    /// Creates a store whose connection is not cut yet.
    pub fn new(store: S) -> Self {
        Self { store, lost: Mutex::default(), is_down: AtomicBool::new(false) }
    }

    /// Cuts the connection before the reply to the next change in this space: it is made, and its reply is lost.
    pub fn lose_next(&self, space: Space) {
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(space);
    }

    /// Sets whether the store cannot be reached at all.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    fn if_up<'a, T: Send + 'a>(&'a self, operation: impl FnOnce() -> Stored<'a, T>) -> Stored<'a, T> {
        match self.is_down.load(Ordering::SeqCst) {
            true => Stored::later(async { Err(io::Error::other("the store cannot be reached")) }),
            false => operation(),
        }
    }

    fn change<'a, T: Send + 'a>(
        &'a self,
        space: Space,
        operation: impl FnOnce() -> Stored<'a, T>,
    ) -> Stored<'a, T> {
        let done = self.if_up(operation);
        Stored::later(async move {
            let done = done.await?;
            match self.lost.lock().unwrap_or_else(PoisonError::into_inner).take_if(|lost| *lost == space) {
                Some(_) => Err(io::Error::new(io::ErrorKind::ConnectionReset, "the connection was cut")),
                None => Ok(done),
            }
        })
    }
}

impl<S: Store> Store for LossyStore<S> {
    fn get<'a>(&'a self, key: Key<'a>, how: GetOptions) -> Stored<'a, Got> {
        self.if_up(|| self.store.get(key, how))
    }

    fn put<'a>(&'a self, key: Key<'a>, at: Expected, value: &'a [u8], life: Life) -> Stored<'a, Put> {
        self.change(key.space, || self.store.put(key, at, value, life))
    }

    fn remove<'a>(&'a self, key: Key<'a>) -> Stored<'a, bool> {
        self.change(key.space, || self.store.remove(key))
    }

    fn count<'a>(&'a self, key: Key<'a>, add: i64, life: Life) -> Stored<'a, i64> {
        self.change(key.space, || self.store.count(key, add, life))
    }

    fn now(&self) -> Stored<'_, u64> {
        self.if_up(|| self.store.now())
    }

    fn lease(&self) -> Option<Duration> {
        self.store.lease()
    }
}
