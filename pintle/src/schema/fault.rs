use std::fmt;

use super::words::{ANYTHING, LEFT_OUT};

/// How many faults one check tells: enough to mend a value in one go, and never a flood.
pub(super) const MOST_FAULTS: usize = 8;

/// One thing that is wrong with a value, in words that a model can act on.
///
/// Its text names the place, what was expected and what came, and a near miss if there is one.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// Where it is: a JSON pointer into the value, empty for the whole.
    pub pointer: String,
    /// What should be there, as read after "should be".
    pub expected: String,
    /// What is there, shortened; empty if nothing is.
    pub got: String,
    /// What may have been meant.
    pub hint: Option<String>,
    is: Is,
}

/// How a fault is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Is {
    Wrong,
    Unknown,
    Missing,
}

impl Fault {
    /// A value that is not as it should be.
    pub(super) fn wrong(pointer: &str, expected: String, got: String) -> Self {
        Self { pointer: pointer.to_owned(), expected, got, hint: None, is: Is::Wrong }
    }

    /// A property that the schema does not know.
    pub(super) fn unknown(pointer: String, expected: String, got: String) -> Self {
        Self { pointer, expected, got, hint: None, is: Is::Unknown }
    }

    /// A property that should be there.
    pub(super) fn missing(pointer: String, expected: String) -> Self {
        Self { pointer, expected, got: String::new(), hint: None, is: Is::Missing }
    }

    pub(super) fn with_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, expected, got, hint, is } = self;
        match pointer.as_str() {
            "" => f.write_str("the value")?,
            pointer => write!(f, "`{pointer}`")?,
        }
        match (is, hint) {
            (Is::Wrong, None) => write!(f, " should be {expected}, but is {got}"),
            (Is::Wrong, Some(hint)) => write!(f, " should be {expected}, but is {got}: {hint}"),
            (Is::Unknown, None) if expected == LEFT_OUT => f.write_str(" is not known: leave it out"),
            (Is::Unknown, None) => write!(f, " is not known: use {expected}"),
            (Is::Unknown, Some(hint)) => write!(f, " is not known: {hint}"),
            (Is::Missing, None) if expected == ANYTHING => f.write_str(" is missing"),
            (Is::Missing, Some(hint)) if expected == ANYTHING => write!(f, " is missing: {hint}"),
            (Is::Missing, None) => write!(f, " is missing: it should be {expected}"),
            (Is::Missing, Some(hint)) => write!(f, " is missing: it should be {expected}; {hint}"),
        }
    }
}

/// All faults as one text for a model: a line each, and at last what to do.
#[must_use]
pub fn faults_text(faults: &[Fault]) -> String {
    let mut text = String::new();
    for fault in faults {
        text.push_str(&fault.to_string());
        text.push('\n');
    }
    text.push_str(match faults.len() {
        0 => "nothing is wrong",
        1 => "correct it and try again",
        count if count < MOST_FAULTS => "correct these and try again",
        _ => "there may be more; correct these and try again",
    });
    text
}
