//! Schemas of arguments and results.

use serde_json::{Value, json};

use crate::support::{document, input, operation, tools};

/// Returns the schema that a query parameter with this one has, in a version.
fn lowered(version: &str, schema: Value) -> Value {
    let parameter = json!({ "name": "p", "in": "query", "schema": schema });
    let mut document = operation("get", "/x", json!({ "parameters": [parameter] }));
    document["openapi"] = version.into();
    input(document)["properties"]["p"].clone()
}

#[test]
fn schemas_of_3_0_become_those_of_2020_12() {
    for (schema, wanted) in [
        (json!({ "type": "string", "nullable": true }), json!({ "type": ["string", "null"] })),
        (
            json!({ "type": "string", "nullable": true, "enum": ["a"] }),
            json!({ "type": ["string", "null"], "enum": ["a", null] }),
        ),
        (
            json!({ "nullable": true, "allOf": [{ "type": "string" }] }),
            json!({ "anyOf": [{ "allOf": [{ "type": "string" }] }, { "type": "null" }] }),
        ),
        (
            json!({ "type": "number", "minimum": 1, "exclusiveMinimum": true, "maximum": 2, "exclusiveMaximum": false }),
            json!({ "type": "number", "maximum": 2, "exclusiveMinimum": 1 }),
        ),
        (
            json!({ "type": "string", "example": "a", "xml": {}, "x-y": 1 }),
            json!({ "type": "string", "examples": ["a"] }),
        ),
        (json!({ "type": "array" }), json!({ "type": "array", "items": {} })),
        (json!({ "oneOf": [{ "type": "object" }] }), json!({ "oneOf": [{ "type": "object" }] })),
        (
            json!({ "oneOf": [{ "type": "object" }], "discriminator": { "propertyName": "kind" } }),
            json!({ "anyOf": [{ "type": "object" }], "description": "`kind` says which." }),
        ),
    ] {
        assert_eq!(lowered("3.0.3", schema.clone()), wanted, "{schema}");
    }
    assert_eq!(lowered("3.1.0", json!({ "type": "string", "nullable": true })), json!({ "type": "string" }));
    assert_eq!(
        lowered("3.1.0", json!({ "type": ["string", "null"] })),
        json!({ "type": ["string", "null"] })
    );
}

#[test]
fn names_are_not_taken_for_keywords() {
    let schema = json!({
        "type": "object",
        "properties": { "nullable": { "type": "boolean" }, "$ref": { "type": "string" }, "example": {}, "required": {}, "readOnly": {} },
        "required": ["nullable", "$ref"],
        "default": { "$ref": "#/nowhere", "nullable": true },
        "enum": [{ "$ref": "#/nowhere" }],
    });
    assert_eq!(lowered("3.0.3", schema.clone()), schema);
}

#[test]
fn what_is_no_schema_is_left_out_of_it() {
    let schema = json!({
        "type": "strin", "minimum": "1", "maxLength": -1, "pattern": 5, "required": true, "enum": "a", "items": [],
        "properties": { "a": 5, "b": { "type": ["integer", "text"] } }, "title": null, "multipleOf": 0, "minItems": 2.0,
    });
    let wanted = json!({ "properties": { "a": {}, "b": { "type": "integer" } }, "minItems": 2 });
    assert_eq!(lowered("3.1.0", schema), wanted);
    for (pattern, is_kept) in [
        ("^[a-z]+$", true),
        ("^(?!aws:).+", false),
        (r"(a)\1", false),
        ("^.{0,262144}$", false),
        ("(", false),
    ] {
        let schema = lowered("3.1.0", json!({ "pattern": pattern }));
        assert_eq!(schema.get("pattern").is_some(), is_kept, "{pattern}");
    }
}

