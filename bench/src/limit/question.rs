//! The minimum work to ask the user: in a session a request of the server's, else a result that the client comes back with.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;

use super::begin;

/// The state that the client repeats. It is as long as a sealed one, but only compared.
pub(super) const STATE: &str = "v1.bGltaXQtbGltaXQtbGltaXQtbGltaXQtbGltaXQtbGltaXQtbGltaXQtbGltaXQtbGltaXQtbGltaXQtbGltaXQtbGltaXQtbGltaXQtbGltaXQ";
const ASKED: &str = r#""method":"elicitation/create","params":{"mode":"form","message":"Go on?","requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}}"#;

/// The answer to a form with one field.
#[derive(Deserialize)]
pub(super) struct Reply {
    content: Option<Content>,
}

#[derive(Deserialize)]
struct Content {
    ok: bool,
}

/// The answers that come with a call.
#[derive(Deserialize)]
pub(super) struct Replies {
    pub(super) ok: Reply,
}

impl Reply {
    pub(super) fn is_yes(&self) -> bool {
        self.content.as_ref().is_some_and(|content| content.ok)
    }
}

/// The result of `confirm`.
pub(super) fn word(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

/// A result that asks, and ends the call for now.
pub(super) fn park(out: &mut Vec<u8>, id: &str) {
    begin(out, id, false);
    let asked = format!(
        r#""resultType":"input_required","inputRequests":{{"ok":{{{ASKED}}}}},"requestState":"{STATE}"}}}}"#
    );
    out.extend_from_slice(asked.as_bytes());
}

/// The numbers of questions that are asked in the middle of a call.
#[derive(Debug, Default)]
pub(super) struct Questions(AtomicU64);

impl Questions {
    /// Writes the next question; its number.
    pub(super) fn ask(&self, out: &mut Vec<u8>) -> u64 {
        let id = self.0.fetch_add(1, Ordering::Relaxed);
        out.extend_from_slice(format!(r#"{{"jsonrpc":"2.0","id":{id},{ASKED}}}"#).as_bytes());
        id
    }
}
