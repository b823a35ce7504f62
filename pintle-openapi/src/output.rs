//! The output schema of a tool, from the response that the document describes.

use http::HeaderValue;
use pintle::schema::Schema;
use serde_json::{Value, json};

use crate::{
    answer::OutputPlan,
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

/// Returns the output schema of an operation, if it answers with JSON that the document describes.
pub(crate) fn plan(
    operation: &Operation<'_>,
    version: Version,
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
    let root = if is_wrapped {
        let result = writer.schema(node);
        json!({ "type": "object", "properties": { "result": result }, "required": ["result"] })
    } else {
        let mut root = writer.schema(target);
        if let Value::Object(members) = &mut root {
            members.insert("type".to_owned(), "object".into());
        }
        root
    };
    let WrittenSchema { schema, is_cut, warnings: found } = writer.finish(root);
    let shown = lenient(schema.clone());
    let text = shown.to_string();
    if is_cut || text.len() > MAX_BYTES {
        warnings.push("its output schema is too large, and is left out".to_owned());
        return None;
    }
    // Clients that cannot compile it refuse all results.
    if !is_simple(&text)
        && let Err(error) = Schema::compile(&shown)
    {
        warnings.push(format!("its output schema is left out: {error}"));
        return None;
    }
    warnings.extend(found);
    Some(OutputPlan::new(shown, schema, is_wrapped))
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

/// Returns a schema that describes the same objects and accepts all: clients must refuse what an output schema does not accept, and what an
/// API answers is seldom all that its document says.
fn lenient(mut schema: Value) -> Value {
    let definitions = schema.as_object_mut().and_then(|members| members.shift_remove("$defs"));
    let mut lenient = json!({ "type": "object", "anyOf": [schema, {}] });
    if let (Some(definitions), Value::Object(members)) = (definitions, &mut lenient) {
        members.insert("$defs".to_owned(), definitions);
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
