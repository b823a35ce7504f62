//! The keywords of JSON Schema, by what their values are.

use std::collections::HashSet;

use pintle::schema::Schema;
use serde_json::{Value, json};

use crate::visible::visible;

/// The bytes that an example or a default may have.
const MAX_DATA: usize = 1 << 10;
/// The values of an enumeration.
const MAX_ENUM: usize = 1_000;

/// The kind of a keyword's value.
#[derive(Clone, Copy)]
pub(super) enum KeywordKind {
    /// A schema.
    Schema,
    /// A list of schemas.
    List,
    /// An object whose members are schemas.
    Map,
    /// Everything else, which is copied if it is valid.
    Plain(fn(&Value) -> Option<Value>),
}

const SCHEMA: &[&str] = &[
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const LIST: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];
const MAP: &[&str] = &["$defs", "dependentSchemas", "patternProperties", "properties"];
/// The words that have a `max…` and a `min…` that are counts.
const COUNTS: &[&str] = &["Contains", "Items", "Length", "Properties"];
const TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

/// Returns what the value of a keyword is; `None` for what is no keyword.
pub(super) fn kind(keyword: &str) -> Option<KeywordKind> {
    Some(KeywordKind::Plain(match keyword {
        _ if SCHEMA.contains(&keyword) => return Some(KeywordKind::Schema),
        _ if LIST.contains(&keyword) => return Some(KeywordKind::List),
        _ if MAP.contains(&keyword) => return Some(KeywordKind::Map),
        "type" => types,
        "required" => |value| Some(required(value)),
        "description" | "title" => |value| value.as_str().map(|text| visible(text).into()),
        "enum" => |value| {
            let length = value.as_array()?.len();
            (1..=MAX_ENUM).contains(&length).then(|| value.clone())
        },
        "const" => |value| Some(value.clone()),
        "default" => |value| is_short(value).then(|| value.clone()),
        "deprecated" | "uniqueItems" => |value| value.as_bool().map(Value::from),
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" => {
            |value| value.is_number().then(|| value.clone())
        }
        "multipleOf" => |value| value.as_f64().filter(|number| *number > 0.0).map(|_| value.clone()),
        "pattern" => |value| value.as_str().filter(|pattern| is_linear(pattern)).map(Value::from),
        "contentEncoding" | "contentMediaType" | "format" => |value| value.as_str().map(Value::from),
        _ => {
            let counted = keyword.strip_prefix("max").or(keyword.strip_prefix("min"))?;
            return COUNTS.contains(&counted).then_some(KeywordKind::Plain(count));
        }
    }))
}

/// Returns whether a pattern can be matched in linear time, which validators and model APIs demand: it has no look-around, no
/// back-references and no large repetitions.
pub(super) fn is_linear(pattern: &str) -> bool {
    Schema::compile(&json!({ "pattern": pattern })).is_ok()
}

/// Returns whether a value may be repeated in a schema as an example.
pub(super) fn is_short(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= MAX_DATA,
        Value::Array(_) | Value::Object(_) => value.to_string().len() <= MAX_DATA,
        _ => true,
    }
}

/// Returns a count, which some documents write as 1.0.
fn count(value: &Value) -> Option<Value> {
    let whole =
        |number: f64| (number.fract() == 0.0 && (0.0..1e15).contains(&number)).then_some(number as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(whole)).map(Value::from)
}

fn types(value: &Value) -> Option<Value> {
    let known = |name: &Value| {
        let name = name.as_str()?;
        // That of 2.0 for uploads.
        let name = if name == "file" { "string" } else { name };
        TYPES.contains(&name).then(|| Value::from(name))
    };
    let Value::Array(names) = value else { return known(value) };
    let mut types: Vec<Value> = Vec::new();
    for name in names.iter().filter_map(known) {
        if !types.contains(&name) {
            types.push(name);
        }
    }
    match types.len() {
        0 => None,
        1 => types.pop(),
        _ => Some(types.into()),
    }
}

fn required(value: &Value) -> Value {
    let mut known = HashSet::new();
    let names = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    names.filter(|name| known.insert(*name)).collect()
}
