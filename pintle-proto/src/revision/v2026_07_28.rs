//! Changes in 2026-07-28: no handshake and no session, so each message carries what a session establishes once.

use pintle_types::{keys, method};
use serde_json::{Value, json};

use super::{
    Unsayable,
    edits::{Edit, Object, On, Rule, Step},
    walk,
};

pub(super) const STEP: Step = Step {
    down: &[
        Rule(On::Result, &[Edit::Having("resultType", &[Edit::Map(complete)])]),
        Rule(On::Result, PER_MESSAGE),
        Rule(On::Params, PER_MESSAGE),
        Rule(
            On::ResultOf(&[
                method::PING,
                method::LOGGING_SET_LEVEL,
                method::RESOURCES_SUBSCRIBE,
                method::RESOURCES_UNSUBSCRIBE,
            ]),
            &[Edit::Map(acknowledgement)],
        ),
        Rule(On::ResultWhere(|row| row.cacheable), &[Edit::Drop("ttlMs"), Edit::Drop("cacheScope")]),
        Rule(On::ParamsWhere(|row| row.may_ask), &[Edit::Drop("inputResponses"), Edit::Drop("requestState")]),
        Rule(On::ResultOf(&[method::TOOLS_CALL]), STRUCTURED_OBJECTS),
        Rule(On::ResultOf(&[method::TOOLS_LIST]), &[Edit::Within(&["tools"], PLAIN_SCHEMAS)]),
        Rule(
            On::ParamsOf(&[method::SAMPLING_CREATE_MESSAGE]),
            &[
                Edit::Within(&["tools"], PLAIN_SCHEMAS),
                Edit::Within(&["messages", "content"], STRUCTURED_OBJECTS),
            ],
        ),
        Rule(On::ParamsOf(&[method::INITIALIZE]), NO_TASKS_EXTENSION),
        Rule(On::ResultOf(&[method::INITIALIZE]), NO_TASKS_EXTENSION),
    ],
    up: &[
        Rule(On::ParamsOf(&[method::INITIALIZE]), NO_TASKS_EXTENSION),
        Rule(On::ResultOf(&[method::INITIALIZE]), NO_TASKS_EXTENSION),
        // An absent mode and an empty capability each have one meaning, which is explicit in the canonical form (ELI-1,
        // ELI-3).
        Rule(
            On::ParamsOf(&[method::INITIALIZE]),
            &[Edit::Within(&["capabilities", "elicitation"], &[Edit::Map(spell_out_forms)])],
        ),
        Rule(On::ParamsOf(&[method::ELICITATION_CREATE]), &[Edit::Map(spell_out_mode)]),
    ],
};

const PER_MESSAGE: &[Edit] = &[
    Edit::DropWithin(&["_meta"], keys::PROTOCOL_VERSION),
    Edit::DropWithin(&["_meta"], keys::CLIENT_CAPABILITIES),
    Edit::DropWithin(&["_meta"], keys::CLIENT_INFO),
    Edit::DropWithin(&["_meta"], keys::LOG_LEVEL),
    Edit::DropWithin(&["_meta"], keys::SERVER_INFO),
    Edit::DropWithin(&["_meta"], keys::SUBSCRIPTION_ID),
];

/// Removes the tasks extension, which exists only in the stateless era.
const NO_TASKS_EXTENSION: &[Edit] =
    &[Edit::DropWithin(&["capabilities", "extensions"], method::tasks_extension::NAME)];

/// `structuredContent` may be any JSON in the stateless era, but only an object before (TOOL-8).
const STRUCTURED_OBJECTS: &[Edit] =
    &[Edit::Having("structuredContent", &[Edit::Map(only_structured_objects)])];

/// Older revisions require an object where any schema may be a boolean.
const PLAIN_SCHEMAS: &[Edit] = &[Edit::Map(plain_schemas)];

/// Removes a `resultType` of `complete`, and refuses any other.
fn complete(result: &mut Object) -> Result<(), Unsayable> {
    match result.shift_remove("resultType") {
        Some(Value::String(kind)) if kind != "complete" => Err(Unsayable::Unfinished),
        _ => Ok(()),
    }
}

/// Empties a result that is only an acknowledgement.
fn acknowledgement(result: &mut Object) -> Result<(), Unsayable> {
    result.clear();
    Ok(())
}

fn only_structured_objects(holder: &mut Object) -> Result<(), Unsayable> {
    if holder.get("structuredContent").is_some_and(|structured| !structured.is_object()) {
        walk::structured_to_text(holder)?;
    }
    Ok(())
}

/// Drops an output schema whose root is not an object, and replaces boolean schemas of properties by objects.
fn plain_schemas(tool: &mut Object) -> Result<(), Unsayable> {
    if tool.get("outputSchema").is_some_and(|schema| schema.get("type") != Some(&json!("object"))) {
        tool.shift_remove("outputSchema");
    }
    for name in ["inputSchema", "outputSchema"] {
        let properties = walk::object(tool, name).and_then(|schema| walk::object(schema, "properties"));
        for property in properties.into_iter().flat_map(|properties| properties.values_mut()) {
            match property {
                Value::Bool(true) => *property = json!({}),
                Value::Bool(false) => *property = json!({"not": {}}),
                _ => {}
            }
        }
    }
    Ok(())
}

fn spell_out_forms(elicitation: &mut Object) -> Result<(), Unsayable> {
    if elicitation.is_empty() {
        elicitation.insert("form".to_owned(), json!({}));
    }
    Ok(())
}

