//! JSON Schema validation with explanations for models.
//!
//! A [`Schema`] is compiled once and checks many values. A failed check returns a list of [`Fault`]s that a model can act
//! on: the path, the expected and the actual value, and a suggestion.

mod alternatives;
mod defaults;
mod engine;
mod error;
mod explain;
mod fault;
mod guard;
mod local;
mod members;
mod turns;
mod words;

use std::{fmt, sync::Arc};

use serde_json::Value;

use engine::Engine;
use local::{Anchors, Local};

pub use error::SchemaError;
pub use fault::Fault;
#[cfg(feature = "server")]
pub(crate) use fault::faults_text;

/// A compiled JSON Schema. Cloning it is cheap.
///
/// The dialect is 2020-12 unless `$schema` names another (2019-09, draft 7, 6 or 4). References are never fetched: a schema
/// with a `$ref` to another document is refused. `format` is an annotation and is not checked. Patterns run
/// in linear time, so a schema with look-around or back-references is refused. Integers are compared with all 64 bits.
///
/// Values should come from JSON text, which `serde_json` does not parse deeper than 128 levels.
///
/// ```
/// use pintle::schema::Schema;
/// use serde_json::json;
///
/// let schema = Schema::compile(&json!({
///     "type": "object",
///     "properties": { "count": { "type": "integer", "minimum": 1 }, "mode": { "enum": ["fast", "thorough"] } },
///     "additionalProperties": false,
/// }))?;
/// let faults = schema.check(&json!({ "cuont": 3, "mode": "fats" })).unwrap_err();
/// assert_eq!(faults[0].to_string(), "`/cuont` is not known: did you mean `count`?");
/// assert_eq!(
///     faults[1].to_string(),
///     "`/mode` should be `\"fast\"` or `\"thorough\"`, but is `\"fats\"`: did you mean `\"fast\"`?"
/// );
/// # Ok::<(), pintle::schema::SchemaError>(())
/// ```
#[derive(Clone)]
pub struct Schema {
    compiled: Option<Arc<Compiled>>,
}

struct Compiled {
    schema: Value,
    engine: Engine,
    anchors: Anchors,
    fills: bool,
}

impl Compiled {
    fn local(&self) -> Local<'_> {
        Local::new(&self.schema, &self.anchors)
    }
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    ///
    /// Fails if the schema is invalid, refers to another document, or exceeds a limit: 1 MiB of text, 100 levels, 10,000
    /// subschemas, 128 patterns, 32 references and alternatives in a row for the same value, or alternatives of alternatives
    /// that multiply to 10,000 checks of it.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        guard::admit(schema)?;
        let anchors = Anchors::of(schema);
        turns::admit(Local::new(schema, &anchors))?;
        let engine = Engine::compile(schema)?;
        let fills = defaults::any(schema);
        Ok(Self { compiled: Some(Arc::new(Compiled { schema: schema.clone(), engine, anchors, fills })) })
    }

    /// Compiles the schema of a tool's arguments, which has the type `object`.
    ///
    /// # Errors
    ///
    /// Fails like [`compile`](Self::compile), and if the type is not `object`.
    pub fn for_arguments(schema: &Value) -> Result<Self, SchemaError> {
        if let Value::Object(members) = schema {
            match members.get("type") {
                Some(Value::String(kind)) if kind == "object" => {}
                kind => {
                    let kind = kind.map(words::json);
                    return Err(SchemaError::NotAnObject { kind });
                }
            }
        } else {
            return Err(SchemaError::NotASchema { got: words::json(schema) });
        }
        Self::compile(schema)
    }

    /// Returns a schema that accepts every value at no cost.
    ///
    /// Use it for values that are checked elsewhere: a schema that expresses no more than the Rust type of the value need not
    /// be checked before decoding.
    #[must_use]
    pub fn trivial() -> Self {
        Self { compiled: None }
    }

    /// Checks a value.
    ///
    /// # Errors
    ///
    /// Returns 1 to 8 faults if the value does not match.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Fault>> {
        match self.compiled.as_deref() {
            Some(compiled) if !compiled.engine.fits(value) => {
                Err(explain::explain(&compiled.engine, compiled.local(), value))
            }
            _ => Ok(()),
        }
    }

    /// Sets missing properties to their `default`s, and returns whether there were any.
    ///
    /// It applies to the value and to nested objects reached by `properties` and `$ref`, but not to lists, `anyOf` and
    /// similar, where the default is ambiguous. At most 1,000 defaults are filled in.
    pub fn fill_defaults(&self, value: &mut Value) -> bool {
        let compiled = self.compiled.as_deref().filter(|compiled| compiled.fills);
        compiled.is_some_and(|compiled| defaults::fill(compiled.local(), value))
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.compiled.as_deref().map(|compiled| &compiled.schema);
        f.debug_tuple("Schema").field(&schema.unwrap_or(&Value::Bool(true))).finish()
    }
}

#[cfg(test)]
mod tests;
