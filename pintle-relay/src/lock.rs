use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose data is valid at every point, so that a panic of another thread leaves nothing half done.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The value that was kept last, which the next caller mostly needs too. All calls of a relay ask for it, so the lock is held for a moment
/// only: values are as large as peers make them, and are compared and dropped without it.
#[derive(Debug)]
pub(crate) struct LastValue<T>(Mutex<Option<Arc<T>>>);

impl<T> Default for LastValue<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> LastValue<T> {
    /// Returns the value, if it is the one that is needed.
    pub(crate) fn get(&self, is_it: impl FnOnce(&T) -> bool) -> Option<Arc<T>> {
        let last = lock(&self.0).clone();
        last.filter(|last| is_it(last))
    }

    /// Keeps a value in place of the one before.
    pub(crate) fn set(&self, value: Arc<T>) {
        let before = lock(&self.0).replace(value);
        drop(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes whether others could have had the lock when it was dropped.
    struct Large(Arc<LastValue<Self>>, Arc<Mutex<Vec<bool>>>);

    impl Drop for Large {
        fn drop(&mut self) {
            lock(&self.1).push(self.0.0.try_lock().is_ok());
        }
    }

    #[test]
    fn nothing_is_compared_or_dropped_under_the_lock() {
        let (last, noted) = (Arc::<LastValue<Large>>::default(), Arc::<Mutex<Vec<bool>>>::default());
        let large = || Arc::new(Large(last.clone(), noted.clone()));
        assert!(last.get(|_| true).is_none());
        last.set(large());
        assert!(last.get(|large| large.0.0.try_lock().is_ok()).is_some());
        last.set(large());
        assert_eq!(*lock(&noted), [true]);
        // It holds itself.
        drop(lock(&last.0).take());
    }
}
