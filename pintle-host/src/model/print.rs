use pintle::types::JsonObject;
use serde_json::{Map, Value, json};

use super::shape::{Extra, ObjectShape, Shape, ShapeKind, noted};

/// The formats of strings that the APIs of OpenAI and Anthropic know.
const FORMATS: &[&str] =
    &["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"];

/// Prints the schema of arguments as JSON Schema, without references and lists of types.
pub(super) fn json_schema(object: &ObjectShape, strict: bool) -> Value {
    if strict { strict_object(object) } else { plain_object(object) }
}

/// Whether OpenAI's strict mode can express it: every property is known.
pub(super) fn fits_strict(object: &ObjectShape) -> bool {
    object.properties.iter().all(|property| shape_fits(&property.shape))
        && (object.extra == Extra::Forbidden || !matches!(object.extra, Extra::Of(_)))
}

fn shape_fits(shape: &Shape) -> bool {
    match &shape.kind {
        ShapeKind::Any => false,
        ShapeKind::Object(object) => !object.is_free() && fits_strict(object),
        ShapeKind::List { items, .. } => shape_fits(items),
        ShapeKind::Union(shapes) => shapes.iter().all(shape_fits),
        _ => true,
    }
}

fn plain_object(object: &ObjectShape) -> Value {
    let mut printed = object_of(object, |property| (property.required, value(&property.shape, false)));
    match &object.extra {
        Extra::Allowed => {}
        Extra::Forbidden => drop(printed.insert("additionalProperties".into(), false.into())),
        Extra::Of(shape) => drop(printed.insert("additionalProperties".into(), value(shape, false))),
    }
    printed.into()
}

/// All properties are required: one that is optional may be null instead.
fn strict_object(object: &ObjectShape) -> Value {
    let mut printed = object_of(object, |property| {
        let shape = &property.shape;
        if property.required || shape.nullable {
            return (true, value(shape, true));
        }
        (true, value(&Shape { nullable: true, ..shape.clone() }, true))
    });
    printed.entry("required").or_insert_with(|| json!([]));
    printed.insert("additionalProperties".into(), false.into());
    printed.into()
}

fn object_of(object: &ObjectShape, print: impl Fn(&super::shape::Property) -> (bool, Value)) -> JsonObject {
    let (mut properties, mut names) = (Map::new(), Vec::new());
    for property in &object.properties {
        let (required, schema) = print(property);
        properties.insert(property.name.clone(), schema);
        if required {
            names.push(Value::from(property.name.as_str()));
        }
    }
    let mut printed = Map::new();
    printed.insert("type".into(), "object".into());
    printed.insert("properties".into(), properties.into());
    if !names.is_empty() {
        printed.insert("required".into(), names.into());
    }
    printed
}

fn value(shape: &Shape, strict: bool) -> Value {
    let mut description = shape.description.clone();
    let mut printed = match &shape.kind {
        ShapeKind::Any => Map::new(),
        ShapeKind::Boolean => typed("boolean"),
        ShapeKind::Text { format, keywords } => {
            let mut printed = typed("string");
            match format {
                Some(format) if FORMATS.contains(&format.as_str()) => {
                    printed.insert("format".into(), format.as_str().into());
                }
                Some(format) => {
                    description = Some(noted(description.as_deref(), &format!("format: {format}")))
                }
                None => {}
            }
            let allowed = keywords.iter().filter(|(name, _)| !strict || name.as_str() == "pattern");
            printed.extend(allowed.map(|(name, value)| (name.clone(), value.clone())));
            printed
        }
        ShapeKind::Number { integer, keywords } => {
            let mut printed = typed(if *integer { "integer" } else { "number" });
            printed.extend(keywords.clone());
            printed
        }
        ShapeKind::List { items, keywords } => {
            let mut printed = typed("array");
            printed.insert("items".into(), value(items, strict));
            let allowed = keywords.iter().filter(|(name, _)| !strict || name.as_str() != "uniqueItems");
            printed.extend(allowed.map(|(name, value)| (name.clone(), value.clone())));
            printed
        }
        ShapeKind::Object(object) => match json_schema(object, strict) {
            Value::Object(printed) => printed,
            _ => Map::new(),
        },
        ShapeKind::Enum(values) => {
            let mut printed = type_of(values).map_or_else(Map::new, typed);
            printed.insert("enum".into(), values.clone().into());
            printed
        }
        ShapeKind::Union(shapes) => {
            let shapes: Vec<Value> = shapes.iter().map(|shape| value(shape, strict)).collect();
            Map::from_iter([("anyOf".to_owned(), shapes.into())])
        }
    };
    if shape.nullable && !printed.is_empty() {
        let or_null = json!({"type": "null"});
        match printed.get_mut("anyOf") {
            Some(Value::Array(shapes)) => shapes.push(or_null),
            _ => printed = Map::from_iter([("anyOf".to_owned(), json!([printed, or_null]))]),
        }
    }
    if let Some(default) = shape.default.as_ref().filter(|_| !strict) {
        printed.insert("default".into(), default.clone());
    }
    described(printed, description)
}

