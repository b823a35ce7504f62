//! Which fields of an answer a tool returns.

use pintle_openapi::{ApiTools, OpenApi};
use serde_json::{Value, json};

use crate::support::{Answer, Api, Sent, connect, document};

const PETS: &str = r#"[{"id":1,"name":"Tern","owner":{"name":"Ann","mail":"a@b"},"tags":["sea"],"x.y":2},
    {"id":2,"owner":null,"tags":[{"name":"air","by":"Bo"}]}]"#;

/// Returns a document with a list of pets that is described by schemas which refer to each other.
fn pets() -> Value {
    let content = json!({ "application/json": { "schema": { "type": "array", "items": { "$ref": "#/components/schemas/Pet" } } } });
    let mut document = document(json!({ "/pets": { "get": {
        "operationId": "list", "tags": ["pets"], "responses": { "200": { "content": content } },
    } } }));
    document["components"] = json!({ "schemas": {
        "Pet": {
            "type": "object", "required": ["id", "name"], "additionalProperties": false, "properties": {
                "id": { "type": "integer" },
                "name": { "type": "string" },
                "owner": { "$ref": "#/components/schemas/Owner" },
                "vet": { "$ref": "#/components/schemas/Owner" },
                "tags": { "type": "array", "items": { "type": ["object", "string"], "additionalProperties": true } },
                "parent": { "$ref": "#/components/schemas/Pet" },
            },
        },
        "Owner": { "oneOf": [
            { "type": "object", "properties": { "name": { "type": "string" }, "mail": { "type": "string" } } },
            { "type": "null" },
        ] },
    } });
    document
}

async fn api(body: &'static str) -> Api {
    Api::new(move |_: &Sent| -> Answer { ("200 OK\r\ncontent-type: application/json", body.into()) }).await
}

fn built(openapi: OpenApi) -> ApiTools {
    openapi.base("https://api.test").build().unwrap()
}

/// Returns what is left of an answer, and the notes about it.
async fn left(body: &'static str, fields: &[&str]) -> (Value, Vec<String>) {
    let api = api(body).await;
    let openapi = OpenApi::from_value(pets()).unwrap().without_output_schemas().base(&api.origin);
    let tools = openapi.fields("tag:pets", fields.iter().copied()).build().unwrap();
    let result = connect(tools).await.call_tool("list", ()).await.unwrap();
    let text = result.text();
    let mut lines = text.lines();
    let value: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    if value.is_object() {
        assert_eq!(result.structured_content.as_ref(), Some(&value));
    }
    (value, lines.map(str::to_owned).collect())
}

#[tokio::test]
async fn fields_go_through_lists_and_nothing_else_is_returned() {
    for (fields, wanted) in [
        (&["id"][..], json!([{ "id": 1 }, { "id": 2 }])),
        (&["id", "owner.name"], json!([{ "id": 1, "owner": { "name": "Ann" } }, { "id": 2, "owner": null }])),
        (&["owner.name", "owner"], json!([{ "owner": { "name": "Ann", "mail": "a@b" } }, { "owner": null }])),
        (&["tags.name"], json!([{ "tags": [] }, { "tags": [{ "name": "air" }] }])),
        (&["x.y"], json!([{ "x.y": 2 }, {}])),
        (&["id.deep", "name"], json!([{ "name": "Tern" }, {}])),
    ] {
        assert_eq!(left(PETS, fields).await, (wanted, vec![]), "{fields:?}");
    }
    let note = "note: the answer has none of `a`, `b.c`, and nothing else is returned";
    assert_eq!(left(PETS, &["a", "b.c"]).await, (json!([{}, {}]), vec![note.to_owned()]));
    assert_eq!(left("[]", &["a"]).await, (json!([]), vec![]));
    assert_eq!(left("7", &["a"]).await, (json!(7), vec![]));
}

