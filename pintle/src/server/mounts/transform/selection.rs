use super::pattern::{EntryPattern, NamePattern};
use crate::{
    server::ListKind,
    uri::{Template, Uri},
};

/// A selection of entries, by patterns of their names and URIs.
#[derive(Debug, Default)]
pub(super) struct Selection {
    hidden: Vec<(ListKind, EntryPattern)>,
    only: Vec<(ListKind, Vec<EntryPattern>)>,
    /// Whether templates without a literal scheme are left out.
    pub(super) needs_schemes: bool,
}

impl Selection {
    /// Leaves out the entries of a list that have a pattern.
    pub(super) fn hide(&mut self, list: ListKind, pattern: NamePattern) {
        self.hidden.push((list, EntryPattern::new(list, pattern)));
    }

    /// Leaves out the entries of a list that have none of these patterns.
    pub(super) fn only(&mut self, list: ListKind, patterns: impl Iterator<Item = NamePattern>) {
        self.only.push((list, patterns.map(|pattern| EntryPattern::new(list, pattern)).collect()));
    }

    /// Returns whether entries of a list are left out by their names.
    pub(super) fn decides(&self, list: ListKind) -> bool {
        self.hidden.iter().any(|(kind, _)| *kind == list) || self.only.iter().any(|(kind, _)| *kind == list)
    }

    /// Returns whether an entry is left out. `uri` is its name, if it was read before.
    pub(super) fn removes(&self, list: ListKind, name: &str, uri: Option<&Uri>) -> bool {
        // A text that is no template matches nothing.
        let has_scheme = || Template::parse(name).is_ok_and(|template| template.has_scheme());
        let hides = |(kind, pattern): &(ListKind, EntryPattern)| *kind == list && pattern.matches(name, uri);
        let omits = |(kind, patterns): &(ListKind, Vec<EntryPattern>)| {
            *kind == list && !patterns.iter().any(|pattern| pattern.matches(name, uri))
        };
        (self.needs_schemes && list == ListKind::Templates && !has_scheme())
            || self.hidden.iter().any(hides)
            || self.only.iter().any(omits)
    }
}
