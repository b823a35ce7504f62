//! Down from the revision that brought titles, structured output, resource links, elicitation and `_meta` everywhere.

use pintle_types::method;
use serde_json::{Value, json};

use super::{
    Part, Unsayable,
    step::{ANYTHING, NOTHING, Step},
    walk::{self, Object},
};

pub(super) const STEP: Step = Step { lower, raise, lowers, raises };

fn lower(part: Part<'_>, value: &mut Value) -> Result<(), Unsayable> {
    let Value::Object(payload) = value else { return Ok(()) };
    if let Some(program) = walk::implementation(part, payload) {
        program.shift_remove("title");
    }
    match part {
        Part::Params(method::ELICITATION_CREATE) => return Err(Unsayable::Elicitation),
        Part::Params(method::INITIALIZE) => no_elicitation(payload),
        Part::Params(method::COMPLETION_COMPLETE) => {
            payload.shift_remove("context");
            if let Some(reference) = walk::object(payload, "ref") {
                reference.shift_remove("title");
            }
        }
        Part::Result(method::TOOLS_CALL) => walk::structured_to_text(payload),
        Part::Result(method::TOOLS_LIST) => walk::listed(part, payload).for_each(tool),
        Part::Result(method::PROMPTS_LIST | method::RESOURCES_LIST | method::RESOURCES_TEMPLATES_LIST) => {
            walk::listed(part, payload).for_each(entity);
        }
        Part::Result(method::RESOURCES_READ) => walk::objects(payload, "contents").for_each(no_meta),
        Part::Result(method::ROOTS_LIST) => walk::objects(payload, "roots").for_each(no_meta),
        _ => {}
    }
    walk::blocks(part, payload, block);
    Ok(())
}

