use pintle_types::{
    JsonObject,
    schema::{
        BooleanSchema, ElicitSchema, EnumItems, EnumOption, EnumSchema, MultiEnumSchema, NumberSchema,
        PrimitiveSchema, StringFormat, StringSchema, TitledEnumItems, TitledEnumSchema,
        TitledMultiEnumSchema,
    },
};
use serde_json::Value;

use super::FormError;

/// Converts an object schema into the schema of a form, with its fields in the order of the properties.
pub(super) fn object(form: &str, schema: Value) -> Result<ElicitSchema, FormError> {
    let refuse = |reason: &str| FormError::new(form, reason);
    let Value::Object(mut schema) = schema else { return Err(refuse("can be anything: use a struct")) };
    if schema.get("type").is_none_or(|kind| kind != "object") {
        let scalar = schema.get("type").is_some_and(Value::is_string);
        return Err(refuse(if scalar {
            "is a single value: wrap it in a struct with one field"
        } else {
            "is not a struct: forms have named fields"
        }));
    }
    let Some(Value::Object(properties)) = schema.shift_remove("properties") else {
        return match schema.get("additionalProperties") {
            None | Some(Value::Bool(false)) => Ok(ElicitSchema::new()),
            Some(_) => Err(refuse("has no named fields: use a struct, or make a `Form` by hand")),
        };
    };
    let mut reduced = ElicitSchema::new();
    for (name, schema) in properties {
        let field = field(schema).map_err(|reason| FormError::of_field(form, &name, reason))?;
        reduced.properties.insert(name, field);
    }
    if let Some(Value::Array(required)) = schema.shift_remove("required") {
        let is_required = |name: &str| required.iter().any(|other| other == name);
        let names = reduced.properties.iter().map(|(name, _)| name).filter(|name| is_required(name));
        reduced.required = Some(names.map(str::to_owned).collect());
    }
    Ok(reduced)
}

/// Keywords that forms do not have, with an alternative for each.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("pattern", "check the text in the handler"),
    ("multipleOf", "check the number in the handler"),
    ("exclusiveMinimum", "use `minimum`"),
    ("exclusiveMaximum", "use `maximum`"),
    ("$ref", "a type that contains itself cannot be asked for"),
];

fn field(schema: Value) -> Result<PrimitiveSchema, String> {
    let Value::Object(schema) = schema else { return Err("can be anything: give it a type".to_owned()) };
    let mut schema = without_null(schema)?;
    if let Some((keyword, instead)) = UNSUPPORTED.iter().find(|(keyword, _)| schema.contains_key(*keyword)) {
        return Err(format!("has a `{keyword}`, which forms lack: {instead}"));
    }
    if let Some(value) = schema.shift_remove("const") {
        schema.insert("enum".to_owned(), Value::Array(vec![value]));
    }
    if let Some(choices) = schema
        .shift_remove("enum")
        .or_else(|| schema.shift_remove("oneOf"))
        .or_else(|| schema.shift_remove("anyOf"))
    {
        return choice(schema, &choices);
    }
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (title, description) = (text(&mut schema, "title"), text(&mut schema, "description"));
    match &*kind {
        "string" => {
            let mut field = StringSchema::new();
            (field.title, field.description) = (title, description);
            field.min_length = schema.get("minLength").and_then(Value::as_i64);
            field.max_length = schema.get("maxLength").and_then(Value::as_i64);
            // Other formats are annotations that clients need not know; decoding the type checks them.
            field.format = schema.get("format").and_then(Value::as_str).and_then(format);
            field.default = text(&mut schema, "default");
            Ok(PrimitiveSchema::String(field))
        }
        "integer" | "number" => {
            let mut field = NumberSchema::new();
            (field.title, field.description) = (title, description);
            let number = |key: &str| schema.get(key).and_then(|value| value.as_number().cloned());
            (field.minimum, field.maximum, field.default) =
                (number("minimum"), number("maximum"), number("default"));
            Ok(if kind == "integer" {
                PrimitiveSchema::Integer(field)
            } else {
                PrimitiveSchema::Number(field)
            })
        }
        "boolean" => {
            let mut field = BooleanSchema::new();
            (field.title, field.description) = (title, description);
            field.default = schema.get("default").and_then(Value::as_bool);
            Ok(PrimitiveSchema::Boolean(field))
        }
        "array" => list(schema, title, description),
        "object" => Err("is an object: ask for its parts as fields of their own".to_owned()),
        _ => Err("can be anything: give it a type".to_owned()),
    }
}

fn format(format: &str) -> Option<StringFormat> {
    match format {
        "email" => Some(StringFormat::Email),
        "uri" => Some(StringFormat::Uri),
        "date" => Some(StringFormat::Date),
        "date-time" => Some(StringFormat::DateTime),
        _ => None,
    }
}

