use pintle::{
    Connection, Error,
    types::{
        ErrorCode,
        schema::{Prompt, Resource, ResourceTemplate, Tool},
    },
};
use serde::Serialize;
use serde_json::{Map, Value};

/// All that a server offers, as it describes it.
#[derive(Default)]
pub(super) struct ServerCatalogue {
    pub(super) tools: Vec<Tool>,
    pub(super) prompts: Vec<Prompt>,
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<ResourceTemplate>,
    pub(super) instructions: Option<String>,
}

impl ServerCatalogue {
    /// Fetches the lists that the server declares and has.
    pub(super) async fn fetch(connection: &Connection) -> pintle::Result<Self> {
        let declared = connection.capabilities();
        let mut all = Self { instructions: connection.instructions(), ..Self::default() };
        if declared.tools.is_some() {
            all.tools = offered(connection.tools().await)?;
        }
        if declared.prompts.is_some() {
            all.prompts = offered(connection.prompts().await)?;
        }
        if declared.resources.is_some() {
            all.resources = offered(connection.resources().await)?;
            all.templates = offered(connection.resource_templates().await)?;
        }
        Ok(all)
    }

    /// Returns the definitions by kind and name, with sorted members and without `_meta`, which may differ each time.
    pub(super) fn canonical(&self) -> Map<String, Value> {
        let mut all = Map::new();
        if let Some(instructions) = &self.instructions {
            all.insert("instructions".to_owned(), instructions.as_str().into());
        }
        all.insert("prompts".to_owned(), named(&self.prompts, "name"));
        all.insert("resources".to_owned(), named(&self.resources, "uri"));
        all.insert("templates".to_owned(), named(&self.templates, "uriTemplate"));
        all.insert("tools".to_owned(), named(&self.tools, "name"));
        all
    }
}

/// Returns a list. One that the server declares and does not know is empty.
fn offered<T>(listed: pintle::Result<Vec<T>>) -> pintle::Result<Vec<T>> {
    match listed {
        Err(Error::Rpc(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => Ok(Vec::new()),
        listed => listed,
    }
}

fn named<T: Serialize>(entries: &[T], member: &str) -> Value {
    let mut all: Map<String, Value> = Map::new();
    for entry in entries {
        let mut entry = serde_json::to_value(entry).unwrap_or_default();
        if let Value::Object(members) = &mut entry {
            members.remove("_meta");
        }
        let name = entry[member].as_str().unwrap_or_default().to_owned();
        // A second one with the same name does not hide behind the first.
        let mut key = name.clone();
        for number in 2.. {
            if !all.contains_key(&key) {
                break;
            }
            key = format!("{name} ({number})");
        }
        all.insert(key, entry);
    }
    sorted(Value::Object(all))
}

/// Sorts the members of all objects.
pub(super) fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_are_by_name_and_sorted() {
        let entries = [
            json!({"name": "b", "z": {"y": 1, "x": 2}, "_meta": {"n": 1}}),
            json!({"name": "a"}),
            json!({"name": "b"}),
        ];
        let all = named(&entries, "name");
        let expected = r#"{"a":{"name":"a"},"b":{"name":"b","z":{"x":2,"y":1}},"b (2)":{"name":"b"}}"#;
        assert_eq!(all.to_string(), expected);
    }
}
