//! Bodies, credentials and addresses of requests.

use serde_json::{Value, json};

use crate::support::{Answer, Api, Sent, call, connect, document, done, operation};
use pintle_openapi::OpenApi;

/// Returns an operation `POST /x` with a body of this media type.
fn post(media_type: &str, content: Value) -> Value {
    let body = json!({ "required": true, "content": { media_type: content } });
    operation("post", "/x", json!({ "requestBody": body }))
}

fn properties(properties: Value) -> Value {
    json!({ "schema": { "type": "object", "properties": properties } })
}

#[tokio::test]
async fn a_body_is_json_of_its_properties_or_of_one_argument() {
    let api = Api::plain().await;
    let few = properties(
        json!({ "a": { "type": "integer" }, "b": { "type": "array" }, "id": { "readOnly": true } }),
    );
    let few = post("application/json", few);
    assert_eq!(call(&api, few.clone(), json!({ "b": [null], "a": 1 })).await.is_error, None);
    let sent = api.only();
    assert_eq!(
        (sent.text(), sent.header("content-type")),
        (r#"{"a":1,"b":[null]}"#, Some("application/json"))
    );
    assert_eq!(call(&api, few, json!({})).await.is_error, None);
    assert_eq!(api.only().text(), "{}");
    for (media_type, schema) in [
        ("application/vnd.x+json", json!({ "type": ["array", "object"] })),
        ("*/*", json!({ "type": ["object", "array"] })),
        ("text/json", json!({ "additionalProperties": true, "properties": { "a": {} } })),
        ("application/json", json!({ "allOf": [{ "properties": { "a": {} } }] })),
    ] {
        let document = post(media_type, json!({ "schema": schema }));
        assert_eq!(call(&api, document, json!({ "body": {} })).await.is_error, None, "{media_type}");
        let sent = api.only();
        let wanted = if media_type == "*/*" { "application/json" } else { media_type };
        assert_eq!((sent.text(), sent.header("content-type")), ("{}", Some(wanted)));
    }
}

#[tokio::test]
async fn a_change_without_a_described_body_has_a_free_one() {
    let api = Api::plain().await;
    let document = operation("put", "/x", json!({}));
    assert_eq!(call(&api, document.clone(), json!({})).await.is_error, None);
    assert_eq!(api.only().header("content-type"), None);
    assert_eq!(call(&api, document, json!({ "body": [1] })).await.is_error, None);
    assert_eq!(api.only().text(), "[1]");
}

#[tokio::test]
async fn the_media_type_that_serves_best_is_sent() {
    let api = Api::plain().await;
    let content = json!({
        "application/xml": {}, "application/json-patch+json": {}, "application/merge-patch+json": {}, "*/*": {}
    });
    let document = operation("patch", "/x", json!({ "requestBody": { "content": content } }));
    assert_eq!(call(&api, document, json!({ "body": {} })).await.is_error, None);
    assert_eq!(api.only().header("content-type"), Some("application/merge-patch+json"));
}

#[tokio::test]
async fn a_form_is_written_by_its_encoding() {
    let api = Api::plain().await;
    let form = "application/x-www-form-urlencoded";
    let mut content = properties(json!({
        "text": { "type": "string" }, "list": { "type": "array" }, "object": { "type": "object" },
        "deep": { "type": "object" }, "joined": { "type": "array" }, "raw": { "type": "string" }, "objects": { "type": "array" },
    }));
    content["encoding"] = json!({
        "deep": { "style": "deepObject", "explode": true },
        "joined": { "explode": false },
        "raw": { "allowReserved": true },
    });
    let arguments = json!({
        "text": "a b&c", "list": [1, 2], "object": { "a": 1 }, "deep": { "a": { "b": 1 }, "c": ["d"] },
        "joined": ["x", "y,z"], "raw": "https://a.test/?b", "objects": [{ "a": 1 }],
    });
    let result = call(&api, post(form, content), arguments).await;
    assert_eq!(result.is_error, None, "{}", result.text());
    let sent = api.only();
    let wanted = [
        "text=a%20b%26c",
        "list=1&list=2",
        "object=%7B%22a%22%3A1%7D",
        "deep%5Ba%5D%5Bb%5D=1&deep%5Bc%5D%5B0%5D=d",
        "joined=x,y%2Cz",
        "raw=https://a.test/?b",
        "objects=%5B%7B%22a%22%3A1%7D%5D",
    ];
    assert_eq!((sent.text(), sent.header("content-type")), (wanted.join("&").as_str(), Some(form)));
}

#[tokio::test]
async fn a_multipart_form_has_parts_of_every_kind() {
    let api = Api::plain().await;
    let binary = json!({ "type": "string", "format": "binary" });
    let mut content = properties(json!({
        "note": { "type": "string" }, "meta": { "type": "object" }, "tags": { "type": "array" }, "file": binary,
        "pages": { "type": "array", "items": binary }, "icon": { "contentMediaType": "image/png" }, "a\"b": {},
    }));
    content["encoding"] = json!({ "file": { "contentType": "application/pdf, image/png" } });
    let arguments = json!({
        "note": "--x\r\n", "meta": { "a": 1 }, "tags": ["t", "u"], "file": "AAEC", "pages": ["cDE=", "cDI="],
        "icon": "data:image/gif;base64,R0lG", "a_b": 1,
    });
    let result = call(&api, post("multipart/form-data", content), arguments).await;
    assert_eq!(result.is_error, None, "{}", result.text());
    let sent = api.only();
    let boundary =
        sent.header("content-type").unwrap().strip_prefix("multipart/form-data; boundary=").unwrap();
    let body = String::from_utf8_lossy(&sent.body).into_owned();
    let parts: Vec<&str> = body.split(&format!("--{boundary}")).collect();
    let part = |name: &str, head: &str, body: &str| {
        format!("\r\nContent-Disposition: form-data; name=\"{name}\"{head}\r\n\r\n{body}\r\n")
    };
    let file = |kind: &str| format!("; filename=\"file\"\r\nContent-Type: {kind}");
    let wanted = [
        String::new(),
        part("note", "", "--x\r\n"),
        part("meta", "\r\nContent-Type: application/json", r#"{"a":1}"#),
        part("tags", "", "t"),
        part("tags", "", "u"),
        part("file", &file("application/pdf"), "\u{0}\u{1}\u{2}"),
        part("pages", &file("application/octet-stream"), "p1"),
        part("pages", &file("application/octet-stream"), "p2"),
        part("icon", &file("image/gif"), "GIF"),
        part("a%22b", "", "1"),
        "--\r\n".to_owned(),
    ];
    assert_eq!(parts, wanted);
}

#[tokio::test]
async fn text_and_bytes_are_sent_as_they_are() {
    let api = Api::plain().await;
    for (media_type, argument, wanted) in [
        ("text/plain", "a\n\"b\" é", "a\n\"b\" é"),
        ("application/xml; charset=utf-8", "<a/>", "<a/>"),
        ("application/octet-stream", "aGk=", "hi"),
    ] {
        let result = call(&api, post(media_type, json!({})), json!({ "body": argument })).await;
        assert_eq!(result.is_error, None, "{}", result.text());
        let sent = api.only();
        assert_eq!((sent.text(), sent.header("content-type")), (wanted, Some(media_type)));
    }
    let refused = call(&api, post("image/png", json!({})), json!({ "body": "no base64!" })).await;
    assert!(refused.text().contains("`body`: it is not base64"), "{}", refused.text());
    assert!(api.take().is_empty());
}

fn secured(schemes: Value, security: Value) -> Value {
    let mut document = operation("get", "/x", json!({ "security": security }));
    document["components"] = json!({ "securitySchemes": schemes });
    document
}

#[tokio::test]
async fn credentials_are_sent_as_their_scheme_says_and_never_shown() {
    let api = Api::new(|sent: &Sent| {
        let echo = format!("wrong key in {}\n{}", sent.line(), sent.head);
        ("401 Unauthorized\r\ncontent-type: text/plain", echo.into_bytes())
    })
    .await;
    for (scheme, secret, name, wanted) in [
        (json!({ "type": "apiKey", "in": "header", "name": "X-Key" }), "s3cret", "x-key", "s3cret"),
        (json!({ "type": "apiKey", "in": "cookie", "name": "key" }), "s3cret", "cookie", "key=s3cret"),
        (json!({ "type": "http", "scheme": "Bearer" }), "s3cret", "authorization", "Bearer s3cret"),
        (json!({ "type": "http", "scheme": "basic" }), "me:s3cret", "authorization", "Basic bWU6czNjcmV0"),
        (json!({ "type": "oauth2", "flows": {} }), "s3cret", "authorization", "Bearer s3cret"),
        (json!({ "type": "apiKey", "in": "query", "name": "key" }), "s3cret", "", ""),
    ] {
        let document = secured(json!({ "one": scheme }), json!([{ "one": [] }]));
        let openapi = OpenApi::from_value(document).unwrap().base(&api.origin).secret("one", secret);
        assert!(!format!("{openapi:?}").contains("s3cret"));
        let tools = openapi.build().unwrap();
        assert!(!format!("{tools:?}").contains("s3cret"));
        let result = connect(tools).await.call_tool("x", ()).await.unwrap();
        let sent = api.only();
        match name {
            "" => assert_eq!(sent.line(), "GET /x?key=s3cret"),
            name => assert_eq!(sent.header(name), Some(wanted)),
        }
        assert_eq!(result.is_error, Some(true));
        let text = result.text();
        assert!(text.starts_with("HTTP 401 Unauthorized\nthe program has a credential for `one`"), "{text}");
        assert!(!text.contains("s3cret") && !text.contains("bWU6czNjcmV0"), "{text}");
    }
}

#[tokio::test]
async fn the_first_alternative_that_is_complete_is_sent() {
    let api = Api::new(|_: &Sent| ("403 Forbidden", Vec::new())).await;
    let key = |name: &str| json!({ "type": "apiKey", "in": "header", "name": name });
    let schemes = json!({ "a": key("X-A"), "b": key("X-B"), "c": key("X-C") });
    let document = secured(schemes, json!([{ "a": [], "b": [] }, { "c": [] }]));
    let openapi = |secrets: &[&str]| {
        let openapi = OpenApi::from_value(document.clone()).unwrap().base(&api.origin);
        secrets.iter().fold(openapi, |openapi, name| openapi.secret(*name, *name)).build().unwrap()
    };
    for (secrets, wanted) in
        [(&["a", "c"][..], [None, None, Some("c")]), (&["a", "b", "c"], [Some("a"), Some("b"), None])]
    {
        connect(openapi(secrets)).await.call_tool("x", ()).await.unwrap();
        let sent = api.only();
        assert_eq!(["x-a", "x-b", "x-c"].map(|name| sent.header(name)), wanted);
    }
    let text = connect(openapi(&["a"])).await.call_tool("x", ()).await.unwrap().text();
    assert!(text.contains("no credential for `a` and `b` or `c`"), "{text}");
}

#[tokio::test]
async fn an_argument_does_not_replace_what_the_program_sends() {
    let api = Api::plain().await;
    let parameters = json!([
        { "name": "X-Key", "in": "header" }, { "name": "X-Tenant", "in": "header" }, { "name": "Authorization", "in": "header" },
    ]);
    let mut document = operation("get", "/x", json!({ "parameters": parameters, "security": [{ "k": [] }] }));
    document["components"] =
        json!({ "securitySchemes": { "k": { "type": "apiKey", "in": "header", "name": "x-key" } } });
    let openapi = OpenApi::from_value(document).unwrap().base(&api.origin);
    let tools = openapi.secret("k", "ours").header("x-tenant", "ours").build().unwrap();
    let names: Vec<_> = tools.tools().next().unwrap().input_schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(names, ["X-Tenant"]);
    let result = connect(tools).await.call_tool("x", json!({ "X-Tenant": "theirs" })).await.unwrap();
    assert_eq!(result.is_error, None, "{}", result.text());
    let sent = api.only();
    assert_eq!(
        [sent.header("x-key"), sent.header("x-tenant"), sent.header("authorization")],
        [Some("ours"), Some("ours"), None]
    );
}

#[tokio::test]
async fn requests_go_to_private_addresses_only_if_the_program_says_so() {
    let api = Api::plain().await;
    let port = api.origin.rsplit(':').next().unwrap().to_owned();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"] {
        let mut document = operation("get", "/x", json!({}));
        document["servers"] = json!([{ "url": format!("http://{host}:{port}") }]);
        let tools = OpenApi::from_value(document).unwrap().build().unwrap();
        let text = connect(tools).await.call_tool("x", ()).await.unwrap().text();
        assert!(text.contains("not a public address") && text.contains("`allow_private`"), "{host}: {text}");
    }
    assert!(api.take().is_empty());
    let mut document = operation("get", "/x", json!({}));
    document["servers"] = json!([{ "url": api.origin }]);
    let tools = OpenApi::from_value(document).unwrap().allow_private().build().unwrap();
    assert_eq!(connect(tools).await.call_tool("x", ()).await.unwrap().is_error, None);
    assert_eq!(api.only().line(), "GET /x");
}

#[tokio::test]
async fn redirects_are_followed_to_the_same_origin_and_without_effects_only() {
    fn redirects(sent: &Sent) -> Answer {
        match sent.line().split(' ').nth(1).unwrap() {
            "/x" => ("307 Temporary Redirect\r\nlocation: /y?z=1", Vec::new()),
            "/far" => ("302 Found\r\nlocation: http://127.0.0.1:1/stolen?key=1", Vec::new()),
            "/round" => ("302 Found\r\nlocation: /round", Vec::new()),
            _ => done(sent),
        }
    }
    let api = Api::new(redirects).await;
    let result = call(&api, operation("get", "/x", json!({})), json!({})).await;
    assert_eq!(result.is_error, None);
    assert_eq!(api.take().iter().map(Sent::line).collect::<Vec<_>>(), ["GET /x", "GET /y?z=1"]);
    let result = call(&api, operation("post", "/x", json!({})), json!({})).await;
    assert!(result.text().contains("redirects to `/y`"), "{}", result.text());
    assert_eq!(api.take().len(), 1);
    let result = call(&api, operation("get", "/far", json!({})), json!({})).await;
    assert!(result.text().contains("`http://127.0.0.1:1/stolen`"), "{}", result.text());
    api.take();
    assert_eq!(call(&api, operation("get", "/round", json!({})), json!({})).await.is_error, Some(true));
    assert_eq!(api.take().len(), 4);
}

#[tokio::test]
async fn the_parameters_of_a_path_are_those_of_its_operations() {
    let api = Api::plain().await;
    let shared = json!([
        { "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } },
        { "name": "q", "in": "query", "schema": { "type": "string" } },
    ]);
    let own = json!([{ "$ref": "#/components/parameters/Q" }, { "name": "id", "in": "query" }]);
    let paths =
        json!({ "/a/{id}": { "parameters": shared, "get": { "operationId": "x", "parameters": own } } });
    let mut document = document(paths);
    let q = json!({ "name": "q", "in": "query", "required": true, "schema": { "type": "integer", "default": 7 } });
    document["components"] = json!({ "parameters": { "Q": q } });
    assert_eq!(call(&api, document.clone(), json!({ "id_path": 1, "id_query": "b" })).await.is_error, None);
    assert_eq!(api.only().line(), "GET /a/1?q=7&id=b");
    let refused = call(&api, document, json!({ "id": 1, "q": "text" })).await.text();
    assert!(refused.contains("`/id` is not known") && refused.contains("`/q`"), "{refused}");
}

#[tokio::test]
async fn a_plan_is_the_request_without_its_secrets() {
    let api = Api::plain().await;
    let mut document = post("application/octet-stream", json!({}));
    document["components"]["securitySchemes"] = json!({
        "key": { "type": "apiKey", "in": "query", "name": "a key" },
        "sid": { "type": "apiKey", "in": "cookie", "name": "sid" },
        "token": { "type": "http", "scheme": "bearer" },
    });
    document["security"] = json!([{ "key": [], "sid": [], "token": [] }]);
    let tools = OpenApi::from_value(document).unwrap().base(&api.origin);
    let tools = ["key", "sid", "token"].into_iter().fold(tools, |tools, name| tools.secret(name, "s3cret"));
    let tools = tools.header("x-team", "s3cret").build().unwrap();
    let arguments = |body: &str| json!({ "body": body }).as_object().unwrap().clone();
    let plan = tools.plan("x", &arguments("/w==")).unwrap().unwrap();
    assert_eq!((&*plan.method, plan.url), ("POST", format!("{}/x?a%20key=…", api.origin)));
    assert_eq!((plan.body.as_deref(), plan.is_base64), (Some("/w=="), true));
    let hidden: Vec<_> = plan.headers.iter().filter(|(_, value)| value.is_none()).collect();
    let hidden: Vec<_> = hidden.into_iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(hidden, ["x-team", "cookie", "authorization"]);
    assert_eq!(plan.headers[1], ("content-type".to_owned(), Some("application/octet-stream".to_owned())));
    let plan = tools.plan("x", &arguments("YQ==")).unwrap().unwrap();
    assert_eq!((plan.body.as_deref(), plan.is_base64), (Some("a"), false));
    assert!(tools.plan("x", &arguments("?")).unwrap().unwrap_err().contains("`body`: it is not base64"));
    assert!(tools.plan("x", &json!({ "y": 1 }).as_object().unwrap().clone()).unwrap().is_err());
    assert_eq!(tools.plan("y", &arguments("")), None);
    assert_eq!(api.take().len(), 0);
}
