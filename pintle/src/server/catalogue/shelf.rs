use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::Arc,
};

/// Named things in the order they were put there. Finding one costs the same however many there are.
#[derive(Clone)]
pub(crate) struct Shelf<T> {
    /// By a number that only grows, so that a page knows where it stopped even if things were taken away.
    items: Vec<(u64, Arc<T>)>,
    by_name: HashMap<String, Arc<T>>,
    last: u64,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { items: Vec::new(), by_name: HashMap::new(), last: 0 }
    }
}

impl<T> Shelf<T> {
    /// Puts something there, or gives it back if the name is taken.
    pub(crate) fn add(&mut self, name: impl Into<String>, item: T) -> Result<(), T> {
        let Entry::Vacant(place) = self.by_name.entry(name.into()) else { return Err(item) };
        let item = place.insert(Arc::new(item)).clone();
        self.last += 1;
        self.items.push((self.last, item));
        Ok(())
    }

    /// Takes something away; `false` if there is none of that name.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let Some(item) = self.by_name.remove(name) else { return false };
        self.items.retain(|(_, other)| !Arc::ptr_eq(other, &item));
        true
    }

    /// Takes everything away. Places are not used again.
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.by_name.clear();
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<T>> {
        self.by_name.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.items.iter().map(|(_, item)| item)
    }

    /// Those behind a place, with their own places.
    pub(crate) fn after(&self, place: u64) -> impl Iterator<Item = (u64, &Arc<T>)> {
        let from = self.items.partition_point(|(number, _)| *number <= place);
        self.items.get(from..).unwrap_or_default().iter().map(|(number, item)| (*number, item))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl<T> fmt::Debug for Shelf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_places_outlive_their_things() {
        let mut shelf = Shelf::default();
        for name in ["b", "a", "c"] {
            assert_eq!(shelf.add(name, name), Ok(()));
        }
        assert_eq!(shelf.add("a", "other"), Err("other"));
        let places: Vec<_> = shelf.after(0).map(|(place, item)| (place, **item)).collect();
        assert_eq!(places, [(1, "b"), (2, "a"), (3, "c")]);
        assert!(shelf.remove("a"));
        assert!(!shelf.remove("a"));
        assert_eq!(shelf.after(2).map(|(_, item)| **item).collect::<Vec<_>>(), ["c"]);
        assert_eq!(shelf.iter().map(|item| **item).collect::<Vec<_>>(), ["b", "c"]);
        assert!(shelf.get("b").is_some());
    }
}