fn spell_out_mode(params: &mut Object) -> Result<(), Unsayable> {
    params.entry("mode").or_insert_with(|| json!("form"));
    Ok(())
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
    fn what_a_result_says_of_itself_goes() {
        assert_eq!(
            lowered(
                Part::Result("resources/list"),
                json!({
                    "resultType": "complete", "ttlMs": 5, "cacheScope": "public", "resources": [],
                    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}},
                })
            ),
            json!({"resources": []})
        );
        assert_eq!(
            lowered(
                Part::Result("acme/count"),
                json!({
                    "resultType": "complete", "ttlMs": 5,
                    "_meta": {"io.modelcontextprotocol/serverInfo": {}, "acme/mood": "good"},
                })
            ),
            json!({"ttlMs": 5, "_meta": {"acme/mood": "good"}}),
            "what a custom method says stays"
        );
    }

    #[test]
    fn a_result_that_is_not_complete_is_refused() {
        let mut value = json!({"resultType": "input_required", "requestState": "x"});
        assert_eq!(lower(Part::Result("tools/call"), &mut value), Err(Unsayable::Unfinished));
    }

    #[test]
    fn acknowledgements_are_empty() {
        for method in ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
            let value = json!({"resultType": "complete", "_meta": {"a": 1}});
            assert_eq!(lowered(Part::Result(method), value), json!({}));
        }
    }

    #[test]
    fn params_lose_what_only_a_stateless_request_carries() {
        assert_eq!(
            lowered(
                Part::Params("tools/call"),
                json!({
                    "name": "add", "inputResponses": {}, "requestState": "x",
                    "_meta": {"progressToken": 1, "io.modelcontextprotocol/protocolVersion": "2026-07-28"},
                })
            ),
            json!({"name": "add", "_meta": {"progressToken": 1}})
        );
        assert_eq!(
            lowered(
                Part::Params("notifications/tools/list_changed"),
                json!({"_meta": {"io.modelcontextprotocol/subscriptionId": 3}})
            ),
            json!({})
        );
    }

    #[test]
    fn structured_content_that_is_no_object_becomes_text() {
        for (structured, text) in [(json!([1, 2]), "[1,2]"), (json!(null), "null"), (json!("a"), "\"a\"")] {
            assert_eq!(
                lowered(Part::Result("tools/call"), json!({"content": [], "structuredContent": structured})),
                json!({"content": [{"type": "text", "text": text}]})
            );
        }
        let object = json!({"content": [], "structuredContent": {"a": 1}});
        assert_eq!(lowered(Part::Result("tools/call"), object.clone()), object);
    }

    #[test]
    fn text_that_says_it_already_is_not_repeated() {
        let text = json!([{"type": "text", "text": "[ 1, 2 ]"}]);
        assert_eq!(
            lowered(Part::Result("tools/call"), json!({"content": text, "structuredContent": [1, 2]})),
            json!({"content": text})
        );
    }

    #[test]
    fn a_tool_result_in_a_sampled_conversation_too() {
        let message =
            |block: Value| json!({"messages": [{"role": "user", "content": [block]}], "maxTokens": 9});
        let block = json!({"type": "tool_result", "toolUseId": "1", "content": [], "structuredContent": 7});
        let text = json!([{"type": "text", "text": "7"}]);
        assert_eq!(
            lowered(Part::Params("sampling/createMessage"), message(block)),
            message(json!({"type": "tool_result", "toolUseId": "1", "content": text}))
        );
    }

    #[test]
    fn schemas_fit_the_narrower_rules() {
        let tools = json!({"tools": [
            {"name": "a", "inputSchema": {"type": "object", "properties": {"x": true, "y": false}},
             "outputSchema": {"type": "array"}},
            {"name": "b", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "$schema": "s"}},
        ]});
        assert_eq!(
            lowered(Part::Result("tools/list"), tools),
            json!({"tools": [
                {"name": "a", "inputSchema": {"type": "object", "properties": {"x": {}, "y": {"not": {}}}}},
                {"name": "b", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "$schema": "s"}},
            ]})
        );
    }

    #[test]
    fn extensions_stay_but_for_tasks() {
        let with = |extensions: Value| json!({"capabilities": {"extensions": extensions}});
        let ui = json!({"io.modelcontextprotocol/ui": {}});
        let both = json!({"io.modelcontextprotocol/ui": {}, "io.modelcontextprotocol/tasks": {}});
        assert_eq!(lowered(Part::Params("initialize"), with(both.clone())), with(ui.clone()));
        let mut raised = with(both);
        raise(Part::Result("initialize"), &mut raised);
        assert_eq!(raised, with(ui));
    }

    #[test]
    fn what_was_left_unsaid_is_spelled_out() {
        let mut value = json!({"capabilities": {"elicitation": {}}});
        raise(Part::Params("initialize"), &mut value);
        assert_eq!(value, json!({"capabilities": {"elicitation": {"form": {}}}}));

        let mut value = json!({"capabilities": {"elicitation": {"url": {}}}});
        raise(Part::Params("initialize"), &mut value);
        assert_eq!(value, json!({"capabilities": {"elicitation": {"url": {}}}}));

        let mut value = json!({"message": "who?", "requestedSchema": {}});
        raise(Part::Params("elicitation/create"), &mut value);
        assert_eq!(value, json!({"mode": "form", "message": "who?", "requestedSchema": {}}));
    }
}
