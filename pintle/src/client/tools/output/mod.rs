#[cfg(feature = "validation")]
mod by_schema;
mod structure;

use std::{fmt, sync::Arc};

use pintle_types::{JsonObject, schema::CallToolResult};
use serde_json::Value;

use crate::{Error, Result};

/// A check of tool results against their output schema.
///
/// The default check uses JSON Schema with the feature `validation`; without it, it checks the type and the required members.
/// [`Client::output_check`](crate::Client::output_check) replaces it.
pub trait OutputCheck: Send + Sync + 'static {
    /// Checks `content`.
    ///
    /// # Errors
    ///
    /// The content does not match `schema`; the text is the reason.
    fn check(&self, schema: &JsonObject, content: &Value) -> Result<(), String>;
}

impl<F: Fn(&JsonObject, &Value) -> Result<(), String> + Send + Sync + 'static> OutputCheck for F {
    fn check(&self, schema: &JsonObject, content: &Value) -> Result<(), String> {
        self(schema, content)
    }
}

/// The default checks, best first; features add to it.
const USUAL: &[fn() -> Arc<dyn OutputCheck>] = &[
    #[cfg(feature = "validation")]
    by_schema::check,
    structure::check,
];

/// Returns the default check.
pub(in crate::client) fn usual() -> Arc<dyn OutputCheck> {
    USUAL.first().map_or_else(structure::check, |check| check())
}

impl fmt::Debug for dyn OutputCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutputCheck")
    }
}

/// Checks a result against the output schema of its tool. Errors of the tool pass.
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
