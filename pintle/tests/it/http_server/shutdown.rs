//! The end of a service, and of a session, while calls run: who is answered, who is refused, and what is left.

use std::{sync::Arc, time::Duration};

use pintle::{
    Server,
    server::{
        Cx, Field, Form, ToolError,
        http::{Drained, Http},
        tool,
    },
};
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::Instant};

use crate::support::{
    eras::{R1, R3, R4},
    http_client::{Answer, Wire},
};

/// A service, and a value that every handler holds which was not dropped.
struct Test {
    http: Http,
    alive: Arc<()>,
}

impl Test {
    fn new() -> Self {
        let alive = Arc::new(());
        let held = alive.clone();
        let silent = tool("silent", move || {
            let held = held.clone();
            async move {
                std::future::pending::<()>().await;
                drop(held);
                ""
            }
        });
        let held = alive.clone();
        let talking = tool("talking", move |cx: Cx| {
            let held = held.clone();
            async move {
                cx.progress(1.0, None).await;
                std::future::pending::<()>().await;
                drop(held);
                ""
            }
        });
        let ask = tool("ask", |cx: Cx| async move {
            let form = Form::new().field("answer", Field::text());
            let answer = cx.elicit_form("q", "?", &form).await?.accepted().unwrap_or_default();
            Ok::<_, ToolError>(answer["answer"].as_str().unwrap_or_default().to_owned())
        });
        let slow = tool("slow", || async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            "done"
        });
        let server = Server::new("stops", "0").tool(silent).tool(talking).tool(ask).tool(slow);
        let http = server.http().unwrap().two_endpoints("/sse", "/messages");
        Self { http, alive }
    }

    /// Handlers that were begun and not dropped.
    fn alive(&self) -> usize {
        // One is ours, and two tools have one each.
        Arc::strong_count(&self.alive) - 3
    }

    fn wire(&self) -> Wire {
        Wire::new(&self.http)
    }

    fn stop(&self, grace: u64) -> JoinHandle<Drained> {
        let http = self.http.clone();
        tokio::spawn(async move { http.shutdown(Duration::from_secs(grace)).await })
    }
}

fn call(name: &str) -> Value {
    json!({"name": name, "arguments": {}, "_meta": {"progressToken": "p"}})
}

/// Lets every task take the steps that it can take.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

fn begin(wire: &Wire, id: i64, name: &str) -> JoinHandle<Answer> {
    let (wire, params) = (wire.clone(), call(name));
    tokio::spawn(async move { wire.call(id, "tools/call", params).await })
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("no error: {answer}"))
}

