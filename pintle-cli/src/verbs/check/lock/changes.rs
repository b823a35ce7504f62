use serde_json::{Map, Value, json};

use crate::output::{Text, Tone};

/// The number of changes that are shown of one entry.
const MAX_CHANGES: usize = 20;
/// The depth to which values are compared. What is deeper is compared as a whole.
const MAX_DEPTH: usize = 12;
/// The number of characters of a value that are shown.
const MAX_SHOWN: usize = 200;

/// A difference between a locked catalogue and that of the server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    /// The entry: `tools/tide`, or `instructions`.
    entry: String,
    /// The member that differs, empty for an entry that was added or removed.
    path: String,
    before: Option<Value>,
    after: Option<Value>,
}

/// Compares two catalogues.
pub(super) fn compare(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<Change> {
    let mut changes = Vec::new();
    for kind in keys(before, after) {
        match (before.get(kind), after.get(kind)) {
            (Some(Value::Object(before)), Some(Value::Object(after))) => {
                for name in keys(before, after) {
                    let entry = format!("{kind}/{name}");
                    let start = changes.len();
                    values(&entry, "", before.get(name), after.get(name), MAX_DEPTH, &mut changes);
                    changes.truncate(start + MAX_CHANGES);
                }
            }
            (before, after) => values(kind, "", before, after, MAX_DEPTH, &mut changes),
        }
    }
    changes
}

fn keys<'a>(before: &'a Map<String, Value>, after: &'a Map<String, Value>) -> Vec<&'a str> {
    let added = after.keys().filter(|name| !before.contains_key(*name));
    before.keys().chain(added).map(String::as_str).collect()
}

fn values(
    entry: &str,
    path: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    depth: usize,
    changes: &mut Vec<Change>,
) {
    if before == after {
        return;
    }
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) if depth > 0 => {
            for name in keys(before, after) {
                values(
                    entry,
                    &format!("{path}.{name}"),
                    before.get(name),
                    after.get(name),
                    depth - 1,
                    changes,
                );
            }
        }
        _ => changes.push(Change {
            entry: entry.to_owned(),
            path: path.to_owned(),
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

impl Change {
    pub(super) fn to_json(&self) -> Value {
        let Self { entry, path, before, after } = self;
        let kind = match (before, after) {
            (None, _) if path.is_empty() => "added",
            (_, None) if path.is_empty() => "removed",
            _ => "changed",
        };
        json!({ "change": kind, "entry": entry, "path": path, "before": before, "after": after })
    }

    pub(super) fn to_text(&self, text: &mut Text) {
        let Self { entry, path, before, after } = self;
        match (before, after) {
            (None, _) if path.is_empty() => drop(text.tone(Tone::Out, "+ ").line(entry)),
            (_, None) if path.is_empty() => drop(text.tone(Tone::Error, "- ").line(entry)),
            _ => {
                text.tone(Tone::Code, "~ ").add(entry).tone(Tone::Method, path).end();
                for (tone, sign, value) in [(Tone::Error, "    - ", before), (Tone::Out, "    + ", after)] {
                    if let Some(value) = value {
                        text.tone(tone, sign).line(shown(value));
                    }
                }
            }
        }
    }
}

fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_named() {
        let before = json!({"instructions": "a", "tools": {"gone": {"name": "gone"}, "tide": {"description": "d", "inputSchema": {"properties": {"x": {"type": "string"}}}}}});
        let after = json!({"instructions": "b", "tools": {"new": {"name": "new"}, "tide": {"description": "d", "inputSchema": {"properties": {"x": {"type": "integer"}}}}}});
        let changes = compare(before.as_object().unwrap(), after.as_object().unwrap());
        let mut text = Text::new();
        changes.iter().for_each(|change| change.to_text(&mut text));
        assert_eq!(
            text.rendered_plain(),
            "~ instructions\n    - a\n    + b\n- tools/gone\n~ tools/tide.inputSchema.properties.x.type\n    - string\n    + integer\n+ tools/new\n"
        );
        assert_eq!(compare(before.as_object().unwrap(), before.as_object().unwrap()), []);
    }
}
