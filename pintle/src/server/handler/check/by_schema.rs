//! Checks by JSON Schema.

use std::sync::{Arc, OnceLock};

use pintle_types::{JsonObject, schema::CallToolResult};
use serde_json::Value;

use super::{Judge, Subject, integers};
use crate::{
    schema::{Schema, SchemaError, faults_text},
    server::handler::place,
};

pub(super) fn judge(subject: &Subject<'_>) -> Result<Arc<dyn Judge>, String> {
    let Subject { name, typed, asks_more, gives_typed, defaults, .. } = *subject;
    let unusable = |which: &str, error| format!("the {which} schema of `{name}` cannot be used: {error}");
    let looks = Looks::at(subject.input, typed && !asks_more && !defaults);
    let input = Input::of(subject.input, typed, looks).map_err(|error| unusable("input", error))?;
    let output = subject.output.filter(|schema| !(gives_typed && says_no_more(schema)));
    let output = output.map(|schema| Schema::compile(&tree(schema))).transpose();
    let output = output.map_err(|error| unusable("output", error))?;
    Ok(Arc::new(BySchema { input, looks, fills: !typed || defaults, output }))
}

#[derive(Debug)]
struct BySchema {
    input: Input,
    looks: Looks,
    fills: bool,
    /// Of a result that may not fit.
    output: Option<Schema>,
}

/// The schema of the arguments.
#[derive(Debug)]
enum Input {
    Compiled(Schema),
    /// One that says no more than its type: nothing can be wrong with it, and most servers never ask it for words.
    /// (Measured, for a server with 104 tools: 14 of the 18 million instructions of its start went into compiling.)
    Asked {
        schema: Arc<JsonObject>,
        typed: bool,
        compiled: OnceLock<Schema>,
    },
}

impl Input {
    fn of(schema: &Arc<JsonObject>, typed: bool, looks: Looks) -> Result<Self, SchemaError> {
        let is_object = schema.get("type").is_some_and(|kind| kind == "object");
        match looks {
            Looks::Kind | Looks::Lists if is_object && says_no_more(schema) => {
                Ok(Self::Asked { schema: schema.clone(), typed, compiled: OnceLock::new() })
            }
            _ => compiled(schema, typed).map(Self::Compiled),
        }
    }

