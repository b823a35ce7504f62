use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::BuildHasher as _,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
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
struct BySchema {
    hasher: RandomState,
    /// By the hash of the schema: a schema is as long as its server likes, and is not compared under the lock.
    kept: Mutex<HashMap<u64, Arc<(JsonObject, Schema)>>>,
    /// Whether a schema that is too wide was reported.
    is_reported: AtomicBool,
}

impl BySchema {
    fn compiled(&self, schema: &JsonObject) -> Result<Schema, SchemaError> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = self.hasher.hash_one(schema);
        let known = kept().get(&hash).cloned();
        if let Some(known) = known.filter(|known| known.0 == *schema) {
            return Ok(known.1.clone());
        }
        let compiled = Schema::compile(&Value::Object(schema.clone()))?;
        let entry = Arc::new((schema.clone(), compiled.clone()));
        let mut kept = kept();
        if kept.len() < KEPT {
            kept.insert(hash, entry);
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
            Err(error @ SchemaError::TooWide { .. }) => {
                if !self.is_reported.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, "results of a tool are not checked against its output schema");
                }
                Structure.check(schema, content)
            }
            Err(error) => Err(format!("its output schema cannot be used: {error}")),
        }
    }
}
