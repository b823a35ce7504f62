use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A value that the innermost step of a request leaves for its caller, outside of the layers.
#[derive(Debug)]
pub(in crate::client) struct OutputSlot<T>(Arc<Mutex<Option<T>>>);

impl<T> OutputSlot<T> {
    pub(in crate::client) fn put(&self, value: T) {
        *self.lock() = Some(value);
    }

    pub(in crate::client) fn take(&self) -> Option<T> {
        self.lock().take()
    }

    pub(in crate::client) fn is_empty(&self) -> bool {
        self.lock().is_none()
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for OutputSlot<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for OutputSlot<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}
