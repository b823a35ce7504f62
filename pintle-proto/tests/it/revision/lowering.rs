//! Canonical payloads, lowered to every revision and held against that revision's own schema.

use pintle_proto::{Part, Revision, Unsayable};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::schema::{self, schema};

/// A canonical payload and the definition that it must fit in every revision that has one.
struct Sample {
    part: Part<'static>,
    definition: &'static str,
    value: Value,
}

fn result(method: &'static str, definition: &'static str, mut value: Value) -> Sample {
    // Every result of the stateless era says this of itself.
    value["resultType"] = json!("complete");
    let server = json!({"name": "s", "version": "1", "title": "S"});
    value["_meta"] = json!({"io.modelcontextprotocol/serverInfo": server, "acme/trace": "t"});
    Sample { part: Part::Result(method), definition, value }
}

fn cacheable(method: &'static str, definition: &'static str, mut value: Value) -> Sample {
    value["ttlMs"] = json!(60_000);
    value["cacheScope"] = json!("public");
    result(method, definition, value)
}

/// An answer of the client to a question of the server: no `resultType` in any revision.
fn answer(method: &'static str, definition: &'static str, value: Value) -> Sample {
    Sample { part: Part::Result(method), definition, value }
}

fn params(method: &'static str, definition: &'static str, value: Value) -> Sample {
    Sample { part: Part::Params(method), definition, value }
}

/// As a client of the stateless era asks.
fn request(method: &'static str, definition: &'static str, mut value: Value) -> Sample {
    value["_meta"] = json!({
        "progressToken": 7,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        "io.modelcontextprotocol/logLevel": "info",
    });
    params(method, definition, value)
}

/// On a subscription of the stateless era.
fn tagged(method: &'static str, definition: &'static str, mut value: Value) -> Sample {
    value["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": "s1"});
    params(method, definition, value)
}

