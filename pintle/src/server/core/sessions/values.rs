use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The values that handlers keep for a session, one of each type. Nothing is allocated for a session without values.
#[derive(Debug, Default)]
pub(crate) struct SessionValues(Mutex<Option<Box<StoredValues>>>);

#[derive(Debug, Default)]
struct StoredValues {
    by_type: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    /// Whether the session has ended: nothing is stored any more.
    closed: bool,
}

/// The limit of values of one session.
pub(super) const MAX_VALUES: usize = 64;

/// The reason why a value was not stored.
pub(super) enum NotStored {
    Full,
    Closed,
}

impl SessionValues {
    #[cfg(feature = "http-server")]
    pub(super) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub(crate) fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let value = self.lock().as_ref()?.by_type.get(&TypeId::of::<T>())?.clone();
        value.downcast().ok()
    }

    /// Stores a value, and returns the one of its type that it replaces.
    pub(super) fn insert<T: Any + Send + Sync>(&self, value: Arc<T>) -> Result<Option<Arc<T>>, NotStored> {
        let id = TypeId::of::<T>();
        let mut values = self.lock();
        let values = values.get_or_insert_default();
        if values.closed {
            return Err(NotStored::Closed);
        }
        if values.by_type.len() >= MAX_VALUES && !values.by_type.contains_key(&id) {
            return Err(NotStored::Full);
        }
        Ok(values.by_type.insert(id, value).and_then(|old| old.downcast().ok()))
    }

    /// Stores a value unless there is one of its type, and returns the one that is stored then.
    pub(super) fn get_or_insert<T: Any + Send + Sync>(&self, value: Arc<T>) -> Result<Arc<T>, NotStored> {
        let id = TypeId::of::<T>();
        let mut values = self.lock();
        let values = values.get_or_insert_default();
        if let Some(known) = values.by_type.get(&id).and_then(|known| known.clone().downcast().ok()) {
            return Ok(known);
        }
        if values.closed {
            return Err(NotStored::Closed);
        }
        if values.by_type.len() >= MAX_VALUES {
            return Err(NotStored::Full);
        }
        values.by_type.insert(id, value.clone());
        Ok(value)
    }

    pub(super) fn remove<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let value = self.lock().as_mut()?.by_type.remove(&TypeId::of::<T>());
        value?.downcast().ok()
    }

    /// Drops all values, because the session has ended.
    pub(crate) fn close(&self) {
        let values = self.lock().replace(Box::new(StoredValues { closed: true, ..StoredValues::default() }));
        // Dropped without the lock: the drop of a value may do anything.
        drop(values);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<StoredValues>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_has_ended_keeps_no_values() {
        let values = SessionValues::default();
        assert!(matches!(values.insert(Arc::new(1_u32)), Ok(None)));
        assert_eq!(values.get::<u32>().as_deref(), Some(&1));
        values.close();
        assert_eq!(values.get::<u32>(), None);
        assert!(matches!(values.insert(Arc::new(2_u32)), Err(NotStored::Closed)));
        assert!(matches!(values.get_or_insert(Arc::new(3_u32)), Err(NotStored::Closed)));
        assert_eq!(values.get::<u32>(), None);
    }
}
