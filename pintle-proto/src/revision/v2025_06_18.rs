//! Changes in 2025-06-18: titles, structured output, resource links, elicitation and `_meta` everywhere.

use pintle_types::method;
use serde_json::{Value, json};

use super::{
    Unsayable,
    edits::{Edit, Object, On, Rule, Step},
    walk,
};

pub(super) const STEP: Step = Step {
    down: &[
        Rule(On::ParamsOf(&[method::INITIALIZE]), &[Edit::Within(&["clientInfo"], NO_TITLE)]),
        Rule(On::ResultOf(&[method::INITIALIZE]), &[Edit::Within(&["serverInfo"], NO_TITLE)]),
        Rule(On::ParamsOf(&[method::ELICITATION_CREATE]), &[Edit::Map(|_| Err(Unsayable::Elicitation))]),
        Rule(On::ParamsOf(&[method::INITIALIZE]), NO_ELICITATION),
        Rule(
            On::ParamsOf(&[method::COMPLETION_COMPLETE]),
            &[Edit::Drop("context"), Edit::Within(&["ref"], NO_TITLE)],
        ),
        Rule(
            On::ResultOf(&[method::TOOLS_CALL]),
            &[Edit::Having("structuredContent", &[Edit::Map(walk::structured_to_text)])],
        ),
        Rule(
            On::ResultOf(&[method::TOOLS_LIST]),
            &[Edit::Within(
                &["tools"],
                &[
                    Edit::Drop("_meta"),
                    Edit::Drop("outputSchema"),
                    Edit::Having("title", &[Edit::Map(title_to_annotation)]),
                ],
            )],
        ),
        Rule(
            On::ResultOf(&[method::PROMPTS_LIST]),
            &[
                Edit::Within(&["prompts"], ENTRY),
                Edit::Within(&["prompts", "arguments"], TITLE_TO_DESCRIPTION),
            ],
        ),
        Rule(On::ResultOf(&[method::RESOURCES_LIST]), &[Edit::Within(&["resources"], ENTRY)]),
        Rule(
            On::ResultOf(&[method::RESOURCES_TEMPLATES_LIST]),
            &[Edit::Within(&["resourceTemplates"], ENTRY)],
        ),
        Rule(On::ResultOf(&[method::RESOURCES_READ]), &[Edit::Within(&["contents"], NO_META)]),
        Rule(On::ResultOf(&[method::ROOTS_LIST]), &[Edit::Within(&["roots"], NO_META)]),
        Rule(
            On::ResultOf(&[method::TOOLS_CALL, method::SAMPLING_CREATE_MESSAGE]),
            &[Edit::Within(&["content"], BLOCK)],
        ),
        Rule(On::ResultOf(&[method::PROMPTS_GET]), &[Edit::Within(&["messages", "content"], BLOCK)]),
        Rule(
            On::ParamsOf(&[method::SAMPLING_CREATE_MESSAGE]),
            &[Edit::Within(&["messages", "content"], BLOCK)],
        ),
    ],
    // A client may have declared elicitation before an older revision was agreed on.
    up: &[Rule(On::ParamsOf(&[method::INITIALIZE]), NO_ELICITATION)],
};

const NO_META: &[Edit] = &[Edit::Drop("_meta")];

const NO_TITLE: &[Edit] = &[Edit::Drop("title")];

const NO_ELICITATION: &[Edit] = &[Edit::Within(&["capabilities"], &[Edit::Drop("elicitation")])];

const TITLE_TO_DESCRIPTION: &[Edit] = &[Edit::Having("title", &[Edit::Map(walk::title_to_description)])];

/// Edits of a prompt, a resource or a template.
const ENTRY: &[Edit] = &[
    Edit::Drop("_meta"),
    Edit::DropWithin(&["annotations"], "lastModified"),
    Edit::Having("title", &[Edit::Map(walk::title_to_description)]),
];

/// Edits of a content block.
///
/// Blocks inside a `tool_result` are not edited: the one session revision that has these blocks has all kinds that they
/// may contain.
const BLOCK: &[Edit] = &[
    Edit::Drop("_meta"),
    Edit::DropWithin(&["annotations"], "lastModified"),
    Edit::OfKind("resource_link", &[Edit::Map(link_to_text)]),
    Edit::Within(&["resource"], NO_META),
];

/// Moves the title of a tool into its annotations.
fn title_to_annotation(tool: &mut Object) -> Result<(), Unsayable> {
    if let Some(title) = tool.shift_remove("title") {
        let annotations = tool.entry("annotations").or_insert_with(|| json!({}));
        if let Value::Object(annotations) = annotations {
            annotations.entry("title").or_insert(title);
        }
    }
    Ok(())
}

fn link_to_text(link: &mut Object) -> Result<(), Unsayable> {
    let text = link_in_words(link);
    walk::become_text(link, text);
    Ok(())
}

/// Describes a resource link for a model: what it needs to decide whether to read the resource, and the URI.
fn link_in_words(link: &Object) -> String {
    let name = walk::string(link, "title").or_else(|| walk::string(link, "name")).unwrap_or("unnamed");
    let mut text = format!("Resource: {name}\nURI: {}", walk::string(link, "uri").unwrap_or("unknown"));
    for (label, member) in [("Type", "mimeType"), ("Description", "description")] {
        if let Some(value) = walk::string(link, member) {
            text.extend(["\n", label, ": ", value]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Part, edits::apply},
        *,
    };

    fn lower(part: Part<'_>, value: &mut Value) -> Result<(), Unsayable> {
        apply(STEP.down, part, value)
    }

    fn raise(part: Part<'_>, value: &mut Value) {
        apply(STEP.up, part, value).unwrap();
    }

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
