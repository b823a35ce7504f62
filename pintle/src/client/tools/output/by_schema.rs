use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use pintle_types::JsonObject;
use serde_json::Value;

use super::{OutputCheck, structure::Structure};
use crate::schema::{Schema, SchemaError};

/// Capacity of the cache of compiled schemas.
const KEPT: usize = 256;

pub(super) fn check() -> Arc<dyn OutputCheck> {
    Arc::new(BySchema::default())
}

/// Checks by JSON Schema. A bounded number of compiled schemas is cached.
#[derive(Default)]
struct BySchema(Mutex<HashMap<JsonObject, Schema>>);

impl BySchema {
    fn compiled(&self, schema: &JsonObject) -> Result<Schema, SchemaError> {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept().get(schema).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let compiled = Schema::compile(&Value::Object(schema.clone()))?;
        let mut kept = kept();
        if kept.len() < KEPT {
            kept.insert(schema.clone(), compiled.clone());
        }
        Ok(compiled)
    }
}

impl OutputCheck for BySchema {
    fn check(&self, schema: &JsonObject, content: &Value) -> Result<(), String> {
        match self.compiled(schema) {
            // Not `faults_text`: it ends with advice to whoever made the value, and that is the server.
            Ok(compiled) => compiled
                .check(content)
                .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
            // A legal pattern that only a slower engine could run: what else the schema says is not lost.
            Err(SchemaError::Pattern { .. }) => Structure.check(schema, content),
            Err(error) => Err(format!("its output schema cannot be used: {error}")),
        }
    }
}
