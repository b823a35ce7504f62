use std::fmt;

use pintle_types::{JsonObject, schema::CallToolResult};
use serde_json::Value;

use crate::{Error, Result};

/// Checks what a tool returned against the schema that its server listed for it.
///
/// The client's own check looks at the structure only; give it a JSON Schema validator with
/// [`Client::output_check`](super::Client::output_check).
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

/// Whether an object is an object, and has the members that it must have.
pub(super) struct Structure;

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
