//! A text in YAML.

use pintle_yaml::{FrontMatter, Limits, locate, parse};
use serde_json::Value;

/// Reads a text, and what was read again as JSON, which is YAML.
pub(super) fn play(text: &str) {
    let mut limits = Limits::default();
    (limits.bytes, limits.aliased) = (64 << 10, 64 << 10);
    let _ = FrontMatter::parse(text);
    let Ok(value) = parse(text, &limits) else { return };
    if let Value::Object(members) = &value {
        for name in members.keys().take(8) {
            let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
            assert!(locate(text, &pointer).is_some(), "`{name}` has a place");
        }
    }
    let json = value.to_string();
    // A key in a line may have 1,024 characters.
    if json.len() > 1_000 {
        return;
    }
    limits.bytes = usize::MAX;
    let again = parse(&json, &limits).unwrap_or_else(|error| panic!("{error} in {json}"));
    assert_eq!(again, value, "{json}");
}
