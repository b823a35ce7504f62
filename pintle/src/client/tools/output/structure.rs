use std::sync::Arc;

use pintle_types::JsonObject;
use serde_json::Value;

use super::OutputCheck;

pub(super) fn check() -> Arc<dyn OutputCheck> {
    Arc::new(Structure)
}

/// Checks that the content is an object if it has to be, and has the required members.
pub(super) struct Structure;

impl OutputCheck for Structure {
    fn check(&self, schema: &JsonObject, content: &Value) -> Result<(), String> {
        if schema.get("type").and_then(Value::as_str) == Some("object") && !content.is_object() {
            return Err("the structured content is not an object".into());
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