fn icons() -> Value {
    json!([{"src": "https://a.example/i.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}])
}

fn annotations() -> Value {
    json!({"audience": ["user"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58Z"})
}

fn text() -> Value {
    json!({"type": "text", "text": "hello", "annotations": annotations(), "_meta": {"acme/k": 1}})
}

fn image() -> Value {
    json!({"type": "image", "data": "AAAA", "mimeType": "image/png", "annotations": annotations(), "_meta": {}})
}

fn audio() -> Value {
    json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav", "annotations": annotations(), "_meta": {}})
}

fn embedded() -> Value {
    let resource = json!({"uri": "file:///a", "mimeType": "text/plain", "text": "a", "_meta": {"acme/k": 1}});
    json!({"type": "resource", "resource": resource, "annotations": annotations(), "_meta": {}})
}

fn resource() -> Value {
    json!({"uri": "file:///a", "name": "a", "title": "A", "description": "d", "mimeType": "text/plain", "size": 3,
        "annotations": annotations(), "icons": icons(), "_meta": {"acme/k": 1}})
}

fn link() -> Value {
    let mut link = resource();
    link["type"] = json!("resource_link");
    link
}

fn tools() -> Value {
    let hints = json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false});
    let input = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "properties": {"a": {"type": "number", "title": "A", "x-mcp-header": "a"}, "any": true},
        "required": ["a"], "additionalProperties": false});
    json!([
        {"name": "full", "title": "Full", "description": "d", "inputSchema": input, "annotations": hints,
         "outputSchema": {"type": "object", "properties": {"sum": {"type": "number"}, "any": true}},
         "icons": icons(), "_meta": {"ui": {"resourceUri": "ui://a"}}},
        {"name": "array", "title": "Array", "inputSchema": {"type": "object"},
         "outputSchema": {"type": "array", "items": {"type": "number"}}},
        {"name": "either", "inputSchema": {"type": "object", "oneOf": [{}]}, "outputSchema": {"anyOf": [{}]}},
        {"name": "bare", "inputSchema": {"type": "object", "additionalProperties": false}},
    ])
}

fn samples() -> Vec<Sample> {
    let program = json!({"name": "p", "version": "1", "title": "P", "description": "d",
        "websiteUrl": "https://p.example", "icons": icons()});
    let form = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "title": "Name", "description": "d", "minLength": 1, "maxLength": 9,
            "format": "email", "default": "a@b.example"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
        "fast": {"type": "boolean", "title": "Fast", "default": true},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}], "default": "s"},
        "shape": {"type": "string", "enum": ["o"], "enumNames": ["Circle"], "default": "o"},
    }});
    vec![
        answer(
            "initialize",
            "InitializeResult",
            json!({"protocolVersion": "2025-11-25", "instructions": "be kind", "serverInfo": program,
            "capabilities": {
                "tools": {"listChanged": true}, "prompts": {"listChanged": true}, "logging": {},
                "resources": {"subscribe": true, "listChanged": true}, "completions": {},
                "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
                "experimental": {"acme": {"icons": 1}},
                "extensions": {"io.modelcontextprotocol/tasks": {}, "io.modelcontextprotocol/ui": {}},
            }}),
        ),
        params(
            "initialize",
            "InitializeRequest",
            json!({"protocolVersion": "2025-11-25", "clientInfo": program, "capabilities": {
                "roots": {"listChanged": true}, "sampling": {"tools": {}, "context": {}},
                "elicitation": {"form": {}, "url": {}}, "experimental": {"acme": {}},
                "tasks": {"list": {}, "cancel": {}, "requests": {"sampling": {"createMessage": {}}}},
                "extensions": {"io.modelcontextprotocol/tasks": {}, "io.modelcontextprotocol/ui": {}},
            }}),
        ),
        result("ping", "EmptyResult", json!({})),
        result("logging/setLevel", "EmptyResult", json!({})),
        result("resources/subscribe", "EmptyResult", json!({})),
        result("resources/unsubscribe", "EmptyResult", json!({})),
        cacheable("tools/list", "ListToolsResult", json!({"tools": tools(), "nextCursor": "2"})),
        cacheable(
            "resources/list",
            "ListResourcesResult",
            json!({"resources": [resource()], "nextCursor": ""}),
        ),
        cacheable(
            "resources/templates/list",
            "ListResourceTemplatesResult",
            json!({"resourceTemplates": [{"uriTemplate": "file:///{a}", "name": "a", "title": "A", "description": "d",
                "mimeType": "text/plain", "annotations": annotations(), "icons": icons(), "_meta": {}}]}),
        ),
        cacheable(
            "resources/read",
            "ReadResourceResult",
            json!({"contents": [
                {"uri": "file:///a", "mimeType": "text/plain", "text": "a", "_meta": {"ui": {}}},
                {"uri": "file:///b", "mimeType": "image/png", "blob": "AAAA", "_meta": {}},
            ]}),
        ),
        cacheable(
            "prompts/list",
            "ListPromptsResult",
            json!({"prompts": [{"name": "p", "title": "P", "description": "d", "icons": icons(), "_meta": {},
                "arguments": [{"name": "a", "title": "A", "description": "d", "required": true}]}]}),
        ),
        result(
            "prompts/get",
            "GetPromptResult",
            json!({"description": "d", "messages": [
                {"role": "user", "content": text()}, {"role": "assistant", "content": image()},
                {"role": "user", "content": audio()}, {"role": "user", "content": embedded()},
                {"role": "user", "content": link()},
            ]}),
        ),
        result(
            "completion/complete",
            "CompleteResult",
            json!({"completion": {"values": ["a"], "total": 1, "hasMore": false}}),
        ),
        result(
            "tools/call",
            "CallToolResult",
            json!({"content": [text(), image(), audio(), embedded(), link()], "isError": false,
                "structuredContent": {"icons": 1, "title": "kept"}}),
        ),
        result("tools/call", "CallToolResult", json!({"content": [], "structuredContent": [1, 2]})),
        result("tools/call", "CallToolResult", json!({"content": [text()], "structuredContent": null})),
        params(
            "sampling/createMessage",
            "CreateMessageRequest",
            json!({"maxTokens": 9, "systemPrompt": "be kind", "includeContext": "none", "temperature": 0.5,
            "stopSequences": ["x"], "metadata": {"icons": 1},
            "modelPreferences": {"hints": [{"name": "m"}], "costPriority": 0, "speedPriority": 0.5,
                "intelligencePriority": 1},
            "messages": [
                {"role": "user", "content": [text(), audio()], "_meta": {"acme/k": 1}},
                {"role": "assistant", "content": image()},
            ]}),
        ),
        params(
            "sampling/createMessage",
            "CreateMessageRequest",
            json!({"maxTokens": 9, "tools": tools(), "toolChoice": {"mode": "auto"}, "messages": [
                {"role": "assistant", "content": {"type": "tool_use", "id": "1", "name": "add", "input": {}}},
                {"role": "user", "content": [{"type": "tool_result", "toolUseId": "1", "content": [text(), link()],
                    "structuredContent": [3], "isError": false, "_meta": {}}], "_meta": {}},
            ]}),
        ),
        answer(
            "sampling/createMessage",
            "CreateMessageResult",
            json!({"role": "assistant", "model": "m", "stopReason": "endTurn", "content": [text(), text()]}),
        ),
        answer(
            "sampling/createMessage",
            "CreateMessageResult",
            json!({"role": "assistant", "model": "m", "content": audio()}),
        ),
        params("roots/list", "ListRootsRequest", json!({})),
        answer(
            "roots/list",
            "ListRootsResult",
            json!({"roots": [{"uri": "file:///a", "name": "a", "_meta": {"acme/k": 1}}]}),
        ),
        params(
            "elicitation/create",
            "ElicitRequest",
            json!({"mode": "form", "message": "who?", "requestedSchema": form}),
        ),
        params(
            "elicitation/create",
            "ElicitRequest",
            json!({"message": "which?", "requestedSchema": {"type": "object", "properties": {
                "all": {"type": "array", "items": {"type": "string", "enum": ["a"]}, "default": ["a"]},
                "some": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}, "minItems": 1},
            }}}),
        ),
        params(
            "elicitation/create",
            "ElicitRequest",
            json!({"mode": "url", "message": "go", "url": "https://a.example", "elicitationId": "e1"}),
        ),
        answer(
            "elicitation/create",
            "ElicitResult",
            json!({"action": "accept", "content": {"name": "a", "count": 3, "fast": true}}),
        ),
        params(
            "notifications/progress",
            "ProgressNotification",
            json!({"progressToken": "t", "progress": 1, "total": 2, "message": "half way"}),
        ),
        params(
            "notifications/message",
            "LoggingMessageNotification",
            json!({"level": "info", "logger": "l", "data": {"icons": 1}}),
        ),
        params("notifications/cancelled", "CancelledNotification", json!({"requestId": 1, "reason": "late"})),
        tagged("notifications/resources/updated", "ResourceUpdatedNotification", json!({"uri": "file:///a"})),
        tagged("notifications/resources/list_changed", "ResourceListChangedNotification", json!({})),
        tagged("notifications/tools/list_changed", "ToolListChangedNotification", json!({})),
        tagged("notifications/prompts/list_changed", "PromptListChangedNotification", json!({})),
        params(
            "notifications/elicitation/complete",
            "ElicitationCompleteNotification",
            json!({"elicitationId": "e1"}),
        ),
        request("tools/list", "ListToolsRequest", json!({"cursor": "2"})),
        request(
            "tools/call",
            "CallToolRequest",
            json!({"name": "add", "arguments": {"icons": 1, "task": 2}, "requestState": "s",
                "inputResponses": {"k": {"action": "decline"}}}),
        ),
        request("resources/list", "ListResourcesRequest", json!({})),
        request("resources/templates/list", "ListResourceTemplatesRequest", json!({})),
        request("resources/read", "ReadResourceRequest", json!({"uri": "file:///a", "requestState": "s"})),
        request("prompts/list", "ListPromptsRequest", json!({})),
        request(
            "prompts/get",
            "GetPromptRequest",
            json!({"name": "p", "arguments": {"task": "t"}, "requestState": "s"}),
        ),
        request(
            "completion/complete",
            "CompleteRequest",
            json!({"ref": {"type": "ref/prompt", "name": "p", "title": "P"}, "argument": {"name": "a", "value": "v"},
                "context": {"arguments": {"b": "w"}}}),
        ),
        params("resources/subscribe", "SubscribeRequest", json!({"uri": "file:///a"})),
        params("logging/setLevel", "SetLevelRequest", json!({"level": "info"})),
    ]
}

