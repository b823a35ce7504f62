use std::collections::HashSet;

use pintle::types::JsonObject;
use serde_json::Value;

/// The number of items of a long list that are shown.
const ITEMS: usize = 3;
/// The number of characters of a long text that are shown.
const TEXT: usize = 300;
/// Objects with more characters are shown only once.
const LARGE: usize = 60;
/// Base64 with more characters is a token or an image and is not shown.
const OPAQUE: usize = 32;
/// The name of the member that stands for members that are not shown.
const ELLIPSIS: &str = "";

/// The members and large objects that were shown.
pub(super) type ShownParts = HashSet<(String, Value)>;

/// JSON for display: in the order of the wire, on one line if it fits, and abbreviated.
#[derive(Debug)]
pub(super) struct Json(JsonObject);

impl Json {
    pub(super) fn new(mut object: JsonObject) -> Self {
        object.values_mut().for_each(shorten);
        Self(object)
    }

    /// Removes members that were seen before, records the others, and marks removed members with a `…`.
    pub(super) fn fold_seen(&mut self, seen: &mut ShownParts, folds: impl Fn(&Value) -> bool) {
        fold_seen(&mut self.0, seen, folds);
    }

    /// Removes the seen members of one member, and the member itself if nothing is left.
    pub(super) fn fold_member(&mut self, name: &str, seen: &mut ShownParts) {
        let Some(Value::Object(members)) = self.0.get_mut(name) else { return };
        fold_seen(members, seen, |_| true);
        if members.keys().all(|name| name == ELLIPSIS) {
            self.0.shift_remove(name);
        }
    }

    /// Abbreviates every large nested object that was seen before.
    pub(super) fn fold_large(&mut self, seen: &mut ShownParts) {
        self.0.values_mut().for_each(|value| fold_large(value, seen));
    }

    /// Returns whether this is an empty object.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Formats the object after `begun` characters of a line, with `indent` before each further line.
    pub(super) fn print(&self, begun: usize, indent: usize, width: usize) -> String {
        print(&Value::Object(self.0.clone()), begun, indent, width)
    }
}

fn fold_seen(members: &mut JsonObject, seen: &mut ShownParts, folds: impl Fn(&Value) -> bool) {
    let before = members.len();
    members.retain(|name, value| !folds(value) || seen.insert((name.clone(), value.clone())));
    if members.len() < before {
        members.insert(ELLIPSIS.to_owned(), Value::Null);
    }
}

fn fold_large(value: &mut Value, seen: &mut ShownParts) {
    let is_large = value.is_object() && flat(value).chars().count() > LARGE;
    if is_large && !seen.insert((String::new(), value.clone())) {
        *value = Value::Object(JsonObject::from_iter([(ELLIPSIS.to_owned(), Value::Null)]));
        return;
    }
    match value {
        Value::Object(members) => members.values_mut().for_each(|value| fold_large(value, seen)),
        Value::Array(items) => items.iter_mut().for_each(|value| fold_large(value, seen)),
        _ => {}
    }
}

/// Truncates the texts in a value.
fn shorten(value: &mut Value) {
    let in_base64 = |letter: char| letter.is_ascii_alphanumeric() || "+/=-_.".contains(letter);
    match value {
        Value::String(text) if text.len() > OPAQUE && text.chars().all(in_base64) => *text = "…".to_owned(),
        Value::String(text) => {
            if let Some((cut, _)) = text.char_indices().nth(TEXT) {
                text.truncate(cut);
                text.push('…');
            }
        }
        Value::Object(members) => members.values_mut().for_each(shorten),
        Value::Array(items) => items.iter_mut().for_each(shorten),
        _ => {}
    }
}

fn print(value: &Value, begun: usize, indent: usize, width: usize) -> String {
    let line = flat(value);
    if begun + line.chars().count() <= width {
        return line;
    }
    let inner = indent + 2;
    let (open, close, parts): (_, _, Vec<String>) = match value {
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                let begun = inner + name.chars().count() + 4;
                labelled(name, &print(value, begun, inner, width))
            };
            ('{', '}', members.iter().map(member).collect())
        }
        Value::Array(items) => {
            let shown = items.iter().take(ITEMS).map(|item| print(item, inner, inner, width));
            let more = items.len().saturating_sub(ITEMS);
            let more = (more > 0).then(|| format!("… {more} more"));
            ('[', ']', shown.chain(more).collect())
        }
        _ => return wrap(&line, begun, inner, width),
    };
    let gap = format!("\n{:inner$}", "");
    format!("{open}{gap}{}\n{:indent$}{close}", parts.join(&format!(",{gap}")), "")
}

/// Formats a value on one line.
fn flat(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| labelled(name, &flat(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flat).collect::<Vec<_>>().join(", ")),
        leaf => leaf.to_string(),
    }
}

fn labelled(name: &str, value: &str) -> String {
    if name == ELLIPSIS { "…".to_owned() } else { format!("\"{name}\": {value}") }
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

    fn read(text: &str) -> Json {
        Json::new(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn what_fits_is_one_line_in_the_order_of_the_wire() {
        let json = read(r#"{"b":1,"a":["x y",{"c":null}]}"#);
        assert_eq!(json.print(0, 0, 80), r#"{"b": 1, "a": ["x y", {"c": null}]}"#);
        assert_eq!(
            json.print(0, 0, 20),
            "{\n  \"b\": 1,\n  \"a\": [\n    \"x y\",\n    {\"c\": null}\n  ]\n}"
        );
    }

    #[test]
    fn long_things_are_cut() {
        let sealed = format!(r#"{{"state":"{}","said":"{}"}}"#, "x".repeat(40), "a ".repeat(200));
        let message = "a ".repeat(TEXT / 2);
        assert_eq!(read(&sealed).print(0, 0, 400), format!(r#"{{"state": "…", "said": "{message}…"}}"#));
        let list = serde_json::json!([1, 2, 3, 4, 5]);
        assert_eq!(print(&list, 0, 0, 5), "[\n  1,\n  2,\n  3,\n  … 2 more\n]");
        assert_eq!(print(&"one two three".into(), 4, 0, 12), "\"one two\n  three\"");
    }

    #[test]
    fn what_was_seen_is_left_out() {
        let mut seen = HashSet::from([("a".to_owned(), 1.into()), ("d".to_owned(), 4.into())]);
        let mut json = read(r#"{"_meta":{"a":1,"c":3},"b":2,"d":4}"#);
        json.fold_member("_meta", &mut seen);
        json.fold_seen(&mut seen, |value| value.is_number());
        assert_eq!(json.print(0, 0, 80), r#"{"_meta": {"c": 3, …}, "b": 2, …}"#);
        let mut again = read(r#"{"_meta":{"a":1},"e":5}"#);
        again.fold_member("_meta", &mut seen);
        assert_eq!(again.print(0, 0, 80), r#"{"e": 5}"#);

        let long = "a ".repeat(LARGE);
        let mut large = read(&format!(r#"{{"x":{{"a":1,"b":"{long}"}},"y":[{{"b":"{long}","a":1}}]}}"#));
        large.fold_large(&mut seen);
        assert_eq!(large.print(0, 0, 400), format!(r#"{{"x": {{"a": 1, "b": "{long}"}}, "y": [{{…}}]}}"#));
    }
}
