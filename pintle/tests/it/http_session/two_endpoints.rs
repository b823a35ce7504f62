//! The oldest revision over HTTP: an event stream, and an endpoint for messages.

use std::sync::Arc;

use pintle::{
    Server,
    server::{Cx, ToolError, http::Http, tool},
    types::schema::{ContentBlock, CreateMessageParams, Role, SamplingMessage},
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{
    eras::{ALL, R1, R4},
    http_client::{Answer, Wire},
    line_client::modern,
};

fn http() -> (Server, Http) {
    let server = Server::new("old", "0").tool(tool("greet", || async { "Hello!" })).tool(tool(
        "write",
        |cx: Cx| async move {
            cx.progress(1.0, None).await;
            let question = SamplingMessage::new(Role::User, ContentBlock::text("Write!"));
            let written = cx.sample("text", CreateMessageParams::new(vec![question], 10)).await?;
            let texts = written.content.as_slice().iter().filter_map(ContentBlock::as_text);
            Ok::<String, ToolError>(texts.collect())
        },
    ));
    let http = server.http().unwrap().two_endpoints("/sse", "/messages");
    (server, http)
}

struct Old {
    wire: Wire,
    stream: Answer,
    target: String,
}

impl Old {
    async fn connect(http: &Http) -> Self {
        let wire = Wire::new(http);
        let mut stream = wire.send(wire.request("GET", "/sse", "")).await;
        let first = stream.event().await.unwrap();
        assert_eq!((first.name.as_deref(), first.id), (Some("endpoint"), None));
        Self { wire, stream, target: first.data }
    }

    async fn post(&self, message: Value) -> u16 {
        let request = self.wire.request("POST", &self.target, message.to_string());
        self.wire.send(request).await.status.as_u16()
    }

    async fn open(http: &Http, revision: &str) -> Self {
        let mut old = Self::connect(http).await;
        let params = json!({"protocolVersion": revision, "capabilities": {"sampling": {}}, "clientInfo": {"name": "raw", "version": "0"}});
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        assert_eq!(old.post(initialize).await, 202);
        let opened = old.stream.message().await.unwrap();
        assert_eq!(opened["result"]["protocolVersion"], revision);
        old
    }
}

#[tokio::test]
async fn a_second_handshake_is_refused_and_the_session_goes_on() {
    let (_server, http) = http();
    let mut old = Old::open(&http, R1).await;
    let params =
        json!({"protocolVersion": R4, "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    assert_eq!(old.post(initialize).await, 202);
    assert_eq!(old.stream.message().await.unwrap()["error"]["code"], -32600);
    old.post(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "greet"}})).await;
    assert_eq!(old.stream.message().await.unwrap()["result"]["content"][0]["text"], "Hello!");
}

