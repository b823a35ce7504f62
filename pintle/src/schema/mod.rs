//! JSON Schema: values checked, and told in words what is wrong with them.
//!
//! A [`Schema`] is compiled once and checked often. What a check finds is a list of [`Fault`]s that a model can act
//! on: the place, what was expected, what came, and what may have been meant.

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
use local::{Local, Names};

pub use error::SchemaError;
pub use fault::{Fault, faults_text};

/// A JSON Schema, ready to check values. A clone is as cheap as a reference.
///
/// The dialect is 2020-12 unless `$schema` names another (2019-09, draft 7, 6 or 4). Nothing is ever fetched: a `$ref`
/// leads to a place within the schema, or the schema is refused. `format` is a remark and refuses nothing. Patterns run
/// on an engine whose time is linear in the text, so look-around and back-references are refused with the schema.
/// Integers are compared with all 64 bits.
///
/// Meant for values that came as JSON text, which `serde_json` does not read deeper than 128 levels.
///
/// ```
/// use pintle::schema::{Schema, faults_text};
/// use serde_json::json;
///
/// let schema = Schema::compile(&json!({
///     "type": "object",
///     "properties": { "count": { "type": "integer", "minimum": 1 }, "mode": { "enum": ["fast", "thorough"] } },
///     "additionalProperties": false,
/// }))?;
/// let faults = schema.check(&json!({ "cuont": 3, "mode": "fats" })).unwrap_err();
/// println!("{}", faults_text(&faults));
/// # assert_eq!(
/// #     faults_text(&faults),
/// #     "`/cuont` is not known: did you mean `count`?\n\
/// #      `/mode` should be `\"fast\"` or `\"thorough\"`, but is `\"fats\"`: did you mean `\"fast\"`?\n\
/// #      correct these and try again"
/// # );
/// # Ok::<(), pintle::schema::SchemaError>(())
/// ```
#[derive(Clone)]
pub struct Schema {
    compiled: Option<Arc<Compiled>>,
}

struct Compiled {
    schema: Value,
    engine: Engine,
    names: Names,
    fills: bool,
}

impl Compiled {
    fn local(&self) -> Local<'_> {
        Local::new(&self.schema, &self.names)
    }
}

impl Schema {
    /// Compiles a schema, once.
    ///
    /// # Errors
    ///
    /// The schema is none, leads outside of itself, or costs too much: more than 1 MiB of text, 100 levels, 10,000
    /// subschemas, 128 patterns, or 32 references and alternatives in a row for the same value.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        guard::admit(schema)?;
        let names = Names::of(schema);
        turns::admit(Local::new(schema, &names))?;
        let engine = Engine::compile(schema)?;
        let fills = defaults::any(schema);
        Ok(Self { compiled: Some(Arc::new(Compiled { schema: schema.clone(), engine, names, fills })) })
    }

    /// Compiles the schema of a tool's arguments, which is of type `object`.
    ///
    /// # Errors
    ///
    /// As [`compile`](Self::compile), and the schema does not say that the arguments are an object.
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

    /// A schema that every value fits, at no cost.
    ///
    /// For values that are checked elsewhere: a schema that says no more than the Rust type that the value is read into
    /// need not be checked before. Whoever knows that puts this in its place.
    #[must_use]
    pub fn trivial() -> Self {
        Self { compiled: None }
    }

    /// Checks a value.
    ///
    /// # Errors
    ///
    /// What is wrong with it: from 1 to 8 faults.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Fault>> {
        match self.compiled.as_deref() {
            Some(compiled) if !compiled.engine.fits(value) => {
                Err(explain::explain(&compiled.engine, compiled.local(), value))
            }
            _ => Ok(()),
        }
    }

    /// Gives missing properties their `default`s.
    ///
    /// In the value itself and in the objects in it, as far as `properties` and `$ref` lead; not through lists,
    /// `anyOf` and the like, where it is not certain which default is meant. Filled in as they are, at most 1,000.
    /// Whether there was anything to fill in.
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
