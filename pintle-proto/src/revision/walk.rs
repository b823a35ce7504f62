//! Ways to the places in a payload that more than one step reshapes. All of them mutate in place.

use pintle_types::method;
use serde_json::{Map, Value, json};

use super::Part;

pub(super) type Object = Map<String, Value>;

/// The object at `name`.
pub(super) fn object<'a>(parent: &'a mut Object, name: &str) -> Option<&'a mut Object> {
    parent.get_mut(name)?.as_object_mut()
}

/// Every object in the array at `name`.
pub(super) fn objects<'a>(parent: &'a mut Object, name: &str) -> impl Iterator<Item = &'a mut Object> {
    parent.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

pub(super) fn remove(object: &mut Object, names: &[&str]) {
    for name in names {
        object.shift_remove(*name);
    }
}

/// Takes `keys` out of the object at `name`, and the object too when nothing else was in it.
pub(super) fn remove_within(parent: &mut Object, name: &str, keys: &[&str]) {
    let Some(inner) = object(parent, name) else { return };
    let before = inner.len();
    remove(inner, keys);
    if inner.is_empty() && before > 0 {
        parent.shift_remove(name);
    }
}

/// The name and version of a program, in the handshake.
pub(super) fn implementation<'a>(part: Part<'_>, payload: &'a mut Object) -> Option<&'a mut Object> {
    match part {
        Part::Params(method::INITIALIZE) => object(payload, "clientInfo"),
        Part::Result(method::INITIALIZE) => object(payload, "serverInfo"),
        _ => None,
    }
}

/// The things that a list lists, and the tools that a sampling request brings along.
pub(super) fn listed<'a>(part: Part<'_>, payload: &'a mut Object) -> impl Iterator<Item = &'a mut Object> {
    let name = match part {
        Part::Result(method::TOOLS_LIST) | Part::Params(method::SAMPLING_CREATE_MESSAGE) => "tools",
        Part::Result(method::PROMPTS_LIST) => "prompts",
        Part::Result(method::RESOURCES_LIST) => "resources",
        Part::Result(method::RESOURCES_TEMPLATES_LIST) => "resourceTemplates",
        // No payload has a member of this name that would matter: nothing is visited.
        _ => "",
    };
    objects(payload, name)
}

/// Visits every content block.
///
/// Not those inside a `tool_result`: the one session revision that has these blocks has all kinds that they may hold.
pub(super) fn blocks(part: Part<'_>, payload: &mut Object, mut visit: impl FnMut(&mut Object)) {
    match part {
        Part::Result(method::TOOLS_CALL | method::SAMPLING_CREATE_MESSAGE) => content(payload, &mut visit),
        Part::Result(method::PROMPTS_GET) | Part::Params(method::SAMPLING_CREATE_MESSAGE) => {
            objects(payload, "messages").for_each(|message| content(message, &mut visit));
        }
        _ => {}
    }
}

/// `content` is one block or an array of them.
fn content(holder: &mut Object, visit: &mut dyn FnMut(&mut Object)) {
    let blocks = match holder.get_mut("content") {
        Some(Value::Array(blocks)) => blocks.as_mut_slice(),
        Some(block) => std::slice::from_mut(block),
        None => return,
    };
    blocks.iter_mut().filter_map(Value::as_object_mut).for_each(visit);
}

/// Whether the `type` of a block is `kind`.
pub(super) fn is(block: &Object, kind: &str) -> bool {
    block.get("type").and_then(Value::as_str) == Some(kind)
}

/// The string at `name`.
pub(super) fn string<'a>(object: &'a Object, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str()
}

/// Turns a block into a text block. For whom it is and how much it matters stays.
pub(super) fn become_text(block: &mut Object, text: String) {
    block.retain(|name, _| name == "annotations" || name == "_meta");
    block.insert("type".to_owned(), Value::from("text"));
    block.insert("text".to_owned(), Value::from(text));
}

/// Takes `structuredContent` out and makes sure that a text block says it.
///
/// A text block that reads as the same JSON says it already, however it is spaced.
pub(super) fn structured_to_text(result: &mut Object) {
    let Some(structured) = result.shift_remove("structuredContent") else { return };
    let content = result.entry("content").or_insert_with(|| json!([]));
    let Some(blocks) = content.as_array_mut() else { return };
    let says = |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|value| value == structured);
    let said = blocks.iter().filter_map(|block| block.get("text")?.as_str()).any(says);
    if !said {
        blocks.push(json!({"type": "text", "text": structured.to_string()}));
    }
}

/// Keeps a `title` that has no place of its own as the description, unless there is one.
pub(super) fn title_to_description(entity: &mut Object) {
    if let Some(title) = entity.shift_remove("title") {
        entity.entry("description").or_insert(title);
    }
}
