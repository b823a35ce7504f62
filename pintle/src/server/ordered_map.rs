use std::{fmt, sync::Arc};

use indexmap::{IndexMap, map::Entry};

/// A map that keeps the order of insertion and numbers its items.
#[derive(Clone)]
pub(crate) struct OrderedMap<T> {
    /// Each item has a number that is never reused: a page that ended at a number continues there, even if items were
    /// removed.
    items: IndexMap<String, (u64, Arc<T>)>,
    last: u64,
}

impl<T> Default for OrderedMap<T> {
    fn default() -> Self {
        Self { items: IndexMap::new(), last: 0 }
    }
}

impl<T> OrderedMap<T> {
    /// Appends an item, or returns it if the name is taken.
    pub(crate) fn add(&mut self, name: impl Into<String>, item: T) -> Result<(), T> {
        let Entry::Vacant(vacant) = self.items.entry(name.into()) else { return Err(item) };
        self.last += 1;
        vacant.insert((self.last, Arc::new(item)));
        Ok(())
    }

    /// Replaces the item of this name in its place, or appends it.
    pub(crate) fn put(&mut self, name: impl Into<String>, item: T) {
        match self.items.entry(name.into()) {
            Entry::Occupied(mut occupied) => occupied.get_mut().1 = Arc::new(item),
            Entry::Vacant(vacant) => {
                self.last += 1;
                vacant.insert((self.last, Arc::new(item)));
            }
        }
    }

    /// Removes an item. Returns whether there was one of this name.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.items.shift_remove(name).is_some()
    }

    /// Removes all items.
    pub(crate) fn clear(&mut self) {
        self.items.clear();
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<T>> {
        self.items.get(name).map(|(_, item)| item)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.items.values().map(|(_, item)| item)
    }

    /// Returns the items after a number, with their own numbers.
    pub(crate) fn after(&self, number: u64) -> impl Iterator<Item = (u64, &Arc<T>)> {
        let from = self.items.partition_point(|_, (other, _)| *other <= number);
        let rest = self.items.get_range(from..).into_iter().flat_map(|rest| rest.values());
        rest.map(|(number, item)| (*number, item))
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl<T> fmt::Debug for OrderedMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.items.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_numbers_are_not_reused() {
        let mut map = OrderedMap::default();
        for name in ["b", "a", "c"] {
            assert_eq!(map.add(name, name), Ok(()));
        }
        assert_eq!(map.add("a", "other"), Err("other"));
        let numbered: Vec<_> = map.after(0).map(|(number, item)| (number, **item)).collect();
        assert_eq!(numbered, [(1, "b"), (2, "a"), (3, "c")]);
        map.put("c", "third");
        assert_eq!(map.after(2).map(|(number, item)| (number, **item)).collect::<Vec<_>>(), [(3, "third")]);
        map.put("c", "c");
        assert!(map.remove("a"));
        assert!(!map.remove("a"));
        assert_eq!(map.after(2).map(|(_, item)| **item).collect::<Vec<_>>(), ["c"]);
        assert_eq!(map.iter().map(|item| **item).collect::<Vec<_>>(), ["b", "c"]);
        assert!(map.get("b").is_some());
        map.clear();
        assert!(map.is_empty());
        assert_eq!(map.add("b", "b"), Ok(()));
        assert_eq!(map.after(3).map(|(number, _)| number).collect::<Vec<_>>(), [4]);
    }
}
