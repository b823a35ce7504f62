use std::{fmt, sync::Arc};

use pintle_types::{JsonObject, schema::CallToolResult};
use serde_json::Value;

use crate::{Error, Result};

/// Checks what a tool returned against the schema that its server listed for it.
///
/// The client's own check is by JSON Schema if the feature `validation` is on; without it, it looks at the structure
/// only. [`Client::output_check`](super::Client::output_check) puts another in its place.
pub trait OutputCheck: Send + Sync + 'static {
    /// Says what is wrong with `content`, if anything.
    ///
    /// # Errors
    ///
    /// It does not fit `schema`.
    fn check(&self, schema: &JsonObject, content: &Value) -> Result<(), String>;
}

impl<F: Fn(&JsonObject, &Value) -> Result<(), String> + Send + Sync + 'static> OutputCheck for F {
    fn check(&self, schema: &JsonObject, content: &Value) -> Result<(), String> {
        self(schema, content)
    }
}

/// The check that a client begins with.
pub(super) fn usual() -> Arc<dyn OutputCheck> {
    #[cfg(feature = "validation")]
    if true {
        return Arc::new(Validator::default());
    }
    Arc::new(Structure)
}

/// Checks by JSON Schema. Schemas are compiled once; a server that keeps inventing new ones is read anew each time.
#[cfg(feature = "validation")]
#[derive(Default)]
struct Validator(std::sync::Mutex<std::collections::HashMap<String, crate::schema::Schema>>);

/// Schemas that are kept compiled.
#[cfg(feature = "validation")]
const KEPT: usize = 256;

#[cfg(feature = "validation")]
impl OutputCheck for Validator {
    fn check(&self, schema: &JsonObject, content: &Value) -> Result<(), String> {
        use crate::schema::{Schema, SchemaError};
        let key = serde_json::to_string(schema).unwrap_or_default();
        let lock = || self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let known = lock().get(&key).cloned();
        let compiled = match known {
            Some(compiled) => compiled,
            None => match Schema::compile(&Value::Object(schema.clone())) {
                Ok(compiled) => {
                    let mut kept = lock();
                    if kept.len() < KEPT {
                        kept.insert(key, compiled.clone());
                    }
                    compiled
                }
                // A legal pattern that only a slower engine could run: what else the schema says is not lost.
                Err(SchemaError::Pattern { .. }) => return Structure.check(schema, content),
                Err(error) => return Err(format!("its output schema cannot be used: {error}")),
            },
        };
        // Not `faults_text`: it ends with advice to whoever made the value, and that is the server.
        compiled
            .check(content)
            .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }
}

/// Whether an object is an object, and has the members that it must have.
struct Structure;

impl OutputCheck for Structure {
    fn check(&self, schema: &JsonObject, content: &Value) -> Result<(), String> {
        if schema.get("type").and_then(Value::as_str) == Some("object") && !content.is_object() {
            return Err("the structured content is no object".into());
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        match required
            .filter_map(Value::as_str)
            .find(|name| content.is_object() && content.get(name).is_none())
        {
            Some(name) => Err(format!("the structured content lacks `{name}`")),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for dyn OutputCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutputCheck")
    }
}

/// A result that fits its tool's output schema, or is an error of the tool's own.
pub(super) fn check(
    check: &dyn OutputCheck,
    name: &str,
    schema: &JsonObject,
    result: &CallToolResult,
) -> Result<()> {
    if result.is_error == Some(true) {
        return Ok(());
    }
    let checked = match &result.structured_content {
        Some(content) => check.check(schema, content),
        None => Err("there is no structured content, though the tool has an output schema".into()),
    };
    checked.map_err(|said| Error::Decode(format!("the result of tool `{name}`: {said}")))
}
