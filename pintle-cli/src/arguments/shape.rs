use std::{cell::Cell, fmt};

use pintle::types::JsonObject;
use serde_json::Value;

/// How deep a schema is looked into.
const MAX_DEPTH: usize = 8;
/// How many alternatives of a schema are looked at.
const MAX_ALTERNATIVES: usize = 16;
/// How many parts of a schema are looked at: references may lead anywhere, and again.
const MAX_PARTS: usize = 500;
/// How many choices are shown in a signature.
const SHOWN: usize = 6;
/// How many choices are shown in an error.
const LISTED: usize = 20;

/// The kind of value that a schema describes, as far as a command line needs it. The schema itself is the judge.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Text,
    Integer,
    Number,
    Boolean,
    Null,
    Choice(Vec<Value>),
    List(Box<Self>),
    Object,
    OneOf(Vec<Self>),
    /// A schema without a type: any JSON.
    Any,
}

impl Shape {
    /// Returns the shape of a part of a schema. References into other documents are any JSON.
    pub(super) fn of(schema: &Value, root: &JsonObject) -> Self {
        Self::at(schema, root, 0, &Cell::new(MAX_PARTS))
    }

    fn at(schema: &Value, root: &JsonObject, depth: usize, left: &Cell<usize>) -> Self {
        let Value::Object(schema) = schema else { return Self::Any };
        if depth > MAX_DEPTH || left.get() == 0 {
            return Self::Any;
        }
        left.set(left.get() - 1);
        let inner = |schema: &Value| Self::at(schema, root, depth + 1, left);
        if let Some(Value::String(reference)) = schema.get("$ref") {
            return local(reference, root).map_or(Self::Any, inner);
        }
        if let Some(value) = schema.get("const") {
            return Self::Choice(vec![value.clone()]);
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            return Self::Choice(values.clone());
        }
        let alternatives = ["anyOf", "oneOf"].iter().find_map(|name| schema.get(*name)?.as_array());
        if let Some(alternatives) = alternatives {
            return Self::one_of(alternatives.iter().take(MAX_ALTERNATIVES).map(inner));
        }
        if let Some(Value::Array(parts)) = schema.get("allOf")
            && let [part] = parts.as_slice()
        {
            return inner(part);
        }
        let named = |name: &str| match name {
            "string" => Self::Text,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "null" => Self::Null,
            "array" => Self::List(Box::new(schema.get("items").map_or(Self::Any, inner))),
            "object" => Self::Object,
            _ => Self::Any,
        };
        match schema.get("type") {
            Some(Value::String(name)) => named(name),
            Some(Value::Array(names)) => {
                Self::one_of(names.iter().take(MAX_ALTERNATIVES).filter_map(Value::as_str).map(named))
            }
            _ if schema.contains_key("properties") => Self::Object,
            _ => Self::Any,
        }
    }

    fn one_of(shapes: impl Iterator<Item = Self>) -> Self {
        let mut all: Vec<Self> = Vec::new();
        for shape in shapes {
            if all.contains(&shape) {
                continue;
            }
            match (all.last_mut(), shape) {
                // Enums with a description for each value.
                (Some(Self::Choice(values)), Self::Choice(more)) => values.extend(more),
                (_, shape) => all.push(shape),
            }
        }
        match all.len() {
            0 => Self::Any,
            1 => all.remove(0),
            _ => Self::OneOf(all),
        }
    }

    /// Returns the shape with its article, for errors: `an integer`.
    pub(super) fn described(&self) -> String {
        match self {
            Self::Text => "a text".into(),
            Self::Integer => "an integer".into(),
            Self::Number => "a number".into(),
            Self::Boolean => "`true` or `false`".into(),
            Self::Null => "null".into(),
            Self::Choice(values) => {
                let mut shown: Vec<_> =
                    values.iter().take(LISTED).map(|value| format!("`{}`", excerpt(&bare(value)))).collect();
                if let more @ 1.. = values.len().saturating_sub(LISTED) {
                    shown.push(format!("{more} others"));
                }
                or(&shown)
            }
            Self::List(item) => format!("a list, each item {}", item.described()),
            Self::Object => "a JSON object".into(),
            Self::OneOf(shapes) => or(&shapes.iter().map(Self::described).collect::<Vec<_>>()),
            Self::Any => "any JSON".into(),
        }
    }
}

