use std::collections::BTreeMap;

use pintle_types::RawValue;
use serde::{Deserialize, Serialize};

use super::Kind;

/// What a call remembers from one round to the next. It travels sealed, in `requestState`.
///
/// A client sends only the answers of the latest round, so earlier ones are kept here.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct State {
    /// How many rounds there have been.
    #[serde(rename = "r")]
    pub(crate) round: u32,
    /// What was asked and is not answered.
    #[serde(rename = "q", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) open: BTreeMap<String, Mark>,
    /// What was asked and answered.
    #[serde(rename = "a", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) answers: BTreeMap<String, Answered>,
    /// Values of acts that must not be done again.
    #[serde(rename = "o", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) once: BTreeMap<String, Box<RawValue>>,
    /// What the application wants to have back.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// A question, as far as it must be recognised again.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Mark {
    #[serde(rename = "k")]
    pub(crate) kind: Kind,
    #[serde(rename = "h")]
    pub(crate) print: u64,
}

/// A question and the answer to it, as it came.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Answered {
    #[serde(rename = "k")]
    pub(crate) kind: Kind,
    #[serde(rename = "h")]
    pub(crate) print: u64,
    #[serde(rename = "v")]
    pub(crate) value: Box<RawValue>,
}

impl Mark {
    pub(crate) fn new(kind: Kind, params: &str) -> Self {
        // FNV-1a: it tells a question from an edited one. Forging is the seal's concern.
        let print = params.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |print, byte| {
            (print ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self { kind, print }
    }

    pub(crate) fn answered(self, value: Box<RawValue>) -> Answered {
        Answered { kind: self.kind, print: self.print, value }
    }
}

impl Answered {
    pub(crate) fn mark(&self) -> Mark {
        Mark { kind: self.kind, print: self.print }
    }
}
