use std::{
    any::TypeId,
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use pintle_proto::http::HeaderParams;
use pintle_types::JsonObject;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

use super::validation::Validation;

/// The schema of a type that a handler takes, with what was prepared from it.
#[derive(Debug, Default)]
pub(crate) struct TypeSchema {
    pub(crate) schema: Arc<JsonObject>,
    ready: OnceLock<Ready>,
}

/// The parts of a tool that are prepared from its schemas when it is added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ready {
    pub(crate) check: Validation,
    /// The arguments that are mirrored in HTTP headers.
    pub(crate) mirrored: HeaderParams,
}

/// The schemas of argument types, each generated once in a process and shared by all tools that take the type (see
/// `bench/LEDGER.md`). Bounded by the number of types in the program.
static CACHE: Mutex<BTreeMap<TypeId, Arc<TypeSchema>>> = Mutex::new(BTreeMap::new());

impl TypeSchema {
    /// Returns the schema of an argument type, or `None` if the type is not an object.
    pub(crate) fn of<T: JsonSchema + 'static>() -> Option<Arc<Self>> {
        let cache = || CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        let id = TypeId::of::<T>();
        if let Some(schema) = cache().get(&id) {
            return Some(schema.clone());
        }
        let mut schema = read::<T>().filter(|schema| is_object(schema, schema, MAX_REFERENCES))?;
        // An enum with a tag is a choice of objects, and says so only in each of them.
        if !schema.contains_key("type") {
            let title = schema.shift_remove_entry("title");
            let rest = std::mem::take(&mut schema);
            schema.extend(title);
            schema.insert("type".to_owned(), "object".into());
            schema.extend(rest);
        }
        // Some hosts refuse a schema without `properties`.
        schema.entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
        Some(cache().entry(id).or_insert_with(|| Self::new(schema)).clone())
    }

    /// Returns the schema of the type of a template's variables.
    pub(crate) fn of_variables<T: JsonSchema>() -> Arc<Self> {
        Self::new(read::<T>().unwrap_or_default())
    }

    fn new(schema: JsonObject) -> Arc<Self> {
        Arc::new(Self { schema: schema.into(), ready: OnceLock::new() })
    }

    /// Returns what was prepared from this schema alone, and prepares it if necessary.
    pub(crate) fn ready<E>(&self, make: impl FnOnce() -> Result<Ready, E>) -> Result<Ready, E> {
        match self.ready.get() {
            Some(ready) => Ok(ready.clone()),
            None => make().map(|ready| self.ready.get_or_init(|| ready).clone()),
        }
    }
}

/// The limit on references that are followed one after the other.
const MAX_REFERENCES: u8 = 8;

/// Returns whether a schema, which is a part of `root`, admits only objects: by its type, or by that of all alternatives.
fn is_object(root: &JsonObject, schema: &JsonObject, depth: u8) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    if let Some(kind) = schema.get("type") {
        return kind == "object";
    }
    if let Some(Value::String(reference)) = schema.get("$ref") {
        let defined = reference.strip_prefix("#/$defs/").and_then(|name| root.get("$defs")?.get(name));
        return defined.and_then(Value::as_object).is_some_and(|part| is_object(root, part, depth));
    }
    let alternatives = ["oneOf", "anyOf"].iter().find_map(|keyword| schema.get(*keyword)?.as_array());
    alternatives.is_some_and(|parts| {
        let is_object = |part: &Value| part.as_object().is_some_and(|part| is_object(root, part, depth));
        !parts.is_empty() && parts.iter().all(is_object)
    })
}

/// Returns the schema of a type for deserialization.
fn read<T: JsonSchema>() -> Option<JsonObject> {
    object::<T>(settings())
}

/// Returns the schema of a type for serialization, where a field with a default is required.
pub(crate) fn written<T: JsonSchema>() -> Option<Arc<JsonObject>> {
    object::<T>(settings().for_serialize()).map(Arc::new)
}

fn settings() -> SchemaSettings {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings
}

fn object<T: JsonSchema>(settings: SchemaSettings) -> Option<JsonObject> {
    match settings.into_generator().into_root_schema_for::<T>().to_value() {
        Value::Object(schema) => Some(schema),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct City {
        name: String,
    }

    #[test]
    fn the_schema_of_a_type_is_shared() {
        let (first, again) = (TypeSchema::of::<City>().unwrap(), TypeSchema::of::<City>().unwrap());
        assert!(Arc::ptr_eq(&first.schema, &again.schema));
        assert_eq!(first.schema.get("required"), Some(&serde_json::json!(["name"])));
        assert!(TypeSchema::of::<Vec<City>>().is_none(), "a list is not an object");
    }

    #[test]
    fn a_failed_preparation_is_retried() {
        let schema = TypeSchema::new(JsonObject::new());
        assert_eq!(schema.ready(|| Err("no")).unwrap_err(), "no");
        assert!(schema.ready(|| Ok::<_, &str>(Ready::default())).is_ok());
        assert!(schema.ready(|| Err("not called again")).is_ok());
    }
}