/// The shape in a signature: `text`, `int`, `a|b|c`, `int[]`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Integer => f.write_str("int"),
            Self::Number => f.write_str("number"),
            Self::Boolean => f.write_str("bool"),
            Self::Null => f.write_str("null"),
            Self::Object => f.write_str("object"),
            Self::Any => f.write_str("json"),
            Self::List(item) => match &**item {
                item @ (Self::OneOf(_) | Self::Choice(_)) => write!(f, "({item})[]"),
                item => write!(f, "{item}[]"),
            },
            Self::Choice(values) => {
                let mut shown: Vec<_> =
                    values.iter().take(SHOWN).map(|value| excerpt(&bare(value))).collect();
                if values.len() > SHOWN {
                    shown.push("…".to_owned());
                }
                f.write_str(&shown.join("|"))
            }
            Self::OneOf(shapes) => {
                // That it may be null is what the brackets of an optional argument mean.
                let shown = shapes.iter().filter(|shape| **shape != Self::Null).map(ToString::to_string);
                f.write_str(&shown.collect::<Vec<_>>().join("|"))
            }
        }
    }
}

/// Formats a value as it is typed: a text without quotes.
pub(super) fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Shortens a text, for messages.
pub(super) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn or(words: &[String]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Resolves a reference within the schema.
fn local<'a>(reference: &str, root: &'a JsonObject) -> Option<&'a Value> {
    let mut path =
        reference.strip_prefix("#/")?.split('/').map(|step| step.replace("~1", "/").replace("~0", "~"));
    let first = root.get(&path.next()?)?;
    path.try_fold(first, |value, step| match value {
        Value::Object(members) => members.get(&step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(schema: &Value) -> String {
        let root = json!({"$defs": {"Port": {"enum": ["a", "b"]}, "Self": {"$ref": "#/$defs/Self"}}});
        Shape::of(schema, root.as_object().unwrap()).to_string()
    }

    #[test]
    fn a_schema_that_refers_to_itself_is_read_in_bounded_time() {
        let again = json!({"$ref": "#/$defs/Node"});
        let node = json!({"anyOf": vec![json!({"type": "array", "items": again}); 16]});
        let root = json!({"$defs": {"Node": node}});
        let shape = Shape::of(&again, root.as_object().unwrap());
        assert!(shape.to_string().contains("json[]"), "{shape}");
    }

    #[test]
    fn a_schema_is_one_word() {
        for (schema, word) in [
            (json!({"type": "string"}), "text"),
            (json!({"type": ["integer", "null"]}), "int"),
            (json!({"$ref": "#/$defs/Port"}), "a|b"),
            (json!({"anyOf": [{"$ref": "#/$defs/Port"}, {"type": "null"}]}), "a|b"),
            (json!({"oneOf": [{"const": "x", "description": "…"}, {"const": "y"}]}), "x|y"),
            (json!({"type": "array", "items": {"type": "number"}}), "number[]"),
            (json!({"type": "array", "items": {"enum": [1, 2]}}), "(1|2)[]"),
            (json!({"allOf": [{"type": "boolean"}]}), "bool"),
            (json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}), "text|int"),
            (json!({"enum": [1, 2, 3, 4, 5, 6, 7, 8]}), "1|2|3|4|5|6|…"),
            (json!({"properties": {}}), "object"),
            // Nothing to go by, or nowhere to go.
            (json!(true), "json"),
            (json!({"$ref": "#/$defs/Self"}), "json"),
            (json!({"$ref": "https://example.com/x"}), "json"),
        ] {
            assert_eq!(shown(&schema), word, "{schema}");
        }
    }
}