#[test]
fn cycles_stay_cycles_and_what_is_used_once_is_in_place() {
    let body = json!({ "required": true, "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Node" } } } });
    let mut document = operation("post", "/x", json!({ "requestBody": body }));
    let node = json!({
        "type": "object", "additionalProperties": true,
        "properties": {
            "children": { "type": "array", "items": { "$ref": "#/components/schemas/Node" } },
            "owner": { "$ref": "#/components/schemas/Owner", "description": "Whose it is." },
            "map": { "additionalProperties": { "$ref": "#/components/schemas/Node" } },
        },
    });
    let owner = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let own = json!({ "$ref": "#/components/schemas/Loop" });
    document["components"] = json!({ "schemas": { "Node": node, "Owner": owner, "Loop": own } });
    let schema = input(document.clone());
    assert_eq!(schema["properties"]["body"]["$ref"], "#/$defs/Node");
    let node = &schema["$defs"]["Node"];
    assert_eq!(node["properties"]["children"]["items"]["$ref"], "#/$defs/Node");
    assert_eq!(node["properties"]["owner"]["properties"]["name"]["type"], "string");
    assert_eq!(node["properties"]["owner"]["description"], "Whose it is.");
    assert_eq!(schema["$defs"].as_object().unwrap().len(), 1);
    pintle::schema::Schema::for_arguments(&schema).unwrap();
    document["components"]["schemas"]["Node"] =
        json!({ "properties": { "a": { "$ref": "#/components/schemas/Loop" } } });
    let tools = tools(document);
    assert!(tools.warnings()[0].contains("more than 32 references"), "{:?}", tools.warnings());
}

#[test]
fn what_only_the_api_writes_is_in_no_input_and_what_only_callers_write_in_no_output() {
    let schema = json!({
        "type": "object",
        "properties": {
            "id": { "type": "integer", "readOnly": true },
            "password": { "type": "string", "writeOnly": true },
            "name": { "type": "string" },
            "made": { "$ref": "#/components/schemas/Made" },
        },
        "required": ["id", "name", "password", "name"],
    });
    let content = |schema: Value| json!({ "application/json": { "schema": schema } });
    let all_of = json!({ "allOf": [schema, { "required": ["id", "made"] }] });
    let mut document = operation(
        "post",
        "/x",
        json!({ "requestBody": { "required": true, "content": content(all_of) }, "responses": { "201": { "content": content(schema.clone()) } } }),
    );
    document["components"] = json!({ "schemas": { "Made": { "type": "string", "readOnly": true } } });
    let body = &input(document.clone())["properties"]["body"]["allOf"];
    assert_eq!(body[0]["required"], json!(["name", "password"]));
    assert_eq!(
        body[0]["properties"],
        json!({ "password": { "type": "string" }, "name": { "type": "string" } })
    );
    assert_eq!(body[1], json!({}));
    let tools = tools(document.clone());
    let output = tools.tools().next().unwrap().output_schema.clone().unwrap();
    assert_eq!((&output["type"], &output["anyOf"][1]), (&json!("object"), &json!({})));
    let output = &output["anyOf"][0];
    assert_eq!(output["required"], json!(["id", "name"]));
    assert!(output["properties"].get("password").is_none());
    // Lifted properties are of the same kind.
    document["paths"]["/x"]["post"]["requestBody"]["content"] = content(schema);
    assert_eq!(input(document)["required"], json!(["password", "name"]));
}

