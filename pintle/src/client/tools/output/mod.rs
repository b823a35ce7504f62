#[cfg(feature = "validation")]
mod by_schema;
mod structure;

use std::{fmt, sync::Arc};

use pintle_types::{JsonObject, schema::CallToolResult};
use serde_json::Value;

use crate::{Error, Result};

/// Checks what a tool returned against the schema that its server listed for it.
///
/// The client's own check is by JSON Schema if the feature `validation` is on; without it, it looks at the structure
/// only. [`Client::output_check`](crate::Client::output_check) puts another in its place.
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

/// The checks that a client may begin with, the best one first; features add to it.
const USUAL: &[fn() -> Arc<dyn OutputCheck>] = &[
    #[cfg(feature = "validation")]
    by_schema::check,
    structure::check,
];

/// The check that a client begins with.
pub(in crate::client) fn usual() -> Arc<dyn OutputCheck> {
    USUAL.first().map_or_else(structure::check, |check| check())
}

impl fmt::Debug for dyn OutputCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutputCheck")
    }
}

/// A result that fits its tool's output schema, or is an error of the tool's own.
pub(in crate::client) fn check(
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
    checked.map_err(|message| Error::Decode(format!("the result of tool `{name}`: {message}")))
}
