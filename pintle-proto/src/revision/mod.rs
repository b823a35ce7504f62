//! Which revisions there are, how they differ, and how a payload is reshaped for each.
//!
//! Nothing else in the workspace holds the date of a revision. A difference between the eras is code, elsewhere; a
//! difference within an era is a column of the dialect table or part of a step, here.

mod dialect;
mod edits;
mod fault;
mod part;
mod payload;
mod unsayable;
mod v2025_03_26;
mod v2025_06_18;
mod v2025_11_25;
mod v2026_07_28;
#[cfg(any(test, feature = "next-revision"))]
mod v2099_01_01;
mod walk;
mod words;

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use self::{
    dialect::{DIALECTS, DRAFTS, Era},
    edits::Rule,
};

pub(crate) use self::dialect::{BadArguments, Dialect, Knows, MessageKind};
pub(crate) use self::payload::ReshapeError;
pub use self::{part::Part, unsayable::Unsayable};

use crate::shown::shown;

/// A revision of the protocol that this build speaks.
///
/// It prints, parses and equals. It has no order and no variants to match on: what differs from one revision to the
/// next is decided in this crate, so that a handler or a transport cannot come to depend on a date.
///
/// ```
/// use pintle_proto::Revision;
///
/// let offered: Revision = "2025-06-18".parse().unwrap();
/// assert_eq!(offered.as_str(), "2025-06-18");
/// assert!(Revision::all().any(|revision| revision == offered));
/// assert_eq!(
///     "1999-12-31".parse::<Revision>().unwrap_err().to_string(),
///     "unknown revision: `1999-12-31`; known are `2026-07-28`, `2025-11-25`, `2025-06-18`, `2025-03-26`, `2024-11-05`"
/// );
/// ```
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct Revision(
    /// The number of its row in the dialect table.
    usize,
);

impl Revision {
    /// The newest that is published. Its shapes are the canonical ones that handlers and callers see.
    pub const LATEST: Self = Self(DRAFTS);

    /// A revision that does not exist, newer than [`LATEST`](Self::LATEST), to test how one is added.
    ///
    /// It is never among [`all`](Self::all): only who names this constant speaks it. Not covered by any promise of stability.
    #[doc(hidden)]
    #[cfg(any(test, feature = "next-revision"))]
    pub const NEXT: Self = Self(0);

    /// Returns all published revisions, newest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
        (DRAFTS..DIALECTS.len()).map(Self)
    }

    /// Returns those of `wanted` that this build knows, drafts included, newest first.
    pub(crate) fn sorted(wanted: &[Self]) -> impl Iterator<Item = Self> {
        (0..DIALECTS.len()).map(Self).filter(|revision| wanted.contains(revision))
    }

    /// The name that crosses the wire.
    pub fn as_str(self) -> &'static str {
        self.dialect().name
    }

    /// Reshapes a canonical payload for a peer of this revision.
    ///
    /// What the peer has no word for is left out, or said in words that it has: a resource link becomes text, a
    /// structured result becomes the JSON text of it. Custom methods lose only what the protocol itself added.
    ///
    /// What this does not do: `elicitation/create` in URL mode needs an `elicitationId` in one revision. One that is
    /// there stays; making it is the caller's.
    ///
    /// # Errors
    ///
    /// [`Unsayable`] when leaving it out would change what is asked or answered. `value` is then half done; drop it.
    ///
    /// ```
    /// use pintle_proto::{Part, Revision};
    /// use serde_json::json;
    ///
    /// let old: Revision = "2025-03-26".parse().unwrap();
    /// let mut result = json!({"resultType": "complete", "content": [], "structuredContent": {"celsius": 22}});
    /// old.lower(Part::Result("tools/call"), &mut result).unwrap();
    /// assert_eq!(result, json!({"content": [{"type": "text", "text": "{\"celsius\":22}"}]}));
    /// ```
    pub fn lower(self, part: Part<'_>, value: &mut Value) -> Result<(), Unsayable> {
        self.lowering().try_for_each(|rules| edits::apply(rules, part, value))
    }

    /// Reshapes what a peer of this revision sent into the canonical form.
    ///
    /// Give it the revision that was agreed on, not the one that was offered: capabilities that the agreed revision
    /// does not have are taken out of `initialize`, whatever the peer wrote before it knew.
    ///
    /// # Errors
    ///
    /// [`Unsayable`] when the canonical form cannot express it: never for revisions up to [`LATEST`](Self::LATEST).
    pub fn raise(self, part: Part<'_>, value: &mut Value) -> Result<(), Unsayable> {
        self.raising().try_for_each(|rules| edits::apply(rules, part, value))
    }

    /// Whether [`lower`](Self::lower) could change or refuse this payload, judged from its text without parsing it.
    ///
    /// `false` is certain, `true` is a guess: a word that matters occurs, perhaps in the user's own data.
    pub fn lowers(self, part: Part<'_>, text: &str) -> bool {
        !self.is_canonical() && words::lowering(self.0, part).is_some_and(|words| words.occur(text))
    }

    /// Whether [`raise`](Self::raise) could change this payload, judged from its text without parsing it.
    pub fn raises(self, part: Part<'_>, text: &str) -> bool {
        !self.is_canonical() && words::raising(self.0, part).is_some_and(|words| words.occur(text))
    }

    /// Whether its shapes are the canonical ones, so that nothing has to be lowered or raised.
    pub(crate) fn is_canonical(self) -> bool {
        self == Self::LATEST
    }

    /// The rows between this one and the canonical one: those that are stepped down from, and those that are stepped up to.
    fn between(self) -> (&'static [Dialect], &'static [Dialect]) {
        let here = self.0;
        (DIALECTS.get(DRAFTS..here).unwrap_or_default(), DIALECTS.get(here..DRAFTS).unwrap_or_default())
    }

    /// The rules from the canonical shapes to this revision's.
    fn lowering(self) -> impl Iterator<Item = &'static [Rule]> {
        let (down, up) = self.between();
        down.iter().map(|row| row.step.down).chain(up.iter().rev().map(|row| row.step.up))
    }

    /// The rules from this revision's shapes to the canonical ones.
    fn raising(self) -> impl Iterator<Item = &'static [Rule]> {
        let (down, up) = self.between();
        down.iter().rev().map(|row| row.step.up).chain(up.iter().map(|row| row.step.down))
    }
}

