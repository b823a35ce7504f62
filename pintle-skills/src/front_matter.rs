//! The front matter of a `SKILL.md`: YAML 1.2 with the core schema, as a JSON object.
//!
//! Both sides read it with this code, so that they agree. Aliases and tags are refused, keys are texts, and a key that comes twice is an
//! error.

use pintle::types::JsonObject;
use pintle_yaml::Limits;
use serde_json::Value;

/// The limit of the front matter, in bytes.
const MAX_FRONT_MATTER: usize = 64 << 10;
/// The limit of nesting.
const MAX_DEPTH: usize = 32;

/// A text with front matter.
#[derive(Debug, PartialEq)]
pub(crate) struct FrontMatter<'a> {
    pub(crate) members: JsonObject,
    /// The text after it.
    #[cfg_attr(not(feature = "client"), allow(dead_code, reason = "only clients read it"))]
    pub(crate) body: &'a str,
}

impl<'a> FrontMatter<'a> {
    /// Parses the front matter of a text. The error says what is wrong.
    pub(crate) fn parse(text: &'a str) -> Result<Self, String> {
        let (yaml, body) = split(text)?;
        let mut limits = Limits::default();
        (limits.depth, limits.aliased) = (MAX_DEPTH, 0);
        let value =
            pintle_yaml::parse(yaml, &limits).map_err(|error| format!("the front matter, {error}"))?;
        match value {
            Value::Object(members) => Ok(Self { members, body }),
            _ => Err("the front matter is not a mapping; write `name: …` and `description: …`".to_owned()),
        }
    }
}

/// Splits a text into its front matter, with the marker before it, and the rest.
fn split(text: &str) -> Result<(&str, &str), String> {
    let missing = || "there is no front matter; begin the file with a line `---`".to_owned();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut at = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let start = at;
        at += line.len();
        let is_marker = line.trim_end() == "---";
        match number {
            0 if is_marker => {}
            0 => return Err(missing()),
            _ if is_marker => {
                let body = text[at..].trim_start_matches(['\r', '\n']);
                return Ok((&text[..start], body));
            }
            _ if at > MAX_FRONT_MATTER => {
                return Err(format!("the front matter has more than {MAX_FRONT_MATTER} bytes; shorten it"));
            }
            _ => {}
        }
    }
    Err("the front matter does not end; end it with a line `---`".to_owned())
}

/// Returns the members in which two front matters differ. Numbers are compared by their value.
#[cfg(feature = "client")]
pub(crate) fn differences<'a>(one: &'a JsonObject, other: &'a JsonObject) -> Vec<&'a str> {
    let differs =
        |(name, value): &(&String, &Value)| !other.get(*name).is_some_and(|other| same(value, other));
    let missing = other.keys().filter(|name| !one.contains_key(*name));
    let names = one.iter().filter(differs).map(|(name, _)| name).chain(missing);
    names.map(String::as_str).collect()
}

#[cfg(feature = "client")]
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => differences(one, other).is_empty(),
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn members(yaml: &str) -> Result<Value, String> {
        let text = format!("---\n{yaml}\n---\nbody");
        FrontMatter::parse(&text).map(|front| Value::Object(front.members))
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        for (yaml, reason) in [
            ("a: 1\na: 2", "twice"),
            ("a: &x 1\nb: *x", "alias"),
            ("a: !!binary aGk=", "tag"),
            ("? [a]\n: b", "key"),
            ("- a", "mapping"),
            ("a: .nan", "number"),
            ("a: [", "YAML"),
            (&format!("a: {}{}", "[".repeat(40), "]".repeat(40)), "deep"),
        ] {
            let refused = members(yaml).unwrap_err();
            assert!(refused.contains(reason), "{yaml}: {refused}");
        }
        assert!(members(&format!("a: {}", "x".repeat(70_000))).unwrap_err().contains("bytes"));
        assert!(FrontMatter::parse("no").unwrap_err().contains("begin"));
        assert!(FrontMatter::parse("---\na: 1\n").unwrap_err().contains("end"));
    }

    #[test]
    fn the_body_is_what_follows() {
        let front = FrontMatter::parse("\u{feff}---\r\nname: a\r\n---\r\n\r\nSay --- hello.\n---\n").unwrap();
        assert_eq!((front.members["name"].as_str(), front.body), (Some("a"), "Say --- hello.\n---\n"));
    }

    #[cfg(feature = "client")]
    #[test]
    fn numbers_are_compared_by_value() {
        let [one, other] = [json!({"a": 1, "b": [2.0], "c": 1}), json!({"a": 1.0, "b": [2], "d": 1})];
        assert_eq!(differences(one.as_object().unwrap(), other.as_object().unwrap()), ["c", "d"]);
    }
}
