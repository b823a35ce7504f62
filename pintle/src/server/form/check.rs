use pintle_types::{
    JsonObject,
    schema::{ElicitSchema, EnumOption, NumberSchema, PrimitiveSchema, StringSchema},
};
use serde_json::Value;

use super::Form;

/// Checks an answer against its form. Members that are not in the form are ignored.
pub(super) fn fits(form: &ElicitSchema, content: &JsonObject) -> Result<(), String> {
    for (name, schema) in form.properties.iter() {
        match content.get(name).filter(|value| !value.is_null()) {
            Some(value) => field(name, schema, value)?,
            None if form.required.iter().flatten().any(|required| required == name) => {
                return Err(format!("`{name}` is missing"));
            }
            None => {}
        }
    }
    Ok(())
}

/// Checks the value of one field.
pub(super) fn field(name: &str, schema: &PrimitiveSchema, value: &Value) -> Result<(), String> {
    match schema {
        PrimitiveSchema::String(schema) => text(name, schema, value),
        PrimitiveSchema::Number(schema) => number(name, schema, value),
        PrimitiveSchema::Integer(schema) => {
            if value.as_f64().is_none_or(|number| number.fract() != 0.0) {
                return Err(format!("`{name}` is not a whole number: `{}`", short(value)));
            }
            number(name, schema, value)
        }
        PrimitiveSchema::Boolean(_) => value.as_bool().map(drop).ok_or_else(|| not(name, "a boolean", value)),
        PrimitiveSchema::Enum(schema) => one(name, &values(&schema.values), value),
        PrimitiveSchema::TitledEnum(schema) => one(name, &titled(&schema.one_of), value),
        PrimitiveSchema::MultiEnum(schema) => {
            some(name, (schema.min_items, schema.max_items), &values(&schema.items.values), value)
        }
        PrimitiveSchema::TitledMultiEnum(schema) => {
            some(name, (schema.min_items, schema.max_items), &titled(&schema.items.any_of), value)
        }
        _ => Ok(()),
    }
}

fn text(name: &str, schema: &StringSchema, value: &Value) -> Result<(), String> {
    let text = value.as_str().ok_or_else(|| not(name, "a string", value))?;
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    match (schema.min_length, schema.max_length) {
        (Some(min), _) if length < min => {
            Err(format!("`{name}` has {length} characters and needs at least {min}"))
        }
        (_, Some(max)) if length > max => {
            Err(format!("`{name}` has {length} characters and may have at most {max}"))
        }
        _ => match &schema.format {
            Some(format) if !Form::has_format(format, text) => {
                Err(not(name, Form::describe_format(format).unwrap_or_default(), value))
            }
            _ => Ok(()),
        },
    }
}

fn number(name: &str, schema: &NumberSchema, value: &Value) -> Result<(), String> {
    let number = value.as_f64().ok_or_else(|| not(name, "a number", value))?;
    let bound = |bound: &Option<serde_json::Number>| bound.as_ref().and_then(serde_json::Number::as_f64);
    match (bound(&schema.minimum), bound(&schema.maximum)) {
        (Some(min), _) if number < min => Err(format!("`{name}` is `{value}` and must be at least {min}")),
        (_, Some(max)) if number > max => Err(format!("`{name}` is `{value}` and may be at most {max}")),
        _ => Ok(()),
    }
}

fn one(name: &str, known: &[&str], value: &Value) -> Result<(), String> {
    let text = value.as_str().ok_or_else(|| not(name, "a string", value))?;
    if known.contains(&text) {
        return Ok(());
    }
    Err(format!(
        "`{name}` is `{}` and should be one of `{}`",
        short(value).trim_matches('"'),
        known.join("`, `")
    ))
}

fn some(
    name: &str,
    (min, max): (Option<i64>, Option<i64>),
    known: &[&str],
    value: &Value,
) -> Result<(), String> {
    let chosen = value.as_array().ok_or_else(|| not(name, "a list", value))?;
    let count = i64::try_from(chosen.len()).unwrap_or(i64::MAX);
    if min.is_some_and(|min| count < min) || max.is_some_and(|max| count > max) {
        return Err(format!("`{name}` has {count} values, which is outside its limits"));
    }
    chosen.iter().try_for_each(|value| one(name, known, value))
}

fn values(values: &[String]) -> Vec<&str> {
    values.iter().map(String::as_str).collect()
}

fn titled(options: &[EnumOption]) -> Vec<&str> {
    options.iter().map(|option| option.value.as_str()).collect()
}

fn not(name: &str, what: &str, value: &Value) -> String {
    format!("`{name}` is not {what}: `{}`", short(value))
}

/// Returns the value as text, shortened if it is long.
fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}
