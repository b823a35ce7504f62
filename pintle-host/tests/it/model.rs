//! Tools for model APIs: schemas, calls and results, as values.

use pintle::{
    Client, Server,
    server::{Arguments, tool},
    types::schema::{CallToolResult, ContentBlock, Tool},
};
use pintle_host::{
    Group,
    model::{ModelApi, ModelTools, ToolCall},
};
use serde_json::{Value, json};

const ALL: [ModelApi; 4] =
    [ModelApi::OpenAiChat, ModelApi::OpenAiResponses, ModelApi::Anthropic, ModelApi::Gemini];

fn tool_of(schema: &Value) -> Tool {
    Tool::new("t", schema.as_object().unwrap().clone())
}

/// The schema of a tool's arguments, as an API gets it.
fn parameters(api: ModelApi, strict: bool, schema: &Value) -> Value {
    let tools = ModelTools::new(api, [&tool_of(schema)]).strict(strict).to_json();
    match api {
        ModelApi::OpenAiChat => tools[0]["function"]["parameters"].clone(),
        ModelApi::OpenAiResponses => tools[0]["parameters"].clone(),
        ModelApi::Anthropic => tools[0]["input_schema"].clone(),
        _ => tools[0]["functionDeclarations"][0]["parameters"].clone(),
    }
}

/// The schema of the property `x`.
fn property(api: ModelApi, schema: &Value) -> Value {
    parameters(api, false, &json!({"type": "object", "properties": {"x": schema}}))["properties"]["x"].clone()
}

#[test]
fn the_shape_of_each_api() {
    let mut tool =
        tool_of(&json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}));
    tool.description = Some("Does it.".to_owned());
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    let table = [
        (
            ModelApi::OpenAiChat,
            json!([{"type": "function", "function": {"name": "t", "description": "Does it.", "parameters": schema, "strict": false}}]),
        ),
        (
            ModelApi::OpenAiResponses,
            json!([{"type": "function", "name": "t", "description": "Does it.", "parameters": schema, "strict": false}]),
        ),
        (ModelApi::Anthropic, json!([{"name": "t", "description": "Does it.", "input_schema": schema}])),
        (
            ModelApi::Gemini,
            json!([{"functionDeclarations": [{"name": "t", "description": "Does it.", "parameters":
                {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "required": ["a"]}}]}]),
        ),
    ];
    for (api, expected) in table {
        assert_eq!(ModelTools::new(api, [&tool]).to_json(), expected, "{api:?}");
        assert_eq!(ModelTools::new(api, []).to_json(), json!([]));
    }
}

