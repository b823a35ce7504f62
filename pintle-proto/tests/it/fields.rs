//! Each field of the digest's 1.4 and 1.5, as peers of each revision see it: as it was said from its first revision on,
//! and never before.

use pintle_proto::{Part, Revision};
use serde_json::{Value, json};

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// Lowers a payload to each revision. A row is a place in it and a mark for each revision: `+` where the place is left
/// as it is, `-` where it is gone, changed, or where none of it can be said.
fn check(part: Part<'_>, payload: &Value, rows: &[(&str, &str)]) {
    for (revision, at) in REVISIONS.iter().zip(0..) {
        let mut lowered = payload.clone();
        let message = revision.parse::<Revision>().unwrap().lower(part, &mut lowered).is_ok();
        for (place, marks) in rows {
            let original = payload.pointer(place);
            assert!(original.is_some(), "{part:?} has no {place}");
            let kept = message && lowered.pointer(place) == original;
            assert_eq!(kept, marks.as_bytes()[at] == b'+', "{place} of {part:?} in {revision}: {lowered}");
        }
    }
}

fn icons() -> Value {
    json!([{"src": "https://example.com/i.png"}])
}

fn shown() -> Value {
    json!({"priority": 0.5, "lastModified": "2025-01-12T15:00:58Z"})
}

#[test]
fn of_tools() {
    let tool = |output: Value| {
        json!({"tools": [{"name": "t", "title": "T", "description": "d", "icons": icons(),
            "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            "outputSchema": output, "annotations": {"readOnlyHint": true}, "_meta": {"ui": {"resourceUri": "ui://a"}},
            "execution": {"taskSupport": "optional"}}]})
    };
    let part = Part::Result("tools/list");
    check(
        part,
        &tool(json!({"type": "object"})),
        &[
            ("/tools/0/name", "+++++"),
            ("/tools/0/description", "+++++"),
            ("/tools/0/inputSchema", "+++++"),
            ("/tools/0/annotations/readOnlyHint", "-++++"),
            ("/tools/0/title", "--+++"),
            ("/tools/0/outputSchema", "--+++"),
            ("/tools/0/_meta/ui", "--+++"),
            ("/tools/0/icons", "---++"),
        ],
    );
    check(part, &tool(json!({"type": "array"})), &[("/tools/0/outputSchema", "----+")]);
    check(part, &tool(json!({"anyOf": [{}]})), &[("/tools/0/outputSchema", "----+")]);
    let open =
        json!({"tools": [{"name": "t", "inputSchema": {"type": "object", "properties": {"a": true}}}]});
    check(part, &open, &[("/tools/0/inputSchema", "----+")]);
}

#[test]
fn of_prompts_and_resources() {
    check(
        Part::Result("prompts/list"),
        &json!({"prompts": [{"name": "p", "title": "P", "icons": icons(), "_meta": {"a": 1},
            "arguments": [{"name": "a", "title": "A", "required": true}]}]}),
        &[
            ("/prompts/0/name", "+++++"),
            ("/prompts/0/arguments/0/required", "+++++"),
            ("/prompts/0/arguments/0/title", "--+++"),
            ("/prompts/0/title", "--+++"),
            ("/prompts/0/_meta", "--+++"),
            ("/prompts/0/icons", "---++"),
        ],
    );
    for (method, list, key) in [
        ("resources/list", "resources", "uri"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate"),
    ] {
        let entry = json!({key: "r://a", "name": "r", "title": "R", "mimeType": "text/plain", "size": 3,
            "annotations": shown(), "icons": icons(), "_meta": {"a": 1}});
        let place = |member: &str| format!("/{list}/0/{member}");
        let rows = [
            ("size", "+++++"),
            ("annotations/priority", "+++++"),
            ("annotations/lastModified", "--+++"),
            ("title", "--+++"),
            ("_meta", "--+++"),
            ("icons", "---++"),
        ];
        let rows = rows.map(|(member, marks)| (place(member), marks));
        let rows: Vec<_> = rows.iter().map(|(place, marks)| (place.as_str(), *marks)).collect();
        check(Part::Result(method), &json!({list: [entry]}), &rows);
    }
    check(
        Part::Result("resources/read"),
        &json!({"contents": [{"uri": "r://a", "text": "a", "_meta": {"ui": {"csp": {}}}}]}),
        &[("/contents/0/text", "+++++"), ("/contents/0/_meta/ui", "--+++")],
    );
    check(
        Part::Result("roots/list"),
        &json!({"roots": [{"uri": "file:///a", "name": "a", "_meta": {"a": 1}}]}),
        &[("/roots/0/name", "+++++"), ("/roots/0/_meta", "--+++")],
    );
}

#[test]
fn of_content() {
    let content = json!([
        {"type": "text", "text": "t", "annotations": shown(), "_meta": {"a": 1}},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "r://a", "text": "A"}},
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "r://a", "name": "a"},
    ]);
    let rows = [
        ("/content/0/text", "+++++"),
        ("/content/0/annotations/priority", "+++++"),
        ("/content/0/annotations/lastModified", "--+++"),
        ("/content/0/_meta", "--+++"),
        ("/content/1", "+++++"),
        ("/content/2", "+++++"),
        ("/content/3", "-++++"),
        ("/content/4", "--+++"),
    ];
    check(Part::Result("tools/call"), &json!({ "content": content }), &rows);
    let messages: Vec<_> =
        content.as_array().unwrap().iter().map(|block| json!({"role": "user", "content": block})).collect();
    check(
        Part::Result("prompts/get"),
        &json!({ "messages": messages }),
        &[
            ("/messages/1", "+++++"),
            ("/messages/2", "+++++"),
            ("/messages/3", "-++++"),
            ("/messages/4", "--+++"),
        ],
    );
    for (structured, marks) in
        [(json!({"a": 1}), "--+++"), (json!([1]), "----+"), (json!("a"), "----+"), (json!(null), "----+")]
    {
        let result = json!({"content": [], "structuredContent": structured});
        check(Part::Result("tools/call"), &result, &[("/structuredContent", marks)]);
    }
}

