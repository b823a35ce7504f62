use std::{collections::BTreeSet, mem};

use super::Watched;
use crate::Change;

/// Changes that a listener has not been notified of yet, merged: one mark for each list, and a bounded set of resources.
///
/// Beyond the bound, the watched resource that contains a changed one is marked instead, so that no change is lost.
/// Memory is limited by these bounds and by what is watched.
///
/// ```
/// use pintle_proto::{Change, server::PendingChanges};
///
/// let mut pending = PendingChanges::default();
/// assert!(pending.add(&Change::Tools, []));
/// assert!(!pending.add(&Change::Tools, []), "merged with the first");
/// assert!(!pending.add(&Change::Resource("note://1".into()), []), "it is not watched");
/// assert!(!pending.is_empty());
/// ```
#[derive(Clone, Debug, Default)]
pub struct PendingChanges {
    tools: bool,
    prompts: bool,
    resources: bool,
    updated: BTreeSet<Box<str>>,
    /// The length of the URIs in `updated`.
    bytes: u32,
    /// Whether every watched resource may have changed.
    all: bool,
}

/// The number of resources, and the bytes of their URIs, that are remembered one by one.
const MAX_UPDATES: usize = 1024;
const MAX_BYTES: usize = 64 << 10;

impl PendingChanges {
    /// Adds a change. A change of a resource is added only if one of `watched` covers it. Returns whether it adds a
    /// notification.
    pub fn add<'a>(&mut self, change: &Change, watched: impl IntoIterator<Item = &'a Watched>) -> bool {
        match change {
            Change::Tools => !mem::replace(&mut self.tools, true),
            Change::Prompts => !mem::replace(&mut self.prompts, true),
            Change::Resources => !mem::replace(&mut self.resources, true),
            Change::Resource(_) if self.all => false,
            Change::Resource(uri) => self.add_resource(uri, watched),
        }
    }

    fn add_resource<'a>(&mut self, uri: &str, watched: impl IntoIterator<Item = &'a Watched>) -> bool {
        if self.updated.contains(uri) {
            return false;
        }
        let full = self.updated.len() >= MAX_UPDATES || self.bytes as usize + uri.len() > MAX_BYTES;
        let mut added = false;
        for covering in watched.into_iter().filter_map(|watched| watched.covering(uri)) {
            if !full {
                return self.insert(uri.into());
            }
            added |= self.insert(covering);
        }
        added
    }

    fn insert(&mut self, uri: Box<str>) -> bool {
        let bytes = length(&uri);
        let added = self.updated.insert(uri);
        self.bytes = self.bytes.saturating_add(if added { bytes } else { 0 });
        added
    }

    /// Marks every list and every watched resource as changed, because changes may have been missed.
    pub fn add_all(&mut self) {
        (self.tools, self.prompts, self.resources, self.all) = (true, true, true, true);
        self.updated = BTreeSet::new();
        self.bytes = 0;
    }

    /// Replaces the changed resources by one mark for all that are watched.
    pub fn collapse(&mut self) {
        self.all |= !self.updated.is_empty();
        self.updated = BTreeSet::new();
        self.bytes = 0;
    }

    /// Returns whether there is nothing to notify of.
    pub fn is_empty(&self) -> bool {
        let Self { tools, prompts, resources, updated, all, .. } = self;
        !(*tools || *prompts || *resources || *all) && updated.is_empty()
    }

    /// Returns the number of resources that are marked one by one, and the length of their URIs.
    pub fn updates(&self) -> (usize, usize) {
        (self.updated.len(), self.bytes as usize)
    }

    /// Returns the changes, and whether every watched resource may have changed.
    pub(in crate::server) fn changes(&self) -> (impl Iterator<Item = Change> + '_, bool) {
        let lists = [
            self.tools.then_some(Change::Tools),
            self.prompts.then_some(Change::Prompts),
            self.resources.then_some(Change::Resources),
        ];
        let updated = self.updated.iter().map(|uri| Change::Resource(uri.clone()));
        (lists.into_iter().flatten().chain(updated), self.all)
    }

    /// Marks these resources, and no others.
    pub(in crate::server) fn set_updated(&mut self, uris: BTreeSet<Box<str>>) {
        self.bytes = uris.iter().map(|uri| length(uri)).fold(0, u32::saturating_add);
        self.updated = uris;
    }

    /// Drops the changes of resources for which `keep` returns `false`.
    pub(in crate::server) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        let bytes = &mut self.bytes;
        self.updated.retain(|uri| {
            let kept = keep(uri);
            *bytes = bytes.saturating_sub(if kept { 0 } else { length(uri) });
            kept
        });
    }

    /// Takes the next change, lists first.
    pub(in crate::server) fn pop(&mut self) -> Option<Change> {
        let lists = [
            (&mut self.tools, Change::Tools),
            (&mut self.prompts, Change::Prompts),
            (&mut self.resources, Change::Resources),
        ];
        if let Some(list) = lists.into_iter().find_map(|(marked, change)| mem::take(marked).then_some(change))
        {
            return Some(list);
        }
        let uri = self.updated.pop_first()?;
        self.bytes = self.bytes.saturating_sub(length(&uri));
        Some(Change::Resource(uri))
    }
}

