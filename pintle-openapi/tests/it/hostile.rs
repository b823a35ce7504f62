//! Documents and arguments that mean harm.

use pintle_openapi::OpenApi;
use serde_json::{Map, Value, json};

use crate::support::{Answer, Api, Sent, call, connect, document, operation, tools};

fn path_parameter() -> Value {
    operation("get", "/a/{id}/b", json!({ "parameters": [{ "name": "id", "in": "path", "required": true }] }))
}

#[tokio::test]
async fn a_value_stays_within_its_segment() {
    let api = Api::plain().await;
    for (value, wanted) in [
        ("a/b", Some("a%2Fb")),
        ("a?b#c", Some("a%3Fb%23c")),
        ("a\r\nHost: evil\u{0}", Some("a%0D%0AHost%3A%20evil%00")),
        ("é😀", Some("%C3%A9%F0%9F%98%80")),
        ("..a", Some("..a")),
        ("@evil.test:80", Some("%40evil.test%3A80")),
        ("%41", Some("%2541")),
        ("a;b=c,d", Some("a%3Bb%3Dc%2Cd")),
        ("..", None),
        (".", None),
        ("", None),
        ("%2e%2e", None),
        ("%252E.", None),
        ("../admin", None),
        ("a/../b", None),
        ("a\\..\\b", None),
        ("x%2f..%2fy", None),
    ] {
        let result = call(&api, path_parameter(), json!({ "id": value })).await;
        match wanted {
            Some(wanted) => assert_eq!(api.only().line(), format!("GET /a/{wanted}/b"), "{value}"),
            None => {
                assert!(result.text().contains("`id`"), "{value}: {}", result.text());
                assert!(api.take().is_empty(), "{value}");
            }
        }
    }
    let parts = json!({ "parameters": [{ "name": "a", "in": "path" }, { "name": "b", "in": "path" }] });
    for (path, a, b) in [("/{a}{b}", ".", "."), ("/x/{a}.", ".", "x"), ("/{a}.{b}/c", "x", "y")] {
        let parts = if path.contains("{b}") {
            parts.clone()
        } else {
            json!({ "parameters": [{ "name": "a", "in": "path" }] })
        };
        let arguments = if path.contains("{b}") { json!({ "a": a, "b": b }) } else { json!({ "a": a }) };
        call(&api, operation("get", path, parts), arguments).await;
        let sent = api.take();
        assert_eq!(sent.len(), usize::from(a == "x"), "{path}: {sent:?}");
    }
    for style in ["label", "matrix"] {
        let document = operation(
            "get",
            "/a/{id}",
            json!({ "parameters": [{ "name": "id", "in": "path", "style": style, "explode": true }] }),
        );
        assert!(call(&api, document.clone(), json!({ "id": ["a", ".."] })).await.text().contains("segment"));
        assert!(call(&api, document.clone(), json!({ "id": [] })).await.text().contains("empty"));
        assert!(call(&api, document, json!({ "id": { "a": "" } })).await.text().contains("empty"));
        assert!(api.take().is_empty());
    }
}

#[tokio::test]
async fn headers_and_cookies_stay_one() {
    let api = Api::plain().await;
    let document =
        |place: &str| operation("get", "/x", json!({ "parameters": [{ "name": "p", "in": place }] }));
    for value in ["a\r\nx-evil: 1", "a\nb", "a\u{0}b", "a\u{7f}"] {
        let refused = call(&api, document("header"), json!({ "p": value })).await;
        assert!(refused.text().contains("`p`: a header cannot have line breaks"), "{}", refused.text());
        assert!(api.take().is_empty());
        assert_eq!(call(&api, document("cookie"), json!({ "p": value })).await.is_error, None);
        let sent = api.only();
        assert!(
            sent.header("cookie").unwrap().starts_with("p=a%") && sent.header("x-evil").is_none(),
            "{sent:?}"
        );
    }
    assert_eq!(call(&api, document("cookie"), json!({ "p": "a; admin=1" })).await.is_error, None);
    assert_eq!(api.only().header("cookie"), Some("p=a%3B%20admin%3D1"));
    assert_eq!(call(&api, document("header"), json!({ "p": "é" })).await.is_error, None);
}

#[tokio::test]
async fn large_values_are_sent_or_refused() {
    let api = Api::plain().await;
    let large = "x".repeat(1 << 20);
    for place in ["query", "header", "cookie"] {
        let document = operation("get", "/x", json!({ "parameters": [{ "name": "p", "in": place }] }));
        let refused = call(&api, document, json!({ "p": large })).await;
        assert!(refused.text().contains("send less"), "{}", refused.text());
    }
    assert!(call(&api, path_parameter(), json!({ "id": large })).await.text().contains("send less"));
    assert!(api.take().is_empty());
    let document = operation("post", "/x", json!({}));
    assert_eq!(call(&api, document, json!({ "body": large })).await.is_error, None);
    assert_eq!(api.only().body.len(), (1 << 20) + 2);
    let mut deep = json!({});
    for _ in 0..60 {
        deep = json!({ "a": deep });
    }
    let document = operation(
        "get",
        "/x",
        json!({ "parameters": [{ "name": "p", "in": "query", "style": "deepObject" }] }),
    );
    let refused = call(&api, document, json!({ "p": deep })).await;
    assert!(refused.text().contains("`p`: it is nested more than"), "{}", refused.text());
}

