use http::Extensions;

use crate::server::Authenticated;

/// The rights that a caller needs for an entry of the catalogue, named as the authentication layer names them: for example
/// the scopes of a token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Required {
    rights: Vec<Box<str>>,
    /// Whether the entry is hidden from callers that lack a right.
    hidden: bool,
}

impl Required {
    /// No required rights.
    pub(crate) const NOTHING: Self = Self { rights: Vec::new(), hidden: false };

    pub(crate) fn add<T: Into<String>>(&mut self, rights: impl IntoIterator<Item = T>) {
        for right in rights {
            let right: String = right.into();
            if !self.rights.iter().any(|other| **other == *right) {
                self.rights.push(right.into());
            }
        }
    }

    pub(crate) fn hide(&mut self) {
        self.hidden = true;
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.rights.is_empty()
    }

    pub(crate) fn hides(&self) -> bool {
        self.hidden && !self.rights.is_empty()
    }

    pub(crate) fn rights(&self) -> impl Iterator<Item = &str> {
        self.rights.iter().map(|right| &**right)
    }

    /// Returns whether the caller has all of the rights. An anonymous caller has none.
    pub(crate) fn is_met(&self, extensions: &Extensions) -> bool {
        self.rights.is_empty()
            || extensions
                .get::<Authenticated>()
                .is_some_and(|caller| self.rights.iter().all(|right| caller.has(right)))
    }

    /// Returns whether the entry is visible to the caller.
    pub(crate) fn shows(&self, extensions: &Extensions) -> bool {
        !self.hidden || self.is_met(extensions)
    }
}

/// A summary of the requirements of a catalogue. Most have none, and then no request has to look for any.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequirementSummary {
    pub(crate) any: bool,
    pub(crate) hides: bool,
}

impl RequirementSummary {
    pub(crate) fn join(&mut self, other: Self) {
        self.any |= other.any;
        self.hides |= other.hides;
    }

    pub(crate) fn add(&mut self, required: &Required) {
        self.any |= !required.is_nothing();
        self.hides |= required.hides();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_rights_are_compared_with_those_of_the_caller() {
        let mut required = Required::default();
        required.add(["read", "write", "read"]);
        let mut extensions = Extensions::new();
        assert!(!required.is_met(&extensions), "an anonymous caller has no rights");
        extensions.insert(Authenticated::local());
        assert!(required.is_met(&extensions));
        extensions.insert(Authenticated::new("ann").rights(|right| right == "read"));
        assert!(!required.is_met(&extensions));
        assert!(required.shows(&extensions));
        required.hide();
        assert!(!required.shows(&extensions));
        extensions.insert(Authenticated::new("ann").rights(|_| true));
        assert!(required.is_met(&extensions) && required.shows(&extensions));
        extensions.clear();
        assert!(!required.is_met(&extensions) && !required.shows(&extensions));
        assert!(Required::NOTHING.is_met(&extensions));
    }

    #[test]
    fn a_summary_has_what_any_of_a_catalogue_requires() {
        let (mut shown, mut hidden) = (Required::default(), Required::default());
        shown.add(["read"]);
        hidden.add(["read"]);
        hidden.hide();
        // Nobody lacks a right of none.
        let mut open = Required::default();
        open.hide();
        assert!(hidden.hides() && !shown.hides() && !open.hides());
        for (all, any, hides) in [
            (vec![], false, false),
            (vec![&open], false, false),
            (vec![&shown, &open], true, false),
            (vec![&open, &hidden, &shown], true, true),
        ] {
            let mut summary = RequirementSummary::default();
            all.iter().for_each(|required| summary.add(required));
            let mut joined = RequirementSummary::default();
            joined.join(summary);
            joined.join(RequirementSummary::default());
            for summary in [summary, joined] {
                assert_eq!((summary.any, summary.hides), (any, hides), "{all:?}");
            }
        }
    }
}
