//! Changes in 2025-11-25: icons, tasks, URL elicitation and tools in sampling.

use std::mem;

use pintle_types::method;
use serde_json::{Value, json};

use super::{
    Unsayable,
    edits::{ANY, Edit, Object, On, Rule, Step},
    walk,
};

pub(super) const STEP: Step = Step {
    down: &[
        Rule(On::Params, NO_RELATED_TASK),
        Rule(On::Result, NO_RELATED_TASK),
        Rule(On::ParamsOf(&[method::INITIALIZE]), &[Edit::Within(&["clientInfo"], SHORT_INFO)]),
        Rule(On::ResultOf(&[method::INITIALIZE]), &[Edit::Within(&["serverInfo"], SHORT_INFO)]),
        Rule(On::ParamsOf(&[method::SAMPLING_CREATE_MESSAGE]), &[Edit::Map(single_blocks)]),
        Rule(On::ResultOf(&[method::SAMPLING_CREATE_MESSAGE]), &[Edit::Map(one_block)]),
        Rule(On::ParamsOf(&[method::ELICITATION_CREATE]), FORMS_ONLY),
        Rule(On::ParamsOf(&[method::TOOLS_CALL]), &[Edit::Drop("task")]),
        Rule(On::ParamsOf(&[method::INITIALIZE]), CLIENT_CAPABILITIES),
        Rule(On::ResultOf(&[method::INITIALIZE]), SERVER_CAPABILITIES),
        Rule(
            On::ResultOf(&[method::TOOLS_LIST]),
            &[Edit::Within(&["tools"], &[Edit::Drop("icons"), Edit::Drop("execution")])],
        ),
        Rule(On::ResultOf(&[method::PROMPTS_LIST]), &[Edit::Within(&["prompts"], NO_ICONS)]),
        Rule(On::ResultOf(&[method::RESOURCES_LIST]), &[Edit::Within(&["resources"], NO_ICONS)]),
        Rule(
            On::ResultOf(&[method::RESOURCES_TEMPLATES_LIST]),
            &[Edit::Within(&["resourceTemplates"], NO_ICONS)],
        ),
        Rule(
            On::ResultOf(&[method::TOOLS_CALL, method::SAMPLING_CREATE_MESSAGE]),
            &[Edit::Within(&["content"], LINK_WITHOUT_ICONS)],
        ),
        Rule(
            On::ResultOf(&[method::PROMPTS_GET]),
            &[Edit::Within(&["messages", "content"], LINK_WITHOUT_ICONS)],
        ),
        Rule(
            On::ParamsOf(&[method::SAMPLING_CREATE_MESSAGE]),
            &[Edit::Within(&["messages", "content"], LINK_WITHOUT_ICONS)],
        ),
    ],
    // A peer may have declared these capabilities before an older revision was agreed on.
    up: &[
        Rule(On::ParamsOf(&[method::INITIALIZE]), CLIENT_CAPABILITIES),
        Rule(On::ResultOf(&[method::INITIALIZE]), SERVER_CAPABILITIES),
    ],
};

const NO_RELATED_TASK: &[Edit] = &[Edit::DropWithin(&["_meta"], "io.modelcontextprotocol/related-task")];

const SHORT_INFO: &[Edit] = &[Edit::Drop("icons"), Edit::Drop("description"), Edit::Drop("websiteUrl")];

const NO_ICONS: &[Edit] = &[Edit::Drop("icons")];

/// Edits of a content block. Only a resource link has icons; another `icons` in a block is the application's.
const LINK_WITHOUT_ICONS: &[Edit] = &[Edit::OfKind("resource_link", NO_ICONS)];

const SERVER_CAPABILITIES: &[Edit] = &[Edit::Within(&["capabilities"], &[Edit::Drop("tasks")])];

/// Edits of a client's capabilities. Sampling and elicitation have no sub-capabilities, and elicitation means forms.
const CLIENT_CAPABILITIES: &[Edit] = &[
    Edit::Within(&["capabilities"], &[Edit::Drop("tasks")]),
    Edit::Within(&["capabilities", "sampling"], &[Edit::Drop("tools"), Edit::Drop("context")]),
    Edit::Within(&["capabilities"], &[Edit::Having("elicitation", &[Edit::Map(elicitation_by_form)])]),
];

/// Edits of an elicitation. A form has fields that are a string, a number, a boolean, or one choice of a list.
///
/// A multiple choice is refused: older answers have no lists, and a comma-separated text would reach the handler in a
/// shape that it did not ask for.
const FORMS_ONLY: &[Edit] = &[
    Edit::Drop("task"),
    Edit::Having("mode", &[Edit::Map(form_mode)]),
    Edit::Within(&["requestedSchema"], &[Edit::Drop("$schema")]),
    Edit::Within(
        &["requestedSchema", "properties", ANY],
        &[
            Edit::OfKind("array", &[Edit::Map(several_choices)]),
            Edit::Having("items", &[Edit::Map(several_choices)]),
            Edit::Having("default", &[Edit::Map(default_of_booleans)]),
            Edit::Having("oneOf", &[Edit::Map(named_choices)]),
        ],
    ),
];

