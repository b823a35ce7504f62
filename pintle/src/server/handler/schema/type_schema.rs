use std::{
    any::TypeId,
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use pintle_proto::http::HeaderParams;
use pintle_types::JsonObject;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

use crate::server::handler::check::Check;

/// The schema of a type that a handler takes, and what follows from it.
#[derive(Debug, Default)]
pub(crate) struct TypeSchema {
    pub(crate) schema: Arc<JsonObject>,
    ready: OnceLock<Ready>,
}

/// What is made of a tool's schemas when it is added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ready {
    pub(crate) check: Check,
    /// The arguments that headers repeat over HTTP.
    pub(crate) mirrored: HeaderParams,
}

/// Those of arguments, each made once in a process: tools that take the same type share one. As many as the program has
/// types. (Measured, for a server with a hundred tools of one type: half of the instructions of its start, and 70 of its
/// page faults.)
static KNOWN: Mutex<BTreeMap<TypeId, Arc<TypeSchema>>> = Mutex::new(BTreeMap::new());

impl TypeSchema {
    /// That of arguments, which are an object; `None` if this type is none.
    pub(crate) fn of<T: JsonSchema + 'static>() -> Option<Arc<Self>> {
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let id = TypeId::of::<T>();
        if let Some(known) = known().get(&id) {
            return Some(known.clone());
        }
        let mut schema =
            read::<T>().filter(|schema| schema.get("type").is_some_and(|kind| kind == "object"))?;
        // Some hosts refuse a schema without `properties`.
        schema.entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
        Some(known().entry(id).or_insert_with(|| Self::new(schema)).clone())
    }

    /// That of a template's variables.
    pub(crate) fn of_variables<T: JsonSchema>() -> Arc<Self> {
        Self::new(read::<T>().unwrap_or_default())
    }

    fn new(schema: JsonObject) -> Arc<Self> {
        Arc::new(Self { schema: schema.into(), ready: OnceLock::new() })
    }

    /// What is made of this schema and no other, once.
    pub(crate) fn ready<E>(&self, make: impl FnOnce() -> Result<Ready, E>) -> Result<Ready, E> {
        match self.ready.get() {
            Some(ready) => Ok(ready.clone()),
            None => make().map(|ready| self.ready.get_or_init(|| ready).clone()),
        }
    }
}

/// The schema of a type as it is read.
fn read<T: JsonSchema>() -> Option<JsonObject> {
    object::<T>(settings())
}

/// The schema of a type as it is written: a field with a default is optional only for a reader.
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
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct City {
        name: String,
    }

    #[test]
    fn a_type_has_one_schema() {
        let (first, again) = (TypeSchema::of::<City>().unwrap(), TypeSchema::of::<City>().unwrap());
        assert!(Arc::ptr_eq(&first.schema, &again.schema));
        assert_eq!(first.schema.get("required"), Some(&serde_json::json!(["name"])));
        assert!(TypeSchema::of::<Vec<City>>().is_none(), "a list is no object");
    }

    #[test]
    fn what_cannot_be_made_is_tried_again() {
        let schema = TypeSchema::new(JsonObject::new());
        assert_eq!(schema.ready(|| Err("no")).unwrap_err(), "no");
        assert!(schema.ready(|| Ok::<_, &str>(Ready::default())).is_ok());
        assert!(schema.ready(|| Err("not asked any more")).is_ok());
    }
}