/// Prints the schema of arguments for Gemini; `None` if there are none, which its API wants to be left out.
pub(super) fn gemini(object: &ObjectShape) -> Option<Value> {
    (!object.properties.is_empty()).then(|| gemini_object(object).into())
}

fn gemini_object(object: &ObjectShape) -> JsonObject {
    let mut printed = object_of(object, |property| (property.required, gemini_value(&property.shape)));
    printed.insert("type".into(), "OBJECT".into());
    printed
}

fn gemini_value(shape: &Shape) -> Value {
    let mut description = shape.description.clone();
    let mut note = |text: &str| description = Some(noted(description.as_deref(), text));
    let mut printed = match &shape.kind {
        ShapeKind::Any => {
            note("any value, as JSON text");
            typed("STRING")
        }
        ShapeKind::Boolean => typed("BOOLEAN"),
        ShapeKind::Text { format, keywords } => {
            let mut printed = typed("STRING");
            match format.as_deref() {
                Some("date-time") => drop(printed.insert("format".into(), "date-time".into())),
                Some(format) => note(&format!("format: {format}")),
                None => {}
            }
            printed.extend(keywords.clone());
            printed
        }
        ShapeKind::Number { integer, keywords } => {
            let mut printed = typed(if *integer { "INTEGER" } else { "NUMBER" });
            for (name, value) in keywords {
                match name.as_str() {
                    "minimum" | "maximum" => drop(printed.insert(name.clone(), value.clone())),
                    "exclusiveMinimum" => note(&format!("greater than {value}")),
                    "exclusiveMaximum" => note(&format!("less than {value}")),
                    _ => note(&format!("a multiple of {value}")),
                }
            }
            printed
        }
        ShapeKind::List { items, keywords } => {
            let mut printed = typed("ARRAY");
            printed.insert("items".into(), gemini_value(items));
            let allowed = keywords.iter().filter(|(name, _)| name.as_str() != "uniqueItems");
            printed.extend(allowed.map(|(name, value)| (name.clone(), value.clone())));
            printed
        }
        // Its API refuses an object without properties.
        ShapeKind::Object(object) if object.properties.is_empty() => {
            note("an object, as JSON text");
            typed("STRING")
        }
        ShapeKind::Object(object) => gemini_object(object),
        ShapeKind::Enum(values) => {
            let mut printed = typed("STRING");
            printed.insert("format".into(), "enum".into());
            printed.insert("enum".into(), values.iter().map(enum_text).collect());
            printed
        }
        ShapeKind::Union(shapes) => {
            Map::from_iter([("anyOf".to_owned(), shapes.iter().map(gemini_value).collect())])
        }
    };
    if shape.nullable {
        printed.insert("nullable".into(), true.into());
    }
    described(printed, description)
}

/// The text that stands for a value where only texts are allowed.
pub(super) fn enum_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn typed(kind: &str) -> JsonObject {
    Map::from_iter([("type".to_owned(), kind.into())])
}

/// The type that all values have.
fn type_of(values: &[Value]) -> Option<&'static str> {
    let kind = |value: &Value| match value {
        Value::String(_) => Some("string"),
        Value::Bool(_) => Some("boolean"),
        Value::Number(number) => Some(if number.is_f64() { "number" } else { "integer" }),
        _ => None,
    };
    let first = kind(values.first()?)?;
    values.iter().all(|value| kind(value) == Some(first)).then_some(first)
}

fn described(printed: JsonObject, description: Option<String>) -> Value {
    let Some(description) = description.filter(|description| !description.is_empty()) else {
        return printed.into();
    };
    let mut described = Map::with_capacity(printed.len() + 1);
    described.insert("description".into(), description.into());
    described.extend(printed);
    described.into()
}
