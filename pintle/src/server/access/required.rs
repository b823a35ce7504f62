use http::Extensions;

use crate::server::Authenticated;

/// What a caller needs to get to something, in the words of whoever authenticates: the scopes of a token, say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Required {
    rights: Vec<Box<str>>,
    /// Whether it does not exist for those who lack something.
    hidden: bool,
}

impl Required {
    /// Nothing at all.
    pub(crate) const NOTHING: Self = Self { rights: Vec::new(), hidden: false };

    pub(crate) fn add<T: Into<String>>(&mut self, rights: impl IntoIterator<Item = T>) {
        for right in rights {
            let right: String = right.into();
            if !self.rights.iter().any(|known| **known == *right) {
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

    #[cfg(feature = "http-server")]
    pub(crate) fn rights(&self) -> impl Iterator<Item = &str> {
        self.rights.iter().map(|right| &**right)
    }

    /// Whether the caller has all of it. A caller of whom nothing is known has nothing.
    pub(crate) fn is_met(&self, extensions: &Extensions) -> bool {
        self.rights.is_empty()
            || extensions
                .get::<Authenticated>()
                .is_some_and(|caller| self.rights.iter().all(|right| caller.has(right)))
    }

    /// Whether the caller gets to know that it is there.
    pub(crate) fn shows(&self, extensions: &Extensions) -> bool {
        !self.hidden || self.is_met(extensions)
    }
}

/// Whether anything was ever required in a catalogue: in most nothing is, and then nothing is looked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requires {
    pub(crate) some: bool,
    pub(crate) hides: bool,
}

impl Requires {
    pub(crate) fn join(&mut self, other: Self) {
        self.some |= other.some;
        self.hides |= other.hides;
    }

    pub(crate) fn note(&mut self, required: &Required) {
        self.some |= !required.is_nothing();
        self.hides |= required.hides();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_required_is_compared_with_what_the_caller_may() {
        let mut required = Required::default();
        required.add(["read", "write", "read"]);
        let mut extensions = Extensions::new();
        assert!(!required.is_met(&extensions), "nobody was authenticated");
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
}
