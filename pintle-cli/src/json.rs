use std::collections::HashSet;

use pintle::types::{RawObject, RawValue};

/// How many of a long list are shown.
const ITEMS: usize = 2;
/// How much of a long text is shown.
const TEXT: usize = 80;
/// A single word of more letters is a token or a picture: nobody reads it.
const WORD: usize = 32;

/// JSON for people: in the order of the wire, on one line where it fits, and short.
#[derive(Debug)]
pub(crate) enum Json {
    Object(Vec<(String, Json)>),
    Array(Vec<Json>),
    /// As it will be printed.
    Leaf(String),
}

impl Json {
    /// Reads a text that is JSON already; anything else is shown as it is.
    pub(crate) fn read(text: &str) -> Self {
        match text.as_bytes().first() {
            Some(b'{') => match text.parse::<RawObject>() {
                Ok(object) => Self::Object(
                    object.iter().map(|(name, value)| (name.to_owned(), Self::read(value))).collect(),
                ),
                Err(_) => Self::Leaf(text.to_owned()),
            },
            Some(b'[') => match serde_json::from_str::<Vec<&RawValue>>(text) {
                Ok(items) => Self::Array(items.into_iter().map(|item| Self::read(item.get())).collect()),
                Err(_) => Self::Leaf(text.to_owned()),
            },
            Some(b'"') => Self::Leaf(short(text)),
            _ => Self::Leaf(text.to_owned()),
        }
    }

    /// The value of a member.
    pub(crate) fn member_mut(&mut self, name: &str) -> Option<&mut Self> {
        let Self::Object(members) = self else { return None };
        members.iter_mut().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Leaves out the members that were seen before, and learns the others.
    pub(crate) fn fold_seen(&mut self, seen: &mut HashSet<String>) {
        let Self::Object(members) = self else { return };
        let before = members.len();
        members.retain(|(name, value)| seen.insert(format!("{name}: {}", value.flat())));
        if members.len() < before {
            members.insert(0, (String::new(), Self::Leaf("…".to_owned())));
        }
    }

    /// Prints it after `begun` letters of a line, with `indent` before each line that follows.
    pub(crate) fn print(&self, begun: usize, indent: usize, width: usize) -> String {
        let line = self.flat();
        if begun + line.chars().count() <= width {
            return line;
        }
        let inner = indent + 2;
        let (open, close, parts): (_, _, Vec<String>) = match self {
            Self::Leaf(text) => return text.clone(),
            Self::Object(members) => {
                let member = |(name, value): &(String, Self)| {
                    let name = label(name);
                    let begun = inner + name.chars().count();
                    format!("{name}{}", value.print(begun, inner, width))
                };
                ('{', '}', members.iter().map(member).collect())
            }
            Self::Array(items) => {
                let shown = items.iter().take(ITEMS).map(|item| item.print(inner, inner, width));
                let more = items.len().saturating_sub(ITEMS);
                let more = (more > 0).then(|| format!("… {more} more"));
                ('[', ']', shown.chain(more).collect())
            }
        };
        let gap = format!("\n{:inner$}", "");
        format!("{open}{gap}{}\n{:indent$}{close}", parts.join(&format!(",{gap}")), "")
    }

    fn flat(&self) -> String {
        match self {
            Self::Leaf(text) => text.clone(),
            Self::Object(members) => {
                let members = members.iter().map(|(name, value)| format!("{}{}", label(name), value.flat()));
                format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
            }
            Self::Array(items) => {
                format!("[{}]", items.iter().map(Self::flat).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Only what stands for others has no name.
fn label(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("\"{name}\": ") }
}

/// A text with its quotes, not too long. What it escapes stays escaped.
fn short(quoted: &str) -> String {
    let inner = quoted.trim_matches('"');
    let is_word = !inner.contains([' ', ':', '/']);
    if is_word && inner.chars().count() > WORD {
        return "\"…\"".to_owned();
    }
    match inner.char_indices().nth(TEXT) {
        Some((cut, _)) => format!("\"{}…\"", inner[..cut].trim_end_matches('\\')),
        None => quoted.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_one_line_in_the_order_of_the_wire() {
        let json = Json::read(r#"{"b":1,"a":["x y",{"c":null}]}"#);
        assert_eq!(json.print(0, 0, 80), r#"{"b": 1, "a": ["x y", {"c": null}]}"#);
        assert_eq!(
            json.print(0, 0, 20),
            "{\n  \"b\": 1,\n  \"a\": [\n    \"x y\",\n    {\"c\": null}\n  ]\n}"
        );
    }

    #[test]
    fn long_things_are_cut() {
        let sealed = format!(r#"{{"state":"{}","said":"{}"}}"#, "x".repeat(40), "a b".repeat(40));
        let said = "a b".repeat(40).chars().take(TEXT).collect::<String>();
        assert_eq!(Json::read(&sealed).print(0, 0, 200), format!(r#"{{"state": "…", "said": "{said}…"}}"#));
        assert_eq!(Json::read("[1, 2, 3, 4]").print(0, 0, 5), "[\n  1,\n  2,\n  … 2 more\n]");
        let mut json = Json::read(r#"{"_meta":{"a":1,"c":3},"b":2}"#);
        let mut seen = HashSet::from([r#"a: 1"#.to_owned()]);
        json.member_mut("_meta").unwrap().fold_seen(&mut seen);
        assert_eq!(json.print(0, 0, 80), r#"{"_meta": {…, "c": 3}, "b": 2}"#);
    }
}
