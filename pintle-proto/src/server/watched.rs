use std::{
    collections::BTreeSet,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The resources that one listener watches. Clones share the set, including later changes, so that changes can be
/// filtered where they are collected.
#[derive(Clone, Debug, Default)]
pub struct Watched(Arc<Mutex<BTreeSet<Box<str>>>>);

impl Watched {
    pub(super) fn new(uris: BTreeSet<Box<str>>) -> Self {
        Self(Arc::new(Mutex::new(uris)))
    }

    /// Returns whether this resource is watched, or one that contains it.
    pub fn covers(&self, uri: &str) -> bool {
        covering(&self.lock(), uri).is_some()
    }

    /// Returns whether there is no other clone: the listener is gone.
    pub fn is_last(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Returns the watched URI that covers this one: itself, or a prefix of it that ends at a `/`.
    pub(super) fn covering(&self, uri: &str) -> Option<Box<str>> {
        covering(&self.lock(), uri).map(Into::into)
    }

    pub(super) fn all(&self) -> BTreeSet<Box<str>> {
        self.lock().clone()
    }

    pub(super) fn replace(&self, uris: BTreeSet<Box<str>>) {
        *self.lock() = uris;
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn contains(&self, uri: &str) -> bool {
        self.lock().contains(uri)
    }

    pub(super) fn insert(&self, uri: &str) {
        self.lock().insert(uri.into());
    }

    pub(super) fn remove(&self, uri: &str) -> bool {
        self.lock().remove(uri)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Box<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Finds the watched URI that covers `uri`. A covering URI is a prefix, so it sorts before `uri`, and the search can
/// skip to the common prefix with the nearest smaller entry: a long URI is not looked up once for each `/`.
fn covering<'a>(watched: &'a BTreeSet<Box<str>>, uri: &str) -> Option<&'a str> {
    let mut below = uri;
    loop {
        let range = (Bound::Unbounded, Bound::Included(below));
        let nearest = &**watched.range::<str, _>(range).next_back()?;
        let alike = nearest.bytes().zip(uri.bytes()).take_while(|(one, other)| one == other).count();
        if alike == nearest.len() && covers(nearest, uri) {
            return Some(nearest);
        }
        let mut end = alike.min(nearest.len().checked_sub(1)?);
        while !uri.is_char_boundary(end) {
            end -= 1;
        }
        below = uri.get(..end)?;
    }
}

/// Returns whether `above`, a prefix of `uri`, is the same resource or a directory that contains it. A directory may be
/// spelled with or without its `/`.
fn covers(above: &str, uri: &str) -> bool {
    above.len() == uri.len() || above.ends_with('/') || uri.as_bytes().get(above.len()) == Some(&b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_watched_resource_is_found_among_others_like_it() {
        let watched = ["f:/a", "f:/a/b/", "f:/a/bä", "f:/a/bb", "f:/ab", "ö", "ö/ä/"];
        let watched = watched.iter().map(|uri| (*uri).into()).collect();
        for (uri, found) in [
            ("f:/a/b/c", Some("f:/a/b/")),
            ("f:/a/b", Some("f:/a")),
            ("f:/a/bä/x", Some("f:/a/bä")),
            ("f:/a/bü/x", Some("f:/a")),
            ("f:/a/bbb", Some("f:/a")),
            ("f:/abc", None),
            ("f:/", None),
            ("ö/ä", Some("ö")),
            ("ö/ä/x", Some("ö/ä/")),
            ("öä", None),
            ("", None),
        ] {
            assert_eq!(covering(&watched, uri), found, "{uri}");
        }
    }

    #[test]
    fn the_last_clone_knows_that_it_is_the_last() {
        let one = Watched::default();
        assert!(one.is_last());
        let other = one.clone();
        assert!(!one.is_last() && !other.is_last());
        drop(other);
        assert!(one.is_last());
    }
}