#[tokio::test]
async fn what_is_posted_is_answered_on_the_stream() {
    let (server, http) = http();
    let mut old = Old::open(&http, R1).await;
    let call = |id: i64, name: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "_meta": {"progressToken": 1}}});
    assert_eq!(old.post(call(1, "greet")).await, 202);
    assert_eq!(old.stream.message().await.unwrap()["result"]["content"][0]["text"], "Hello!");

    assert_eq!(old.post(call(2, "write")).await, 202);
    assert_eq!(old.stream.message().await.unwrap()["params"]["progress"], 1.0);
    let asked = old.stream.message().await.unwrap();
    assert_eq!(asked["method"], "sampling/createMessage");
    let text = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Done."}});
    old.post(json!({"jsonrpc": "2.0", "id": asked["id"], "result": text})).await;
    assert_eq!(old.stream.message().await.unwrap()["result"]["content"][0]["text"], "Done.");

    server.add_tool(tool("another", || async { "" })).unwrap();
    assert_eq!(old.stream.message().await.unwrap()["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn the_session_ends_with_its_stream() {
    let ended = Arc::new(Notify::new());
    let signal = ended.clone();
    let begun = Arc::new(Notify::new());
    let began = begun.clone();
    let server = Server::new("old", "0").tool(tool("wait", move || {
        let (began, dropped) = (began.clone(), Dropped(signal.clone()));
        async move {
            began.notify_one();
            std::future::pending::<()>().await;
            drop(dropped);
            ""
        }
    }));
    let http = server.http().unwrap().two_endpoints("/sse", "/messages");
    let old = Old::open(&http, R1).await;
    old.post(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait"}})).await;
    begun.notified().await;
    assert_eq!(http.sessions(), 1);
    let Old { wire, stream, target } = old;
    drop(stream);
    ended.notified().await;
    assert_eq!(http.sessions(), 0);
    let mut late =
        wire.send(wire.request("POST", &target, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)).await;
    assert_eq!(late.status, 404);
    assert!(late.json().await["error"]["message"].as_str().unwrap().contains("open the event stream"));
}

struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn the_other_revisions_are_served_beside_it() {
    let (_, http) = http();
    let mut old = Old::open(&http, R1).await;
    old.post(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await;
    assert_eq!(old.stream.message().await.unwrap()["result"], json!({}));
    for revision in ALL.into_iter().filter(|revision| *revision > R1 && *revision <= R4) {
        let client = Wire::new(&http).open(revision, json!({})).await;
        assert_eq!(client.call(1, "ping", json!({})).await.status, 200);
    }
    let mut modern = Wire::new(&http).modern(1, "tools/call", json!({"name": "greet"}), json!({})).await;
    assert_eq!(modern.json().await["result"]["content"][0]["text"], "Hello!");
}

#[tokio::test]
async fn each_endpoint_has_its_method_and_its_guard() {
    let (_, http) = http();
    let wire = Wire::new(&http);
    for (wire, method, target, status) in [
        (wire.clone(), "POST", "/sse", 405),
        (wire.clone(), "GET", "/messages", 405),
        (wire.clone(), "POST", "/messages", 404),
        (wire.clone(), "POST", "/messages?session=00000000000000000000000000000000", 404),
        (wire.with("host", "evil.example"), "GET", "/sse", 403),
        (wire.with("host", "evil.example"), "POST", "/messages", 403),
        (wire.with("origin", "https://evil.example"), "GET", "/sse", 403),
        (wire.with("origin", "https://evil.example"), "POST", "/messages", 403),
        (wire.with("accept", "application/json"), "GET", "/sse", 406),
        (wire.with("content-type", "text/plain"), "POST", "/messages", 415),
    ] {
        let mut answer = wire.send(wire.request(method, target, "{}")).await;
        assert_eq!(answer.status, status, "{method} {target}");
        assert!(answer.json().await["error"]["message"].is_string());
    }
    let old = Old::open(&http, R1).await;
    let mut bad = wire.send(wire.request("POST", &old.target, "{")).await;
    assert_eq!((bad.status.as_u16(), &bad.json().await["error"]["code"]), (400, &json!(-32700)));
}

#[tokio::test]
async fn a_request_that_stands_alone_can_ask_here_too() {
    let (_, http) = http();
    let mut old = Old::open(&http, R1).await;
    let mut params = modern(json!({"name": "write"}), json!({"sampling": {}}));
    let call = |id: i64, params: &Value| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    old.post(call(1, &params)).await;
    let asked = old.stream.message().await.unwrap();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"]["text"] =
        json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Done."}});
    old.post(call(2, &params)).await;
    let done = old.stream.message().await.unwrap();
    assert_eq!(done["result"]["content"][0]["text"], "Done.", "{done}");
}

#[tokio::test]
async fn a_subscription_of_the_stateless_era_is_refused_on_the_stream() {
    let (_, http) = http();
    let mut old = Old::open(&http, R1).await;
    let params = modern(json!({"notifications": {"toolsListChanged": true}}), json!({}));
    let listen = json!({"jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": params});
    assert_eq!(old.post(listen).await, 202);
    let refused = old.stream.message().await.unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(5), &json!(-32600)), "{refused}");
    // So it is not offered here.
    let discover = json!({"jsonrpc": "2.0", "id": 6, "method": "server/discover", "params": modern(json!({}), json!({}))});
    assert_eq!(old.post(discover).await, 202);
    let discovered = old.stream.message().await.unwrap();
    assert_eq!(discovered["result"]["capabilities"]["tools"], json!({}), "{discovered}");
    let greet = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "greet"}});
    assert_eq!(old.post(greet).await, 202);
    assert_eq!(
        old.stream.message().await.unwrap()["result"]["content"][0]["text"],
        "Hello!",
        "the id is free"
    );
}