    fn schema(&self) -> &Schema {
        match self {
            Self::Compiled(schema) => schema,
            Self::Asked { schema, typed, compiled: known } => known.get_or_init(|| {
                // Too large or too deep to be compiled: then reading alone says what is wrong.
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

/// How much of the arguments has to be looked at before they are read.
///
/// A schema that was made from a type and says no more than the type is not checked: reading the arguments does that,
/// and the schema is asked only for words when they cannot be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Looks {
    /// Whether they are an object: nothing else is asked for, or reading asks for it.
    Kind,
    /// The same, and all of it if there is a list in it: a struct would be read from a list too.
    Lists,
    Whole,
}

impl Looks {
    fn at(schema: &JsonObject, typed: bool) -> Self {
        let empty =
            |keyword: &str| schema.get(keyword).and_then(Value::as_object).is_some_and(|m| m.is_empty());
        let asks_nothing = schema.len() == 2 && empty("properties");
        let nested =
            || schema.get("properties").and_then(Value::as_object).is_some_and(|p| p.values().any(nests));
        match typed && says_no_more(schema) {
            true if nested() => Self::Lists,
            true => Self::Kind,
            false if asks_nothing => Self::Kind,
            false => Self::Whole,
        }
    }

    fn skips(self, arguments: &str) -> bool {
        let object = arguments.starts_with('{');
        match self {
            Self::Kind => object,
            Self::Lists => object && memchr::memchr(b'[', arguments.as_bytes()).is_none(),
            Self::Whole => false,
        }
    }
}

impl Judge for BySchema {
    fn before(&self, arguments: &str) -> Result<Option<String>, String> {
        if self.looks.skips(arguments) {
            return Ok(None);
        }
        let mut value: Value =
            serde_json::from_str(arguments).map_err(|error| place::told(arguments, &error))?;
        // What came is judged, not what is filled in: a wrong default is no fault of the caller's.
        self.input.schema().check(&value).map_err(|faults| faults_text(&faults))?;
        let filled = self.fills && self.input.schema().fill_defaults(&mut value);
        Ok(filled.then(|| value.to_string()))
    }

    fn asks_more(&self) -> bool {
        self.looks == Looks::Whole
    }

    fn explain(&self, arguments: &str) -> Option<String> {
        let value: Value = match serde_json::from_str(arguments) {
            Ok(value) => value,
            Err(error) => return Some(place::told(arguments, &error)),
        };
        self.input.schema().check(&value).err().map(|faults| faults_text(&faults))
    }

    fn after(&self, result: &CallToolResult) -> Result<(), String> {
        match (&self.output, &result.structured_content) {
            (None, _) => Ok(()),
            _ if result.is_error == Some(true) => Ok(()),
            (Some(_), None) => Err("there is no structured content".to_owned()),
            // Not `faults_text`: it ends with advice to whoever made the value, and that is not who reads it.
            (Some(schema), Some(value)) => schema
                .check(value)
                .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
        }
    }
}

/// Whether a schema that was made from a type asks for nothing that the type does not ask for.
///
/// Only the plainest shapes count: structs, lists, options and scalars. Whatever else a schema says may be a wish of
/// the author's (a range, a pattern), and is checked.
fn says_no_more(schema: &JsonObject) -> bool {
    const SILENT: &[&str] = &["title", "description", "default", "format", "examples", "deprecated"];
    let no_more = |schema: &Value| schema.as_object().is_some_and(says_no_more);
    let bounds = integers::bounds(schema);
    schema.iter().all(|(name, value)| match (&**name, value) {
        (name, _) if SILENT.contains(&name) => true,
        ("type" | "required", _) => true,
        ("minimum", value) => bounds.is_some_and(|(least, _)| value.as_i64() == Some(least)),
        ("maximum", value) => bounds.is_some_and(|(_, most)| value.as_u64() == Some(most)),
        ("properties" | "$defs", Value::Object(schemas)) => schemas.values().all(no_more),
        ("items", schema) => no_more(schema),
        ("$ref", Value::String(place)) => place.starts_with("#/$defs/"),
        ("anyOf", Value::Array(schemas)) => {
            // `Option` of a struct.
            schemas.len() == 2
                && schemas.iter().all(no_more)
                && schemas.iter().any(|schema| schema.get("type").is_some_and(|kind| kind == "null"))
        }
        _ => false,
    })
}

/// Whether there may be objects in a value of this schema, which [`says_no_more`].
fn nests(schema: &Value) -> bool {
    let any = |keyword: &str| schema.get(keyword).is_some();
    any("$ref") || any("anyOf") || any("properties") || schema.get("items").is_some_and(nests)
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;

    use super::*;
    use crate::server::handler::schema::type_schema::TypeSchema;

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Flat {
        /// A number.
        number: u32,
        small: u8,
        list: Vec<i64>,
        maybe: Option<String>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Nested {
        maybe: Option<Flat>,
        list: Vec<Flat>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Ranged {
        #[schemars(range(min = 1))]
        number: u32,
    }

    fn schema_of<T: JsonSchema + 'static>() -> Arc<JsonObject> {
        TypeSchema::of::<T>().unwrap().schema.clone()
    }

    #[test]
    fn a_type_checks_itself_unless_the_author_asked_for_more() {
        let (flat, nested, ranged) = (schema_of::<Flat>(), schema_of::<Nested>(), schema_of::<Ranged>());
        assert_eq!(Looks::at(&flat, true), Looks::Kind, "{flat:?}");
        assert_eq!(Looks::at(&nested, true), Looks::Lists, "{nested:?}");
        assert_eq!(Looks::at(&ranged, true), Looks::Whole, "{ranged:?}");
        assert_eq!(Looks::at(&flat, false), Looks::Whole);
        let nothing = serde_json::json!({"type": "object", "properties": {}});
        assert_eq!(Looks::at(nothing.as_object().unwrap(), false), Looks::Kind);
    }

    #[test]
    fn a_list_is_no_struct() {
        assert!(Looks::Kind.skips(r#"{"list":[1]}"#));
        assert!(!Looks::Kind.skips("[1]"));
        assert!(Looks::Lists.skips(r#"{"maybe":null}"#));
        assert!(!Looks::Lists.skips(r#"{"maybe":[1]}"#));
    }
}