#[test]
fn of_the_handshake() {
    let program = json!({"name": "p", "version": "1", "title": "P", "description": "d",
        "websiteUrl": "https://example.com", "icons": icons()});
    let person = |key: &str| {
        let rows = [
            ("name", "+++++"),
            ("title", "--+++"),
            ("icons", "---++"),
            ("description", "---++"),
            ("websiteUrl", "---++"),
        ];
        rows.map(|(member, marks)| (format!("/{key}/{member}"), marks))
    };
    let all = |own: &[(&'static str, &'static str)], key| {
        let own = own.iter().map(|(member, marks)| (format!("/capabilities/{member}"), *marks));
        person(key).into_iter().chain(own).collect::<Vec<_>>()
    };
    let asked = json!({"protocolVersion": "2025-11-25", "clientInfo": program, "capabilities": {
        "roots": {"listChanged": true}, "sampling": {"tools": {}, "context": {}},
        "elicitation": {"form": {}, "url": {}}, "tasks": {"list": {}},
        "experimental": {"acme": {"a": 1}}, "extensions": {"com.example/x": {"b": 1}}}});
    let rows = all(
        &[
            ("roots", "+++++"),
            ("experimental", "+++++"),
            ("extensions", "+++++"),
            ("sampling/tools", "---++"),
            ("sampling/context", "---++"),
            ("elicitation/url", "---++"),
        ],
        "clientInfo",
    );
    let rows: Vec<_> = rows.iter().map(|(place, marks)| (place.as_str(), *marks)).collect();
    check(Part::Params("initialize"), &asked, &rows);
    let plain = json!({"capabilities": {"elicitation": {}, "sampling": {}}});
    check(
        Part::Params("initialize"),
        &plain,
        &[("/capabilities/elicitation", "--+++"), ("/capabilities/sampling", "+++++")],
    );

    let answered = json!({"protocolVersion": "2025-11-25", "serverInfo": program, "instructions": "Ask.",
        "capabilities": {"tools": {"listChanged": true}, "prompts": {"listChanged": true}, "logging": {},
            "resources": {"subscribe": true, "listChanged": true}, "completions": {}, "tasks": {"list": {}},
            "experimental": {"acme": {"a": 1}}, "extensions": {"com.example/x": {"b": 1}}}});
    let rows = all(
        &[
            ("tools", "+++++"),
            ("prompts", "+++++"),
            ("resources", "+++++"),
            ("logging", "+++++"),
            ("experimental", "+++++"),
            ("extensions", "+++++"),
            ("completions", "-++++"),
        ],
        "serverInfo",
    );
    let mut rows: Vec<_> = rows.iter().map(|(place, marks)| (place.as_str(), *marks)).collect();
    rows.push(("/instructions", "+++++"));
    check(Part::Result("initialize"), &answered, &rows);
}