#[tokio::test(start_paused = true)]
async fn calls_whose_client_has_left_end_with_the_service() {
    let test = Test::new();
    for revision in [R3, R4] {
        let wire = test.wire().open(revision, json!({})).await;
        let silent = begin(&wire, 1, "silent");
        let mut talking = begin(&wire, 2, "talking").await.unwrap();
        assert_eq!(talking.message().await.unwrap()["method"], "notifications/progress");
        settle().await;
        silent.abort();
        drop(talking);
        settle().await;
    }
    assert_eq!(test.alive(), 4, "hanging up cancels nothing in a session");
    let began = Instant::now();
    let drained = test.stop(5).await.unwrap();
    assert_eq!((drained.finished, drained.cut), (0, 4));
    assert_eq!(began.elapsed().as_secs(), 5);
    assert_eq!((test.alive(), test.http.sessions()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn calls_that_come_to_their_end_in_time_are_answered() {
    let test = Test::new();
    let wire = test.wire().open(R4, json!({})).await;
    let session = begin(&wire, 1, "slow");
    let plain = test.wire();
    let alone = tokio::spawn(async move { plain.modern(2, "tools/call", call("slow"), json!({})).await });
    settle().await;
    let began = Instant::now();
    let drained = test.stop(60).await.unwrap();
    assert_eq!((drained.finished, drained.cut), (2, 0));
    assert_eq!(began.elapsed().as_secs(), 3);
    for answer in [session, alone] {
        assert_eq!(answer.await.unwrap().result().await["result"]["content"][0]["text"], "done");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_do_not_complete_get_the_reason() {
    let test = Test::new();
    let wire = test.wire().open(R4, json!({})).await;
    let mut calls = vec![begin(&wire, 1, "silent"), begin(&wire, 2, "talking")];
    for (id, name) in [(3, "silent"), (4, "talking")] {
        let plain = test.wire();
        calls.push(tokio::spawn(async move { plain.modern(id, "tools/call", call(name), json!({})).await }));
    }
    settle().await;
    let stop = test.stop(5);
    for (at, call) in calls.into_iter().enumerate() {
        let mut answer = call.await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (200, None));
        let answer = answer.result().await;
        assert_eq!(answer["id"], at + 1);
        assert!(message(&answer).contains("the server is shutting down"), "{answer}");
        // Neither the code nor the status promises that the call had no effects: clients would repeat it.
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
    }
    assert_eq!(stop.await.unwrap().cut, 4);
    assert_eq!(test.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_new_is_refused_and_answers_to_questions_are_not() {
    let test = Test::new();
    let wire = test.wire().open(R4, json!({"elicitation": {}})).await;
    let mut asks = begin(&wire, 1, "ask").await.unwrap();
    let question = asks.message().await.unwrap();
    test.http.close();

    let plain = test.wire();
    let initialize = json!({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {"protocolVersion": R4, "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}});
    for (case, mut refused) in [
        ("a session's", wire.call(7, "tools/call", call("slow")).await),
        ("another session", plain.post(initialize).await),
        ("stateless", plain.modern(7, "tools/call", call("slow"), json!({})).await),
        ("GET", wire.get().await),
        ("/sse", plain.send(plain.request("GET", "/sse", "")).await),
    ] {
        assert_eq!(refused.status, 503, "{case}");
        assert_eq!(refused.header("retry-after"), Some("1"), "{case}");
        let reply = refused.json().await;
        assert!(message(&reply).contains("the server is shutting down"), "{case}: {reply}");
        if case != "GET" && case != "/sse" {
            assert_eq!(reply["id"], 7, "{case}");
        }
    }
    let stop = test.stop(60);
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"answer": "yes"}}});
    assert_eq!(wire.post(answer).await.status, 202);
    assert_eq!(asks.result().await["result"]["content"][0]["text"], "yes");
    assert_eq!(stop.await.unwrap().cut, 0);
}

#[tokio::test(start_paused = true)]
async fn streams_that_only_wait_are_ended() {
    let test = Test::new();
    let wire = test.wire().open(R4, json!({})).await;
    let mut standing = wire.get().await;
    let plain = test.wire();
    let mut oldest = plain.send(plain.request("GET", "/sse", "")).await;
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let mut listen = plain.modern(1, "subscriptions/listen", filter, json!({})).await;
    assert!(listen.message().await.unwrap()["method"].is_string());
    assert_eq!(test.stop(60).await.unwrap(), Drained::default());
    assert_eq!(standing.messages().await, Vec::<Value>::new());
    while oldest.event().await.is_some() {}
    let rest = listen.messages().await;
    assert_eq!(rest.last().unwrap()["id"], 1, "{rest:?}");
    assert!(rest.last().unwrap()["result"].is_object(), "{rest:?}");
    assert_eq!(test.http.sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn clients_of_the_oldest_transport_get_the_reason_on_their_stream() {
    let test = Test::new();
    let wire = test.wire();
    let mut stream = wire.send(wire.request("GET", "/sse", "")).await;
    let target = stream.event().await.unwrap().data;
    let post = async |message: Value| wire.send(wire.request("POST", &target, message.to_string())).await;
    let params =
        json!({"protocolVersion": R1, "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}});
    post(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await;
    stream.message().await.unwrap();
    let silent = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call("silent")});
    assert_eq!(post(silent.clone()).await.status, 202);
    settle().await;
    let stop = test.stop(5);
    settle().await;
    assert_eq!(post(silent).await.status, 503);
    let answer = stream.message().await.unwrap();
    assert!(message(&answer).contains("the server is shutting down"), "{answer}");
    assert_eq!(stream.message().await, None);
    assert_eq!(stop.await.unwrap().cut, 1);
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_are_answered_when_their_session_is_ended() {
    for by_peer in [true, false] {
        let test = Test::new();
        let wire = test.wire().open(R4, json!({"elicitation": {}})).await;
        let mut talking = begin(&wire, 1, "talking").await.unwrap();
        assert_eq!(talking.message().await.unwrap()["method"], "notifications/progress");
        let mut asks = begin(&wire, 2, "ask").await.unwrap();
        assert_eq!(asks.message().await.unwrap()["method"], "elicitation/create");
        let silent = begin(&wire, 3, "silent");
        settle().await;
        if by_peer {
            assert_eq!(wire.delete().await.status, 204);
        } else {
            let id = wire.headers.iter().find(|(name, _)| *name == "mcp-session-id").unwrap().1.clone();
            assert!(test.http.end_session(&id).await.unwrap());
        }
        for mut answer in [talking, asks, silent.await.unwrap()] {
            let reply = answer.result().await;
            assert!(message(&reply).contains("the session ended"), "{reply}");
            if answer.is_stream() {
                assert_eq!(answer.message().await, None, "and then the stream ends");
            }
        }
        settle().await;
        assert_eq!(test.alive(), 0);
    }
}