#[test]
fn schemas_in_words_that_every_api_has() {
    let table = [
        // What it is, for OpenAI and Anthropic, for Gemini.
        (json!({"type": "string"}), json!({"type": "string"}), json!({"type": "STRING"})),
        (
            json!({"type": ["string", "null"], "description": "d"}),
            json!({"description": "d", "anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"description": "d", "type": "STRING", "nullable": true}),
        ),
        (
            json!({"type": ["string", "integer"], "minimum": 1, "maxLength": 5}),
            json!({"anyOf": [{"type": "string", "maxLength": 5}, {"type": "integer", "minimum": 1}]}),
            json!({"anyOf": [{"type": "STRING", "maxLength": 5}, {"type": "INTEGER", "minimum": 1}]}),
        ),
        (
            json!({"anyOf": [{"type": "integer", "format": "uint8", "minimum": 0}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]}),
            json!({"type": "INTEGER", "minimum": 0, "nullable": true}),
        ),
        (
            json!({"type": "string", "format": "uri", "description": "Where."}),
            json!({"description": "Where. (format: uri)", "type": "string"}),
            json!({"description": "Where. (format: uri)", "type": "STRING"}),
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!({"type": "string", "format": "date-time"}),
            json!({"type": "STRING", "format": "date-time"}),
        ),
        (
            json!({"oneOf": [{"const": "a", "description": "An a."}, {"const": "b"}]}),
            json!({"description": "`a`: An a.", "type": "string", "enum": ["a", "b"]}),
            json!({"description": "`a`: An a.", "type": "STRING", "format": "enum", "enum": ["a", "b"]}),
        ),
        (
            json!({"enum": [1, 2, null]}),
            json!({"anyOf": [{"type": "integer", "enum": [1, 2]}, {"type": "null"}]}),
            json!({"type": "STRING", "format": "enum", "enum": ["1", "2"], "nullable": true}),
        ),
        (
            json!({"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5}),
            json!({"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5}),
            json!({"description": "(greater than 0) (a multiple of 0.5)", "type": "NUMBER"}),
        ),
        (json!({}), json!({}), json!({"description": "(any value, as JSON text)", "type": "STRING"})),
        (json!(true), json!({}), json!({"description": "(any value, as JSON text)", "type": "STRING"})),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"type": "object", "properties": {}, "additionalProperties": {"type": "integer"}}),
            json!({"description": "(an object, as JSON text)", "type": "STRING"}),
        ),
        (
            json!({"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "items": false}),
            json!({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}),
            json!({"type": "ARRAY", "items": {"type": "NUMBER"}, "minItems": 2, "maxItems": 2}),
        ),
        (
            json!({"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "boolean"}}}],
                "required": ["b", "gone"]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}, "required": ["a", "b"]}),
            json!({"type": "OBJECT", "properties": {"a": {"type": "STRING"}, "b": {"type": "BOOLEAN"}}, "required": ["a", "b"]}),
        ),
        // Branches that only say what is required are for the server to check.
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}], "if": {}, "$comment": "x"}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}),
        ),
        (
            json!({"type": "integer", "default": 3, "examples": [1], "title": "X"}),
            json!({"type": "integer", "default": 3}),
            json!({"type": "INTEGER"}),
        ),
        (
            json!({"properties": {"a": {"minimum": 1}}}),
            json!({"type": "object", "properties": {"a": {"type": "number", "minimum": 1}}}),
            json!({"type": "OBJECT", "properties": {"a": {"type": "NUMBER", "minimum": 1}}}),
        ),
    ];
    for (schema, plain, gemini) in table {
        for api in [ModelApi::OpenAiChat, ModelApi::OpenAiResponses, ModelApi::Anthropic] {
            assert_eq!(property(api, &schema), plain, "{api:?} {schema}");
        }
        assert_eq!(property(ModelApi::Gemini, &schema), gemini, "{schema}");
    }
}

