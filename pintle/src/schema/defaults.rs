//! Default values for missing properties.

use serde_json::{Map, Value};

use super::local::Local;

/// The maximum number of defaults that are filled in, because a large default in many places would use much memory.
const MAX_FILLED: usize = 1_000;

/// Returns whether a schema has any default.
pub(super) fn any(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.contains_key("default") || members.values().any(any),
        Value::Array(items) => items.iter().any(any),
        _ => false,
    }
}

/// Fills in the `default`s of missing properties in existing objects, and returns whether there were any.
pub(super) fn fill(local: Local<'_>, value: &mut Value) -> bool {
    let mut filling = Filling { local, left: MAX_FILLED };
    filling.fill(local.root(), value);
    filling.left < MAX_FILLED
}

struct Filling<'a> {
    local: Local<'a>,
    left: usize,
}

impl<'a> Filling<'a> {
    fn fill(&mut self, schema: &'a Value, value: &mut Value) {
        let Value::Object(members) = value else { return };
        let Some(properties) = self.local.meant(schema).get("properties").and_then(Value::as_object) else {
            return;
        };
        for (name, property) in properties {
            match members.get_mut(name) {
                Some(member) => self.fill(property, member),
                None => self.add(name, property, members),
            }
        }
    }

    fn add(&mut self, name: &str, property: &'a Value, members: &mut Map<String, Value>) {
        // A default next to a reference takes precedence over one in its target.
        let default = property.get("default").or_else(|| self.local.meant(property).get("default"));
        if let Some(default) = default
            && self.left > 0
        {
            self.left -= 1;
            members.insert(name.to_owned(), default.clone());
        }
    }
}