/// What each old revision cannot say of the samples; all else must be sayable.
fn refusal(revision: &str, sample: &Sample) -> Option<Unsayable> {
    let text = sample.value.to_string();
    match (revision, sample.part) {
        ("2025-11-25", _) => None,
        ("2025-06-18", Part::Params("elicitation/create")) if text.contains("elicitationId") => {
            Some(Unsayable::UrlElicitation)
        }
        ("2025-06-18", Part::Params("elicitation/create")) if text.contains("array") => {
            Some(Unsayable::MultipleChoice)
        }
        // The newer steps refuse first, and say more exactly what could not be said.
        (_, Part::Params("elicitation/create")) if revision != "2025-06-18" => {
            refusal("2025-06-18", sample).or(Some(Unsayable::Elicitation))
        }
        (_, Part::Params("sampling/createMessage")) if text.contains("tool_use") => {
            Some(Unsayable::SamplingTools)
        }
        _ => None,
    }
}

#[test]
fn every_payload_fits_the_schema_of_every_revision() {
    let mut checked = 0;
    for revision in Revision::all().filter(|revision| *revision != Revision::LATEST) {
        let Some(schema) = schema(revision) else { return };
        for sample in samples() {
            let about = format!("{:?} for {revision}", sample.part);
            let mut lowered = sample.value.clone();
            let outcome = revision.lower(sample.part, &mut lowered);
            assert_eq!(outcome.err(), refusal(revision.as_str(), &sample), "{about}");
            if outcome.is_err() || !schema.has(sample.definition) {
                continue;
            }
            let keys = lowered.get("_meta").and_then(Value::as_object).into_iter().flat_map(Map::keys);
            assert_eq!(keys.filter(|key| key.starts_with("io.modelcontextprotocol/")).count(), 0, "{about}");
            let message = schema::message(sample.part, lowered);
            schema.validates(sample.definition, &message, &about);
            schema.lists_every_member(sample.definition, &message, &about);
            checked += 1;
        }
    }
    assert!(checked > 140, "only {checked} payloads were checked");
}

