//! The output schema of a tool, from the response that the document describes.

use http::HeaderValue;
use pintle::{schema::Schema, types::JsonObject};
use serde_json::{Value, json};

use crate::{
    answer::{Fields, OutputPlan},
    document::{Node, Version},
    operation::{Media, Operation},
    schema::{Direction, SchemaWriter, WrittenSchema},
};

/// The limit of an output schema, in bytes: hosts give it to the model with every list.
const MAX_BYTES: usize = 32 << 10;
/// How many media types a request accepts by name.
const MAX_ACCEPTED: usize = 8;
/// The compositions that no chain of which is too long.
const MAX_COMPOSITIONS: usize = 24;
/// The levels that are not too deep.
const MAX_LEVELS: usize = 60;
/// How deep compositions are looked into for what they are.
const MAX_DEPTH: usize = 6;

/// Returns the response of a call that succeeds.
fn success<'a>(operation: &Operation<'a>) -> Option<Node<'a>> {
    let is_success = |status: &str| status.len() == 3 && status.starts_with('2');
    let responses = operation.node.members_of("responses").filter(|(status, _)| is_success(status));
    // `2XX` is after `299`.
    let (_, response) = responses.min_by_key(|(status, _)| status.to_ascii_uppercase())?;
    response.resolve().ok()
}

/// Returns what the requests of an operation accept.
pub(crate) fn accept(operation: &Operation<'_>) -> HeaderValue {
    let content = success(operation).and_then(|response| response.get("content"));
    let mut types: Vec<&str> = content.into_iter().flat_map(Node::members).map(|(name, _)| name).collect();
    types.sort_by_key(|name| Media::rank(name));
    types.truncate(MAX_ACCEPTED);
    let rest = if types.is_empty() { "application/json, */*;q=0.5" } else { "*/*;q=0.5" };
    let text = types.into_iter().filter(|name| *name != "*/*").chain([rest]).collect::<Vec<_>>().join(", ");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("application/json, */*;q=0.5"))
}

/// Returns the output schema of an operation, if it answers with JSON that the document describes, with these fields of it if not with all.
pub(crate) fn plan(
    operation: &Operation<'_>,
    version: Version,
    fields: Option<&Fields>,
    warnings: &mut Vec<String>,
) -> Option<OutputPlan> {
    let response = success(operation)?;
    let (media_type, content) = response.members_of("content").min_by_key(|(name, _)| Media::rank(name))?;
    if Media::of(media_type) != Media::Json {
        return None;
    }
    let node = content.get("schema")?;
    let target = node.resolve().ok()?;
    // An empty schema says nothing.
    target.value.as_object().filter(|members| !members.is_empty())?;
    let is_wrapped = !is_object(target, version, 0);
    let mut writer = SchemaWriter::new(version, Direction::Output);
    let root = writer.schema(if is_wrapped { node } else { target });
    let WrittenSchema { schema, definitions, is_cut, warnings: found } = writer.finish(root);
    let described = match fields {
        Some(fields) => projected(fields, &schema, definitions, warnings),
        None => Some((schema, definitions)).filter(|_| !is_cut),
    };
    let shown = described.map(|(schema, definitions)| lenient(schema, definitions, is_wrapped));
    let text = shown.as_ref().and_then(|shown| serde_json::to_string(shown).ok());
    let (Some(shown), Some(text)) = (shown, text.filter(|text| text.len() <= MAX_BYTES)) else {
        warnings.push("its output schema is too large, and is left out".to_owned());
        return None;
    };
    // Clients that cannot compile it refuse all results.
    if !is_simple(&text)
        && let Err(error) = Schema::compile(&Value::Object(shown.clone()))
    {
        warnings.push(format!("its output schema is left out: {error}"));
        return None;
    }
    warnings.extend(found);
    Some(OutputPlan::new(shown, is_wrapped))
}

/// Returns the schema of what these fields leave of answers, and the definitions that it refers to, unless it is too large.
fn projected(
    fields: &Fields,
    schema: &Value,
    mut definitions: JsonObject,
    warnings: &mut Vec<String>,
) -> Option<(Value, JsonObject)> {
    let projected = fields.schema(schema, &definitions, warnings)?;
    let mut used: Vec<String> = Vec::new();
    add_references(&projected, &mut used);
    let mut next = 0;
    while let Some(name) = used.get(next) {
        next += 1;
        if let Some(definition) = definitions.get(name) {
            add_references(definition, &mut used);
        }
    }
    definitions.retain(|name, _| used.contains(name));
    Some((projected, definitions))
}

/// Adds the names of the definitions that a schema refers to.
fn add_references(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Array(parts) => parts.iter().for_each(|part| add_references(part, names)),
        Value::Object(members) => {
            let name = members.get("$ref").and_then(Value::as_str);
            if let Some(name) = name.and_then(|to| to.strip_prefix("#/$defs/"))
                && !names.iter().any(|known| known == name)
            {
                names.push(name.to_owned());
            }
            members.values().for_each(|part| add_references(part, names));
        }
        _ => {}
    }
}

/// Returns whether a schema has so few compositions, patterns and levels that it is within the limits of any validator. Compiling all would
/// take longer than all else.
fn is_simple(text: &str) -> bool {
    let words = ["\"$ref\"", "\"allOf\"", "\"anyOf\"", "\"if\"", "\"not\"", "\"oneOf\"", "\"pattern\""];
    let compositions: usize = words.iter().map(|word| text.matches(word).count()).sum();
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    compositions <= MAX_COMPOSITIONS && deepest <= MAX_LEVELS
}

/// Returns a schema that describes these answers, or those that are the member `result` of an object, and accepts all objects: clients must
/// refuse what an output schema does not accept, and what an API answers is seldom all that its document says.
fn lenient(mut schema: Value, definitions: JsonObject, is_wrapped: bool) -> JsonObject {
    if is_wrapped {
        schema = json!({ "type": "object", "properties": { "result": schema }, "required": ["result"] });
    } else if let Value::Object(members) = &mut schema {
        members.insert("type".to_owned(), "object".into());
    }
    let kind = ("type".to_owned(), "object".into());
    let mut lenient = JsonObject::from_iter([kind, ("anyOf".to_owned(), json!([schema, {}]))]);
    if !definitions.is_empty() {
        lenient.insert("$defs".to_owned(), definitions.into());
    }
    lenient
}

/// Returns whether all values of a schema are objects.
fn is_object(schema: Node<'_>, version: Version, depth: usize) -> bool {
    if schema.flag("nullable") == Some(true) && version.is_30() || depth > MAX_DEPTH {
        return false;
    }
    if let Some(kind) = schema.get("type") {
        return kind.value == "object";
    }
    let is_part = |part: Node<'_>| part.resolve().is_ok_and(|part| is_object(part, version, depth + 1));
    let mut parts = schema.items_of("allOf").take(16);
    if schema.get("properties").is_some() || parts.any(is_part) {
        return true;
    }
    ["anyOf", "oneOf"].into_iter().any(|word| {
        let parts: Vec<_> = schema.items_of(word).take(64).collect();
        !parts.is_empty() && parts.into_iter().all(is_part)
    })
}
