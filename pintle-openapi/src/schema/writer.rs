use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value, json};

use super::{
    inline,
    keyword::{self, KeywordKind},
    visibility,
};
use crate::{
    document::{Node, RefKey, Version},
    names,
};

/// The limit of schemas in that of a tool's arguments. A host that reads more of them for one tool has no room for others.
const MAX_INPUT: usize = 1_000;
/// The limit of schemas in that of a tool's results.
const MAX_OUTPUT: usize = 500;
/// How many examples of a value are shown.
const EXAMPLES: usize = 2;

/// The side that writes the values of a schema.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Direction {
    /// The caller.
    Input,
    /// The API.
    Output,
}

/// A schema, and the definitions that it refers to.
pub(crate) struct WrittenSchema {
    pub(crate) schema: Value,
    pub(crate) definitions: Map<String, Value>,
    /// Whether it was too large, and some of it accepts anything.
    pub(crate) is_cut: bool,
    pub(crate) warnings: Vec<String>,
}

/// Writes the schemas of a tool, which share their definitions.
pub(crate) struct SchemaWriter<'a> {
    direction: Direction,
    version: Version,
    names: HashMap<RefKey, String>,
    taken: HashSet<String>,
    /// How often each definition is referred to.
    uses: HashMap<String, usize>,
    /// Definitions that are named and not yet written, the nearest first: at the limit the remotest are cut.
    queue: VecDeque<(String, Node<'a>)>,
    nodes: usize,
    warnings: Vec<String>,
}

impl<'a> SchemaWriter<'a> {
    pub(crate) fn new(version: Version, direction: Direction) -> Self {
        Self {
            direction,
            version,
            names: HashMap::new(),
            taken: HashSet::new(),
            uses: HashMap::new(),
            queue: VecDeque::new(),
            nodes: 0,
            warnings: Vec::new(),
        }
    }

    /// Writes a schema. Its definitions are in [`finish`](Self::finish).
    pub(crate) fn schema(&mut self, node: Node<'a>) -> Value {
        self.write(node, &HashSet::new())
    }

    /// Returns the whole of the schemas that were written: `root` has them.
    pub(crate) fn finish(mut self, mut schema: Value) -> WrittenSchema {
        let mut definitions = Map::new();
        while let Some((name, node)) = self.queue.pop_front() {
            let written = self.write(node, &HashSet::new());
            definitions.insert(name, written);
        }
        let is_cut = self.is_full();
        inline::assemble(&mut schema, &mut definitions, &self.uses);
        WrittenSchema { schema, definitions, is_cut, warnings: self.warnings }
    }

    fn is_full(&self) -> bool {
        let limit = match self.direction {
            Direction::Input => MAX_INPUT,
            Direction::Output => MAX_OUTPUT,
        };
        self.nodes > limit
    }

    fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        // The same fault is often in many places.
        if self.warnings.len() < 8 && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Writes a schema. `hidden` are names that a part of `allOf` around it leaves out.
    fn write(&mut self, node: Node<'a>, hidden: &HashSet<&'a str>) -> Value {
        self.nodes += 1;
        match node.value {
            _ if self.is_full() => json!({}),
            Value::Bool(all) => Value::Bool(*all),
            Value::Object(members) if members.contains_key("$ref") => self.reference(node, hidden),
            Value::Object(_) => Value::Object(self.keywords(node, hidden)),
            _ => {
                self.warn("a schema is not an object; write one, or leave it out");
                json!({})
            }
        }
    }

    fn reference(&mut self, node: Node<'a>, hidden: &HashSet<&'a str>) -> Value {
        let (key, target) = match node.follow() {
            Ok((Some(key), target)) => (key, target),
            Ok((None, target)) => return Value::Object(self.keywords(target, hidden)),
            Err(reason) => {
                self.warn(reason);
                return json!({});
            }
        };
        let mut written = match target.value {
            Value::Object(members) if members.keys().all(|word| is_scalar_word(word)) => {
                self.keywords(target, hidden)
            }
            _ => {
                let name = self.name(key, target);
                *self.uses.entry(name.clone()).or_default() += 1;
                Map::from_iter([("$ref".to_owned(), Value::from(format!("#/$defs/{name}")))])
            }
        };
        let mut beside = self.keywords(node, hidden);
        let is_note =
            |word: &str| matches!(word, "default" | "deprecated" | "description" | "examples" | "title");
        if self.version.is_30() || beside.keys().all(|word| is_note(word)) {
            // 3.0 ignores what is beside a reference; people describe there all the same.
            beside.retain(|word, _| is_note(word));
            written.extend(beside);
            return Value::Object(written);
        }
        json!({ "allOf": [written, beside] })
    }

    /// Returns the name of a definition, which is written later if it is new.
    fn name(&mut self, key: RefKey, target: Node<'a>) -> String {
        if let Some(name) = self.names.get(&key) {
            return name.clone();
        }
        let wanted = names::accepted(key.name());
        let numbered = |number| format!("{wanted}_{number}");
        let name = names::free(wanted.clone(), numbered, &mut self.taken);
        self.names.insert(key, name.clone());
        self.queue.push_back((name.clone(), target));
        name
    }