#[test]
fn references_are_replaced_and_recursion_ends() {
    let schema = json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Tree", "description": "The tree."}, "again": {"$ref": "#/definitions/n~1m"}, "gone": {"$ref": "other.json"}},
        "$defs": {"Tree": {"type": "object", "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}},
        "definitions": {"n/m": {"type": "integer"}}
    });
    let tree = parameters(ModelApi::Anthropic, false, &schema);
    assert_eq!(
        tree,
        json!({"type": "object", "properties": {
            "tree": {"description": "The tree.", "type": "object", "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"description": "(again a `Tree`)", "type": "object", "properties": {}}}
            }},
            "again": {"type": "integer"},
            "gone": {}
        }})
    );
    for api in ALL {
        let text = parameters(api, true, &schema).to_string();
        assert!(!text.contains("$ref") && !text.contains("$defs"), "{api:?} {text}");
    }
    // In a circle, and to itself.
    let circle = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}, "s": {"$ref": "#"}},
        "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}});
    let printed = parameters(ModelApi::OpenAiChat, false, &circle);
    assert_eq!(printed["properties"]["a"], json!({"description": "(again a `A`)"}));
    assert_eq!(printed["properties"]["s"]["type"], "object");
    // What is used twice is not within itself.
    let base = json!({"type": "object", "properties": {"x": {"allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}},
    "$defs": {
        "Base": {"type": "object", "properties": {"id": {"type": "string"}}},
        "A": {"$ref": "#/$defs/Base", "properties": {"a": {"$ref": "#/$defs/Base"}}},
        "B": {"$ref": "#/$defs/Base", "properties": {"b": {"type": "boolean"}}}
    }});
    let id = json!({"type": "object", "properties": {"id": {"type": "string"}}});
    assert_eq!(
        parameters(ModelApi::Anthropic, false, &base)["properties"]["x"],
        json!({"type": "object", "properties": {"id": {"type": "string"}, "a": id, "b": {"type": "boolean"}}})
    );
}

#[test]
fn what_a_schema_can_become_is_bounded() {
    // Each refers to the one before ten times over.
    let mut defs = json!({"d0": {"type": "string"}});
    for at in 1..20 {
        let refs: serde_json::Map<_, _> =
            (0..10).map(|n| (format!("p{n}"), json!({"$ref": format!("#/$defs/d{}", at - 1)}))).collect();
        defs[format!("d{at}")] = json!({"type": "object", "properties": refs});
    }
    let wide = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d19"}}, "$defs": defs});
    // A chain of references, and a nest of `allOf`.
    let mut chain = json!({});
    for at in 0..10_000 {
        chain[format!("c{at}")] = json!({"$ref": format!("#/$defs/c{}", at + 1)});
    }
    let chain = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/c0"}}, "$defs": chain});
    let mut nest = json!({"type": "string"});
    for _ in 0..100 {
        nest = json!({"allOf": [nest.clone()], "anyOf": [{"type": "string"}, nest]});
        if nest.to_string().len() > 100_000 {
            break;
        }
    }
    let nest = json!({"type": "object", "properties": {"x": nest}});
    // Each is made of the one before, twice.
    let mut doubled = json!({"d0": {"type": "string"}});
    for at in 1..30 {
        let before = json!({"$ref": format!("#/$defs/d{}", at - 1)});
        doubled[format!("d{at}")] = json!({"allOf": [before, before]});
    }
    let doubled = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d29"}}, "$defs": doubled});
    for schema in [wide, chain, nest, doubled] {
        for api in ALL {
            let text = parameters(api, false, &schema).to_string();
            assert!(text.len() < 2_000_000, "{}", text.len());
        }
    }
}

#[test]
fn what_is_copied_for_references_is_bounded_in_bytes() {
    let long = "x".repeat(200_000);
    let values: Vec<_> = (0..20_000).map(|at| format!("value {at}")).collect();
    let refs: serde_json::Map<_, _> =
        (0..1000).map(|at| (format!("p{at}"), json!({"$ref": "#/$defs/d"}))).collect();
    for large in [
        json!({"type": "string", "enum": values}),
        json!({"type": "string", "description": long}),
        json!({"type": "string", "default": long}),
        json!({"type": "string", "pattern": long}),
        json!({"type": "string", "format": long}),
        json!({"type": "object", "properties": {long.as_str(): {"type": "string"}}}),
        json!({"anyOf": [{"const": 1, "description": long}, {"const": 2, "description": long}]}),
    ] {
        let schema = json!({"type": "object", "properties": refs, "$defs": {"d": large}});
        for api in ALL {
            let size = parameters(api, false, &schema).to_string().len();
            assert!(size < 4 << 20, "{size} bytes of a schema of {}", schema.to_string().len());
        }
    }
}

/// Copying the properties for each of the branches would take minutes.
#[test]
fn branches_beyond_the_limit_are_not_looked_at() {
    let properties: serde_json::Map<_, _> =
        (0..4000).map(|at| (format!("p{at}"), json!({"type": "string"}))).collect();
    let branches: Vec<_> = (0..200_000).map(|_| json!({"type": "object"})).collect();
    let object = json!({"type": "object", "properties": properties, "anyOf": branches});
    let schema = json!({"type": "object", "properties": {"x": object}});
    for api in ALL {
        assert!(parameters(api, false, &schema).to_string().len() < 4 << 20);
    }
}

#[test]
fn the_root_is_an_object_whatever_it_says() {
    let table = [
        (json!({}), json!({"type": "object", "properties": {}})),
        (
            json!({"oneOf": [
                {"type": "object", "properties": {"a": {"type": "string"}, "k": {"type": "string"}}, "required": ["a", "k"]},
                {"type": "object", "properties": {"b": {"type": "string"}, "k": {"type": "string"}}, "required": ["b", "k"]}
            ]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "k": {"type": "string"}, "b": {"type": "string"}}, "required": ["k"]}),
        ),
        (
            json!({"type": "object", "$ref": "#/$defs/X", "$defs": {"X": {"properties": {"a": {}}}}}),
            json!({"type": "object", "properties": {"a": {}}}),
        ),
    ];
    for (schema, expected) in table {
        assert_eq!(parameters(ModelApi::Anthropic, false, &schema), expected, "{schema}");
    }
    // Gemini wants no parameters rather than none in them.
    assert_eq!(parameters(ModelApi::Gemini, false, &json!({"type": "object"})), Value::Null);
}

