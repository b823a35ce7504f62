//! From the stateless shapes to the newest session shapes, and back.

use pintle_types::method;
use serde_json::{Value, json};

use super::{
    Part, Unsayable,
    step::{ANYTHING, NOTHING, RESERVED, Step},
    walk::{self, Object},
};

pub(super) const STEP: Step = Step { lower, raise, lowers, raises };

/// The stateless era says about each message what a session says once.
const PER_MESSAGE: &[&str] = &[
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/serverInfo",
    "io.modelcontextprotocol/subscriptionId",
];

/// How long a result keeps, and for whom.
const CACHE_HINTS: &[&str] = &["ttlMs", "cacheScope"];

/// What a request that is made again brings along.
const ROUND_TRIP: &[&str] = &["inputResponses", "requestState"];

/// Of the stateless era only: in a session it must not act.
const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn lower(part: Part<'_>, value: &mut Value) -> Result<(), Unsayable> {
    let Value::Object(payload) = value else { return Ok(()) };
    if let Part::Result(_) = part {
        match payload.shift_remove("resultType") {
            Some(Value::String(kind)) if kind != "complete" => return Err(Unsayable::Unfinished),
            _ => {}
        }
    }
    walk::remove_within(payload, "_meta", PER_MESSAGE);
    match part {
        Part::Result(
            method::PING
            | method::LOGGING_SET_LEVEL
            | method::RESOURCES_SUBSCRIBE
            | method::RESOURCES_UNSUBSCRIBE,
        ) => payload.clear(),
        Part::Result(method::TOOLS_CALL) => only_structured_objects(payload),
        Part::Result(method::TOOLS_LIST) => {
            walk::remove(payload, CACHE_HINTS);
            walk::listed(part, payload).for_each(plain_schemas);
        }
        Part::Result(
            method::PROMPTS_LIST
            | method::RESOURCES_LIST
            | method::RESOURCES_TEMPLATES_LIST
            | method::RESOURCES_READ,
        ) => {
            walk::remove(payload, CACHE_HINTS);
        }
        Part::Params(method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ) => {
            walk::remove(payload, ROUND_TRIP)
        }
        Part::Params(method::SAMPLING_CREATE_MESSAGE) => {
            walk::listed(part, payload).for_each(plain_schemas);
            walk::blocks(part, payload, only_structured_objects);
        }
        Part::Params(method::INITIALIZE) | Part::Result(method::INITIALIZE) => no_tasks_extension(payload),
        _ => {}
    }
    Ok(())
}

fn lowers(part: Part<'_>) -> &'static [&'static str] {
    match part {
        Part::Result(method::TOOLS_CALL) => &["resultType", "structuredContent", RESERVED],
        Part::Result(
            method::PING
            | method::LOGGING_SET_LEVEL
            | method::RESOURCES_SUBSCRIBE
            | method::RESOURCES_UNSUBSCRIBE,
        ) => ANYTHING,
        // Any schema may hold a boolean where this revision wants an object.
        Part::Result(method::TOOLS_LIST) | Part::Params(method::SAMPLING_CREATE_MESSAGE) => ANYTHING,
        Part::Result(
            method::PROMPTS_LIST
            | method::RESOURCES_LIST
            | method::RESOURCES_TEMPLATES_LIST
            | method::RESOURCES_READ,
        ) => &["resultType", "ttlMs", "cacheScope", RESERVED],
        Part::Result(_) => &["resultType", RESERVED],
        Part::Params(method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ) => {
            &["inputResponses", "requestState", RESERVED]
        }
        Part::Params(_) => &[RESERVED],
    }
}

/// An absent mode and an empty capability have one meaning each; canonically it is spelled out (ELI-1, ELI-3).
fn raise(part: Part<'_>, value: &mut Value) {
    let Value::Object(payload) = value else { return };
    match part {
        Part::Params(method::INITIALIZE) => {
            no_tasks_extension(payload);
            let elicitation =
                walk::object(payload, "capabilities").and_then(|all| walk::object(all, "elicitation"));
            if let Some(elicitation) = elicitation
                && elicitation.is_empty()
            {
                elicitation.insert("form".to_owned(), json!({}));
            }
        }
        Part::Result(method::INITIALIZE) => no_tasks_extension(payload),
        Part::Params(method::ELICITATION_CREATE) => {
            payload.entry("mode").or_insert_with(|| json!("form"));
        }
        _ => {}
    }
}

fn raises(part: Part<'_>) -> &'static [&'static str] {
    match part {
        Part::Params(method::INITIALIZE) => &["elicitation", RESERVED],
        Part::Result(method::INITIALIZE) => &[RESERVED],
        Part::Params(method::ELICITATION_CREATE) => ANYTHING,
        _ => NOTHING,
    }
}

/// `structuredContent` may be any JSON in the stateless era, but only an object here (TOOL-8).
fn only_structured_objects(holder: &mut Object) {
    if holder.get("structuredContent").is_some_and(|structured| !structured.is_object()) {
        walk::structured_to_text(holder);
    }
}

/// Here the root of an output schema is an object's, and the schema of a property is never just `true` or `false`.
fn plain_schemas(tool: &mut Object) {
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
}

fn no_tasks_extension(payload: &mut Object) {
    if let Some(capabilities) = walk::object(payload, "capabilities") {
        walk::remove_within(capabilities, "extensions", &[TASKS_EXTENSION]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