/// Converts a choice of one value.
fn choice(mut schema: JsonObject, choices: &Value) -> Result<PrimitiveSchema, String> {
    let options = options(choices)?;
    let (title, description) = (text(&mut schema, "title"), text(&mut schema, "description"));
    let default = text(&mut schema, "default");
    if options.iter().all(|(_, title)| title.is_none()) {
        let names = schema.shift_remove("enumNames").and_then(|names| serde_json::from_value(names).ok());
        let names = names.filter(|names: &Vec<String>| names.len() == options.len());
        let mut field = EnumSchema::new(options.into_iter().map(|(value, _)| value).collect());
        field.enum_names = names;
        (field.title, field.description, field.default) = (title, description, default);
        return Ok(PrimitiveSchema::Enum(field));
    }
    let mut field = TitledEnumSchema::new(options.into_iter().map(titled).collect());
    (field.title, field.description, field.default) = (title, description, default);
    Ok(PrimitiveSchema::TitledEnum(field))
}

/// Converts a choice of any number of values.
fn list(
    mut schema: JsonObject,
    title: Option<String>,
    description: Option<String>,
) -> Result<PrimitiveSchema, String> {
    let free = || "is a list of free values: use a list of an enum, or one text".to_owned();
    let items = schema.shift_remove("items").ok_or_else(free)?;
    let bound = |key: &str| schema.get(key).and_then(Value::as_i64);
    let (min_items, max_items) = (bound("minItems"), bound("maxItems"));
    let default = schema.get("default").and_then(|value| serde_json::from_value(value.clone()).ok());
    match field(items)? {
        PrimitiveSchema::Enum(choice) => {
            let mut field = MultiEnumSchema::new(EnumItems::new(choice.values));
            (field.title, field.description, field.default) = (title, description, default);
            (field.min_items, field.max_items) = (min_items, max_items);
            Ok(PrimitiveSchema::MultiEnum(field))
        }
        PrimitiveSchema::TitledEnum(choice) => {
            let mut field = TitledMultiEnumSchema::new(TitledEnumItems::new(choice.one_of));
            (field.title, field.description, field.default) = (title, description, default);
            (field.min_items, field.max_items) = (min_items, max_items);
            Ok(PrimitiveSchema::TitledMultiEnum(field))
        }
        _ => Err(free()),
    }
}

/// Returns the values of a choice with their titles: the `title` of a variant, or else its doc comment.
fn options(choices: &Value) -> Result<Vec<(String, Option<String>)>, String> {
    let mut options = Vec::new();
    for choice in choices.as_array().into_iter().flatten() {
        match choice {
            Value::String(value) => options.push((value.clone(), None)),
            Value::Object(variant) => {
                let title = variant.get("title").or_else(|| variant.get("description"));
                let title = title.and_then(Value::as_str).map(str::to_owned);
                match (variant.get("const"), variant.get("enum")) {
                    (Some(Value::String(value)), _) => options.push((value.clone(), title)),
                    (None, Some(several)) => options.extend(self::options(several)?),
                    _ => {
                        return Err(
                            "has variants with data: use an enum without, or fields of their own".to_owned()
                        );
                    }
                }
            }
            _ => return Err("has choices that are not strings: name them".to_owned()),
        }
    }
    Ok(options)
}

fn titled((value, title): (String, Option<String>)) -> EnumOption {
    let title = title.unwrap_or_else(|| value.clone());
    EnumOption::new(value, title)
}

/// Removes `null` from the types of a field: such a field is optional.
fn without_null(mut schema: JsonObject) -> Result<JsonObject, String> {
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        let [kind] = kinds.as_mut_slice() else {
            return Err("may be of several types: choose one".to_owned());
        };
        let kind = kind.take();
        schema.insert("type".to_owned(), kind);
    }
    if let Some(Value::Array(choices)) = schema.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    for keyword in ["anyOf", "allOf"] {
        let Some(Value::Array(parts)) = schema.get_mut(keyword) else { continue };
        parts.retain(|part| part.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = parts.as_mut_slice() {
            let mut inner = without_null(std::mem::take(only))?;
            schema.shift_remove(keyword);
            // Keywords of the field take precedence over those of its type.
            inner.extend(schema);
            return Ok(inner);
        }
    }
    Ok(schema)
}

fn text(schema: &mut JsonObject, key: &str) -> Option<String> {
    match schema.shift_remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_names_of_a_choice_stay() {
        let reduced = |names: Value| {
            let schema = json!({"type": "string", "enum": ["a", "b"], "enumNames": names});
            serde_json::to_value(field(schema).unwrap()).unwrap()["enumNames"].clone()
        };
        assert_eq!(reduced(json!(["Ada", "Bob"])), json!(["Ada", "Bob"]));
        // Names that are not those of the values are no names.
        assert_eq!(reduced(json!(["Ada"])), Value::Null);
        assert_eq!(reduced(json!([1, 2])), Value::Null);
    }
}