fn length(uri: &str) -> u32 {
    u32::try_from(uri.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(uris: &[&str]) -> Watched {
        Watched::new(uris.iter().map(|uri| (*uri).into()).collect(), None)
    }

    fn resource(uri: String) -> Change {
        Change::Resource(uri.into())
    }

    #[test]
    fn beyond_the_bounds_each_watched_resource_is_marked_in_place_of_its_parts() {
        let (outer, inner) = (watched(&["file:///a"]), watched(&["file:///a/b", "file:///c"]));
        for long in ["", &"x".repeat(1000)] {
            let mut pending = PendingChanges::default();
            for n in 0..10_000 {
                pending.add(&resource(format!("file:///a/b/{n}/{long}")), [&outer, &inner]);
            }
            let (count, bytes) = pending.updates();
            assert!(count <= MAX_UPDATES + 2 && bytes <= MAX_BYTES + 64, "{count} {bytes}");
            // Neither of the two would know of it by the other's.
            assert!(pending.updated.contains("file:///a") && pending.updated.contains("file:///a/b"));
            assert!(!pending.updated.contains("file:///c"));
        }
    }

    #[test]
    fn what_is_taken_makes_room() {
        let all = watched(&["a:/"]);
        let mut pending = PendingChanges::default();
        for n in 0..3 * MAX_UPDATES {
            assert!(pending.add(&resource(format!("a:/{n}")), [&all]));
            assert!(matches!(pending.pop(), Some(Change::Resource(uri)) if *uri != *"a:/"));
        }
        assert_eq!(pending.updates(), (0, 0));
    }

    #[test]
    fn one_mark_stands_for_all() {
        let all = watched(&["a:/"]);
        let mut pending = PendingChanges::default();
        pending.collapse();
        assert!(pending.is_empty(), "nothing has changed");
        pending.add(&resource("a:/1".into()), [&all]);
        pending.collapse();
        assert!(!pending.is_empty() && pending.updates() == (0, 0));
        assert!(!pending.add(&resource("a:/2".into()), [&all]));
    }

    #[test]
    fn up_to_the_bounds_each_resource_is_marked_itself() {
        let all = watched(&["a:/"]);
        // 32 of 2 KiB are as many bytes as are remembered.
        let uri = |n: usize| format!("a:/{n:02045}");
        let mut pending = PendingChanges::default();
        for n in 0..32 {
            assert!(pending.add(&resource(uri(n)), [&all]));
        }
        assert_eq!(pending.updates(), (32, MAX_BYTES));
        assert!(!pending.updated.contains("a:/"));
        pending.add(&resource("a:/1".into()), [&all]);
        assert!(pending.updated.contains("a:/"));
    }

    #[test]
    fn each_list_alone_is_something_to_notify_of_and_once() {
        for list in [Change::Tools, Change::Prompts, Change::Resources] {
            let mut pending = PendingChanges::default();
            assert!(pending.is_empty());
            assert!(pending.add(&list, []));
            assert!(!pending.add(&list, []) && !pending.is_empty());
            assert_eq!(pending.pop(), Some(list));
            assert!(pending.is_empty());
        }
        let mut pending = PendingChanges::default();
        pending.add_all();
        let (lists, all) = pending.changes();
        assert_eq!((lists.count(), all), (3, true));
        assert!(!pending.is_empty());
    }
}
