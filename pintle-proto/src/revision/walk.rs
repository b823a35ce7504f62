//! Edits that several revisions share.

use serde_json::{Value, json};

use super::{Unsayable, edits::Object};

/// Returns the object at `name`.
pub(super) fn object<'a>(parent: &'a mut Object, name: &str) -> Option<&'a mut Object> {
    parent.get_mut(name)?.as_object_mut()
}

/// Removes members.
pub(super) fn remove(object: &mut Object, names: &[&str]) {
    for name in names {
        object.shift_remove(*name);
    }
}

/// Returns whether the `type` of a block is `kind`.
pub(super) fn is(block: &Object, kind: &str) -> bool {
    string(block, "type") == Some(kind)
}

/// Returns the string at `name`.
pub(super) fn string<'a>(object: &'a Object, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str()
}

/// Converts a block to a text block. Its annotations and `_meta` stay.
pub(super) fn become_text(block: &mut Object, text: String) {
    block.retain(|name, _| name == "annotations" || name == "_meta");
    block.insert("type".to_owned(), Value::from("text"));
    block.insert("text".to_owned(), Value::from(text));
}

/// Replaces `structuredContent` by a text block, unless one already has the same JSON, ignoring white space.
pub(super) fn structured_to_text(result: &mut Object) -> Result<(), Unsayable> {
    let Some(structured) = result.shift_remove("structuredContent") else { return Ok(()) };
    let content = result.entry("content").or_insert_with(|| json!([]));
    let Some(blocks) = content.as_array_mut() else { return Ok(()) };
    let equals = |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|value| value == structured);
    let present = blocks.iter().filter_map(|block| block.get("text")?.as_str()).any(equals);
    if !present {
        blocks.push(json!({"type": "text", "text": structured.to_string()}));
    }
    Ok(())
}

/// Moves the `title` to the description, unless there is one.
pub(super) fn title_to_description(entity: &mut Object) -> Result<(), Unsayable> {
    if let Some(title) = entity.shift_remove("title") {
        entity.entry("description").or_insert(title);
    }
    Ok(())
}
