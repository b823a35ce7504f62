//! Validation by JSON Schema.

use std::sync::{Arc, OnceLock};

use pintle_types::{JsonObject, schema::CallToolResult};
use serde_json::Value;

use super::{ToolSchemas, Validator, integers};
use crate::{
    schema::{Schema, SchemaError, faults_text},
    server::schema::read_error,
};

pub(super) fn validator(schemas: &ToolSchemas<'_>) -> Result<Arc<dyn Validator>, String> {
    let ToolSchemas { name, typed, stricter, typed_output, defaults, .. } = *schemas;
    let unusable = |which: &str, error| format!("the {which} schema of `{name}` cannot be used: {error}");
    let precheck = Precheck::of(schemas.input, typed && !stricter && !defaults);
    let input = Input::of(schemas.input, typed, precheck).map_err(|error| unusable("input", error))?;
    let output = schemas.output.filter(|schema| !(typed_output && adds_no_constraint(schema)));
    let output = output.map(|schema| Schema::compile(&tree(schema))).transpose();
    let output = output.map_err(|error| unusable("output", error))?;
    Ok(Arc::new(SchemaValidator { input, precheck, fills_defaults: !typed || defaults, output }))
}

#[derive(Debug)]
struct SchemaValidator {
    input: Input,
    precheck: Precheck,
    fills_defaults: bool,
    /// The output schema, unless the type of the result guarantees it.
    output: Option<Schema>,
}

/// The schema of the arguments.
#[derive(Debug)]
enum Input {
    Compiled(Schema),
    /// The schema of a type without added constraints, compiled when a message is needed: decoding validates the arguments
    /// (see `bench/LEDGER.md`).
    Lazy {
        schema: Arc<JsonObject>,
        typed: bool,
        compiled: OnceLock<Schema>,
    },
}

impl Input {
    fn of(schema: &Arc<JsonObject>, typed: bool, precheck: Precheck) -> Result<Self, SchemaError> {
        let is_object = schema.get("type").is_some_and(|kind| kind == "object");
        match precheck {
            Precheck::Object | Precheck::ObjectWithoutLists if is_object && adds_no_constraint(schema) => {
                Ok(Self::Lazy { schema: schema.clone(), typed, compiled: OnceLock::new() })
            }
            _ => compiled(schema, typed).map(Self::Compiled),
        }
    }

    fn schema(&self) -> &Schema {
        match self {
            Self::Compiled(schema) => schema,
            Self::Lazy { schema, typed, compiled: cell } => cell.get_or_init(|| {
                // A schema too large or too deep to compile: then decoding alone gives the message.
                compiled(schema, *typed).unwrap_or_else(|_| Schema::trivial())
            }),
        }
    }
}

fn tree(schema: &JsonObject) -> Value {
    Value::Object(schema.clone())
}

fn compiled(schema: &JsonObject, typed: bool) -> Result<Schema, SchemaError> {
    let mut schema = tree(schema);
    if typed {
        integers::bound(&mut schema);
    }
    Schema::for_arguments(&schema)
}

/// The condition under which arguments need no validation before they are decoded.
///
/// The schema of a type without added constraints is not checked: decoding does that, and the schema is used only for the
/// message when decoding fails.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Precheck {
    /// The arguments are an object; decoding checks the rest.
    Object,
    /// The arguments are an object without lists: serde would decode a nested struct from a list, too.
    ObjectWithoutLists,
    /// Arguments are always validated.
    Never,
}

impl Precheck {
    fn of(schema: &JsonObject, typed: bool) -> Self {
        let empty =
            |keyword: &str| schema.get(keyword).and_then(Value::as_object).is_some_and(|m| m.is_empty());
        let unconstrained = schema.len() == 2 && empty("properties");
        let nested = || {
            schema.get("properties").and_then(Value::as_object).is_some_and(|p| p.values().any(has_objects))
        };
        match typed && adds_no_constraint(schema) {
            true if nested() => Self::ObjectWithoutLists,
            true => Self::Object,
            false if unconstrained => Self::Object,
            false => Self::Never,
        }
    }

    fn passes(self, arguments: &str) -> bool {
        let object = arguments.starts_with('{');
        match self {
            Self::Object => object,
            Self::ObjectWithoutLists => object && memchr::memchr(b'[', arguments.as_bytes()).is_none(),
            Self::Never => false,
        }
    }
}

