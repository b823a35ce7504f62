//! The resources that a listener watches, and the changes that wait to be sent to it.

mod pending;

use std::{
    collections::BTreeSet,
    fmt, mem,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub use pending::PendingChanges;

/// The resources that one listener watches. Clones share the set, including later changes, so that changes can be
/// filtered where they are collected.
#[derive(Clone, Debug, Default)]
pub struct Watched(Arc<WatchedSet>);

#[derive(Debug, Default)]
struct WatchedSet {
    uris: Mutex<BTreeSet<Box<str>>>,
    observer: Option<Arc<dyn WatchObserver>>,
}

/// An observer of which resources are watched: each listener reports each of its resources once, and once that it is watched no
/// longer, at the latest when the listener is dropped. See [`Service::set_watch_observer`](super::Service::set_watch_observer).
pub trait WatchObserver: fmt::Debug + Send + Sync {
    /// Called when a listener starts to watch a resource.
    fn watched(&self, uri: &str);
    /// Called when a listener no longer watches a resource.
    fn unwatched(&self, uri: &str);
}

impl Watched {
    pub(super) fn new(uris: BTreeSet<Box<str>>, observer: Option<Arc<dyn WatchObserver>>) -> Self {
        if let Some(observer) = &observer {
            uris.iter().for_each(|uri| observer.watched(uri));
        }
        Self(Arc::new(WatchedSet { uris: Mutex::new(uris), observer }))
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

    pub(super) fn replace(&self, uris: &BTreeSet<Box<str>>) {
        let before = mem::replace(&mut *self.lock(), uris.clone());
        if let Some(observer) = &self.0.observer {
            uris.difference(&before).for_each(|uri| observer.watched(uri));
            before.difference(uris).for_each(|uri| observer.unwatched(uri));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn contains(&self, uri: &str) -> bool {
        self.lock().contains(uri)
    }

    pub(super) fn insert(&self, uri: &str) {
        if self.lock().insert(uri.into())
            && let Some(observer) = &self.0.observer
        {
            observer.watched(uri);
        }
    }

    pub(super) fn remove(&self, uri: &str) -> bool {
        let removed = self.lock().remove(uri);
        if removed && let Some(observer) = &self.0.observer {
            observer.unwatched(uri);
        }
        removed
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Box<str>>> {
        self.0.uris.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[derive(Debug, Default)]
    struct Noting(Mutex<Vec<String>>);

    impl WatchObserver for Noting {
        fn watched(&self, uri: &str) {
            self.0.lock().unwrap().push(format!("+{uri}"));
        }

        fn unwatched(&self, uri: &str) {
            self.0.lock().unwrap().push(format!("-{uri}"));
        }
    }

    #[test]
    fn an_observer_sees_each_resource_come_and_go_once() {
        let noting = Arc::new(Noting::default());
        let noted = || mem::take(&mut *noting.0.lock().unwrap());
        let watched = Watched::new(["a"].map(Into::into).into(), Some(noting.clone()));
        watched.insert("a");
        watched.insert("b");
        assert_eq!(noted(), ["+a", "+b"]);
        assert!(watched.remove("a") && !watched.remove("a"));
        assert_eq!(noted(), ["-a"]);
        watched.replace(&["b", "c"].map(Into::into).into());
        assert_eq!(noted(), ["+c"]);
        watched.replace(&BTreeSet::new());
        assert_eq!(noted(), ["-b", "-c"]);
    }
}
