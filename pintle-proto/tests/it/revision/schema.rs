//! Payloads held against the schema of a revision.

use std::path::PathBuf;

use pintle_proto::{Part, Revision};
use serde_json::{Map, Value, json};

/// A payload in the message that carries it: schemas define whole requests, and results on their own.
pub(crate) fn message(part: Part<'_>, payload: Value) -> Value {
    match part {
        Part::Result(_) => payload,
        Part::Params(method) if method.starts_with("notifications/") => {
            json!({"jsonrpc": "2.0", "method": method, "params": payload})
        }
        Part::Params(method) => json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": payload}),
    }
}

/// What a revision's own `schema.json` says.
pub(crate) struct Schema {
    document: Value,
    definitions: &'static str,
}

/// The schema of a revision, or a line that says why not.
#[expect(clippy::print_stdout, reason = "a test that skips says so")]
pub(crate) fn schema(revision: Revision) -> Option<Schema> {
    let folder = std::env::var_os("PINTLE_SPEC_DIR").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/spec")),
        PathBuf::from,
    );
    let path = folder.join(revision.as_str()).join("schema.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: no schema at {}", path.display());
        return None;
    };
    let document: Value = serde_json::from_str(&text).expect("the schema is JSON");
    let definitions = if document.get("$defs").is_some() { "$defs" } else { "definitions" };
    Some(Schema { document, definitions })
}

impl Schema {
    fn definition(&self, name: &str) -> Option<&Value> {
        self.document[self.definitions].get(name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.definition(name).is_some()
    }

    pub(crate) fn validates(&self, name: &str, value: &Value, about: &str) {
        let mut root = self.document.clone();
        root["$ref"] = json!(format!("#/{}/{name}", self.definitions));
        let validator = jsonschema::validator_for(&root).expect("the schema is a schema");
        let errors: Vec<_> = validator
            .iter_errors(value)
            .map(|error| format!("{} at {}", error, error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{about} is no `{name}`: {errors:#?}\n{value:#}");
    }

    /// Schemas are open, so a member that came later passes them. It does not pass this.
    pub(crate) fn lists_every_member(&self, name: &str, value: &Value, about: &str) {
        let definition = self.definition(name).expect("asked before");
        if let Err(stranger) = self.fits(definition, value, "") {
            panic!("{about}: `{name}` has no {stranger}\n{value:#}");
        }
    }

    fn fits(&self, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let name = reference.rsplit('/').next().unwrap_or_default();
            return self.fits(self.definition(name).expect("a definition"), value, path);
        }
        for choices in ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(key)?.as_array()) {
            let tries: Vec<_> = choices.iter().map(|choice| self.fits(choice, value, path)).collect();
            let best = tries
                .into_iter()
                .min_by_key(|tried| tried.as_ref().map_or_else(|at| 1000 - at.len(), |()| 0));
            best.unwrap_or(Ok(()))?;
        }
        if let Some(constant) = schema.get("const")
            && constant != value
        {
            return Err(format!("`{path}`"));
        }
        match value {
            Value::Array(elements) => {
                let Some(items) = schema.get("items") else { return Ok(()) };
                elements
                    .iter()
                    .enumerate()
                    .try_for_each(|(at, each)| self.fits(items, each, &format!("{path}/{at}")))
            }
            Value::Object(members) => self.members_fit(schema, members, path),
            _ => Ok(()),
        }
    }

    fn members_fit(&self, schema: &Value, members: &Map<String, Value>, path: &str) -> Result<(), String> {
        let listed = schema.get("properties").and_then(Value::as_object).filter(|listed| !listed.is_empty());
        let more = schema.get("additionalProperties").filter(|more| more.is_object());
        for (name, member) in members {
            let path = format!("{path}/{name}");
            match listed.and_then(|listed| listed.get(name)) {
                // The user's own schemas and data: that they are there must be foreseen, what is in them is not ours.
                Some(_) if matches!(&**name, "_meta" | "inputSchema" | "outputSchema") => {}
                Some(schema) => self.fits(schema, member, &path)?,
                // The envelope, where a definition lists only what is in it.
                None if matches!(&*path, "/jsonrpc" | "/id" | "/_meta" | "/params/_meta") => {}
                // In no schema of the session era, and still understood there.
                None if path.ends_with("/capabilities/extensions") => {}
                None => match more {
                    Some(more) => self.fits(more, member, &path)?,
                    None if listed.is_some() => return Err(format!("`{path}`")),
                    None => {}
                },
            }
        }
        Ok(())
    }
}