#[test]
fn the_output_schema_has_the_same_fields() {
    let tools = built(OpenApi::from_value(pets()).unwrap().fields("list", ["id", "owner.name", "tags.any"]));
    assert_eq!(tools.warnings(), [""; 0]);
    let shown = tools.tools().next().unwrap().output_schema.clone().unwrap();
    let items = &shown["anyOf"][0]["properties"]["result"]["items"];
    assert_eq!(items["required"], json!(["id"]));
    assert_eq!(items["properties"]["id"], json!({ "type": "integer" }));
    assert_eq!(
        items["properties"]["owner"],
        json!({ "anyOf": [{ "type": "object", "properties": { "name": { "type": "string" } } }, { "type": "null" }] })
    );
    let names: Vec<_> = items["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["id", "owner", "tags"]);
    assert!(!shown.contains_key("$defs"), "{shown:?}");
    let recursive = built(OpenApi::from_value(pets()).unwrap().fields("list", ["id", "parent"]));
    let shown = recursive.tools().next().unwrap().output_schema.clone().unwrap();
    let definitions: Vec<_> = shown["$defs"].as_object().unwrap().keys().collect();
    assert_eq!(definitions, ["Pet", "Owner"], "only what is referred to: {shown:?}");
}

#[tokio::test]
async fn an_answer_is_judged_by_the_schema_of_its_fields() {
    let api = api(PETS).await;
    let tools =
        OpenApi::from_value(pets()).unwrap().base(&api.origin).fields("list", ["id"]).build().unwrap();
    let result = connect(tools).await.call_tool("list", ()).await.unwrap();
    assert_eq!(result.text(), r#"[{"id":1},{"id":2}]"#, "the second pet has no name, which is not asked for");
    assert_eq!(result.structured_content, Some(json!({ "result": [{ "id": 1 }, { "id": 2 }] })));
}

#[test]
fn a_field_that_no_answer_has_is_a_warning_and_one_of_no_operation_an_error() {
    let with = |fields: &[&str]| OpenApi::from_value(pets()).unwrap().fields("list", fields.iter().copied());
    for (fields, lost) in [
        (&["id", "nmae", "owner.nmae"][..], "`nmae`, `owner.nmae`"),
        (&["id.x"], "`id.x`"),
        (&["parent.parent.none"], "`parent.parent.none`"),
    ] {
        let warning =
            format!("`GET /pets`: the document describes no field {lost} of its answers; correct `fields`");
        assert_eq!(built(with(fields)).warnings(), [warning]);
    }
    assert_eq!(built(with(&["parent.parent.id", "tags.any.thing"])).warnings(), [""; 0]);
    for (openapi, reason) in [
        (with(&[]), "the fields of `list`: an operation has 1 to 256 fields"),
        (with(&["a..b"]), "`a..b` is no field"),
        (with(&["id"]).fields("lst", ["id"]), "no operation is `lst`"),
    ] {
        let error = openapi.build().unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn the_document_may_choose_and_the_program_overrules_it() {
    let own = |fields: Value| {
        let mut document = pets();
        document["paths"]["/pets"]["get"]["x-mcp-fields"] = fields;
        OpenApi::from_value(document).unwrap()
    };
    let api = api(PETS).await;
    for (openapi, wanted) in [
        (own(json!(["tags.by"])), r#"[{"tags":[]},{"tags":[{"by":"Bo"}]}]"#),
        (own(json!(["tags.by"])).fields("list", ["id"]), r#"[{"id":1},{"id":2}]"#),
    ] {
        let tools = openapi.base(&api.origin).build().unwrap();
        assert_eq!(connect(tools).await.call_tool("list", ()).await.unwrap().text(), wanted);
    }
    for wrong in [json!("id"), json!([1]), json!([])] {
        let tools = built(own(wrong));
        assert_eq!(
            (tools.tools().count(), tools.left_out().len()),
            (0, 1),
            "nothing is returned that the document hides"
        );
    }
}

/// Definitions that only refer to each other, as two alternatives each: their paths would be written again and again.
#[test]
fn schemas_that_have_no_end_are_left_out() {
    let mut document = pets();
    let own = json!({ "$ref": "#/components/schemas/Pet" });
    document["components"]["schemas"]["Pet"] =
        json!({ "anyOf": [own, own, { "type": "object", "properties": { "id": {} } }] });
    let tools = built(OpenApi::from_value(document).unwrap().fields("list", ["id.x"]));
    assert!(tools.tools().next().unwrap().output_schema.is_none());
    assert!(tools.warnings()[0].contains("too large"), "{:?}", tools.warnings());
}
