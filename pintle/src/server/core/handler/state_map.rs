use std::any::{TypeId, type_name};

use http::Extensions;

/// The values of `Server::with_state`, one of each type.
#[derive(Clone, Debug, Default)]
pub(crate) struct StateMap {
    values: Extensions,
    /// The types in the order of their registration, with their names.
    types: Vec<(TypeId, &'static str)>,
}

impl StateMap {
    /// Adds a value, or returns it if there is one of its type.
    pub(crate) fn put<T: Clone + Send + Sync + 'static>(&mut self, value: T) -> Result<(), T> {
        if self.has(TypeId::of::<T>()) {
            return Err(value);
        }
        self.types.push((TypeId::of::<T>(), type_name::<T>()));
        self.values.insert(value);
        Ok(())
    }

    pub(crate) fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<&T> {
        self.values.get()
    }

    pub(crate) fn has(&self, id: TypeId) -> bool {
        self.types.iter().any(|(known, _)| *known == id)
    }

    /// Returns the types of the values, with their names.
    pub(crate) fn types(&self) -> &[(TypeId, &'static str)] {
        &self.types
    }
}
