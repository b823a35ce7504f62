use std::fmt;

use serde::{Deserialize, Serialize};

/// The limit of scopes in a set. More are ignored.
const MAX_SCOPES: usize = 128;

/// A set of scopes, in the order they were first named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Scopes(Vec<String>);

impl Scopes {
    /// Parses scopes separated by spaces.
    #[cfg(feature = "client")]
    pub(crate) fn parse(text: &str) -> Self {
        Self::of(text.split(' '))
    }

    pub(crate) fn of<S: Into<String>>(scopes: impl IntoIterator<Item = S>) -> Self {
        let mut all = Self::default();
        scopes.into_iter().for_each(|scope| all.add(scope.into()));
        all
    }

    #[cfg(any(feature = "client", feature = "server"))]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    #[cfg(feature = "client")]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, scope: &str) -> bool {
        self.0.iter().any(|own| own == scope)
    }

    /// Whether all of the others are in this one.
    pub(crate) fn covers(&self, others: &Self) -> bool {
        others.0.iter().all(|scope| self.has(scope))
    }

    pub(crate) fn and(mut self, others: &Self) -> Self {
        others.0.iter().for_each(|scope| self.add(scope.clone()));
        self
    }

    fn add(&mut self, scope: String) {
        if !scope.is_empty() && self.0.len() < MAX_SCOPES && !self.has(&scope) {
            self.0.push(scope);
        }
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

/// Returns the scopes of the first request: those of the challenge, or all supported ones, or none.
#[cfg(feature = "client")]
pub(crate) fn first(challenged: Option<Scopes>, supported: Option<&[String]>) -> Scopes {
    challenged
        .filter(|scopes| !scopes.is_empty())
        .unwrap_or_else(|| Scopes::of(supported.unwrap_or_default()))
}

#[cfg(test)]
#[cfg(feature = "client")]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_comes_before_what_is_supported() {
        let supported = ["read".to_owned(), "write".to_owned()];
        let table = [
            (Some("basic"), Some(&supported[..]), "basic"),
            (Some(""), Some(&supported[..]), "read write"),
            (None, Some(&supported[..]), "read write"),
            (None, None, ""),
        ];
        for (challenged, supported, expected) in table {
            assert_eq!(first(challenged.map(Scopes::parse), supported).to_string(), expected);
        }
    }

    #[test]
    fn a_union_keeps_what_was_there() {
        let union = Scopes::parse("basic  read").and(&Scopes::parse("write read"));
        assert_eq!(union.to_string(), "basic read write");
        assert!(union.covers(&Scopes::parse("write basic")));
        assert!(!union.covers(&Scopes::parse("admin")));
        assert!(union.covers(&Scopes::default()));
    }

    #[test]
    fn nobody_asks_for_endless_scopes() {
        assert_eq!(Scopes::of((0..1000).map(|n| n.to_string())).0.len(), MAX_SCOPES);
    }
}
