//! Whether a request is the one that was recorded.

use serde_json::Value;

/// The text in place of a secret, as a recording has it.
const REDACTED: &str = "<redacted>";
/// The start of the text in place of a secret that occurs more than once.
const TAGGED: &str = "<redacted:";

/// Returns whether a value is the recorded one. What was redacted there is anything.
pub(super) fn matches(recorded: &Value, sent: &Value) -> bool {
    match (recorded, sent) {
        (Value::String(recorded), _) if recorded == REDACTED || recorded.starts_with(TAGGED) => true,
        (Value::String(recorded), Value::String(sent)) => text_matches(recorded, sent),
        (Value::Array(recorded), Value::Array(sent)) => {
            recorded.len() == sent.len()
                && recorded.iter().zip(sent).all(|(recorded, sent)| matches(recorded, sent))
        }
        (Value::Object(recorded), Value::Object(sent)) => {
            recorded.len() == sent.len()
                && recorded
                    .iter()
                    .all(|(name, recorded)| sent.get(name).is_some_and(|sent| matches(recorded, sent)))
        }
        // `1` and `1.0` are the same number.
        (Value::Number(recorded), Value::Number(sent)) => {
            recorded == sent || recorded.as_f64().is_some_and(|number| sent.as_f64() == Some(number))
        }
        (recorded, sent) => recorded == sent,
    }
}

/// Compares a text whose parts may be redacted, such as the query of a URL.
fn text_matches(recorded: &str, sent: &str) -> bool {
    match recorded.split_once(REDACTED) {
        Some((start, end)) => {
            // What is between more of them is not compared.
            let end = end.rsplit(REDACTED).next().unwrap_or_default();
            sent.len() >= start.len() + end.len() && sent.starts_with(start) && sent.ends_with(end)
        }
        None => recorded == sent,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_redacted_is_anything() {
        for (recorded, sent, expected) in [
            (json!({"a": [1, "x"]}), json!({"a": [1.0, "x"]}), true),
            (json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1}), true),
            (json!({"a": 1}), json!({"a": 1, "b": 2}), false),
            (json!({"a": 1, "b": 2}), json!({"a": 1}), false),
            (json!([1]), json!([1, 2]), false),
            (json!({"requestState": "<redacted:12345678>"}), json!({"requestState": "abc"}), true),
            (json!({"content": "<redacted>"}), json!({"content": {"boat": "Tern"}}), true),
            (json!("https://a/?<redacted>"), json!("https://a/?k=1"), true),
            (json!("https://<redacted>@a/?<redacted>#x"), json!("https://u@a/?k=1#x"), true),
            (json!("https://a/?<redacted>"), json!("https://b/?k=1"), false),
            (json!("aa<redacted>aa"), json!("aaa"), false),
            (json!(null), json!(false), false),
        ] {
            assert_eq!(matches(&recorded, &sent), expected, "{recorded} {sent}");
        }
    }
}