impl Validator for SchemaValidator {
    fn check_arguments(&self, arguments: &str) -> Result<Option<String>, String> {
        if self.precheck.passes(arguments) {
            return Ok(None);
        }
        let mut value: Value =
            serde_json::from_str(arguments).map_err(|error| read_error::describe(arguments, &error))?;
        // The arguments are validated as sent, without defaults: a wrong default is not the caller's fault.
        self.input.schema().check(&value).map_err(|faults| faults_text(&faults))?;
        let filled = self.fills_defaults && self.input.schema().fill_defaults(&mut value);
        Ok(filled.then(|| value.to_string()))
    }

    fn is_stricter(&self) -> bool {
        self.precheck == Precheck::Never
    }

    fn explain(&self, arguments: &str) -> Option<String> {
        let value: Value = match serde_json::from_str(arguments) {
            Ok(value) => value,
            Err(error) => return Some(read_error::describe(arguments, &error)),
        };
        self.input.schema().check(&value).err().map(|faults| faults_text(&faults))
    }

    fn check_result(&self, result: &CallToolResult) -> Result<(), String> {
        match (&self.output, &result.structured_content) {
            (None, _) => Ok(()),
            _ if result.is_error == Some(true) => Ok(()),
            (Some(_), None) => Err("there is no structured content".to_owned()),
            // Not `faults_text`: it ends with advice for the author of the value, who does not read this message.
            (Some(schema), Some(value)) => schema
                .check(value)
                .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
        }
    }
}

/// Returns whether a schema generated from a type has no constraint beyond the type.
///
/// Only structs, lists, options and scalars are recognised. Any other keyword may be a constraint of the author, such as a
/// range or a pattern, and is validated.
fn adds_no_constraint(schema: &JsonObject) -> bool {
    const ANNOTATIONS: &[&str] = &["title", "description", "default", "format", "examples", "deprecated"];
    let no_constraint = |schema: &Value| schema.as_object().is_some_and(adds_no_constraint);
    let bounds = integers::bounds(schema);
    schema.iter().all(|(name, value)| match (&**name, value) {
        (name, _) if ANNOTATIONS.contains(&name) => true,
        ("type" | "required", _) => true,
        ("minimum", value) => bounds.is_some_and(|(min, _)| value.as_i64() == Some(min)),
        ("maximum", value) => bounds.is_some_and(|(_, max)| value.as_u64() == Some(max)),
        ("properties" | "$defs", Value::Object(schemas)) => schemas.values().all(no_constraint),
        ("items", schema) => no_constraint(schema),
        ("$ref", Value::String(pointer)) => pointer.starts_with("#/$defs/"),
        ("anyOf", Value::Array(schemas)) => {
            // `Option` of a struct.
            schemas.len() == 2
                && schemas.iter().all(no_constraint)
                && schemas.iter().any(|schema| schema.get("type").is_some_and(|kind| kind == "null"))
        }
        _ => false,
    })
}

/// Returns whether a value of this schema may contain objects. For schemas that [`adds_no_constraint`] accepts.
fn has_objects(schema: &Value) -> bool {
    let any = |keyword: &str| schema.get(keyword).is_some();
    any("$ref") || any("anyOf") || any("properties") || schema.get("items").is_some_and(has_objects)
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;

    use super::*;
    use crate::server::schema::type_schema::TypeSchema;

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Flat {
        /// A number.
        number: u32,
        small: u8,
        list: Vec<i64>,
        maybe: Option<String>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Nested {
        maybe: Option<Flat>,
        list: Vec<Flat>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Ranged {
        #[schemars(range(min = 1))]
        number: u32,
    }

    fn schema_of<T: JsonSchema + 'static>() -> Arc<JsonObject> {
        TypeSchema::of::<T>().unwrap().schema.clone()
    }

    #[test]
    fn decoding_validates_a_type_without_added_constraints() {
        let (flat, nested, ranged) = (schema_of::<Flat>(), schema_of::<Nested>(), schema_of::<Ranged>());
        assert_eq!(Precheck::of(&flat, true), Precheck::Object, "{flat:?}");
        assert_eq!(Precheck::of(&nested, true), Precheck::ObjectWithoutLists, "{nested:?}");
        assert_eq!(Precheck::of(&ranged, true), Precheck::Never, "{ranged:?}");
        assert_eq!(Precheck::of(&flat, false), Precheck::Never);
        let nothing = serde_json::json!({"type": "object", "properties": {}});
        assert_eq!(Precheck::of(nothing.as_object().unwrap(), false), Precheck::Object);
    }

    #[test]
    fn a_nested_list_is_validated() {
        assert!(Precheck::Object.passes(r#"{"list":[1]}"#));
        assert!(!Precheck::Object.passes("[1]"));
        assert!(Precheck::ObjectWithoutLists.passes(r#"{"maybe":null}"#));
        assert!(!Precheck::ObjectWithoutLists.passes(r#"{"maybe":[1]}"#));
    }
}
