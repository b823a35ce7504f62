//! The front matter of a `SKILL.md`: YAML 1.2 with the core schema, as a JSON object.
//!
//! Both sides read it with this code, so that they agree. Aliases and tags are refused, keys are texts, and a key that comes twice is an
//! error.

use pintle::types::JsonObject;
use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};
use serde_json::{Number, Value};

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
        let mut parser = Parser::new_from_str(yaml);
        let mut value = None;
        while let Some(event) = next(&mut parser)? {
            match event {
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
                Event::StreamEnd => break,
                _ if value.is_some() => {
                    return Err("the front matter has two documents; write one".to_owned());
                }
                event => value = Some(parse_value(&mut parser, event, 0)?),
            }
        }
        match value {
            Some(Value::Object(members)) => Ok(Self { members, body }),
            _ => Err("the front matter is not a mapping; write `name: …` and `description: …`".to_owned()),
        }
    }
}

/// Splits a text into its front matter and the rest.
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
                let first = text.find('\n').map_or(0, |end| end + 1);
                let body = text[at..].trim_start_matches(['\r', '\n']);
                return Ok((&text[first..start], body));
            }
            _ if at > MAX_FRONT_MATTER => {
                return Err(format!("the front matter has more than {MAX_FRONT_MATTER} bytes; shorten it"));
            }
            _ => {}
        }
    }
    Err("the front matter does not end; end it with a line `---`".to_owned())
}

fn next<'a>(parser: &mut Parser<'a, StrInput<'a>>) -> Result<Option<Event<'a>>, String> {
    let event = parser.next_event().transpose();
    event
        .map(|event| event.map(|(event, _)| event))
        .map_err(|error| format!("the front matter is not valid YAML: {error}"))
}

/// Parses a value that begins with this event.
fn parse_value<'a>(
    parser: &mut Parser<'a, StrInput<'a>>,
    event: Event<'a>,
    depth: usize,
) -> Result<Value, String> {
    if depth > MAX_DEPTH {
        return Err(format!("the front matter is nested more than {MAX_DEPTH} deep; flatten it"));
    }
    let ended = || "the front matter ends too early".to_owned();
    match event {
        Event::Scalar(text, style, _, None) => scalar(&text, style),
        Event::SequenceStart(_, None) => {
            let mut items = Vec::new();
            loop {
                match next(parser)?.ok_or_else(ended)? {
                    Event::SequenceEnd => return Ok(Value::Array(items)),
                    event => items.push(parse_value(parser, event, depth + 1)?),
                }
            }
        }
        Event::MappingStart(_, None) => {
            let mut members = JsonObject::new();
            loop {
                let key = match next(parser)?.ok_or_else(ended)? {
                    Event::MappingEnd => return Ok(Value::Object(members)),
                    Event::Scalar(key, _, _, None) => key.into_owned(),
                    _ => return Err("a key of the front matter is not plain text; write a name".to_owned()),
                };
                let event = next(parser)?.ok_or_else(ended)?;
                let value = parse_value(parser, event, depth + 1)?;
                if members.insert(key.clone(), value).is_some() {
                    return Err(format!("`{key}` is in the front matter twice; remove one"));
                }
            }
        }
        Event::Alias(_) => Err("the front matter has an alias; write the value out".to_owned()),
        _ => Err("the front matter has a tag; write the value without it".to_owned()),
    }
}

fn scalar(text: &str, style: ScalarStyle) -> Result<Value, String> {
    if style != ScalarStyle::Plain {
        return Ok(text.into());
    }
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "-.inf" | ".nan" | ".NaN" | ".NAN" => {
            return Err(format!("`{text}` is not a JSON number; quote it"));
        }
        _ => number(text).map_or_else(|| text.into(), Value::Number),
    })
}

/// Parses a number of the core schema.
fn number(text: &str) -> Option<Number> {
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let fits = !digits.is_empty() && digits.bytes().all(|byte| char::from(byte).is_digit(radix));
            return u64::from_str_radix(digits, radix).ok().filter(|_| fits).map(Into::into);
        }
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned.is_empty() || !unsigned.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        let text = text.strip_prefix('+').unwrap_or(text);
        if let Ok(whole) =
            text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from))
        {
            return Some(whole);
        }
    }
    let is_float = unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let value: f64 = text.parse().ok().filter(|_| is_float)?;
    Number::from_f64(value)
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
    fn scalars_are_those_of_the_core_schema() {
        let yaml = "a: 1\nb: 1.0\nc: '1'\nd: yes\ne: true\nf: ~\ng: 2026-11-16\nh: 0x1F\ni: [x, {y: z}]\nj: |\n  one\n  two\nk: -007\nl: 1.2.3\nm:";
        let read = members(yaml).unwrap();
        let wanted = json!({
            "a": 1, "b": 1.0, "c": "1", "d": "yes", "e": true, "f": null, "g": "2026-11-16", "h": 31,
            "i": ["x", {"y": "z"}], "j": "one\ntwo\n", "k": -7, "l": "1.2.3", "m": null,
        });
        assert_eq!(read, wanted);
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
