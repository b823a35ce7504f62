use std::collections::HashSet;

use pintle::types::{RawObject, RawValue};

/// The number of items of a long list that are shown.
const ITEMS: usize = 3;
/// The number of characters of a long text that are shown.
const TEXT: usize = 300;
/// Objects with more characters are shown only once.
const LARGE: usize = 60;
/// Base64 with more characters is a token or an image and is not shown.
const OPAQUE: usize = 32;

/// JSON for display: in the order of the wire, on one line if it fits, and abbreviated.
#[derive(Debug)]
pub(crate) enum Json {
    Object(Vec<(String, Self)>),
    Array(Vec<Self>),
    /// The printed text.
    Leaf(String),
}

impl Json {
    /// Parses JSON; anything else is shown unchanged.
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

    /// Removes members that were seen before, records the others, and marks removed members with a `…`.
    pub(crate) fn fold_seen(&mut self, seen: &mut HashSet<String>, folds: impl Fn(&str, &Self) -> bool) {
        let Self::Object(members) = self else { return };
        let before = members.len();
        members
            .retain(|(name, value)| !folds(name, value) || seen.insert(format!("{name}: {}", value.flat())));
        if members.len() < before {
            members.push((String::new(), Self::Leaf("…".to_owned())));
        }
    }

    /// Removes the seen members of one member, and the member itself if nothing is left.
    pub(crate) fn fold_member(&mut self, name: &str, seen: &mut HashSet<String>) {
        let Self::Object(members) = self else { return };
        members.retain_mut(|(known, value)| {
            if known == name {
                value.fold_seen(seen, |_, _| true);
            }
            known != name
                || !matches!(value, Self::Object(left) if left.iter().all(|(name, _)| name.is_empty()))
        });
    }

    /// Abbreviates every large nested object that was seen before.
    pub(crate) fn fold_large(&mut self, seen: &mut HashSet<String>) {
        let below: &mut dyn Iterator<Item = &mut Self> = match self {
            Self::Leaf(_) => return,
            Self::Object(members) => &mut members.iter_mut().map(|(_, value)| value),
            Self::Array(items) => &mut items.iter_mut(),
        };
        for value in below {
            let large = matches!(value, Self::Object(_)) && value.flat().chars().count() > LARGE;
            if large && !seen.insert(value.sorted()) {
                *value = Self::Leaf("{…}".to_owned());
            } else {
                value.fold_large(seen);
            }
        }
    }

    /// Formats the value with sorted members, for comparison.
    fn sorted(&self) -> String {
        match self {
            Self::Leaf(text) => text.clone(),
            Self::Array(items) => {
                format!("[{}]", items.iter().map(Self::sorted).collect::<Vec<_>>().join(","))
            }
            Self::Object(members) => {
                let mut members: Vec<_> =
                    members.iter().map(|(name, value)| format!("{name}:{}", value.sorted())).collect();
                members.sort();
                format!("{{{}}}", members.join(","))
            }
        }
    }

    /// Returns whether this is an empty object.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Object(members) if members.is_empty())
    }

    pub(crate) fn is_leaf(&self) -> bool {
        matches!(self, Self::Leaf(_))
    }

    /// Formats the value after `begun` characters of a line, with `indent` before each further line.
    pub(crate) fn print(&self, begun: usize, indent: usize, width: usize) -> String {
        let line = self.flat();
        if begun + line.chars().count() <= width {
            return line;
        }
        let inner = indent + 2;
        let (open, close, parts): (_, _, Vec<String>) = match self {
            Self::Leaf(text) => return wrap(text, begun, inner, width),
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

/// Formats the name of a member. The ellipsis has none.
fn label(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("\"{name}\": ") }
}

/// Truncates a quoted string. Escapes are kept.
fn short(quoted: &str) -> String {
    let inner = quoted.trim_matches('"');
    let in_base64 = |letter: char| letter.is_ascii_alphanumeric() || "+/=-_.".contains(letter);
    if inner.len() > OPAQUE && inner.chars().all(in_base64) {
        return "\"…\"".to_owned();
    }
    match inner.char_indices().nth(TEXT) {
        Some((cut, _)) => format!("\"{}…\"", inner[..cut].trim_end_matches('\\')),
        None => quoted.to_owned(),
    }
}

/// Wraps a string between words, for display only.
fn wrap(text: &str, begun: usize, indent: usize, width: usize) -> String {
    let mut out = String::new();
    let mut column = begun;
    for word in text.split(' ') {
        let letters = word.chars().count();
        if !out.is_empty() && column + 1 + letters > width {
            out.push_str(&format!("\n{:indent$}", ""));
            column = indent;
        } else if !out.is_empty() {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += letters;
    }
    out
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
        let sealed = format!(r#"{{"state":"{}","said":"{}"}}"#, "x".repeat(40), "a ".repeat(200));
        let said = "a ".repeat(TEXT / 2);
        assert_eq!(Json::read(&sealed).print(0, 0, 400), format!(r#"{{"state": "…", "said": "{said}…"}}"#));
        assert_eq!(Json::read("[1, 2, 3, 4, 5]").print(0, 0, 5), "[\n  1,\n  2,\n  3,\n  … 2 more\n]");
        assert_eq!(Json::read(r#""one two three""#).print(4, 0, 12), "\"one two\n  three\"");
    }

    #[test]
    fn what_was_seen_is_left_out() {
        let mut seen = HashSet::from(["a: 1".to_owned(), "d: 4".to_owned()]);
        let mut json = Json::read(r#"{"_meta":{"a":1,"c":3},"b":2,"d":4}"#);
        json.fold_member("_meta", &mut seen);
        json.fold_seen(&mut seen, |_, value| value.is_leaf());
        assert_eq!(json.print(0, 0, 80), r#"{"_meta": {"c": 3, …}, "b": 2, …}"#);
        let mut again = Json::read(r#"{"_meta":{"a":1},"e":5}"#);
        again.fold_member("_meta", &mut seen);
        assert_eq!(again.print(0, 0, 80), r#"{"e": 5}"#);

        let long = "a ".repeat(LARGE);
        let mut large =
            Json::read(&format!(r#"{{"x":{{"a":1,"b":"{long}"}},"y":[{{"b":"{long}","a":1}}]}}"#));
        large.fold_large(&mut seen);
        assert_eq!(large.print(0, 0, 400), format!(r#"{{"x": {{"a": 1, "b": "{long}"}}, "y": [{{…}}]}}"#));
    }
}
