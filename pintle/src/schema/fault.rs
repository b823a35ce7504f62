use std::fmt;

use super::words::{ANYTHING, LEFT_OUT};

/// The maximum number of faults per check: enough to correct a value in one attempt.
pub(super) const MAX_FAULTS: usize = 8;

/// A mismatch between a value and its schema, with a text that a model can act on.
///
/// The text contains the path, the expected and the actual value, and a suggestion if there is one.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// A JSON pointer into the value, empty for the whole value.
    pub pointer: String,
    /// The expectation, to be read after "should be".
    pub expected: String,
    /// The actual value, truncated; empty if it is missing.
    pub got: String,
    /// A suggestion.
    pub hint: Option<String>,
    kind: FaultKind,
}

/// The kind of a fault, which determines its text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FaultKind {
    Wrong,
    Unknown,
    Missing,
}

impl Fault {
    /// Creates a fault for a wrong value.
    pub(super) fn wrong(pointer: &str, expected: String, got: String) -> Self {
        Self { pointer: pointer.to_owned(), expected, got, hint: None, kind: FaultKind::Wrong }
    }

    /// Creates a fault for an unknown property.
    pub(super) fn unknown(pointer: String, expected: String, got: String) -> Self {
        Self { pointer, expected, got, hint: None, kind: FaultKind::Unknown }
    }

    /// Creates a fault for a missing property.
    pub(super) fn missing(pointer: String, expected: String) -> Self {
        Self { pointer, expected, got: String::new(), hint: None, kind: FaultKind::Missing }
    }

    pub(super) fn with_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, expected, got, hint, kind } = self;
        match pointer.as_str() {
            "" => f.write_str("the value")?,
            pointer => write!(f, "`{pointer}`")?,
        }
        match (kind, hint) {
            (FaultKind::Wrong, None) => write!(f, " should be {expected}, but is {got}"),
            (FaultKind::Wrong, Some(hint)) => write!(f, " should be {expected}, but is {got}: {hint}"),
            (FaultKind::Unknown, None) if expected == LEFT_OUT => f.write_str(" is not known: leave it out"),
            (FaultKind::Unknown, None) => write!(f, " is not known: use {expected}"),
            (FaultKind::Unknown, Some(hint)) => write!(f, " is not known: {hint}"),
            (FaultKind::Missing, None) if expected == ANYTHING => f.write_str(" is missing"),
            (FaultKind::Missing, Some(hint)) if expected == ANYTHING => write!(f, " is missing: {hint}"),
            (FaultKind::Missing, None) => write!(f, " is missing: it should be {expected}"),
            (FaultKind::Missing, Some(hint)) => write!(f, " is missing: it should be {expected}; {hint}"),
        }
    }
}

/// Formats faults as one text for a model: one per line, followed by what to do.
#[cfg(feature = "server")]
pub(crate) fn faults_text(faults: &[Fault]) -> String {
    let mut text = String::new();
    for fault in faults {
        text.push_str(&fault.to_string());
        text.push('\n');
    }
    text.push_str(match faults.len() {
        0 => "nothing is wrong",
        1 => "correct it and try again",
        count if count < MAX_FAULTS => "correct these and try again",
        _ => "there may be more; correct these and try again",
    });
    text
}
