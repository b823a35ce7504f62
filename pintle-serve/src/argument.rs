use std::collections::BTreeMap;

use pintle::{schema::Schema, types::JsonObject};
#[cfg(feature = "schemars")]
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::CallFault;

/// An argument of a tool, as a file describes it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[cfg_attr(feature = "schemars", derive(JsonSchema))]
#[serde(untagged)]
#[expect(clippy::exhaustive_enums, reason = "an argument is written briefly or in full")]
pub enum ArgumentEntry {
    /// A type: `string`, `integer`, `number` or `boolean`, with `[]` for a list of them, `?` if it can be left out, and ` = VALUE` for a
    /// default.
    Brief(String),
    /// A JSON Schema. The argument can be left out if it has a `default`, or `optional = true`.
    Schema(
        #[cfg_attr(feature = "schemars", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
        JsonObject,
    ),
}

/// An argument that was checked.
pub(crate) struct Argument {
    pub(crate) schema: Value,
    pub(crate) is_required: bool,
}

impl ArgumentEntry {
    /// Returns the schema, and whether every call has the argument.
    pub(crate) fn argument(&self) -> Result<Argument, String> {
        match self {
            Self::Brief(text) => brief(text),
            Self::Schema(schema) => {
                let mut schema = schema.clone();
                let optional = schema.remove("optional");
                let is_optional = match optional {
                    None => schema.contains_key("default"),
                    Some(Value::Bool(optional)) => optional,
                    Some(other) => return Err(format!("`optional` is `{other}`: write `true` or `false`")),
                };
                let schema = Value::Object(schema);
                let compiled = Schema::compile(&schema).map_err(|error| error.to_string())?;
                if let Some(Err(faults)) = schema.get("default").map(|default| compiled.check(default)) {
                    let fault = faults.first().map(ToString::to_string).unwrap_or_default();
                    return Err(format!("its `default` is not what its schema says: {fault}"));
                }
                Ok(Argument { schema, is_required: !is_optional })
            }
        }
    }
}

/// Checks the arguments of an entry.
pub(crate) fn checked(
    entries: &BTreeMap<String, ArgumentEntry>,
) -> Result<BTreeMap<String, Argument>, String> {
    let checked = |(name, entry): (&String, &ArgumentEntry)| {
        let argument = entry.argument().map_err(|message| format!("argument `{name}`: {message}"))?;
        Ok((name.clone(), argument))
    };
    entries.iter().map(checked).collect()
}

/// Returns the schema of a call with these arguments, and no others.
pub(crate) fn input_schema(arguments: &BTreeMap<String, Argument>) -> JsonObject {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    let properties = arguments.iter().map(|(name, argument)| (name.clone(), argument.schema.clone()));
    schema.insert("properties".to_owned(), Value::Object(properties.collect()));
    let required =
        arguments.iter().filter(|(_, argument)| argument.is_required).map(|(name, _)| name.as_str());
    schema.insert("required".to_owned(), required.collect());
    schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    schema
}

/// Returns the arguments that a whole schema describes.
pub(crate) fn arguments_of(schema: &JsonObject) -> Result<BTreeMap<String, Argument>, String> {
    if schema.get("type").is_none_or(|kind| kind != "object") {
        return Err("`input_schema` is that of no object: write `type = \"object\"`".to_owned());
    }
    Schema::for_arguments(&Value::Object(schema.clone()))
        .map_err(|error| format!("`input_schema`: {error}"))?;
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let argument = |(name, schema): (&String, &Value)| {
        (name.clone(), Argument { schema: schema.clone(), is_required: required.contains(&name.as_str()) })
    };
    Ok(properties.map(argument).collect())
}

/// Refuses arguments that have no place.
pub(crate) fn all_used<'a>(
    arguments: &BTreeMap<String, Argument>,
    used: impl Iterator<Item = &'a str>,
) -> Result<(), String> {
    let used: Vec<&str> = used.collect();
    match arguments.keys().find(|name| !used.contains(&name.as_str())) {
        Some(unused) => Err(format!(
            "argument `{unused}` has no place: write `{{{unused}}}` in `command` or another text of the entry"
        )),
        None => Ok(()),
    }
}

/// Checks arguments by a schema as a call does.
pub(crate) fn check(schema: &Value, arguments: &JsonObject) -> Result<(), CallFault> {
    let schema = Schema::for_arguments(schema).map_err(|error| CallFault(error.to_string()))?;
    schema.check(&Value::Object(arguments.clone())).map_err(|faults| {
        let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
        CallFault(faults.join("; "))
    })
}

const TYPES: [&str; 4] = ["string", "integer", "number", "boolean"];

