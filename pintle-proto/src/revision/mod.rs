//! The revisions of the protocol, their differences, and the conversion of payloads between them.
//!
//! Nothing else in the workspace contains the date of a revision. Differences between the eras are code, elsewhere;
//! differences within an era are columns of the dialect table or part of a step, here.
//!
//! Only older revisions pay. A result for the newest revision is printed with its extra members, and is never searched or parsed. A payload
//! of another revision is transformed only if it has a member that an edit names. Servers lower results in `server/finish.rs`; clients lower
//! and raise in `client/shapes.rs`.

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

use crate::{Facts, shown::shown};

/// A revision of the protocol that this build supports.
///
/// It can be printed, parsed and compared for equality. It has no order and no variants to match on: the differences
/// between revisions are handled in this crate, so that a handler or a transport cannot depend on a date.
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
    /// The index of its row in the dialect table.
    usize,
);

impl Revision {
    /// The newest published revision. Its shapes are the canonical ones, which handlers and callers see.
    pub const LATEST: Self = Self(DRAFTS);

    /// A fictional revision newer than [`LATEST`](Self::LATEST), to test how one is added.
    ///
    /// It is not among [`all`](Self::all), and used only if this constant is named. It is not covered by any promise of
    /// stability.
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

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        self.dialect().name
    }

    /// Converts a canonical payload to the shapes of this revision.
    ///
    /// Members that the revision lacks are removed or replaced: a resource link becomes text, structured content
    /// becomes its JSON text. Payloads of custom methods lose only members that the protocol added.
    ///
    /// One revision requires an `elicitationId` in `elicitation/create` in URL mode. It is kept if present; adding one
    /// is up to the caller.
    ///
    /// # Errors
    ///
    /// [`Unsayable`] if removing something would change the meaning. `value` is then partly converted; drop it.
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

    /// Converts a payload in the shapes of this revision to canonical ones.
    ///
    /// Use the agreed revision, not the offered one: capabilities that the agreed revision lacks are removed from
    /// `initialize`, whatever the peer sent before it knew.
    ///
    /// # Errors
    ///
    /// [`Unsayable`] if the canonical form cannot express it: never for revisions up to [`LATEST`](Self::LATEST).
    pub fn raise(self, part: Part<'_>, value: &mut Value) -> Result<(), Unsayable> {
        self.raising().try_for_each(|rules| edits::apply(rules, part, value))
    }

    /// Returns whether [`lower`](Self::lower) could change or refuse this payload, from its text and without parsing
    /// it.
    ///
    /// `false` is certain, `true` is conservative: a relevant word occurs, possibly in the user's own data.
    pub fn lowers(self, part: Part<'_>, text: &str) -> bool {
        !self.is_canonical() && words::lowering(self.0, part).is_some_and(|words| words.occur(text))
    }

    /// Returns whether [`raise`](Self::raise) could change or refuse this payload, from its text and without parsing
    /// it.
    pub fn raises(self, part: Part<'_>, text: &str) -> bool {
        !self.is_canonical() && words::raising(self.0, part).is_some_and(|words| words.occur(text))
    }

    /// Returns whether its shapes are the canonical ones, so that nothing has to be converted.
    pub(crate) fn is_canonical(self) -> bool {
        self == Self::LATEST
    }

    /// Returns the rows between this one and the canonical one: those to step down from, and those to step up to.
    fn between(self) -> (&'static [Dialect], &'static [Dialect]) {
        let here = self.0;
        (DIALECTS.get(DRAFTS..here).unwrap_or_default(), DIALECTS.get(here..DRAFTS).unwrap_or_default())
    }

    /// Returns the rules from the canonical shapes to this revision's.
    fn lowering(self) -> impl Iterator<Item = &'static [Rule]> {
        let (down, up) = self.between();
        down.iter().map(|row| row.step.down).chain(up.iter().rev().map(|row| row.step.up))
    }

    /// Returns the rules from this revision's shapes to the canonical ones.
    fn raising(self) -> impl Iterator<Item = &'static [Rule]> {
        let (down, up) = self.between();
        down.iter().rev().map(|row| row.step.up).chain(up.iter().map(|row| row.step.down))
    }
}

impl Revision {
    /// Returns whether the revision is stateless: every request is self-contained, and there is no handshake.
    pub(crate) fn is_stateless(self) -> bool {
        matches!(self.dialect().era, Era::Stateless)
    }

    /// Returns the facts of the revision, for code above this crate.
    pub fn facts(self) -> Facts {
        self.dialect().facts
    }

    /// Returns the row of the dialect table.
    pub(crate) fn dialect(self) -> &'static Dialect {
        &DIALECTS[self.0]
    }

    /// Returns whether a client can send this request or notification. A method that no revision defines belongs to an extension, and
    /// can always be sent.
    ///
    /// ```
    /// use pintle_proto::Revision;
    ///
    /// assert!(!Revision::LATEST.has_method("ping"));
    /// assert!(Revision::LATEST.has_method("tools/call"));
    /// assert!(Revision::LATEST.has_method("example.com/add"));
    /// ```
    pub fn has_method(self, method: &str) -> bool {
        let lacks = |kind| matches!(self.knows(kind, method), Knows::Lacks);
        !lacks(MessageKind::Request) && !lacks(MessageKind::Notification)
    }

    /// Returns whether this revision defines `method` for clients.
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

/// The error for a name that is not that of a supported revision.
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
        for (kind, method, expected) in [
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
            let known: Vec<_> = Revision::all().map(|revision| revision.knows(kind, method)).collect();
            assert_eq!(known, expected, "{method}");
        }
    }
}
