use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose data is valid at every point, so that a panic of another thread leaves nothing half done.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