#[test]
fn strict_mode_and_the_way_back() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "string", "minLength": 1},
        "b": {"type": "integer", "default": 3},
        "c": {"type": ["string", "null"]},
        "d": {"type": "array", "items": {"type": "object", "properties": {"e": {"enum": ["x"]}}}}
    }, "required": ["a"]});
    let tool = tool_of(&schema);
    let tools = ModelTools::new(ModelApi::OpenAiResponses, [&tool]).strict(true);
    let nullable = |schema: Value| json!({"anyOf": [schema, {"type": "null"}]});
    assert_eq!(
        tools.to_json()[0]["parameters"],
        json!({"type": "object", "properties": {
            "a": {"type": "string"},
            "b": nullable(json!({"type": "integer"})),
            "c": nullable(json!({"type": "string"})),
            "d": nullable(json!({"type": "array", "items": {"type": "object",
                "properties": {"e": nullable(json!({"type": "string", "enum": ["x"]}))}, "required": ["e"], "additionalProperties": false}}))
        }, "required": ["a", "b", "c", "d"], "additionalProperties": false})
    );
    assert_eq!(tools.to_json()[0]["strict"], true);
    let call = tools.call(
        None,
        &json!("t"),
        &json!(r#"{"a": "x", "b": null, "c": null, "d": [{"e": null}, {"e": "x"}]}"#),
    );
    // Only what may be null is.
    assert_eq!(Value::from(call.arguments.unwrap()), json!({"a": "x", "c": null, "d": [{}, {"e": "x"}]}));
    // What cannot be said strictly is not strict, and is not changed on the way back.
    let free =
        tool_of(&json!({"type": "object", "properties": {"x": {"type": "object"}, "y": {"type": "string"}}}));
    let tools = ModelTools::new(ModelApi::OpenAiChat, [&free]).strict(true);
    assert_eq!(tools.to_json()[0]["function"]["strict"], false);
    let call = tools.call(None, &json!("t"), &json!({"y": null}));
    assert_eq!(Value::from(call.arguments.unwrap()), json!({"y": null}));
    // A tool without arguments can be.
    let none = tool_of(&json!({"type": "object"}));
    let tools = ModelTools::new(ModelApi::OpenAiChat, [&none]).strict(true).to_json();
    assert_eq!(
        tools[0]["function"]["parameters"],
        json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false})
    );
}

#[test]
fn what_gemini_could_not_say_is_restored() {
    let schema = json!({"type": "object", "properties": {
        "level": {"enum": [1, 2]},
        "any": {},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "list": {"type": "array", "items": {"enum": [true]}},
        "either": {"anyOf": [{"type": "object", "properties": {"k": {"const": 1}}, "required": ["k"]}, {"type": "string"}]},
        "text": {"type": "string"}
    }});
    let tools = ModelTools::new(ModelApi::Gemini, [&tool_of(&schema)]);
    let args = json!({"level": "2", "any": "[1]", "map": "{\"a\": 1}", "list": ["true"], "either": {"k": "1"}, "text": "{}"});
    let call = tools.call(None, &json!("t"), &args);
    assert_eq!(
        Value::from(call.arguments.unwrap()),
        json!({"level": 2, "any": [1], "map": {"a": 1}, "list": [true], "either": {"k": 1}, "text": "{}"})
    );
    // What is no JSON is the text that it is.
    let call = tools.call(None, &json!("t"), &json!({"any": "hello", "map": "hello", "level": "7"}));
    assert_eq!(Value::from(call.arguments.unwrap()), json!({"any": "hello", "map": "hello", "level": "7"}));
}

/// An answer of a model that calls `t`, in each API's words.
fn responses(arguments: Value) -> [(ModelApi, Value); 4] {
    let text = arguments.to_string();
    [
        (
            ModelApi::OpenAiChat,
            json!({"choices": [{"message": {"role": "assistant", "content": null, "tool_calls":
            [{"id": "c1", "type": "function", "function": {"name": "t", "arguments": text}}]}}]}),
        ),
        (
            ModelApi::OpenAiResponses,
            json!({"output": [{"type": "reasoning"}, {"type": "function_call", "call_id": "c1", "name": "t", "arguments": text}]}),
        ),
        (
            ModelApi::Anthropic,
            json!({"content": [{"type": "text", "text": "Well."}, {"type": "tool_use", "id": "c1", "name": "t", "input": arguments}]}),
        ),
        (
            ModelApi::Gemini,
            json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Well."}, {"functionCall": {"id": "c1", "name": "t", "args": arguments}}]}}]}),
        ),
    ]
}