#[test]
fn of_questions_and_their_answers() {
    let sampling = Part::Params("sampling/createMessage");
    let text = json!({"type": "text", "text": "t"});
    let used = json!([{"type": "tool_use", "id": "1", "name": "t", "input": {}}]);
    let result = |structured: Value| json!([{"type": "tool_result", "toolUseId": "1", "content": [], "structuredContent": structured}]);
    let asks = |content: Value| json!({"maxTokens": 9, "messages": [{"role": "user", "content": content}]});
    check(sampling, &asks(text.clone()), &[("/messages/0", "+++++")]);
    for (content, marks) in [
        (json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav"}), "-++++"),
        (json!([text]), "---++"),
        (used.clone(), "---++"),
        (result(json!({"a": 1})), "---++"),
        (result(json!([1])), "----+"),
    ] {
        check(sampling, &asks(content), &[("/messages/0/content", marks)]);
    }
    let mut tools = asks(text.clone());
    tools["tools"] = json!([{"name": "t", "inputSchema": {"type": "object"}}]);
    check(sampling, &tools, &[("/tools", "---++")]);
    for (content, reason, marks) in [(text, "endTurn", "+++++"), (used, "toolUse", "---++")] {
        let answer = json!({"role": "assistant", "model": "m", "content": content, "stopReason": reason});
        check(
            Part::Result("sampling/createMessage"),
            &answer,
            &[("/content", marks), ("/stopReason", marks)],
        );
    }

    let form = |field: Value| json!({"message": "?", "requestedSchema": {"type": "object", "properties": {"field": field}}});
    let titled = json!([{"const": "s", "title": "Small"}]);
    for (field, marks) in [
        (json!({"type": "string"}), "--+++"),
        (json!({"type": "boolean", "default": true}), "--+++"),
        (json!({"type": "string", "enum": ["a"], "enumNames": ["A"]}), "--+++"),
        (json!({"type": "string", "default": "a"}), "---++"),
        (json!({"type": "integer", "default": 1}), "---++"),
        (json!({"type": "string", "enum": ["a"], "default": "a"}), "---++"),
        (json!({"type": "string", "oneOf": titled}), "---++"),
        (json!({"type": "array", "items": {"type": "string", "enum": ["a"]}}), "---++"),
        (json!({"type": "array", "items": {"anyOf": titled}}), "---++"),
    ] {
        let place = "/requestedSchema/properties/field";
        check(Part::Params("elicitation/create"), &form(field), &[(place, marks)]);
    }
    let page = json!({"mode": "url", "message": "?", "url": "https://example.com", "elicitationId": "e"});
    check(Part::Params("elicitation/create"), &page, &[("/url", "---++")]);
}

#[test]
fn of_requests_results_and_notifications() {
    check(
        Part::Params("completion/complete"),
        &json!({"ref": {"type": "ref/prompt", "name": "p", "title": "P"}, "argument": {"name": "a", "value": ""},
            "context": {"arguments": {"b": "c"}}}),
        &[("/argument", "+++++"), ("/ref/title", "--+++"), ("/context", "--+++")],
    );
    check(
        Part::Params("tools/call"),
        &json!({"name": "t", "arguments": {"a": 1}, "requestState": "s", "inputResponses": {}, "_meta": {
            "progressToken": 1, "traceparent": "00-a-b-01", "tracestate": "a=b", "baggage": "k=v", "com.example/a": 1,
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            "io.modelcontextprotocol/logLevel": "info"}}),
        &[
            ("/arguments", "+++++"),
            ("/_meta/progressToken", "+++++"),
            ("/_meta/traceparent", "+++++"),
            ("/_meta/tracestate", "+++++"),
            ("/_meta/baggage", "+++++"),
            ("/_meta/com.example~1a", "+++++"),
            ("/requestState", "----+"),
            ("/inputResponses", "----+"),
            ("/_meta/io.modelcontextprotocol~1protocolVersion", "----+"),
            ("/_meta/io.modelcontextprotocol~1clientCapabilities", "----+"),
            ("/_meta/io.modelcontextprotocol~1clientInfo", "----+"),
            ("/_meta/io.modelcontextprotocol~1logLevel", "----+"),
        ],
    );
    check(
        Part::Result("tools/list"),
        &json!({"tools": [], "resultType": "complete", "ttlMs": 5, "cacheScope": "public",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}}),
        &[
            ("/tools", "+++++"),
            ("/resultType", "----+"),
            ("/ttlMs", "----+"),
            ("/cacheScope", "----+"),
            ("/_meta/io.modelcontextprotocol~1serverInfo", "----+"),
        ],
    );
    check(
        Part::Params("notifications/progress"),
        &json!({"progressToken": 1, "progress": 1, "total": 2, "message": "half"}),
        &[("/progress", "+++++"), ("/total", "+++++"), ("/message", "-++++")],
    );
    check(
        Part::Params("notifications/resources/updated"),
        &json!({"uri": "r://a", "_meta": {"io.modelcontextprotocol/subscriptionId": 1}}),
        &[("/uri", "+++++"), ("/_meta/io.modelcontextprotocol~1subscriptionId", "----+")],
    );
}
