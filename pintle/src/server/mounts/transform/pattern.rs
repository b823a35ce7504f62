use memchr::memmem;

use crate::{
    server::ListKind,
    uri::{Uri, UriPattern},
};

/// A pattern of names: `*` matches any text, everything else matches itself.
///
/// ```
/// use pintle::server::NamePattern;
///
/// let pattern = NamePattern::new("git_*");
/// assert!(pattern.matches("git_push") && !pattern.matches("push"));
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct NamePattern(Box<str>);

impl NamePattern {
    /// Creates a pattern.
    pub fn new(pattern: impl Into<Box<str>>) -> Self {
        Self(pattern.into())
    }

    /// Returns the text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether a name has this pattern.
    pub fn matches(&self, name: &str) -> bool {
        matches(&self.0, name)
    }
}

/// A pattern of the entries of one list. Those of resources and templates are compared as URIs.
#[derive(Clone, Debug)]
pub(crate) enum EntryPattern {
    Name(NamePattern),
    Uri(UriPattern),
}

impl EntryPattern {
    pub(crate) fn new(list: ListKind, pattern: NamePattern) -> Self {
        match list {
            ListKind::Tools | ListKind::Prompts => Self::Name(pattern),
            ListKind::Resources | ListKind::Templates => Self::Uri(UriPattern::new(pattern.as_str())),
        }
    }

    /// Returns whether an entry has the pattern. `uri` is its name, if it was read before.
    pub(crate) fn matches(&self, name: &str, uri: Option<&Uri>) -> bool {
        match (self, uri) {
            (Self::Name(pattern), _) => pattern.matches(name),
            (Self::Uri(pattern), Some(uri)) => uri.matches(pattern),
            (Self::Uri(pattern), None) => Uri::of(name).matches(pattern),
        }
    }
}

/// Returns whether a name has a pattern.
pub(crate) fn matches(pattern: &str, mut name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return *pattern == *name };
    let Some(behind) = name.strip_prefix(first) else { return false };
    name = behind;
    let mut parts = rest.split('*');
    let Some(last) = parts.next_back() else { return false };
    // Taking each part where it first occurs leaves the most for the others.
    for part in parts {
        match memmem::find(name.as_bytes(), part.as_bytes()) {
            // A text is found where its characters begin.
            Some(at) => name = name.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    name.ends_with(last)
}

impl<T: Into<Box<str>>> From<T> for NamePattern {
    fn from(pattern: T) -> Self {
        Self::new(pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_text() {
        for (pattern, matches, others) in [
            ("push", &["push"][..], &["pushed", "", "a push"][..]),
            ("*", &["", "push", "**"], &[]),
            ("git_*", &["git_", "git_push"], &["git", "a git_push"]),
            ("*_push", &["_push", "git_push"], &["git_push_"]),
            ("a*b*c", &["abc", "a-b-c", "abbcc", "abcbc"], &["ab", "acb", "abcd"]),
            ("a*a", &["aa", "aba"], &["a"]),
            ("", &[""], &["a"]),
            ("**a**", &["a", "bab"], &["b"]),
            ("*ä*", &["ä", "aäb"], &["a"]),
        ] {
            let pattern = NamePattern::new(pattern);
            for name in matches {
                assert!(pattern.matches(name), "{pattern:?} {name}");
            }
            for name in others {
                assert!(!pattern.matches(name), "{pattern:?} {name}");
            }
        }
    }

    #[test]
    fn no_name_takes_long() {
        let pattern = NamePattern::new("*a".repeat(1000) + "b");
        assert!(!pattern.matches(&"a".repeat(100_000)));
    }
}