#[test]
fn calls_of_each_api() {
    for (api, response) in responses(json!({"a": 1})) {
        let tools = ModelTools::new(api, []);
        let calls = tools.calls(&response);
        let [call] = &calls[..] else { panic!("{api:?} {calls:?}") };
        assert_eq!((call.id.as_deref(), call.name.as_str()), (Some("c1"), "t"));
        assert_eq!(call.arguments.clone().unwrap()["a"], 1);
        // The message alone will do, and an answer without calls has none.
        let message = match api {
            ModelApi::OpenAiChat => response.pointer("/choices/0/message"),
            ModelApi::OpenAiResponses => response.get("output"),
            ModelApi::Anthropic => response.get("content"),
            _ => response.pointer("/candidates/0/content"),
        };
        assert_eq!(tools.calls(message.unwrap()), calls);
        for other in
            [json!({}), json!(null), json!({"choices": []}), json!({"content": "Hello."}), json!([1])]
        {
            assert_eq!(tools.calls(&other), [], "{api:?}");
        }
    }
    let tools = ModelTools::new(ModelApi::OpenAiChat, []);
    for (arguments, expected) in [
        (json!(""), Ok(json!({}))),
        (json!(null), Ok(json!({}))),
        (json!("{\"a\": 1"), Err("the arguments are not valid JSON: ")),
        (json!("[1]"), Err("the arguments are not a JSON object: ")),
        (json!(7), Err("the arguments are not a JSON object: ")),
    ] {
        let call = tools.call(None, &json!("t"), &arguments);
        match (call.arguments, expected) {
            (Ok(read), Ok(expected)) => assert_eq!(Value::from(read), expected),
            (Err(reason), Err(expected)) => assert!(reason.starts_with(expected), "{reason}"),
            (read, expected) => panic!("{read:?} {expected:?}"),
        }
    }
}

fn result(content: Value, structured: Option<Value>, is_error: bool) -> CallToolResult {
    let mut result = CallToolResult::new(serde_json::from_value::<Vec<ContentBlock>>(content).unwrap());
    result.structured_content = structured;
    result.is_error = is_error.then_some(true);
    result
}

fn results(api: ModelApi, result: CallToolResult) -> Vec<Value> {
    let tools = ModelTools::new(api, []);
    let call = tools.call(Some("c1"), &json!("t"), &json!({}));
    tools.results(&[(call, result)])
}