fn elicitation_by_form(capabilities: &mut Object) -> Result<(), Unsayable> {
    let Some(elicitation) = walk::object(capabilities, "elicitation") else { return Ok(()) };
    let url_only = elicitation.contains_key("url") && !elicitation.contains_key("form");
    if url_only {
        capabilities.shift_remove("elicitation");
    } else {
        walk::remove(elicitation, &["form", "url"]);
    }
    Ok(())
}

fn form_mode(params: &mut Object) -> Result<(), Unsayable> {
    match params.shift_remove("mode") {
        Some(mode) if mode == "url" => Err(Unsayable::UrlElicitation),
        _ => Ok(()),
    }
}

fn several_choices(_: &mut Object) -> Result<(), Unsayable> {
    Err(Unsayable::MultipleChoice)
}

fn default_of_booleans(field: &mut Object) -> Result<(), Unsayable> {
    if !walk::is(field, "boolean") {
        field.shift_remove("default");
    }
    Ok(())
}

fn named_choices(field: &mut Object) -> Result<(), Unsayable> {
    if let Some(Value::Array(choices)) = field.shift_remove("oneOf") {
        let (values, names): (Vec<Value>, Vec<Value>) = choices.into_iter().filter_map(choice).unzip();
        field.insert("enum".to_owned(), Value::Array(values));
        field.insert("enumNames".to_owned(), Value::Array(names));
    }
    Ok(())
}

fn choice(mut choice: Value) -> Option<(Value, Value)> {
    let choice = choice.as_object_mut()?;
    let value = choice.shift_remove("const")?;
    let name = choice.shift_remove("title").unwrap_or_else(|| value.clone());
    Some((value, name))
}

/// Splits messages with several blocks into several messages of the same role, which loses nothing.
///
/// A request with tools is refused rather than stripped of them: without them it has another meaning.
fn single_blocks(params: &mut Object) -> Result<(), Unsayable> {
    params.shift_remove("task");
    let choice = params.shift_remove("toolChoice");
    let tools = params.shift_remove("tools");
    let offers = tools.is_some_and(|tools| tools.as_array().is_none_or(|tools| !tools.is_empty()));
    let declines = choice.is_some_and(|choice| choice.get("mode") == Some(&json!("none")));
    if offers && !declines {
        return Err(Unsayable::SamplingTools);
    }
    let Some(messages) = params.get_mut("messages").and_then(Value::as_array_mut) else { return Ok(()) };
    let mut single = Vec::with_capacity(messages.len());
    for mut message in mem::take(messages) {
        if let Value::Object(message) = &mut message {
            message.shift_remove("_meta");
        }
        match message.get_mut("content") {
            Some(Value::Array(blocks)) => {
                for block in mem::take(blocks) {
                    no_tools(&block)?;
                    let mut one = message.clone();
                    one["content"] = block;
                    single.push(one);
                }
            }
            Some(block) => {
                no_tools(block)?;
                single.push(message);
            }
            None => single.push(message),
        }
    }
    *messages = single;
    Ok(())
}

/// Reduces a sampling result to one block. Several texts are joined by an empty line.
fn one_block(result: &mut Object) -> Result<(), Unsayable> {
    let Some(content) = result.get_mut("content") else { return Ok(()) };
    let Value::Array(blocks) = content else { return no_tools(content) };
    blocks.iter().try_for_each(no_tools)?;
    if blocks.len() > 1 {
        let texts: Option<Vec<&str>> = blocks.iter().map(|block| block.get("text")?.as_str()).collect();
        let text = texts.ok_or(Unsayable::SeveralBlocks)?.join("\n\n");
        *blocks = vec![json!({"type": "text", "text": text})];
    }
    *content = blocks.pop().unwrap_or_else(|| json!({"type": "text", "text": ""}));
    Ok(())
}