#[tokio::test]
async fn no_argument_is_in_the_host() {
    let mut document = operation("get", "/x", json!({ "parameters": [{ "name": "host", "in": "query" }] }));
    document["servers"] = json!([{ "url": "https://{host}/v1" }]);
    let tools = OpenApi::from_value(document.clone()).unwrap().build().unwrap();
    assert!(tools.left_out()[0].reason.contains("the variable `host`"), "{:?}", tools.left_out());
    for value in ["a.test/x?", "a.test#", "u:p@a.test", "a b", "", "a.test/../.."] {
        let tools = OpenApi::from_value(document.clone()).unwrap().variable("host", value).build().unwrap();
        assert_eq!(tools.tools().count(), 0, "{value}: {tools:?}");
    }
}

#[test]
fn bombs_are_bounded() {
    let mut bomb = String::from("openapi: 3.1.0\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb += &format!("a{level}: &a{level} [{below}]\n");
    }
    assert!(OpenApi::from_text(&bomb).unwrap_err().to_string().contains("aliases"));
    let deep = format!("openapi: 3.1.0\npaths: {}{}", "[".repeat(5_000), "]".repeat(5_000));
    let refused = OpenApi::from_text(&deep).unwrap_err().to_string();
    assert!(refused.contains("recursion limit"), "{refused}");
    let deep = format!("openapi: 3.1.0\npaths:\n  {}x", "- ".repeat(5_000));
    let refused = OpenApi::from_text(&deep).unwrap_err().to_string();
    assert!(refused.contains("deep"), "{refused}");
    let deep = format!("{{\"openapi\":\"3.1.0\",\"paths\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    assert!(OpenApi::from_text(&deep).is_err());
}

/// Returns the printed size of all tools of a document with these schemas, of which `S0` is that of a body and of an answer.
fn size(schemas: &Map<String, Value>) -> usize {
    let content =
        json!({ "content": { "application/json": { "schema": { "$ref": "#/components/schemas/S0" } } } });
    let mut document =
        operation("post", "/x", json!({ "requestBody": content, "responses": { "200": content } }));
    document["components"] = json!({ "schemas": schemas });
    let tools = tools(document);
    let printed = serde_json::to_string(&tools.tools().collect::<Vec<_>>()).unwrap();
    assert_eq!(tools.left_out(), []);
    printed.len()
}

#[test]
fn schemas_that_would_grow_do_not() {
    let reference = |number: usize| json!({ "$ref": format!("#/components/schemas/S{number}") });
    // Each refers to the next twice: 2^200 if each were written out.
    let doubled: Map<_, _> = (0..200)
        .map(|number| {
            let next = reference(number + 1);
            (
                format!("S{number}"),
                json!({ "properties": { "a": next, "b": next }, "additionalProperties": true }),
            )
        })
        .collect();
    assert!(size(&doubled) < 100_000);
    // Each is used once, and in the one before: as deep as a stack if each were put in place.
    let nested: Map<_, _> = (0..3_000)
        .map(|number| {
            (
                format!("S{number}"),
                json!({ "properties": { "a": reference(number + 1) }, "additionalProperties": true }),
            )
        })
        .collect();
    assert!(size(&nested) < 100_000);
    // All refer to all.
    let all: Map<_, _> = (0..100)
        .map(|number| {
            let properties: Map<_, _> =
                (0..100).map(|other| (format!("p{other}"), reference(other))).collect();
            (
                format!("S{number}"),
                json!({ "properties": properties, "allOf": [reference((number + 1) % 100)] }),
            )
        })
        .collect();
    assert!(size(&all) < 200_000);
    let huge: Vec<_> = (0..100_000).collect();
    let huge = Map::from_iter([("S0".to_owned(), json!({ "type": "integer", "enum": huge }))]);
    assert!(size(&huge) < 2_000);
}

/// Every member of a document, replaced by values of other types.
#[test]
fn wrong_types_anywhere_are_no_panic() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string", "nullable": true } }, "required": ["a"] });
    let content = json!({ "multipart/form-data": { "schema": schema, "encoding": { "a": { "contentType": "x/y", "style": "form" } } } });
    let operation = json!({
        "operationId": "x", "tags": ["t"], "summary": "s", "description": "d", "deprecated": false, "servers": [{ "url": "https://a.test" }],
        "parameters": [{ "name": "id", "in": "path", "required": true, "style": "simple", "explode": true, "schema": schema,
            "content": { "application/json": { "schema": schema } } }, { "$ref": "#/components/parameters/p" }],
        "requestBody": { "required": true, "content": content },
        "responses": { "200": { "content": { "application/json": { "schema": { "allOf": [schema], "discriminator": { "propertyName": "a" } } } } } },
        "security": [{ "k": [] }], "x-mcp-name": "n", "x-mcp-read-only": true, "x-mcp-fields": ["a", "b.c"],
    });
    let mut document = document(json!({ "/a/{id}": { "post": operation, "parameters": [], "servers": [] } }));
    document["components"] = json!({ "parameters": { "p": { "name": "p", "in": "query" } }, "securitySchemes": { "k": { "type": "apiKey", "in": "query", "name": "k" } } });
    document["servers"] =
        json!([{ "url": "https://{a}.test", "variables": { "a": { "default": "b", "enum": ["b"] } } }]);
    assert_eq!(tools(document.clone()).tools().count(), 1);
    let mut pointers = vec![String::new()];
    let mut next = 0;
    while let Some(pointer) = pointers.get(next).cloned() {
        next += 1;
        match document.pointer(&pointer).unwrap() {
            Value::Object(members) => {
                let below = members
                    .keys()
                    .map(|name| format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1")));
                pointers.extend(below);
            }
            Value::Array(items) => {
                pointers.extend((0..items.len()).map(|number| format!("{pointer}/{number}")))
            }
            _ => {}
        }
    }
    assert!(pointers.len() > 80);
    for pointer in &pointers {
        for wrong in [json!(null), json!(5), json!("é\n/"), json!([[]]), json!({ "$ref": "#" })] {
            let mut changed = document.clone();
            *changed.pointer_mut(pointer).unwrap() = wrong;
            let Ok(openapi) = OpenApi::from_value(changed) else { continue };
            for tool in openapi.build().unwrap().tools() {
                assert!(!tool.name.is_empty() && tool.name.len() <= 64);
                let schema = Value::Object((*tool.input_schema).clone());
                pintle::schema::Schema::for_arguments(&schema)
                    .unwrap_or_else(|error| panic!("{pointer}: {error}: {schema}"));
            }
        }
    }
}

#[tokio::test]
async fn a_call_of_what_is_no_tool_is_refused() {
    let connection = connect(tools(operation("get", "/x", json!({})))).await;
    assert!(connection.call_tool("y", ()).await.is_err());
    let refused = connection.call_tool("x", json!({ "unknown": 1 })).await.unwrap();
    assert!(refused.text().contains("`/unknown`") && refused.is_error == Some(true), "{}", refused.text());
}

/// What an answer has where others have pages, lists and fields.
#[tokio::test]
async fn any_answer_is_a_result_of_limited_length() {
    let long = "é\"".repeat(2_000);
    let deep = (0..120).fold(json!(long), |inner, _| json!([inner]));
    let members =
        ["next", "links", "_links", "meta", "next_cursor", "has_more", "total", "total_pages", "items"];
    let values = [
        json!(null),
        json!(-1),
        json!(1e300),
        json!(u64::MAX),
        json!(long),
        json!([[], {}]),
        json!({ "next": [] }),
        deep,
    ];
    let answers =
        members.iter().flat_map(|name| values.iter().map(move |value| json!({ *name: value, "rows": [1] })));
    let answers: Vec<_> = answers.chain(values.iter().cloned()).collect();
    let query =
        |name: &str| json!({ "name": name, "in": "query", "schema": { "type": ["integer", "string"] } });
    let parameters = ["page", "offset", "cursor", "limit"].map(query);
    let get = json!({ "operationId": "x", "parameters": parameters });
    let document = document(json!({ "/x": { "get": get } }));
    for answer in answers {
        let body = answer.to_string().into_bytes();
        let link = "200 OK\r\ncontent-type: application/json\r\nlink: <;rel=next, <a>, <?\"%é>; rel=\"next";
        let api = Api::new(move |_: &Sent| -> Answer { (link, body.clone()) }).await;
        let openapi =
            OpenApi::from_value(document.clone()).unwrap().base(&api.origin).pages(3).max_result(300);
        for openapi in [openapi.build(), openapi.fields("x", ["rows", "items.next"]).build()] {
            let arguments = json!({ "page": u64::MAX, "offset": u64::MAX, "limit": 1 });
            let result = connect(openapi.unwrap()).await.call_tool("x", arguments).await.unwrap();
            assert!(result.content[0].as_text().is_some_and(|text| text.len() <= 300), "{result:?}");
            assert!(result.is_error.is_none(), "{result:?}");
        }
    }
}

#[test]
fn what_people_do_not_see_is_not_for_models() {
    let hidden = "A\r\nb\u{200b}\u{202e}c\u{e0041}\u{7}.\tD";
    let parameters = json!([
        { "name": "p", "in": "query", "description": hidden },
        { "name": "q", "in": "query", "schema": { "title": hidden, "description": hidden } },
    ]);
    let document = operation("get", "/a", json!({ "summary": hidden, "parameters": parameters }));
    let tools = tools(document);
    let tool = serde_json::to_value(tools.tools().next().unwrap()).unwrap();
    let arguments = &tool["inputSchema"]["properties"];
    for shown in
        [&tool["title"], &tool["description"], &arguments["p"]["description"], &arguments["q"]["title"]]
    {
        assert_eq!(*shown, "A\nbc.\tD", "{tool}");
    }
    assert_eq!(arguments["q"]["description"], "A\nbc.\tD");
}
