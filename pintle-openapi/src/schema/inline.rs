//! Definitions that are used once are written where they are used: hosts that know no `$ref` read more of the schema then.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::keyword::{self, KeywordKind};

/// How deep definitions are put into each other.
const MAX_DEPTH: usize = 12;

/// Writes definitions that are used once into a schema, and into each other.
pub(super) fn assemble(
    root: &mut Value,
    definitions: &mut Map<String, Value>,
    uses: &HashMap<String, usize>,
) {
    let once: Vec<String> =
        definitions.keys().filter(|name| uses.get(*name).is_some_and(|uses| *uses == 1)).cloned().collect();
    let mut once: HashMap<String, Value> = once
        .into_iter()
        .filter_map(|name| definitions.shift_remove(&name).map(|value| (name, value)))
        .collect();
    inline(root, &mut once, 0);
    for definition in definitions.values_mut() {
        inline(definition, &mut once, 0);
    }
    // Those that would be too deep. Their own are deeper still.
    while let Some(name) = once.keys().min().cloned() {
        let mut definition = once.remove(&name).unwrap_or_default();
        inline(&mut definition, &mut once, 0);
        definitions.insert(name, definition);
    }
}

fn inline(schema: &mut Value, once: &mut HashMap<String, Value>, depth: usize) {
    let Value::Object(members) = schema else { return };
    let name = members.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix("#/$defs/"));
    if depth < MAX_DEPTH
        && let Some(definition) = name.and_then(|name| once.remove(name))
    {
        members.shift_remove("$ref");
        let beside = std::mem::take(members);
        let empty = Map::new();
        *members = match definition {
            Value::Object(definition) => definition,
            // `false` is nothing, and `true` all.
            Value::Bool(false) => Map::from_iter([("not".to_owned(), Value::Object(empty))]),
            _ => empty,
        };
        members.extend(beside);
        return inline(schema, once, depth + 1);
    }
    for (word, value) in members {
        match (keyword::kind(word), value) {
            (Some(KeywordKind::Schema), value) => inline(value, once, depth),
            (Some(KeywordKind::List), Value::Array(parts)) => {
                parts.iter_mut().for_each(|part| inline(part, once, depth));
            }
            (Some(KeywordKind::Map), Value::Object(parts)) => {
                parts.values_mut().for_each(|part| inline(part, once, depth));
            }
            _ => {}
        }
    }
}
