//! Text for schemas and values in messages.

use std::io;

use serde::Serialize;
use serde_json::{Map, Value};

/// The number of characters of a value that are shown.
const SHOWN: usize = 60;

/// The number of alternatives that are listed; the rest is only counted.
const NAMED: usize = 12;

/// The expectation of a schema without constraints.
pub(super) const ANYTHING: &str = "any value";

/// The expectation where no value is allowed.
pub(super) const LEFT_OUT: &str = "left out";

/// Truncates a text.
pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Formats a value as truncated JSON in backticks.
pub(super) fn shown(value: &impl Serialize) -> String {
    format!("`{}`", json(value))
}

/// Formats a value as truncated JSON, without serializing the rest.
pub(super) fn json(value: &impl Serialize) -> String {
    let mut head = Head(Vec::new());
    // The only error is that the head is full.
    let _ = serde_json::to_writer(&mut head, value);
    short(&String::from_utf8_lossy(&head.0))
}

/// Joins names as `a, b or c`.
pub(super) fn either(names: impl IntoIterator<Item = String>) -> String {
    let mut names: Vec<String> = names.into_iter().collect();
    if names.len() > NAMED {
        let more = names.len() - NAMED;
        names.truncate(NAMED);
        names.push(format!("one of {more} more"));
    }
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => "nothing".to_owned(),
    }
}

/// Formats and joins the values of a list.
pub(super) fn options(operand: &Value) -> String {
    match operand.as_array() {
        Some(values) => either(values.iter().map(shown)),
        None => shown(operand),
    }
}

/// Describes the main expectation of a schema, to be read after "should be".
pub(super) fn asked(schema: &Value) -> String {
    let Some(schema) = schema.as_object() else {
        return if *schema == Value::Bool(false) { LEFT_OUT } else { ANYTHING }.to_owned();
    };
    if let Some(value) = schema.get("const") {
        return shown(value);
    }
    if let Some(values) = schema.get("enum") {
        return options(values);
    }
    let noun = |name: &str| {
        let names = named(schema);
        match name {
            "object" if !names.is_empty() => format!("an object with {names}"),
            _ => kind(name).to_owned(),
        }
    };
    match schema.get("type") {
        Some(Value::String(name)) => noun(name),
        Some(Value::Array(names)) => either(names.iter().filter_map(Value::as_str).map(noun)),
        _ if !named(schema).is_empty() => format!("an object with {}", named(schema)),
        _ if schema.is_empty() => ANYTHING.to_owned(),
        _ => format!("a value that fits {}", shown(schema)),
    }
}

/// Describes the expectation of one keyword, to be read after "should be".
pub(super) fn expected(keyword: &str, operand: &Value) -> String {
    let count = |noun: &str| match operand.as_u64() {
        Some(1) => format!("1 {}", noun.trim_end_matches('s')),
        _ => format!("{operand} {}", noun.replace("propertys", "properties")),
    };
    match keyword {
        "type" => match operand {
            Value::String(name) => kind(name).to_owned(),
            Value::Array(names) => {
                either(names.iter().filter_map(Value::as_str).map(|name| kind(name).to_owned()))
            }
            _ => shown(operand),
        },
        "enum" => options(operand),
        "const" => shown(operand),
        "minimum" => format!("at least {operand}"),
        "maximum" => format!("at most {operand}"),
        "exclusiveMinimum" => format!("more than {operand}"),
        "exclusiveMaximum" => format!("less than {operand}"),
        "multipleOf" => format!("a multiple of {operand}"),
        "minLength" => format!("a string of at least {}", count("characters")),
        "maxLength" => format!("a string of at most {}", count("characters")),
        "pattern" => format!("a string that matches `{}`", short(operand.as_str().unwrap_or_default())),
        "minItems" => format!("a list of at least {}", count("items")),
        "maxItems" => format!("a list of at most {}", count("items")),
        "uniqueItems" => "a list in which nothing appears twice".to_owned(),
        "minProperties" => format!("an object with at least {}", count("propertys")),
        "maxProperties" => format!("an object with at most {}", count("propertys")),
        _ => format!("a value that fits `{keyword}`"),
    }
}

/// Formats a truncated name in backticks.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", short(name))
}

/// A writer that keeps the first bytes and fails after them.
struct Head(Vec<u8>);

impl io::Write for Head {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A character has at most four bytes; one more character shows that the text is truncated.
        let room = (SHOWN + 1) * 4 - self.0.len();
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.0.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn named(schema: &Map<String, Value>) -> String {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let names: Vec<String> = names.filter_map(Value::as_str).map(quoted).take(NAMED).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

fn kind(name: &str) -> &'static str {
    match name {
        "null" => "`null`",
        "boolean" => "`true` or `false`",
        "integer" => "an integer",
        "number" => "a number",
        "string" => "a string",
        "array" => "a list",
        "object" => "an object",
        _ => "a value of another type",
    }
}
