//! Pictures, sounds, links and embedded resources, from the handler to the wire.

use pintle::{
    Server,
    content::{Audio, ContentError, Embedded, Image, Link},
    server::{RequestError, prompt, resource, tool},
    types::schema::{Annotations, ContentBlock, Role},
};
use serde_json::{Value, json};

use crate::support::line_client::{Raw, modern};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const WAV: &[u8] = b"RIFF\x04\0\0\0WAVE";

async fn all() -> Result<Vec<ContentBlock>, ContentError> {
    Ok(vec![
        "all of them".into(),
        Image::new("image/png", PNG)?.annotations(Annotations::new().audience([Role::User])).into(),
        Audio::detect(WAV)?.into(),
        Link::new("note://1", "one").title("One").mime_type("text/plain").size(3).into(),
        Embedded::bytes("note://2", "two").mime_type("text/plain").into(),
    ])
}

fn server() -> Server {
    Server::new("s", "0")
        .tool(tool("all", all))
        .tool(tool("image", || async { Image::detect(PNG) }))
        .tool(tool("pair", || async { ("a link", Link::new("note://1", "one")) }))
        .tool(tool("embedded", || async { Embedded::text("note://2", "two") }))
        .tool(tool("wrong", || async { Image::new("image/jpeg", PNG) }))
        .prompt(prompt("look", || async { Ok::<_, RequestError>(Image::detect(PNG)?) }))
        .resource(resource("pixel://1", "pixel", || async { Ok::<_, RequestError>(Image::detect(PNG)?) }))
}

async fn result(method: &str, params: Value) -> Value {
    let mut client = Raw::new(&server());
    client.request(method, modern(params, json!({}))).await;
    client.recv().await["result"].clone()
}

#[tokio::test]
async fn each_is_a_result_alone_and_with_others() {
    let image = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"});
    let called = result("tools/call", json!({"name": "image"})).await;
    assert_eq!(called["content"], json!([image]));
    let called = result("tools/call", json!({"name": "pair"})).await;
    assert_eq!(
        called["content"],
        json!([
            {"type": "text", "text": "a link"},
            {"type": "resource_link", "uri": "note://1", "name": "one"},
        ])
    );
    let called = result("tools/call", json!({"name": "embedded"})).await;
    assert_eq!(
        called["content"],
        json!([{"type": "resource", "resource": {"uri": "note://2", "text": "two"}}])
    );
    let got = result("prompts/get", json!({"name": "look"})).await;
    assert_eq!(got["messages"], json!([{"role": "user", "content": image}]));
    let read = result("resources/read", json!({"uri": "pixel://1"})).await;
    assert_eq!(
        read["contents"],
        json!([{"uri": "pixel://1", "mimeType": "image/png", "blob": "iVBORw0KGgo="}])
    );
}

#[tokio::test]
async fn invalid_content_is_reported_to_the_model() {
    let called = result("tools/call", json!({"name": "wrong"})).await;
    assert_eq!(called["isError"], true);
    assert_eq!(
        called["content"][0]["text"],
        "the bytes are `image/png`, but the declared type is `image/jpeg`: declare the actual type"
    );
}

#[tokio::test]
async fn older_clients_get_words_for_what_they_do_not_know() {
    let image = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png",
        "annotations": {"audience": ["user"]}});
    let audio = json!({"type": "audio", "data": "UklGRgQAAABXQVZF", "mimeType": "audio/wav"});
    let no_audio = json!({"type": "text",
        "text": "[audio left out: `audio/wav`, about 12 bytes; the connected client cannot receive audio]"});
    let link = json!({"type": "resource_link", "uri": "note://1", "name": "one", "title": "One",
        "mimeType": "text/plain", "size": 3});
    for (revision, audio, is_link) in [
        ("2024-11-05", &no_audio, false),
        ("2025-03-26", &audio, false),
        ("2025-06-18", &audio, true),
        ("2025-11-25", &audio, true),
    ] {
        let mut client = Raw::new(&server());
        client.open(revision, json!({})).await;
        client.request("tools/call", json!({"name": "all"})).await;
        let content = client.recv().await["result"]["content"].clone();
        assert_eq!(content[1], image, "{revision}");
        assert_eq!(content[2], *audio, "{revision}");
        if is_link {
            assert_eq!(content[3], link, "{revision}");
        } else {
            assert_eq!(content[3]["type"], "text", "{revision}");
            let text = content[3]["text"].as_str().unwrap();
            assert!(text.contains("note://1") && text.contains("One"), "{revision}: {text}");
        }
        assert_eq!(content[4]["resource"]["blob"], "dHdv", "{revision}");
    }
}
