use std::collections::{BTreeMap, BTreeSet};

use pintle_types::{RawValue, RpcError};
use serde::{Deserialize, Serialize};

use super::Kind;

/// The state of a call between two rounds. It travels sealed, in `requestState`.
///
/// A client sends only the answers of the latest round, so earlier answers are kept here.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct CallState {
    /// The format of this state: see [`FORMAT`].
    #[serde(rename = "f")]
    pub(crate) format: u32,
    /// The key that identifies the call to other systems, in all its rounds.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub(crate) call_key: Option<String>,
    /// The number of rounds so far.
    #[serde(rename = "r")]
    pub(crate) round: u32,
    /// The questions without an answer.
    #[serde(rename = "q", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) open: BTreeMap<String, Mark>,
    /// The questions with their answers.
    #[serde(rename = "a", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) answers: BTreeMap<String, Answered>,
    /// The values of completed actions.
    #[serde(rename = "o", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) once: BTreeMap<String, Box<RawValue>>,
    /// The actions that were started and whose result is unknown.
    #[serde(rename = "b", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) begun: BTreeSet<String>,
    /// The state of the server that the call was relayed to. Only servers that relay write it.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub(crate) relayed: Option<RelayedState>,
    /// The application's note.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// The current format of states. A process must not guess at another format: increase this with every change that an
/// older reader would misread, and let readers accept the previous format for as long as states live.
pub(crate) const FORMAT: u32 = 1;

impl Default for CallState {
    fn default() -> Self {
        Self {
            format: FORMAT,
            call_key: None,
            round: 0,
            open: BTreeMap::new(),
            answers: BTreeMap::new(),
            once: BTreeMap::new(),
            begun: BTreeSet::new(),
            relayed: None,
            note: None,
        }
    }
}

impl CallState {
    /// Reads a state that this or another process of the server has written. It was sealed, so it is trusted.
    pub(crate) fn read(text: &[u8]) -> Result<Self, RpcError> {
        #[derive(Deserialize)]
        struct Written {
            #[serde(rename = "f", default)]
            format: u32,
        }
        let unreadable = |reason: String| {
            RpcError::invalid_params(format!("`requestState` is of {reason}: start the call again"))
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

/// The state of a call that another server handles.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct RelayedState {
    #[serde(rename = "v")]
    pub(crate) value: Box<RawValue>,
    /// Whether this server claims the state, rather than the other one.
    #[serde(rename = "c")]
    pub(crate) claimed: bool,
}

/// A fingerprint of a question.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Mark {
    #[serde(rename = "k")]
    pub(crate) kind: Kind,
    #[serde(rename = "h")]
    pub(crate) print: u64,
}

/// The fingerprint of a question, and its answer.
#[derive(Clone, Debug, Deserialize, Serialize)]
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
        // FNV-1a: it detects a changed question. The seal protects against forgery.
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
        let state = CallState { round: 3, ..CallState::default() };
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(CallState::read(text.as_bytes()).unwrap().round, 3);
        for (text, expected) in [
            (text.replace("\"f\":1", "\"f\":2"), "format 2, and this server reads 1"),
            (text.replace("\"f\":1,", ""), "format 0, and this server reads 1"),
            (text.replace("\"r\":3", "\"r\":\"\""), "another version of the server"),
            ("1".to_owned(), "another version of the server"),
        ] {
            let error = CallState::read(text.as_bytes()).unwrap_err();
            assert_eq!(
                error.message,
                format!("`requestState` is of {expected}: start the call again"),
                "{text}"
            );
        }
    }
}
