//! A Redis that is down: every request of a session is refused with 503 and the time to wait, at processes that know the session and at
//! those that do not; and a call with a state is told to wait. None is answered as if the session were unknown, and none ends it.

use std::{future::poll_fn, pin::Pin, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body::Body as _;
use pintle::{
    Server,
    server::{
        Cx, ToolError,
        http::{Body, Http},
        tool,
    },
};
use pintle_proto::sse::Decoder;
use pintle_redis::{Redis, RedisOptions};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    faults::{INITIALIZE, PING, SESSION, post},
    redis_folder::until,
    redis_server::RedisServer,
};

const SOON: Duration = Duration::from_secs(30);
const STATELESS: &str = "2026-07-28";

fn service(store: Redis) -> Http {
    let ask = tool("ask", |cx: Cx| async move {
        let roots = cx.roots().await?;
        Ok::<_, ToolError>(roots.into_iter().map(|root| root.uri).collect::<String>())
    });
    let key = pintle::server::StateKeys::from([7; 32]);
    Server::new("notes", "1").state_keys(key).tool(ask).http().unwrap().shared(store)
}

/// Sends a request with these headers.
async fn send(http: &Http, method: &str, headers: &[(&str, &str)], body: String) -> http::Response<Body> {
    let mut request = Request::builder().method(method).uri("/mcp").header("host", "localhost");
    let accept = if method == "GET" { "text/event-stream" } else { "application/json, text/event-stream" };
    request = request.header("accept", accept).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (head, ()) = request.body(()).unwrap().into_parts();
    timeout(SOON, http.answer(head, Bytes::from(body))).await.unwrap()
}

/// Calls `ask` as a client without a session does.
async fn call_stateless(http: &Http, mut params: Value) -> http::Response<Body> {
    params["name"] = "ask".into();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let headers = [("mcp-protocol-version", STATELESS), ("mcp-method", "tools/call"), ("mcp-name", "ask")];
    send(http, "POST", &headers, body).await
}

/// Reads the next message of a response, with the id of its event.
async fn next_message(body: &mut Body) -> (String, Value) {
    let (mut decoder, mut whole) = (Decoder::default(), Vec::new());
    loop {
        let frame = timeout(SOON, poll_fn(|task| Pin::new(&mut *body).poll_frame(task))).await.unwrap();
        let piece = frame.expect("there is a message").unwrap().into_data().unwrap();
        whole.extend_from_slice(&piece);
        if let Ok(message) = serde_json::from_slice(&whole) {
            return (String::new(), message);
        }
        let mut rest = &piece[..];
        while let Some(event) = decoder.next(&mut rest).unwrap() {
            if let Ok(message) = serde_json::from_str(&event.data) {
                return (event.id.unwrap_or_default(), message);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_of_a_session_is_503_while_redis_is_down_and_sessions_go_on_afterwards() {
    let Some(mut server) = RedisServer::start().await else { return };
    server.keep_data().await;
    let options = RedisOptions::default().timeout(Duration::from_millis(500)).lease(2 * SOON);
    let connect = async || service(server.connect(&options).await.unwrap());
    let (known, unknown) = (connect().await, connect().await);
    let initialize = INITIALIZE.replace(r#""capabilities":{}"#, r#""capabilities":{"roots":{}}"#);
    let opened = send(&known, "POST", &[], initialize.clone()).await;
    let session = opened.headers()[SESSION].to_str().unwrap().to_owned();
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask"}}"#;
    let mut stream = post(&known, Some(&session), call).await.into_body();
    let (last, question) = next_message(&mut stream).await;
    assert!(!last.is_empty(), "{question}");
    let asked = next_message(&mut call_stateless(&known, json!({})).await.into_body()).await.1;
    let questions = asked["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{asked}"));
    let roots = json!({"roots": [{"uri": "file:///x"}]});
    let answers: serde_json::Map<_, _> = questions.keys().map(|key| (key.clone(), roots.clone())).collect();
    let second_round = json!({"inputResponses": answers, "requestState": asked["result"]["requestState"]});

    server.stop();
    let revision = ("mcp-protocol-version", "2025-06-18");
    let own = [(SESSION, &*session), revision];
    let resumed = [(SESSION, &*session), revision, ("last-event-id", &*last)];
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": roots}).to_string();
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#;
    let requests: [(&str, &[_], &str); 8] = [
        ("POST", &own, PING),
        ("POST", &own, call),
        ("POST", &own, notification),
        ("POST", &own, &answer),
        ("POST", &[], &initialize),
        ("GET", &own, ""),
        ("GET", &resumed, ""),
        ("DELETE", &own, ""),
    ];
    for (name, http) in [("known", &known), ("unknown", &unknown)] {
        for (method, headers, body) in requests {
            let refused = send(http, method, headers, body.to_owned()).await;
            assert_eq!(refused.status(), 503, "{name}: {method} {body} {headers:?}");
            assert!(refused.headers().contains_key("retry-after"), "{name}: {method} {body}");
        }
        let refused = call_stateless(http, second_round.clone()).await;
        assert_eq!(refused.status(), 503, "{name}: a call with a state");
        assert!(refused.headers().contains_key("retry-after"), "{name}: a call with a state");
    }

    server.restart().await;
    for http in [&known, &unknown] {
        let status = until("Redis is reached again", async || {
            let status = post(http, Some(&session), PING).await.status();
            (status != 503).then_some(status)
        });
        assert_eq!(status.await, 200, "the session is not ended");
        let mut answered = call_stateless(http, second_round.clone()).await.into_body();
        let (_, answered) = next_message(&mut answered).await;
        assert_eq!(answered["result"]["content"][0]["text"], "file:///x", "{answered}");
    }
    assert_eq!(server.keys_without_expiry().await, Vec::<String>::new());
}
