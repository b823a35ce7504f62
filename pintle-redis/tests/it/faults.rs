//! A Redis that is down, restarted, or used by a process that is gone.

use std::{future::poll_fn, pin::Pin, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body::Body as _;
use pintle::{
    Server,
    server::{
        Cx, ToolError,
        http::{
            Http,
            nodes::{NodeEvent, NodeId, Nodes},
        },
        store::{GetOptions, Got, Key, Space, Store as _},
        tool,
    },
};
use pintle_proto::sse::Decoder;
use pintle_redis::RedisOptions;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::redis_server::RedisServer;

const SOON: Duration = Duration::from_secs(10);
pub(crate) const SESSION: &str = "mcp-session-id";

pub(crate) async fn post(
    http: &Http,
    session: Option<&str>,
    body: &'static str,
) -> http::Response<pintle::server::http::Body> {
    let mut request = Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if let Some(session) = session {
        request = request.header(SESSION, session).header("mcp-protocol-version", "2025-06-18");
    }
    let (head, ()) = request.body(()).unwrap().into_parts();
    timeout(SOON, http.answer(head, Bytes::from_static(body.as_bytes()))).await.unwrap()
}

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"0"}}}"#;
pub(crate) const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_down_is_503_and_one_that_has_forgotten_is_404() {
    let Some(mut server) = RedisServer::start().await else { return };
    let options = RedisOptions::default().timeout(Duration::from_millis(500));
    let notes = Server::new("notes", "1");
    let http = notes.http().unwrap().shared(server.connect(&options).await.unwrap());
    let opened = post(&http, None, INITIALIZE).await;
    let session = opened.headers()[SESSION].to_str().unwrap().to_owned();
    assert_eq!(post(&http, Some(&session), PING).await.status(), 200);
    server.stop();
    for (session, body) in [(Some(&*session), PING), (None, INITIALIZE)] {
        let refused = post(&http, session, body).await;
        assert_eq!(refused.status(), 503);
        assert!(refused.headers().contains_key("retry-after"));
    }
    server.restart().await;
    // It reconnects by itself.
    let mut status = post(&http, Some(&session), PING).await.status();
    for _ in 0..50 {
        if status != 503 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        status = post(&http, Some(&session), PING).await.status();
    }
    assert_eq!(status, 404, "it was restarted without its data");
    assert_eq!(post(&http, None, INITIALIZE).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_gone_is_found_when_its_lease_ends() {
    let Some(server) = RedisServer::start().await else { return };
    let options = RedisOptions::default().lease(Duration::from_millis(600));
    let (gone, stays) = (server.connect(&options).await.unwrap(), server.connect(&options).await.unwrap());
    let id = gone.id();
    gone.join("s", SOON).await.unwrap();
    // While it is there, its inbox outlives its lease.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(stays.send_to(id, Bytes::from_static(b"m")).await.unwrap());
    assert_eq!(stays.send("s", Bytes::from_static(b"m")).await.unwrap(), 1);
    drop(gone);
    let mut is_there = true;
    for _ in 0..100 {
        is_there = stays.send_to(id, Bytes::from_static(b"m")).await.unwrap();
        if !is_there {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(!is_there);
    assert_eq!(stays.send("s", Bytes::from_static(b"m")).await.unwrap(), 0);
    assert!(!stays.send_to(NodeId::new(1), Bytes::new()).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_of_redis_there_is_a_gap_and_then_messages_again() {
    let Some(mut server) = RedisServer::start().await else { return };
    let options =
        RedisOptions::default().lease(Duration::from_millis(600)).timeout(Duration::from_millis(500));
    let (a, b) = (server.connect(&options).await.unwrap(), server.connect(&options).await.unwrap());
    b.publish(Bytes::from_static(b"before")).await.unwrap();
    assert_eq!(
        timeout(SOON, a.receive()).await.unwrap().unwrap(),
        NodeEvent::Change(Bytes::from_static(b"before"))
    );
    server.restart().await;
    assert_eq!(timeout(SOON, a.receive()).await.unwrap().unwrap(), NodeEvent::Gap);
    let mut sent = false;
    for _ in 0..100 {
        sent = matches!(b.send_to(a.id(), Bytes::from_static(b"after")).await, Ok(true));
        if sent {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(sent);
    // There may be two gaps: of the inbox, and of the changes.
    loop {
        match timeout(SOON, a.receive()).await.unwrap().unwrap() {
            NodeEvent::Gap => {}
            other => break assert_eq!(other, NodeEvent::Message(Bytes::from_static(b"after"))),
        }
    }
    let unknown = a.get(Key::new(Space::Session, "unknown"), GetOptions::default().prolong(SOON));
    assert_eq!(unknown.await.unwrap(), Got::None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_has_forgotten_is_noticed_by_a_process_that_had_read_nothing() {
    let Some(mut server) = RedisServer::start().await else { return };
    let options = RedisOptions::default().timeout(Duration::from_millis(500));
    // The lease is long: its renewal does not find it.
    let (a, b) = (server.connect(&options).await.unwrap(), server.connect(&options).await.unwrap());
    server.restart().await;
    for node in [a, b] {
        assert_eq!(timeout(SOON, node.receive()).await.unwrap().unwrap(), NodeEvent::Gap);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_processes_are_notified_once_of_one_that_is_gone() {
    let Some(server) = RedisServer::start().await else { return };
    let options = RedisOptions::default().lease(Duration::from_millis(600));
    let [gone, a, b] = [
        server.connect(&options).await.unwrap(),
        server.connect(&options).await.unwrap(),
        server.connect(&options).await.unwrap(),
    ];
    let id = gone.id();
    // One that stops is not gone.
    let stopped = server.connect(&options).await.unwrap();
    stopped.close().await.unwrap();
    assert!(!a.send_to(stopped.id(), Bytes::new()).await.unwrap());
    drop((gone, stopped));
    for node in [&a, &b] {
        assert_eq!(timeout(SOON, node.receive()).await.unwrap().unwrap(), NodeEvent::Gone(id));
    }
    // The next event is this one.
    a.publish(Bytes::from_static(b"later")).await.unwrap();
    b.publish(Bytes::from_static(b"later")).await.unwrap();
    for node in [&a, &b] {
        let later = NodeEvent::Change(Bytes::from_static(b"later"));
        assert_eq!(timeout(SOON, node.receive()).await.unwrap().unwrap(), later);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_that_redis_has_lost_are_missed_by_all_and_messages_are_not() {
    let Some(server) = RedisServer::start().await else { return };
    let options = RedisOptions::default();
    let (a, b) = (server.connect(&options).await.unwrap(), server.connect(&options).await.unwrap());
    a.publish(Bytes::from_static(b"read")).await.unwrap();
    assert_eq!(
        timeout(SOON, b.receive()).await.unwrap().unwrap(),
        NodeEvent::Change(Bytes::from_static(b"read"))
    );
    // As if a replica had taken over that had not received the change.
    server.delete("pintle:{nodes}:changes").await;
    server.disconnect_all().await;
    for node in [&a, &b] {
        assert_eq!(timeout(SOON, node.receive()).await.unwrap().unwrap(), NodeEvent::MissedChanges);
    }
}

/// Reads the next message of an event stream.
pub(crate) async fn next_message(body: &mut pintle::server::http::Body) -> Value {
    let mut decoder = Decoder::default();
    loop {
        let frame = timeout(SOON, poll_fn(|task| Pin::new(&mut *body).poll_frame(task))).await.unwrap();
        let piece = frame.expect("the stream goes on").unwrap().into_data().unwrap();
        let mut rest = &piece[..];
        while let Some(event) = decoder.next(&mut rest).unwrap() {
            if let Ok(message) = serde_json::from_str(&event.data) {
                return message;
            }
        }
    }
}

async fn post_text(http: &Http, session: &str, body: String) -> http::Response<pintle::server::http::Body> {
    post(http, Some(session), Box::leak(body.into_boxed_str())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_was_taken_for_gone_ends_its_questions_and_is_found_again() {
    let Some(server) = RedisServer::start().await else { return };
    let options = RedisOptions::default().lease(Duration::from_millis(600));
    let (first, second) = (server.connect(&options).await.unwrap(), server.connect(&options).await.unwrap());
    let inbox = format!("pintle:{{nodes}}:in:{}", first.id());
    let asking = |store| {
        let ask = tool("ask", |cx: Cx| async move {
            let roots = cx.roots().await?;
            Ok::<_, ToolError>(roots.into_iter().map(|root| root.uri).collect::<String>())
        });
        Server::new("notes", "1").tool(ask).http().unwrap().shared(store)
    };
    let (a, b) = (asking(first), asking(second));
    let initialize = INITIALIZE.replace(r#""capabilities":{}"#, r#""capabilities":{"roots":{}}"#);
    let open = async || {
        let opened = post(&a, None, Box::leak(initialize.clone().into_boxed_str())).await;
        opened.headers()[SESSION].to_str().unwrap().to_owned()
    };
    let (asked, idle) = (open().await, open().await);
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask"}}"#;
    let answer = |question: &Value| {
        json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "file:///x"}]}})
            .to_string()
    };

    let mut stream = post(&a, Some(&asked), call).await.into_body();
    let question = next_message(&mut stream).await;
    assert_eq!(question["method"], "roots/list");
    // As if Redis had been out of reach for longer than the lease.
    server.delete(&inbox).await;
    assert_eq!(post_text(&b, &asked, answer(&question)).await.status(), 202);
    let response = next_message(&mut stream).await;
    let text = response["error"]["message"].as_str().unwrap_or_default();
    assert!(text.contains("the answer may have been lost"), "{response}");

    // From then on answers are found again, in sessions that were used and in those that were not.
    for session in [&asked, &idle] {
        let mut stream = post(&a, Some(session), call).await.into_body();
        let question = next_message(&mut stream).await;
        assert_eq!(post_text(&b, session, answer(&question)).await.status(), 202);
        let response = next_message(&mut stream).await;
        assert_eq!(response["result"]["content"][0]["text"], "file:///x", "{response}");
    }
}
