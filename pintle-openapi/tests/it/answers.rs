//! Answers of an API as results.

use pintle::types::schema::ContentBlock;
use pintle_openapi::OpenApi;
use serde_json::{Value, json};

use crate::support::{Answer, Api, Sent, call, connect, operation};

/// Returns an operation whose answer is described by a schema.
fn get(schema: Value) -> Value {
    operation(
        "get",
        "/x",
        json!({ "responses": { "200": { "content": { "application/json": { "schema": schema } } } } }),
    )
}

async fn api(head: &'static str, body: &'static [u8]) -> Api {
    Api::new(move |_: &Sent| -> Answer { (head, body.to_vec()) }).await
}

#[tokio::test]
async fn json_is_structured_content() {
    let object =
        api("200 OK\r\ncontent-type: application/problem+json; charset=utf-8", br#"{"id": 1}"#).await;
    let schema =
        json!({ "type": "object", "properties": { "id": { "type": "integer" } }, "required": ["id"] });
    let result = call(&object, get(schema), json!({})).await;
    assert_eq!(
        (result.text().as_str(), result.structured_content),
        (r#"{"id":1}"#, Some(json!({ "id": 1 })))
    );
    assert_eq!(object.only().header("accept"), Some("application/json, */*;q=0.5"));
    let list = api("200 OK\r\ncontent-type: application/json", b"[1]").await;
    let result =
        call(&list, get(json!({ "type": "array", "items": { "type": "integer" } })), json!({})).await;
    assert_eq!((result.text().as_str(), result.structured_content), ("[1]", Some(json!({ "result": [1] }))));
    let result = call(&list, operation("get", "/x", json!({})), json!({})).await;
    assert_eq!((result.text().as_str(), result.structured_content), ("[1]", None));
}

#[tokio::test]
async fn an_answer_that_is_not_as_described_is_a_result_with_a_note() {
    let api = api("200 OK\r\ncontent-type: application/json", br#"{"id": "a"}"#).await;
    let schema = json!({ "type": "object", "properties": { "id": { "type": "integer" } } });
    let tools = OpenApi::from_value(get(schema)).unwrap().base(&api.origin);
    let result = connect(tools.build().unwrap()).await.call_tool("x", ()).await.unwrap();
    let note = "note: the answer is not what the API describes: `/id` should be an integer, but is `\"a\"`";
    assert_eq!(result.text(), format!("{{\"id\":\"a\"}}\n{note}"));
    assert_eq!((result.structured_content, result.is_error), (Some(json!({ "id": "a" })), None));
    let without = connect(tools.without_output_schemas().build().unwrap()).await;
    let result = without.call_tool("x", ()).await.unwrap();
    assert_eq!((result.text().as_str(), result.is_error), (r#"{"id":"a"}"#, None));
}

#[tokio::test]
async fn other_answers_are_content_of_their_kind() {
    let document = || operation("get", "/x", json!({}));
    for (head, body, wanted) in [
        ("200 OK\r\ncontent-type: text/csv", &b"a,b"[..], "a,b"),
        ("204 No Content", b"", "HTTP 204 No Content"),
        ("200 OK\r\ncontent-type: application/json", b"{broken", "{broken"),
        ("200 OK", br#"{"a":1}"#, r#"{"a":1}"#),
    ] {
        let api = api(head, body).await;
        assert_eq!(call(&api, document(), json!({})).await.text(), wanted, "{head}");
    }
    for (kind, body) in
        [("image/png", &b"\x89PNG"[..]), ("audio/mpeg", b"ID3"), ("application/pdf", b"%PDF\xff")]
    {
        let head: &'static str = match kind {
            "image/png" => "200 OK\r\ncontent-type: image/png",
            "audio/mpeg" => "200 OK\r\ncontent-type: audio/mpeg",
            _ => "200 OK\r\ncontent-type: application/pdf",
        };
        let api = api(head, body).await;
        match &call(&api, document(), json!({})).await.content[0] {
            ContentBlock::Image(image) => {
                assert_eq!((image.mime_type.as_str(), image.data.as_str()), (kind, "iVBORw=="))
            }
            ContentBlock::Audio(audio) => {
                assert_eq!((audio.mime_type.as_str(), audio.data.as_str()), (kind, "SUQz"))
            }
            ContentBlock::Resource(resource) => {
                assert_eq!(resource.resource.mime_type.as_deref(), Some(kind));
                assert_eq!(resource.resource.uri, format!("{}/x", api.origin));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_refusal_is_an_error_with_its_status_and_its_beginning() {
    let long: &'static [u8] = Box::leak(format!("\"{}\"", "x".repeat(5_000)).into_bytes().into_boxed_slice());
    for (head, body, wanted) in [
        (
            "404 Not Found\r\ncontent-type: application/json",
            &b"{\"message\":\"no pet\"}"[..],
            "HTTP 404 Not Found\n{\"message\":\"no pet\"}",
        ),
        ("502 Bad Gateway\r\ncontent-type: text/html", b"<html>s", "HTTP 502 Bad Gateway"),
        (
            "429 Too Many Requests\r\nretry-after: 7",
            b"",
            "HTTP 429 Too Many Requests\ntry again after 7 seconds",
        ),
        ("599 ?", b"\xff", "HTTP 599"),
    ] {
        let api = api(head, body).await;
        let result = call(&api, operation("get", "/x", json!({})), json!({})).await;
        assert_eq!((result.is_error, result.text().as_str()), (Some(true), wanted));
    }
    let api = api("500 Internal Server Error\r\ncontent-type: application/json", long).await;
    let text = call(&api, operation("get", "/x", json!({})), json!({})).await.text();
    assert_eq!(text.chars().count(), "HTTP 500 Internal Server Error\n".len() + 1_001);
}

#[tokio::test]
async fn an_answer_has_limits() {
    let long: &'static [u8] = Box::leak(vec![b'x'; 100_000].into_boxed_slice());
    let api = api("200 OK\r\ncontent-type: text/plain", long).await;
    let tools = OpenApi::from_value(operation("get", "/x", json!({}))).unwrap().base(&api.origin);
    let connection = connect(tools.max_answer(50_000).build().unwrap()).await;
    let result = connection.call_tool("x", ()).await.unwrap();
    assert_eq!(result.text(), "the answer has more than 50000 bytes; ask for less");
}

#[tokio::test]
async fn a_result_is_cut_between_items_and_says_so() {
    let items: Vec<_> = (100..1_100).map(|id| json!({ "id": id })).collect();
    let body: &'static [u8] =
        Box::leak(json!({ "items": items }).to_string().into_bytes().into_boxed_slice());
    let list = api("200 OK\r\ncontent-type: application/json", body).await;
    let schema = json!({ "type": "object", "properties": { "items": { "type": "array", "minItems": 500 } } });
    let tools = OpenApi::from_value(get(schema)).unwrap().base(&list.origin).max_result(1_000);
    let result = connect(tools.build().unwrap()).await.call_tool("x", ()).await.unwrap();
    let (text, note) = (
        result.text(),
        "`items` has only the first 89 of 1000 items, because a result has at most 1000 bytes",
    );
    let (json, found) = text.split_once('\n').unwrap();
    assert_eq!(found, format!("note: {note}; ask for less to get the rest"), "the whole was as described");
    let kept: Value = serde_json::from_str(json).unwrap();
    assert_eq!(kept["items"].as_array().unwrap().len(), 89);
    assert_eq!(result.structured_content, Some(kept));
    let long: &'static [u8] = Box::leak("é".repeat(50_000).into_bytes().into_boxed_slice());
    let long = api("200 OK\r\ncontent-type: text/plain", long).await;
    let text = call(&long, operation("get", "/x", json!({})), json!({})).await.text();
    let note =
        "note: this is only the first 65536 of 100000 bytes of the answer; ask for less to get the rest";
    assert_eq!(text, format!("{}\n{note}", "é".repeat(32_768)));
}

#[tokio::test]
async fn an_api_that_is_not_there_is_an_error_without_the_query() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let mut document = operation("get", "/x", json!({ "security": [{ "k": [] }] }));
    document["components"] =
        json!({ "securitySchemes": { "k": { "type": "apiKey", "in": "query", "name": "key" } } });
    let tools = OpenApi::from_value(document).unwrap().base(&origin).secret("k", "s3cret").build().unwrap();
    let result = connect(tools).await.call_tool("x", ()).await.unwrap();
    assert!(result.text().contains("could not be reached"), "{}", result.text());
    assert!(!result.text().contains("s3cret"), "{}", result.text());
}
