//! Which revisions there are, how they differ, and how a payload is reshaped for each.
//!
//! Nothing else in the workspace holds the date of a revision. A difference between the eras is code, elsewhere; a
//! difference within an era is a column of the dialect table or part of a step, here.

mod dialect;
mod fault;
mod part;
mod step;
mod unsayable;
mod v2024_11_05;
mod v2025_03_26;
mod v2025_06_18;
mod v2025_11_25;
mod walk;

use std::{
    fmt,
    hash::{Hash, Hasher},
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use self::{
    dialect::{DIALECTS, Era},
    step::Step,
};

pub(crate) use self::dialect::{BadArguments, Dialect, Knows, Said};
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
#[derive(Clone, Copy)]
pub struct Revision(&'static Dialect);

impl Revision {
    /// The newest: its shapes are the canonical ones that handlers and callers see.
    pub const LATEST: Self = Self(&DIALECTS[0]);

    /// All of them, newest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
        DIALECTS.iter().map(Self)
    }

    /// The name that crosses the wire.
    pub fn as_str(self) -> &'static str {
        self.0.name
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
        self.steps().try_for_each(|step| (step.lower)(part, value))
    }

    /// Reshapes what a peer of this revision sent into the canonical form.
    ///
    /// Give it the revision that was agreed on, not the one that was offered: capabilities that the agreed revision
    /// does not have are taken out of `initialize`, whatever the peer wrote before it knew.
    pub fn raise(self, part: Part<'_>, value: &mut Value) {
        self.steps().rev().for_each(|step| (step.raise)(part, value));
    }

    /// Whether [`lower`](Self::lower) could change or refuse this payload, judged from its text without parsing it.
    ///
    /// `false` is certain, `true` is a guess: a word that matters occurs, perhaps in the user's own data.
    pub fn lowers(self, part: Part<'_>, text: &str) -> bool {
        self.lowers_any(part, [text, ""])
    }

    /// The same for a text of which only these two pieces have to be looked at.
    pub(crate) fn lowers_any(self, part: Part<'_>, texts: [&str; 2]) -> bool {
        self.steps().any(|step| {
            let words = (step.lowers)(part);
            texts.iter().any(|text| step::occurs(words, text))
        })
    }

    /// Whether [`raise`](Self::raise) could change this payload, judged from its text without parsing it.
    pub fn raises(self, part: Part<'_>, text: &str) -> bool {
        self.steps().any(|step| step::occurs((step.raises)(part), text))
    }

    /// From the newest revision down to this one.
    fn steps(self) -> impl DoubleEndedIterator<Item = &'static Step> {
        let here = DIALECTS.iter().position(|row| std::ptr::eq(row, self.0)).unwrap_or(0);
        DIALECTS[..=here].iter().map(|row| &row.step)
    }
}

impl Revision {
    /// Whether every request stands alone, without a handshake.
    pub fn is_stateless(self) -> bool {
        matches!(self.0.era, Era::Stateless)
    }

    /// The row of the table.
    pub(crate) fn dialect(self) -> &'static Dialect {
        self.0
    }

    /// Whether this revision defines `method` for a client to say.
    pub(crate) fn knows(self, said: Said, method: &str) -> Knows {
        if self.0.said(said).contains(&method) {
            Knows::Has
        } else if !self.0.extensions.contains(&method)
            && DIALECTS.iter().any(|row| row.said(said).contains(&method))
        {
            Knows::Lacks
        } else {
            Knows::Never
        }
    }
}

impl PartialEq for Revision {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Revision {}

impl Hash for Revision {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.name)
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
        serializer.serialize_str(self.0.name)
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
        assert_eq!(Revision::all().len(), 5);
        assert_eq!(Revision::all().next(), Some(Revision::LATEST));
    }

    #[test]
    fn only_the_newest_is_stateless() {
        let stateless: Vec<_> = Revision::all().filter(|revision| revision.is_stateless()).collect();
        assert_eq!(stateless, [Revision::LATEST]);
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
        use Said::{Notification, Request};

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
