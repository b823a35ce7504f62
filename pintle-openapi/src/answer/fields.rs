//! The fields of an answer that a tool returns.

use std::collections::HashSet;

use pintle::types::JsonObject;
use serde_json::{Map, Value};

/// The limit of fields of an operation.
const MAX_FIELDS: usize = 256;
/// The limit of schemas that are written for the fields of one.
const MAX_SCHEMAS: usize = 500;
/// How many fields a note names.
const SHOWN: usize = 8;

/// The fields that are left of an answer: names of members with dots between them, through all lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(Vec<String>);

/// The rest of a path below a member, with the number of its field. An empty text is all of the member.
type Rest<'a> = (usize, &'a str);

impl Fields {
    pub(crate) fn new(fields: Vec<String>) -> Result<Self, String> {
        if fields.is_empty() || fields.len() > MAX_FIELDS {
            return Err(format!("an operation has 1 to {MAX_FIELDS} fields; name so many"));
        }
        match fields.iter().find(|field| field.split('.').any(str::is_empty)) {
            Some(field) => Err(format!("`{field}` is no field; write one such as `id` or `owner.name`")),
            None => Ok(Self(fields)),
        }
    }

    /// Removes all else from an answer. Returns what to tell if nothing is left.
    pub(crate) fn project(&self, answer: &mut Value) -> Option<String> {
        let had_any = !is_empty(answer);
        project(answer, &self.rests());
        (had_any && is_empty(answer))
            .then(|| format!("the answer has none of {}, and nothing else is returned", shown(self.0.iter())))
    }

    /// Returns the schema of what is left of answers with a schema, which may refer to definitions; `None` if that is too large. Warns of
    /// fields that no answer has.
    pub(crate) fn schema(
        &self,
        schema: &Value,
        definitions: &JsonObject,
        warnings: &mut Vec<String>,
    ) -> Option<Value> {
        let mut projection = SchemaProjection { definitions, left: MAX_SCHEMAS, found: HashSet::new() };
        let projected = projection.schema(schema, &self.rests())?;
        let lost = self.0.iter().enumerate().filter(|(number, _)| !projection.found.contains(number));
        let lost: Vec<_> = lost.map(|(_, field)| field).collect();
        if !lost.is_empty() {
            let shown = shown(lost.into_iter());
            warnings
                .push(format!("the document describes no field {shown} of its answers; correct `fields`"));
        }
        Some(projected)
    }

    fn rests(&self) -> Vec<Rest<'_>> {
        self.0.iter().map(String::as_str).enumerate().collect()
    }
}

fn shown<'a>(fields: impl ExactSizeIterator<Item = &'a String>) -> String {
    let more = fields.len().saturating_sub(SHOWN);
    let names: Vec<_> = fields.take(SHOWN).map(|field| format!("`{field}`")).collect();
    let names = names.join(", ");
    if more > 0 { format!("{names} and {more} more") } else { names }
}

/// Returns what is left of paths below a member. The names of members may have dots themselves.
fn below<'a>(rests: &[Rest<'a>], name: &str) -> Vec<Rest<'a>> {
    let below = |(number, rest): &Rest<'a>| match rest.strip_prefix(name)? {
        "" => Some((*number, "")),
        behind => Some((*number, behind.strip_prefix('.')?)),
    };
    rests.iter().filter_map(below).collect()
}

fn is_whole(rests: &[Rest<'_>]) -> bool {
    rests.iter().any(|(_, rest)| rest.is_empty())
}

fn project(value: &mut Value, rests: &[Rest<'_>]) {
    match value {
        Value::Array(items) => {
            // An item without members has no fields, and may be what the fields leave out.
            items.retain(|item| item.is_object() || item.is_array());
            items.iter_mut().for_each(|item| project(item, rests));
        }
        Value::Object(members) => members.retain(|name, value| {
            let rests = below(rests, name);
            if rests.is_empty() || is_whole(&rests) {
                return !rests.is_empty();
            }
            project(value, &rests);
            value.is_object() || value.is_array() || value.is_null()
        }),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(is_empty),
        Value::Object(members) => members.values().all(|value| value.is_object() && is_empty(value)),
        _ => false,
    }
}

/// The schemas of what is left, while they are written.
struct SchemaProjection<'a> {
    definitions: &'a JsonObject,
    /// How many more there may be: definitions that refer to each other have no end.
    left: usize,
    /// The numbers of the fields that answers may have.
    found: HashSet<usize>,
}

impl SchemaProjection<'_> {
    fn schema(&mut self, schema: &Value, rests: &[Rest<'_>]) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        let Value::Object(members) = schema else { return Some(self.open(rests)) };
        if let Some(name) = members.get("$ref").and_then(Value::as_str) {
            let definition = name.strip_prefix("#/$defs/").and_then(|name| self.definitions.get(name));
            let Some(definition) = definition else { return Some(self.open(rests)) };
            let mut projected = self.schema(definition, rests)?;
            if let (Value::Object(projected), Some(text)) = (&mut projected, members.get("description")) {
                projected.insert("description".to_owned(), text.clone());
            }
            return Some(projected);
        }
        let words = ["properties", "items", "prefixItems", "allOf", "anyOf", "oneOf"];
        let has_no_members = match members.get("type").and_then(Value::as_str) {
            Some("object" | "array") | None => false,
            Some(_) => true,
        };
        let is_open = !words.into_iter().any(|word| members.contains_key(word))
            || members.get("additionalProperties").is_some_and(|value| *value != false)
            || members.contains_key("patternProperties");
        if is_open && !has_no_members {
            self.open(rests);
        }
        let mut projected = Map::new();
        for (word, value) in members {
            let value = match (word.as_str(), value) {
                ("properties", Value::Object(properties)) => self.properties(properties, rests)?,
                ("items", items) => self.schema(items, rests)?,
                ("prefixItems" | "allOf" | "anyOf" | "oneOf", Value::Array(parts)) => {
                    let parts: Option<Vec<_>> = parts.iter().map(|part| self.schema(part, rests)).collect();
                    parts?.into()
                }
                ("required", Value::Array(names)) => {
                    let is_kept =
                        |name: &&Value| name.as_str().is_some_and(|name| !below(rests, name).is_empty());
                    names.iter().filter(is_kept).cloned().collect()
                }
                ("deprecated" | "description" | "title" | "type", value) => value.clone(),
                // Others are about what is not there any more, or not only.
                _ => continue,
            };
            // Of fewer fields, several alternatives may be right.
            let word = if word == "oneOf" && !members.contains_key("anyOf") { "anyOf" } else { word };
            if word != "oneOf" {
                projected.insert(word.to_owned(), value);
            }
        }
        Some(Value::Object(projected))
    }

    fn properties(&mut self, properties: &Map<String, Value>, rests: &[Rest<'_>]) -> Option<Value> {
        let mut projected = Map::new();
        for (name, property) in properties {
            let rests = below(rests, name);
            if is_whole(&rests) {
                self.found
                    .extend(rests.iter().filter(|(_, rest)| rest.is_empty()).map(|(number, _)| *number));
            }
            let property = match rests.as_slice() {
                [] => continue,
                rests if is_whole(rests) => property.clone(),
                rests => self.schema(property, rests)?,
            };
            projected.insert(name.clone(), property);
        }
        Some(projected.into())
    }

    /// Returns the schema of what is not known.
    fn open(&mut self, rests: &[Rest<'_>]) -> Value {
        self.found.extend(rests.iter().map(|(number, _)| *number));
        Map::new().into()
    }
}