fn lowers(part: Part<'_>) -> &'static [&'static str] {
    match part {
        Part::Result(method::TOOLS_CALL) => &["_meta", "structuredContent", "resource_link", "lastModified"],
        Part::Result(method::TOOLS_LIST) => &["title", "outputSchema", "_meta"],
        Part::Result(method::PROMPTS_LIST | method::RESOURCES_LIST | method::RESOURCES_TEMPLATES_LIST) => {
            &["title", "_meta", "lastModified"]
        }
        Part::Result(method::RESOURCES_READ | method::ROOTS_LIST) => &["_meta"],
        Part::Result(method::PROMPTS_GET) => &["_meta", "resource_link", "lastModified"],
        Part::Params(method::SAMPLING_CREATE_MESSAGE) | Part::Result(method::SAMPLING_CREATE_MESSAGE) => {
            &["_meta", "resource_link", "lastModified"]
        }
        Part::Params(method::INITIALIZE) => &["title", "elicitation"],
        Part::Result(method::INITIALIZE) => &["title"],
        Part::Params(method::COMPLETION_COMPLETE) => &["context", "title"],
        Part::Params(method::ELICITATION_CREATE) => ANYTHING,
        _ => NOTHING,
    }
}

/// A client may have declared elicitation before it knew that this revision was agreed on.
fn raise(part: Part<'_>, value: &mut Value) {
    let Value::Object(payload) = value else { return };
    if let Part::Params(method::INITIALIZE) = part {
        no_elicitation(payload);
    }
}

fn raises(part: Part<'_>) -> &'static [&'static str] {
    match part {
        Part::Params(method::INITIALIZE) => &["elicitation"],
        _ => NOTHING,
    }
}

fn no_elicitation(payload: &mut Object) {
    if let Some(capabilities) = walk::object(payload, "capabilities") {
        capabilities.shift_remove("elicitation");
    }
}

fn no_meta(entity: &mut Object) {
    entity.shift_remove("_meta");
}

/// Here the title of a tool is one of its annotations.
fn tool(tool: &mut Object) {
    walk::remove(tool, &["_meta", "outputSchema"]);
    if let Some(title) = tool.shift_remove("title") {
        let annotations = tool.entry("annotations").or_insert_with(|| json!({}));
        if let Value::Object(annotations) = annotations {
            annotations.entry("title").or_insert(title);
        }
    }
}

/// A prompt, a resource or a template.
fn entity(entity: &mut Object) {
    no_meta(entity);
    walk::remove_within(entity, "annotations", &["lastModified"]);
    walk::title_to_description(entity);
    walk::objects(entity, "arguments").for_each(walk::title_to_description);
}

fn block(block: &mut Object) {
    no_meta(block);
    walk::remove_within(block, "annotations", &["lastModified"]);
    if walk::is(block, "resource_link") {
        let text = link_in_words(block);
        walk::become_text(block, text);
    } else if let Some(resource) = walk::object(block, "resource") {
        no_meta(resource);
    }
}

/// What a model needs to decide whether to read it, and the URI to do so.
fn link_in_words(link: &Object) -> String {
    let name = walk::string(link, "title").or_else(|| walk::string(link, "name")).unwrap_or("unnamed");
    let mut text = format!("Resource: {name}\nURI: {}", walk::string(link, "uri").unwrap_or("unknown"));
    for (label, member) in [("Type", "mimeType"), ("Description", "description")] {
        if let Some(said) = walk::string(link, member) {
            text.extend(["\n", label, ": ", said]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lowered(part: Part<'_>, mut value: Value) -> Value {
        assert_eq!(lower(part, &mut value), Ok(()));
        value
    }

    #[test]
    fn a_link_becomes_text_that_a_model_can_use() {
        let link = json!({"type": "resource_link", "uri": "file:///a.md", "name": "a", "title": "Notes",
            "mimeType": "text/markdown", "description": "what was said", "size": 9, "_meta": {"k": 1},
            "annotations": {"priority": 1, "lastModified": "2025-01-01"}});
        let text = json!({"type": "text", "annotations": {"priority": 1},
            "text": "Resource: Notes\nURI: file:///a.md\nType: text/markdown\nDescription: what was said"});
        assert_eq!(
            lowered(Part::Result("tools/call"), json!({"content": [link]})),
            json!({"content": [text]})
        );
        assert_eq!(
            lowered(Part::Result("prompts/get"), json!({"messages": [{"role": "user", "content": link}]})),
            json!({"messages": [{"role": "user", "content": text}]})
        );
    }

    #[test]
    fn structured_content_becomes_text_unless_it_is_there() {
        assert_eq!(
            lowered(
                Part::Result("tools/call"),
                json!({"content": [{"type": "text", "text": "Warm."}], "structuredContent": {"celsius": 22}})
            ),
            json!({"content": [{"type": "text", "text": "Warm."}, {"type": "text", "text": "{\"celsius\":22}"}]})
        );
        let text = json!([{"type": "text", "text": "{ \"celsius\": 22 }"}]);
        assert_eq!(
            lowered(
                Part::Result("tools/call"),
                json!({"content": text, "structuredContent": {"celsius": 22}})
            ),
            json!({"content": text})
        );
    }

    #[test]
    fn titles_find_another_place() {
        assert_eq!(
            lowered(
                Part::Result("tools/list"),
                json!({"tools": [
                    {"name": "a", "title": "A", "_meta": {}, "inputSchema": {"type": "object"},
                     "outputSchema": {"type": "object"}},
                    {"name": "b", "title": "B", "annotations": {"title": "Bee"}},
                ]})
            ),
            json!({"tools": [
                {"name": "a", "annotations": {"title": "A"}, "inputSchema": {"type": "object"}},
                {"name": "b", "annotations": {"title": "Bee"}},
            ]})
        );
        assert_eq!(
            lowered(
                Part::Result("prompts/list"),
                json!({"prompts": [{"name": "a", "title": "A", "description": "d",
                    "arguments": [{"name": "x", "title": "X"}]}]})
            ),
            json!({"prompts": [{"name": "a", "description": "d",
                "arguments": [{"name": "x", "description": "X"}]}]})
        );
        assert_eq!(
            lowered(
                Part::Result("initialize"),
                json!({"serverInfo": {"name": "s", "title": "S", "version": "1"}})
            ),
            json!({"serverInfo": {"name": "s", "version": "1"}})
        );
    }

    #[test]
    fn meta_stays_on_messages_only() {
        let meta = json!({"acme/k": 1});
        assert_eq!(
            lowered(
                Part::Result("resources/read"),
                json!({"contents": [{"uri": "a:b", "text": "", "_meta": meta}], "_meta": meta})
            ),
            json!({"contents": [{"uri": "a:b", "text": ""}], "_meta": meta})
        );
        assert_eq!(
            lowered(Part::Result("roots/list"), json!({"roots": [{"uri": "file:///", "_meta": meta}]})),
            json!({"roots": [{"uri": "file:///"}]})
        );
        let embedded = json!({"type": "resource", "_meta": meta,
            "resource": {"uri": "a:b", "text": "", "_meta": meta}});
        assert_eq!(
            lowered(Part::Result("tools/call"), json!({"content": [embedded]})),
            json!({"content": [{"type": "resource", "resource": {"uri": "a:b", "text": ""}}]})
        );
    }

    #[test]
    fn a_date_alone_leaves_no_empty_annotations() {
        assert_eq!(
            lowered(
                Part::Result("resources/list"),
                json!({"resources": [{"uri": "a:b", "name": "n", "annotations": {"lastModified": "2025-01-01"}}]})
            ),
            json!({"resources": [{"uri": "a:b", "name": "n"}]})
        );
    }

    #[test]
    fn completion_without_context() {
        assert_eq!(
            lowered(
                Part::Params("completion/complete"),
                json!({"ref": {"type": "ref/prompt", "name": "p", "title": "P"}, "context": {"arguments": {}},
                    "argument": {"name": "a", "value": ""}})
            ),
            json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}})
        );
    }

    #[test]
    fn there_is_no_elicitation() {
        assert_eq!(lower(Part::Params("elicitation/create"), &mut json!({})), Err(Unsayable::Elicitation));
        let declared = json!({"capabilities": {"elicitation": {}, "sampling": {}}});
        let without = json!({"capabilities": {"sampling": {}}});
        assert_eq!(lowered(Part::Params("initialize"), declared.clone()), without);
        let mut raised = declared;
        raise(Part::Params("initialize"), &mut raised);
        assert_eq!(raised, without);
    }
}