impl Revision {
    /// Whether every request stands alone, without a handshake.
    pub fn is_stateless(self) -> bool {
        matches!(self.dialect().era, Era::Stateless)
    }

    /// The row of the table.
    pub(crate) fn dialect(self) -> &'static Dialect {
        &DIALECTS[self.0]
    }

    /// Whether this revision defines `method` for a client to say.
    pub(crate) fn knows(self, kind: MessageKind, method: &str) -> Knows {
        if self.dialect().methods(kind).contains(&method) {
            Knows::Has
        } else if !self.dialect().extensions.contains(&method)
            && DIALECTS.iter().any(|row| row.methods(kind).contains(&method))
        {
            Knows::Lacks
        } else {
            Knows::Never
        }
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.dialect().name)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.dialect().name)
    }
}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(name: &str) -> Result<Self, UnknownRevision> {
        Self::all().find(|revision| revision.as_str() == name).ok_or_else(|| UnknownRevision(shown(name)))
    }
}

impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.dialect().name)
    }
}

impl<'de> Deserialize<'de> for Revision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Revision;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a protocol revision")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Revision, E> {
                name.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Visitor)
    }
}

/// The name is of no revision that this build speaks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownRevision(Box<str>);

impl fmt::Display for UnknownRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown revision: `{}`; known are ", self.0)?;
        for (index, revision) in Revision::all().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}`{revision}`")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownRevision {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_revision_goes_through_text_and_back() {
        for revision in Revision::all() {
            assert_eq!(revision.to_string().parse(), Ok(revision));
            let text = serde_json::to_string(&revision).unwrap();
            assert_eq!(serde_json::from_str::<Revision>(&text).unwrap(), revision);
        }
        assert_eq!(Revision::all().next(), Some(Revision::LATEST));
    }

    #[test]
    fn revisions_with_a_handshake_are_older_than_those_without() {
        let eras: Vec<_> = (0..DIALECTS.len()).map(|row| Revision(row).is_stateless()).collect();
        assert!(eras.is_sorted_by(|newer, older| newer >= older), "{eras:?}");
        assert!(Revision::LATEST.is_stateless());
    }

    #[test]
    fn a_long_name_is_not_repeated_at_length() {
        let error = "é".repeat(1_000_000).parse::<Revision>().unwrap_err().to_string();
        assert!(error.len() < 300, "{}", error.len());
        assert!(error.contains("é…`; known are"), "{error}");
    }

    #[test]
    fn the_newest_is_left_as_it_is() {
        let before = json!({"resultType": "input_required", "ttlMs": 1, "structuredContent": null});
        let mut value = before.clone();
        assert_eq!(Revision::LATEST.lower(Part::Result("tools/call"), &mut value), Ok(()));
        assert_eq!(value, before);
        assert!(!Revision::LATEST.lowers(Part::Result("tools/call"), &before.to_string()));
    }

    #[test]
    fn an_ordinary_result_needs_no_lowering() {
        let text = r#"{"content":[{"type":"text","text":"say \"hello\",\n\u001b[1m\t"}]}"#;
        for revision in Revision::all() {
            assert!(!revision.lowers(Part::Result("tools/call"), text), "{revision}");
            assert!(!revision.raises(Part::Params("tools/call"), r#"{"name":"add","arguments":{"a":1}}"#));
        }
    }

    #[test]
    fn who_knows_which_method() {
        use Knows::{Has, Lacks, Never};
        use MessageKind::{Notification, Request};

        // Newest first, as in `all`.
        for (said, method, expected) in [
            (Request, "initialize", [Lacks, Has, Has, Has, Has]),
            (Request, "server/discover", [Has, Lacks, Lacks, Lacks, Lacks]),
            (Request, "tools/call", [Has, Has, Has, Has, Has]),
            (Request, "tasks/result", [Lacks, Has, Lacks, Lacks, Lacks]),
            (Request, "tasks/get", [Never, Has, Lacks, Lacks, Lacks]),
            (Request, "tasks/update", [Never, Never, Never, Never, Never]),
            (Request, "acme/count", [Never, Never, Never, Never, Never]),
            (Notification, "notifications/initialized", [Lacks, Has, Has, Has, Has]),
            (Notification, "notifications/progress", [Lacks, Has, Has, Has, Has]),
            (Notification, "acme/counted", [Never, Never, Never, Never, Never]),
        ] {
            let known: Vec<_> = Revision::all().map(|revision| revision.knows(said, method)).collect();
            assert_eq!(known, expected, "{method}");
        }
    }
}