#[test]
fn results_of_each_api() {
    let picture = json!([
        {"type": "text", "text": "Look:"},
        {"type": "image", "mimeType": "image/png", "data": "aGk="},
        {"type": "audio", "mimeType": "audio/wav", "data": "aGlo"}
    ]);
    let table = [
        (
            ModelApi::OpenAiChat,
            json!([
                {"role": "tool", "tool_call_id": "c1", "content": "Look:\n[a sound: audio/wav, 3 bytes, not shown]"},
                {"role": "user", "content": [{"type": "text", "text": "Images of `t`:"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]}
            ]),
        ),
        (
            ModelApi::OpenAiResponses,
            json!([{"type": "function_call_output", "call_id": "c1", "output": [
                {"type": "input_text", "text": "Look:\n[a sound: audio/wav, 3 bytes, not shown]"},
                {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
            ]}]),
        ),
        (
            ModelApi::Anthropic,
            json!([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [
                {"type": "text", "text": "Look:"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
                {"type": "text", "text": "[a sound: audio/wav, 3 bytes, not shown]"}
            ]}]}]),
        ),
        (
            ModelApi::Gemini,
            json!([{"role": "user", "parts": [
                {"functionResponse": {"id": "c1", "name": "t", "response": {"output": "Look:"}}},
                {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
                {"inlineData": {"mimeType": "audio/wav", "data": "aGlo"}}
            ]}]),
        ),
    ];
    for (api, expected) in table {
        assert_eq!(Value::from(results(api, result(picture.clone(), None, false))), expected, "{api:?}");
        assert_eq!(ModelTools::new(api, []).results(&[]), [] as [Value; 0]);
    }
}

#[test]
fn errors_structure_and_what_cannot_be_shown() {
    let failed = || result(json!([{"type": "text", "text": "no"}]), None, true);
    assert_eq!(results(ModelApi::OpenAiChat, failed())[0]["content"], "Error: no");
    assert_eq!(results(ModelApi::OpenAiResponses, failed())[0]["output"], "Error: no");
    assert_eq!(results(ModelApi::Anthropic, failed())[0]["content"][0]["is_error"], true);
    let response = &results(ModelApi::Gemini, failed())[0]["parts"][0]["functionResponse"]["response"];
    assert_eq!(*response, json!({"error": "no"}));

    let structured = || result(json!([]), Some(json!({"celsius": 7})), false);
    assert_eq!(results(ModelApi::OpenAiChat, structured())[0]["content"], r#"{"celsius":7}"#);
    assert_eq!(
        results(ModelApi::Anthropic, structured())[0]["content"][0]["content"][0]["text"],
        r#"{"celsius":7}"#
    );
    let response = &results(ModelApi::Gemini, structured())[0]["parts"][0]["functionResponse"]["response"];
    assert_eq!(*response, json!({"celsius": 7}));

    let others = json!([
        {"type": "text", "text": ""},
        {"type": "resource_link", "uri": "file:///a", "name": "a", "description": "An a."},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "b"}},
        {"type": "resource", "resource": {"uri": "file:///c", "mimeType": "image/webp", "blob": "aGk="}},
        {"type": "resource", "resource": {"uri": "file:///d", "blob": "aGlo"}},
        {"type": "image", "mimeType": "image/svg+xml", "data": "aGlo"}
    ]);
    assert_eq!(
        results(ModelApi::Anthropic, result(others, None, false))[0]["content"][0]["content"],
        json!([
            {"type": "text", "text": "[a](file:///a): An a."},
            {"type": "text", "text": "b"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": "aGk="}},
            {"type": "text", "text": "[file:///d: application/octet-stream, 3 bytes, not shown]"},
            {"type": "text", "text": "[an image: image/svg+xml, 3 bytes, not shown]"}
        ])
    );
}

#[test]
fn names_and_descriptions_that_an_api_does_not_take() {
    let mut tool = Tool::new("fs.read", json!({"type": "object"}).as_object().unwrap().clone());
    tool.description = Some("ä".repeat(2000));
    for api in ALL {
        let tools = ModelTools::new(api, [&tool]);
        let text = tools.to_json().to_string();
        assert!(text.contains("fs_read") && !text.contains("fs.read"), "{text}");
        let is_cut = matches!(api, ModelApi::OpenAiChat | ModelApi::OpenAiResponses);
        assert_eq!(text.matches('ä').count(), if is_cut { 1023 } else { 2000 });
        let call = tools.call(Some("c1"), &json!("fs_read"), &json!({}));
        assert_eq!(call.name, "fs.read");
        // The model is answered under the name that it used.
        if api == ModelApi::Gemini {
            let answer = tools.results(&[(call, result(json!([]), None, false))]);
            assert_eq!(answer[0]["parts"][0]["functionResponse"]["name"], "fs_read");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_call_of_a_model_is_answered() {
    let server = Server::new("s", "1")
        .tool(tool("echo", |Arguments(arguments)| async move { arguments.as_str().to_owned() }));
    let group = Group::new();
    group.add("s", Client::new("test", "1").connect(server.in_process().unwrap()).await.unwrap()).unwrap();
    let listing = group.tools().await;
    let tools = ModelTools::new(ModelApi::OpenAiChat, listing.iter());
    let run = async |name: &str, arguments: &str| {
        let call: ToolCall = tools.call(Some("c1"), &json!(name), &json!(arguments));
        let result = group.run(&call).await;
        (result.is_error == Some(true), result.text())
    };
    assert_eq!(run("s__echo", r#"{"a":1}"#).await, (false, r#"{"a":1}"#.to_owned()));
    let (failed, text) = run("s__ehco", "{}").await;
    assert!(failed && text.contains("did you mean `s__echo`?"), "{text}");
    let (failed, text) = run("s__echo", "{").await;
    assert!(failed && text.starts_with("the arguments are not valid JSON"), "{text}");
    group.connection("s").await.unwrap().close().await;
    let (failed, text) = run("s__echo", "{}").await;
    assert!(failed && text.contains("closed"), "{text}");
}