#[test]
fn arguments_of_the_same_name_have_their_places_behind_it() {
    let parameters = json!([
        { "name": "id", "in": "query" }, { "name": "id", "in": "path", "required": true }, { "name": "a b", "in": "query" },
        { "name": "a[b]", "in": "header", }, { "name": "body", "in": "query" }, { "name": "id_body", "in": "query" },
    ]);
    let parameters = Value::Array(
        parameters.as_array().unwrap().iter().filter(|one| one["name"] != "a[b]").cloned().collect(),
    );
    let body = json!({ "required": true, "content": { "application/json": { "schema": {
        "type": "object", "properties": { "id": { "type": "integer" }, "a_b": {} }, "required": ["id", "id"] } } } });
    let document = operation("put", "/x/{id}", json!({ "parameters": parameters, "requestBody": body }));
    let schema = input(document);
    let names: Vec<_> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["id_path", "id_query", "a_b_query", "body", "id_body", "id_body_2", "a_b_body"]);
    assert_eq!(schema["required"], json!(["id_path", "id_body_2"]));
    assert_eq!(schema["additionalProperties"], false);
    let whole = json!({ "content": { "application/json": { "schema": { "type": "array" } } } });
    let parameters = json!([{ "name": "body", "in": "query" }]);
    let schema = input(operation("put", "/x", json!({ "parameters": parameters, "requestBody": whole })));
    let names: Vec<_> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["body_query", "body_body"]);
}

#[test]
fn required_with_a_default_is_optional() {
    let parameters = json!([
        { "name": "v", "in": "query", "required": true, "schema": { "type": "integer", "default": 2 } },
        { "name": "w", "in": "query", "required": true, "schema": { "type": "integer" }, "description": " What. " },
    ]);
    let schema = input(operation("get", "/x", json!({ "parameters": parameters })));
    assert_eq!(schema["required"], json!(["w"]));
    assert_eq!(schema["properties"]["w"], json!({ "type": "integer", "description": "What." }));
}

#[test]
fn output_schemas_are_objects_and_not_too_large() {
    let output = |response: Value| {
        let content = json!({ "content": { "application/json": { "schema": response } } });
        let tools = tools(operation(
            "get",
            "/x",
            json!({ "responses": { "default": {}, "2XX": {}, "200": content } }),
        ));
        tools.tools().next().unwrap().output_schema.as_ref().map(|schema| schema["anyOf"][0].clone())
    };
    assert_eq!(output(json!({ "properties": {} })), Some(json!({ "properties": {}, "type": "object" })));
    let union = json!({ "oneOf": [{ "type": "object" }, { "properties": {} }] });
    assert_eq!(output(union.clone()).unwrap()["type"], "object");
    assert_eq!(output(union).unwrap().get("required"), None);
    let wrapped = output(json!({ "type": "array", "items": { "type": "integer" } })).unwrap();
    assert_eq!(wrapped["properties"]["result"]["items"]["type"], "integer");
    assert_eq!(output(json!({})), None);
    let large: serde_json::Map<_, _> =
        (0..3_000).map(|number| (format!("property_{number}"), json!({ "type": "string" }))).collect();
    assert_eq!(output(json!({ "properties": large })), None);
    // Validators have a limit of these.
    let chain =
        |links: usize| (0..links).fold(json!({ "type": "object" }), |schema, _| json!({ "allOf": [schema] }));
    let chain = |links: usize| output(json!({ "properties": { "a": chain(links) } }));
    assert_eq!((chain(20).is_some(), chain(40).is_some()), (true, false));
}

#[test]
fn hints_are_those_of_the_method_unless_the_document_says_others() {
    let paths = json!({ "/a": {
        "get": {}, "put": {}, "post": { "x-mcp-read-only": true, "x-mcp-title": "Search" }, "delete": {}, "patch": { "x-mcp-destructive": false },
    } });
    let tools = tools(document(paths));
    let hints = tools.tools().map(|tool| serde_json::to_value(&tool.annotations).unwrap());
    let wanted = [
        json!({ "readOnlyHint": true, "openWorldHint": true }),
        json!({ "readOnlyHint": false, "idempotentHint": true, "openWorldHint": true }),
        json!({ "readOnlyHint": true, "openWorldHint": true }),
        json!({ "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": true }),
        json!({ "readOnlyHint": false, "destructiveHint": false, "idempotentHint": false, "openWorldHint": true }),
    ];
    assert_eq!(hints.collect::<Vec<_>>(), wanted);
}
