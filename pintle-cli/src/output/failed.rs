use serde_json::{Value, json};

use super::{Text, Tone};
use crate::failure::Failure;

/// Formats a failure for people. Its last line is what to type next.
pub(super) fn failure_text(failure: &Failure) -> Text {
    let mut text = Text::new();
    text.tone(Tone::Error, "pintle: ").add(&failure.message);
    for detail in &failure.details {
        text.end().add("  ").add(detail);
    }
    if !failure.next.is_empty() {
        text.end().tone(Tone::Faint, "  try: ").add(&failure.next);
    }
    text
}

/// Formats a failure for programs.
pub(super) fn failure_json(failure: &Failure) -> Value {
    let mut error = json!({
        "kind": failure.exit.name(),
        "exit": failure.exit.code(),
        "message": failure.message,
        "next": failure.next,
    });
    if let (Some(data), Value::Object(error)) = (&failure.data, &mut error) {
        let (name, value) = &**data;
        error.insert((*name).to_owned(), value.clone());
    }
    json!({ "error": error })
}