/// If this fails the samples are wrong, not the lowering.
#[test]
fn every_sample_is_canonical() {
    let Some(schema) = schema(Revision::LATEST) else { return };
    for sample in samples() {
        let about = format!("{:?}", sample.part);
        if let Part::Result(_) = sample.part
            && schema.has(sample.definition)
        {
            schema.validates(sample.definition, &sample.value, &about);
        }
    }
}

#[test]
fn acknowledgements_are_exactly_empty() {
    for revision in Revision::all().filter(|revision| *revision != Revision::LATEST) {
        for sample in samples().into_iter().filter(|sample| sample.definition == "EmptyResult") {
            let mut value = sample.value;
            revision.lower(sample.part, &mut value).unwrap();
            assert_eq!(value, json!({}), "{:?} for {revision}", sample.part);
        }
    }
}

#[test]
fn lowering_twice_changes_nothing_more() {
    for revision in Revision::all() {
        for sample in samples() {
            let mut once = sample.value;
            if revision.lower(sample.part, &mut once).is_err() {
                continue;
            }
            let mut twice = once.clone();
            assert_eq!(revision.lower(sample.part, &mut twice), Ok(()));
            assert_eq!(once, twice, "{:?} for {revision}", sample.part);
        }
    }
}

proptest! {
    /// The judgement from the text may be too careful, never too careless: whatever a payload has or lacks, and under
    /// whatever method it is said.
    #[test]
    fn what_is_changed_was_foreseen(
        kept_names in prop::collection::vec(any::<bool>(), 64),
        kept in prop::collection::vec(prop::bool::weighted(0.9), 97),
        other_method in 0..100_usize,
        escaped in any::<bool>(),
    ) {
        let all = samples();
        for (index, sample) in all.iter().enumerate() {
            let mut before = sample.value.clone();
            let mut kept = kept.iter().copied().cycle().skip(index);
            prune(&mut before, &mut |name| kept_names[hash(name) % kept_names.len()] && kept.next() == Some(true));
            let text = if escaped { escape(&before.to_string()) } else { before.to_string() };
            for part in [sample.part, all[(index + other_method) % all.len()].part] {
                foreseen(part, &before, &text)?;
            }
        }
    }
}

fn foreseen(part: Part<'_>, before: &Value, text: &str) -> Result<(), TestCaseError> {
    for revision in Revision::all() {
        let mut after = before.clone();
        let refused = revision.lower(part, &mut after).is_err();
        if refused || after != *before {
            prop_assert!(revision.lowers(part, text), "lower {part:?} for {revision}: {before} -> {after}");
        }
        let mut after = before.clone();
        revision.raise(part, &mut after).unwrap();
        if after != *before {
            prop_assert!(revision.raises(part, text), "raise {part:?} for {revision}: {before} -> {after}");
        }
    }
    Ok(())
}

/// Leaves out members.
fn prune(value: &mut Value, keep: &mut impl FnMut(&str) -> bool) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| keep(name));
            members.values_mut().for_each(|member| prune(member, keep));
        }
        Value::Array(elements) => {
            elements.iter_mut().for_each(|element| prune(element, keep));
        }
        _ => {}
    }
}

fn hash(name: &str) -> usize {
    name.bytes().fold(7, |hash, byte| hash * 31 % 9_973 + usize::from(byte))
}

/// The same JSON as a stubborn peer would print it.
fn escape(text: &str) -> String {
    text.replace('_', "\\u005f").replace('/', "\\/").replace('T', "\\u0054")
}
