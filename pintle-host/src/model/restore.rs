use serde_json::{Map, Value};

use super::{
    print::enum_text,
    shape::{ObjectShape, Shape, ShapeKind},
};

/// How the arguments of a model differ from what its tool expects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ArgumentForm {
    /// Not at all.
    Plain,
    /// Optional properties may be null.
    Strict,
    /// Values of enums, and values of any kind, are texts.
    Gemini,
}

/// Makes the arguments of a model those that the tool's own schema describes.
pub(super) fn restore(object: &ObjectShape, arguments: &mut Map<String, Value>, form: ArgumentForm) {
    if form == ArgumentForm::Plain {
        return;
    }
    for property in &object.properties {
        let Some(value) = arguments.get_mut(&property.name) else { continue };
        if value.is_null() && !property.shape.nullable && !property.required {
            arguments.shift_remove(&property.name);
        } else {
            restore_value(&property.shape, value, form);
        }
    }
}

fn restore_value(shape: &Shape, value: &mut Value, form: ArgumentForm) {
    match (&shape.kind, &mut *value) {
        (ShapeKind::Object(object), Value::Object(members)) => restore(object, members, form),
        (ShapeKind::List { items, .. }, Value::Array(values)) => {
            values.iter_mut().for_each(|value| restore_value(items, value, form));
        }
        (ShapeKind::Enum(values), Value::String(text)) if form == ArgumentForm::Gemini => {
            let same = values.iter().find(|known| enum_text(known) == *text);
            if let Some(known) = same.cloned() {
                *value = known;
            }
        }
        (ShapeKind::Any, Value::String(text)) if form == ArgumentForm::Gemini => {
            if let Ok(read) = serde_json::from_str(text) {
                *value = read;
            }
        }
        (ShapeKind::Object(object), Value::String(text))
            if form == ArgumentForm::Gemini && object.properties.is_empty() =>
        {
            if let Ok(read @ Value::Object(_)) = serde_json::from_str(text) {
                *value = read;
            }
        }
        (ShapeKind::Union(shapes), _) => {
            if let Some(shape) = shapes.iter().find(|shape| is_like(shape, value)) {
                restore_value(shape, value, form);
            }
        }
        _ => {}
    }
}

/// Whether a value is meant by one of several shapes.
fn is_like(shape: &Shape, value: &Value) -> bool {
    match (&shape.kind, value) {
        (ShapeKind::Object(object), Value::Object(members)) => {
            let is_there = |name: &str| members.contains_key(name);
            object.properties.iter().all(|property| !property.required || is_there(&property.name))
                && object.properties.iter().all(|property| {
                    match (&property.shape.kind, members.get(&property.name)) {
                        (ShapeKind::Enum(values), Some(given)) => values
                            .iter()
                            .any(|known| known == given || given.as_str() == Some(&enum_text(known))),
                        _ => true,
                    }
                })
        }
        (ShapeKind::List { .. }, Value::Array(_)) => true,
        (ShapeKind::Enum(values), Value::String(text)) => {
            values.iter().any(|known| enum_text(known) == *text)
        }
        (ShapeKind::Text { .. }, Value::String(_)) => true,
        (ShapeKind::Object(object), Value::String(_)) => object.properties.is_empty(),
        _ => false,
    }
}
