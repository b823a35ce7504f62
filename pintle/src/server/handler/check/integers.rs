//! The integers that a Rust type can hold, by the `format` that its schema has.

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

/// Keywords whose values are no schemas.
const DATA: &[&str] = &["default", "examples", "const", "enum"];

/// The smallest and the largest integer of a schema's type, if it is that of an integer.
pub(super) fn bounds(schema: &JsonObject) -> Option<(i64, u64)> {
    let integer = match schema.get("type")? {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "integer"),
        kind => kind == "integer",
    };
    let format = schema.get("format")?.as_str()?;
    let (_, least, most) = FORMATS.iter().find(|(known, ..)| integer && *known == format)?;
    Some((*least, *most))
}

/// Says in a schema what its formats say, so that a number that does not fit its type is told in words.
///
/// `format` refuses nothing by itself, and the published schema stays as it is: what is added here is what reading the
/// type asks for anyway.
pub(super) fn bound(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let bounds = bounds(members);
            if let Some((least, most)) = bounds {
                members.entry("minimum").or_insert(Value::Number(Number::from(least)));
                members.entry("maximum").or_insert(Value::Number(Number::from(most)));
            }
            let schemas = members.iter_mut().filter(|(name, _)| !DATA.contains(&name.as_str()));
            schemas.for_each(|(_, schema)| bound(schema));
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(bound),
        _ => {}
    }
}