fn no_tools(block: &Value) -> Result<(), Unsayable> {
    match block.get("type").and_then(Value::as_str) {
        Some("tool_use" | "tool_result") => Err(Unsayable::SamplingTools),
        _ => Ok(()),
    }
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

    fn refused(part: Part<'_>, mut value: Value) -> Unsayable {
        assert!(STEP.lowers(part, &value.to_string()));
        lower(part, &mut value).unwrap_err()
    }

    #[test]
    fn icons_and_execution_go() {
        assert_eq!(
            lowered(
                Part::Result("tools/list"),
                json!({"tools": [{"name": "a", "inputSchema": {"type": "object", "properties": {"icons": {}}},
                    "icons": [], "execution": {"taskSupport": "optional"}}]})
            ),
            json!({"tools": [{"name": "a", "inputSchema": {"type": "object", "properties": {"icons": {}}}}]})
        );
        assert_eq!(
            lowered(
                Part::Result("tools/call"),
                json!({"content": [{"type": "resource_link", "uri": "a:b", "name": "n", "icons": []}]})
            ),
            json!({"content": [{"type": "resource_link", "uri": "a:b", "name": "n"}]})
        );
    }

    #[test]
    fn a_handshake_in_fewer_words() {
        assert_eq!(
            lowered(
                Part::Params("initialize"),
                json!({
                    "clientInfo": {"name": "c", "version": "1", "title": "C", "description": "d",
                        "websiteUrl": "https://c.example", "icons": []},
                    "capabilities": {"roots": {"listChanged": true}, "tasks": {}, "elicitation": {"form": {}, "url": {}},
                        "sampling": {"tools": {}, "context": {}}, "extensions": {"acme/x": {}}},
                })
            ),
            json!({
                "clientInfo": {"name": "c", "version": "1", "title": "C"},
                "capabilities": {"roots": {"listChanged": true}, "elicitation": {}, "sampling": {},
                    "extensions": {"acme/x": {}}},
            })
        );
        assert_eq!(
            lowered(Part::Params("initialize"), json!({"capabilities": {"elicitation": {"url": {}}}})),
            json!({"capabilities": {}}),
            "a client that shows no forms cannot be asked"
        );
    }

    #[test]
    fn a_form_in_fewer_words() {
        let form = |properties: Value| json!({"type": "object", "properties": properties});
        assert_eq!(
            lowered(
                Part::Params("elicitation/create"),
                json!({"mode": "form", "message": "?", "requestedSchema": form(json!({
                    "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "m"}],
                        "default": "m"},
                    "color": {"type": "string", "enum": ["red"], "title": "Color"},
                    "count": {"type": "integer", "default": 3, "minimum": 1},
                    "fast": {"type": "boolean", "default": true},
                }))})
            ),
            json!({"message": "?", "requestedSchema": form(json!({
                "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "m"]},
                "color": {"type": "string", "enum": ["red"], "title": "Color"},
                "count": {"type": "integer", "minimum": 1},
                "fast": {"type": "boolean", "default": true},
            }))})
        );
    }

    #[test]
    fn what_a_form_cannot_ask_is_refused() {
        let part = Part::Params("elicitation/create");
        let url = json!({"mode": "url", "message": "?", "url": "https://a.example"});
        assert_eq!(refused(part, url), Unsayable::UrlElicitation);
        let several = json!({"type": "array", "items": {"type": "string", "enum": ["a"]}});
        let form =
            json!({"message": "?", "requestedSchema": {"type": "object", "properties": {"a": several}}});
        assert_eq!(refused(part, form), Unsayable::MultipleChoice);
    }

    #[test]
    fn several_blocks_become_several_messages() {
        let text = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(
            lowered(
                Part::Params("sampling/createMessage"),
                json!({"maxTokens": 9, "tools": [], "toolChoice": {"mode": "auto"}, "messages": [
                    {"role": "user", "content": [text("a"), text("b")], "_meta": {"k": 1}},
                    {"role": "assistant", "content": [text("c")]},
                    {"role": "user", "content": text("d")},
                ]})
            ),
            json!({"maxTokens": 9, "messages": [
                {"role": "user", "content": text("a")},
                {"role": "user", "content": text("b")},
                {"role": "assistant", "content": text("c")},
                {"role": "user", "content": text("d")},
            ]})
        );
    }

    #[test]
    fn sampling_with_tools_is_refused() {
        let part = Part::Params("sampling/createMessage");
        let tools = json!({"messages": [], "tools": [{"name": "a"}]});
        assert_eq!(refused(part, tools), Unsayable::SamplingTools);
        let not_now = json!({"messages": [], "tools": [{"name": "a"}], "toolChoice": {"mode": "none"}});
        assert_eq!(lowered(part, not_now), json!({"messages": []}));
        let used = json!({"messages": [{"role": "assistant", "content": {"type": "tool_use"}}]});
        assert_eq!(refused(part, used), Unsayable::SamplingTools);
    }

    #[test]
    fn an_answer_is_one_block() {
        let part = Part::Result("sampling/createMessage");
        let text = |text: &str| json!({"type": "text", "text": text});
        let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
        assert_eq!(lowered(part, json!({"content": [image]})), json!({"content": image}));
        assert_eq!(
            lowered(part, json!({"content": [text("a"), text("b")]})),
            json!({"content": text("a\n\nb")})
        );
        assert_eq!(lowered(part, json!({"content": text("a")})), json!({"content": text("a")}));
        assert_eq!(refused(part, json!({"content": [text("a"), image]})), Unsayable::SeveralBlocks);
        assert_eq!(refused(part, json!({"content": {"type": "tool_use"}})), Unsayable::SamplingTools);
    }

    #[test]
    fn no_task_is_asked_for() {
        assert_eq!(
            lowered(
                Part::Params("tools/call"),
                json!({"name": "a", "task": {"ttl": 1}, "_meta": {"io.modelcontextprotocol/related-task": {}}})
            ),
            json!({"name": "a"})
        );
    }

    #[test]
    fn capabilities_of_later_revisions_are_not_believed() {
        let mut value = json!({"capabilities": {"tasks": {}, "elicitation": {"form": {}, "url": {}}}});
        raise(Part::Params("initialize"), &mut value);
        assert_eq!(value, json!({"capabilities": {"elicitation": {}}}));
    }
}