    /// Writes the keywords of a schema, without its reference.
    fn keywords(&mut self, node: Node<'a>, around: &HashSet<&'a str>) -> Map<String, Value> {
        let mut hidden = around.clone();
        visibility::hidden(node, self.direction, &mut hidden);
        let (mut written, none) = (Map::new(), HashSet::new());
        for (word, value) in node.members() {
            let value = match keyword::kind(word) {
                // Definitions are written where something refers to them.
                _ if word == "$defs" => None,
                None => None,
                Some(KeywordKind::Schema) => self.subschema(word, value, &mut written),
                Some(KeywordKind::List) => {
                    let below = if word == "allOf" { &hidden } else { &none };
                    let parts: Vec<_> = value.items().map(|part| self.write(part, below)).collect();
                    (!parts.is_empty()).then(|| parts.into())
                }
                Some(KeywordKind::Map) => {
                    let shown = |name: &str| match word {
                        "properties" => !hidden.contains(name),
                        "patternProperties" => keyword::is_linear(name),
                        _ => true,
                    };
                    let parts: Vec<_> = value.members().filter(|(name, _)| shown(name)).collect();
                    let parts = parts
                        .into_iter()
                        .map(|(name, part)| (name.to_owned(), self.write(part, &HashSet::new())));
                    Some(Value::Object(parts.collect()))
                }
                Some(KeywordKind::Plain(valid)) => self.plain(word, value.value, valid),
            };
            written.extend(value.map(|value| (word.to_owned(), value)));
        }
        self.raise(node, &mut written);
        if let Some(Value::Array(required)) = written.get_mut("required") {
            required.retain(|name| !name.as_str().is_some_and(|name| hidden.contains(name)));
            if required.is_empty() {
                written.shift_remove("required");
            }
        }
        let is_array = written.get("type").is_some_and(|kind| {
            kind == "array" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "array"))
        });
        if is_array && !written.contains_key("items") && !written.contains_key("prefixItems") {
            written.insert("items".to_owned(), json!({}));
        }
        written
    }

    fn subschema(&mut self, word: &str, value: Node<'a>, written: &mut Map<String, Value>) -> Option<Value> {
        if value.value.is_array() {
            // The older form of tuples.
            let parts: Vec<_> = value.items().map(|part| self.write(part, &HashSet::new())).collect();
            if word == "items" && !parts.is_empty() {
                written.insert("prefixItems".to_owned(), parts.into());
            }
            return None;
        }
        Some(self.write(value, &HashSet::new()))
    }

    fn plain(&mut self, word: &str, value: &Value, valid: fn(&Value) -> Option<Value>) -> Option<Value> {
        if word == "enum" {
            self.nodes += value.as_array().map_or(0, |values| values.len() / 8);
        }
        let kept = valid(value);
        // What 3.0 has there is raised below.
        if kept.is_none() && !value.is_boolean() {
            self.warn(format!("`{word}` of a schema has a value that is left out"));
        }
        kept
    }

    /// Writes what JSON Schema has other words for.
    fn raise(&mut self, node: Node<'a>, written: &mut Map<String, Value>) {
        for (exclusive, limit) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
            if node.flag(exclusive) == Some(true)
                && let Some(value) = written.shift_remove(limit)
            {
                written.insert(exclusive.to_owned(), value);
            }
        }
        let listed = node.get("examples").filter(|examples| examples.value.is_array());
        let examples = listed.into_iter().flat_map(Node::items).chain(node.get("example"));
        let examples: Vec<_> =
            examples.map(|node| node.value).filter(|value| keyword::is_short(value)).take(EXAMPLES).collect();
        if !examples.is_empty() {
            written.insert("examples".to_owned(), json!(examples));
        }
        if let Some(word) = node.get("discriminator").and_then(|node| node.text("propertyName")) {
            let text = written.get("description").and_then(Value::as_str).unwrap_or_default();
            let text = format!("{text}{}`{word}` says which.", if text.is_empty() { "" } else { " " });
            written.insert("description".to_owned(), text.into());
        }
        // Where a member says which one it is, it is no fault that others fit, too.
        if node.get("discriminator").is_some()
            && !written.contains_key("anyOf")
            && let Some(choices) = written.shift_remove("oneOf")
        {
            written.insert("anyOf".to_owned(), choices);
        }
        if node.flag("nullable") == Some(true) && self.version.is_30() {
            nullable(written);
        }
    }
}

/// Adds `null` to what a schema accepts.
fn nullable(written: &mut Map<String, Value>) {
    match written.get_mut("type") {
        Some(Value::String(kind)) if kind != "null" => {
            let kind = std::mem::take(kind);
            written.insert("type".to_owned(), json!([kind, "null"]));
        }
        Some(Value::Array(kinds)) if !kinds.iter().any(|kind| kind == "null") => kinds.push("null".into()),
        Some(_) => {}
        None => {
            if ["allOf", "anyOf", "oneOf", "enum"].iter().any(|word| written.contains_key(*word)) {
                let schema = std::mem::take(written);
                written.insert("anyOf".to_owned(), json!([schema, { "type": "null" }]));
            }
            return;
        }
    }
    if let Some(Value::Array(values)) = written.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

/// Returns whether a schema of such words is repeated where it is referred to.
fn is_scalar_word(word: &str) -> bool {
    matches!(keyword::kind(word), None | Some(KeywordKind::Plain(_))) && word != "$ref" && word != "enum"
}
