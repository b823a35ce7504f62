//! The integers that a Rust type can hold, by the `format` of its schema.

use pintle_types::JsonObject;
use serde_json::{Number, Value};

const FORMATS: &[(&str, i64, u64)] = &[
    ("int8", i8::MIN as i64, i8::MAX as u64),
    ("int16", i16::MIN as i64, i16::MAX as u64),
    ("int32", i32::MIN as i64, i32::MAX as u64),
    ("int64", i64::MIN, i64::MAX as u64),
    ("int", i64::MIN, i64::MAX as u64),
    ("uint8", 0, u8::MAX as u64),
    ("uint16", 0, u16::MAX as u64),
    ("uint32", 0, u32::MAX as u64),
    ("uint64", 0, u64::MAX),
    ("uint", 0, u64::MAX),
];

/// Keywords whose values are not schemas.
const DATA: &[&str] = &["default", "examples", "const", "enum"];

/// Returns the smallest and the largest integer of a schema's type, if it is an integer type.
pub(super) fn bounds(schema: &JsonObject) -> Option<(i64, u64)> {
    let integer = match schema.get("type")? {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "integer"),
        kind => kind == "integer",
    };
    let format = schema.get("format")?.as_str()?;
    let (_, min, max) = FORMATS.iter().find(|(name, ..)| integer && *name == format)?;
    Some((*min, *max))
}

/// Adds the bounds of integer formats to a schema, so that a number out of range gets a clear message.
///
/// `format` does not constrain values by itself. The published schema is unchanged: decoding checks these bounds anyway.
pub(super) fn bound(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let bounds = bounds(members);
            if let Some((min, max)) = bounds {
                members.entry("minimum").or_insert(Value::Number(Number::from(min)));
                members.entry("maximum").or_insert(Value::Number(Number::from(max)));
            }
            let schemas = members.iter_mut().filter(|(name, _)| !DATA.contains(&name.as_str()));
            schemas.for_each(|(_, schema)| bound(schema));
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(bound),
        _ => {}
    }
}