fn brief(text: &str) -> Result<Argument, String> {
    let (kind, default) = match text.split_once('=') {
        Some((kind, default)) => (kind.trim(), Some(default.trim())),
        None => (text.trim(), None),
    };
    let (kind, is_optional) = match kind.strip_suffix('?') {
        Some(kind) => (kind, true),
        None => (kind, default.is_some()),
    };
    let (element, is_list) = match kind.strip_suffix("[]") {
        Some(element) => (element, true),
        None => (kind, false),
    };
    if !TYPES.contains(&element) {
        return Err(format!(
            "`{text}` is no type: write `string`, `integer`, `number` or `boolean`, with `[]` for a list, `?` if it can be left out, or a JSON Schema"
        ));
    }
    let mut schema = match is_list {
        true => json!({"type": "array", "items": {"type": element}}),
        false => json!({"type": element}),
    };
    if let Some(default) = default {
        let read = match element {
            "string" if !is_list => Some(Value::from(default.trim_matches('"'))),
            _ => serde_json::from_str(default).ok(),
        };
        let fits = |value: &Value| match (is_list, element) {
            (true, _) => value.is_array(),
            (false, "integer") => value.is_i64() || value.is_u64(),
            (false, "number") => value.is_number(),
            (false, "boolean") => value.is_boolean(),
            (false, _) => true,
        };
        let Some(value) = read.filter(fits) else {
            return Err(format!(
                "`{default}` is no default of the type `{kind}`: write one, such as `integer = 10`"
            ));
        };
        schema["default"] = value;
    }
    Ok(Argument { schema, is_required: !is_optional })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str) -> (Value, bool) {
        let argument = ArgumentEntry::Brief(text.to_owned()).argument().unwrap();
        (argument.schema, argument.is_required)
    }

    #[test]
    fn a_type_becomes_a_schema() {
        assert_eq!(schema("string"), (json!({"type": "string"}), true));
        assert_eq!(schema("string?"), (json!({"type": "string"}), false));
        assert_eq!(schema("integer = 10"), (json!({"type": "integer", "default": 10}), false));
        assert_eq!(schema("string = main"), (json!({"type": "string", "default": "main"}), false));
        assert_eq!(schema("number[]"), (json!({"type": "array", "items": {"type": "number"}}), true));
        assert_eq!(schema("boolean = false"), (json!({"type": "boolean", "default": false}), false));
    }

    #[test]
    fn a_call_has_no_other_arguments() {
        let argument = ArgumentEntry::Brief("string".to_owned()).argument().unwrap();
        let schema = Value::Object(input_schema(&BTreeMap::from([("name".to_owned(), argument)])));
        let call = |arguments: Value| check(&schema, arguments.as_object().unwrap());
        assert!(call(json!({"name": "Ann"})).is_ok());
        let refused = call(json!({"name": "Ann", "nmae": "Bob"})).unwrap_err().to_string();
        assert!(refused.contains("nmae"), "{refused}");
    }

    #[test]
    fn what_is_no_type_is_refused_with_what_to_write() {
        for wrong in ["text", "", "strings", "integer = ten", "integer = 1.5", "boolean = 1", "number[] = 1"]
        {
            let Err(error) = ArgumentEntry::Brief(wrong.to_owned()).argument() else { panic!("{wrong}") };
            assert!(error.contains("write"), "{error}");
        }
    }

    #[test]
    fn a_whole_schema_has_its_arguments() {
        let read = |schema: Value| arguments_of(schema.as_object().unwrap());
        let properties = json!({"a": {"type": "string"}, "b": {"type": "integer"}});
        let arguments = read(json!({"type": "object", "properties": properties, "required": ["a"]})).unwrap();
        let required: Vec<_> = arguments.iter().map(|(name, one)| (name.as_str(), one.is_required)).collect();
        assert_eq!(required, [("a", true), ("b", false)]);
        for (wrong, expected) in [
            (json!({"type": "string"}), "of no object"),
            (json!({"type": "object", "properties": 3}), "`input_schema`: "),
        ] {
            let Err(error) = read(wrong) else { panic!("{expected}") };
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_schema_in_full_can_be_optional() {
        let entry = |schema: Value| serde_json::from_value::<ArgumentEntry>(schema).unwrap().argument();
        let limited = entry(json!({"type": "integer", "maximum": 9, "optional": true})).unwrap();
        assert_eq!((limited.schema, limited.is_required), (json!({"type": "integer", "maximum": 9}), false));
        assert!(!entry(json!({"type": "integer", "default": 1})).unwrap().is_required);
        assert!(entry(json!({"type": "integer"})).unwrap().is_required);
        assert!(entry(json!({"optional": 1})).is_err());
    }
}
