use std::collections::{BTreeMap, BTreeSet};

use pintle_types::{RawValue, RpcError};
use serde::{Deserialize, Serialize};

use super::Kind;

/// What a call remembers from one round to the next. It travels sealed, in `requestState`.
///
/// A client sends only the answers of the latest round, so earlier ones are kept here.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct State {
    /// How it is written: see [`FORMAT`].
    #[serde(rename = "f")]
    pub(crate) format: u32,
    /// What the call is known by to other systems, in all its rounds.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub(crate) call_key: Option<String>,
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
    /// Acts that were begun and whose end nobody saw: they may be done or not.
    #[serde(rename = "b", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) begun: BTreeSet<String>,
    /// What the application wants to have back.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// How states are written now. A process that reads another format, or none that it knows, must not guess: raise this with
/// every change that an older reader would misread, and let readers take the one before for as long as states live.
pub(crate) const FORMAT: u32 = 1;

impl Default for State {
    fn default() -> Self {
        Self {
            format: FORMAT,
            call_key: None,
            round: 0,
            open: BTreeMap::new(),
            answers: BTreeMap::new(),
            once: BTreeMap::new(),
            begun: BTreeSet::new(),
            note: None,
        }
    }
}

impl State {
    /// Reads what this or another process of the server has written. It was sealed, so nobody else wrote it.
    pub(crate) fn read(text: &[u8]) -> Result<Self, RpcError> {
        #[derive(Deserialize)]
        struct Written {
            #[serde(rename = "f", default)]
            format: u32,
        }
        let unreadable = |reason: String| {
            RpcError::invalid_params(format!("`requestState` is of {reason}: make the call anew"))
        };
        match serde_json::from_slice(text) {
            Ok(Written { format: FORMAT }) => {}
            Ok(Written { format }) => {
                return Err(unreadable(format!("format {format}, and this server reads {FORMAT}")));
            }
            Err(_) => return Err(unreadable("another version of the server".to_owned())),
        }
        serde_json::from_slice(text).map_err(|_| unreadable("another version of the server".to_owned()))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_format_is_refused_by_its_number() {
        let state = State { round: 3, ..State::default() };
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(State::read(text.as_bytes()).unwrap().round, 3);
        for (text, said) in [
            (text.replace("\"f\":1", "\"f\":2"), "format 2, and this server reads 1"),
            (text.replace("\"f\":1,", ""), "format 0, and this server reads 1"),
            (text.replace("\"r\":3", "\"r\":\"\""), "another version of the server"),
            ("1".to_owned(), "another version of the server"),
        ] {
            let error = State::read(text.as_bytes()).unwrap_err();
            assert_eq!(error.message, format!("`requestState` is of {said}: make the call anew"), "{text}");
        }
    }
}
