use std::{any::TypeId, collections::HashSet};

use http::Extensions;

/// The values of `Server::with_state`, one of each type.
#[derive(Clone, Debug, Default)]
pub(crate) struct StateMap {
    values: Extensions,
    types: HashSet<TypeId>,
}

impl StateMap {
    /// Adds a value, or returns it if there is one of its type.
    pub(crate) fn put<T: Clone + Send + Sync + 'static>(&mut self, value: T) -> Result<(), T> {
        if !self.types.insert(TypeId::of::<T>()) {
            return Err(value);
        }
        self.values.insert(value);
        Ok(())
    }

    pub(crate) fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<&T> {
        self.values.get()
    }

    pub(crate) fn has(&self, id: TypeId) -> bool {
        self.types.contains(&id)
    }
}
