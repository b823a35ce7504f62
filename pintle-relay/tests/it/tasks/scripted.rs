//! A task of a server with sessions that the test plays, for a client without one.

use std::time::Duration;

use serde_json::{Value, json};

use super::across_eras::declares;
use crate::{
    scripted::{Link, Upstream, relay_to},
    support::{
        eras::{Client, R5},
        tasks::polled,
    },
};

/// The task, as the server has it.
fn task(message: Option<&str>) -> Value {
    let mut task = json!({"taskId": "t-9", "status": "working", "ttl": 60_000, "pollInterval": 500,
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"});
    if let Some(message) = message {
        task["statusMessage"] = message.into();
    }
    task
}

/// Answers polls, until a message of this method comes, or the answer to a question of this id.
async fn next(link: &mut Link, expected: &str, message: Option<&str>) -> Value {
    loop {
        let came = link.line.recv().await;
        match came["method"].as_str() {
            Some(method) if method == expected => return came,
            None if came["id"] == expected => return came,
            Some("tasks/get") => link.reply(&came, task(message)).await,
            Some("ping") => link.reply(&came, json!({})).await,
            Some("notifications/cancelled") => {}
            _ => panic!("expected {expected}: {came}"),
        }
    }
}

/// A server that runs `brew` as a task, its connection for the client, and the request of the client's call there.
async fn called(client: &mut Client, upstream: &mut Upstream) -> (Link, i64, Value) {
    let call = client.send("tools/call", json!({"name": "brew", "arguments": {"cups": 2}})).await;
    // The server is asked whether the tool runs as a task.
    let mut link = upstream.accept().await;
    let list = link.expect("tools/list").await;
    let support = json!({"taskSupport": "required"});
    let brew = json!({"name": "brew", "inputSchema": {"type": "object"}, "execution": support});
    link.reply(&list, json!({"tools": [brew]})).await;
    let called = link.expect("tools/call").await;
    let params = &called["params"];
    assert_eq!((&params["task"], &params["arguments"]), (&json!({}), &json!({"cups": 2})), "{called}");
    (link, call, called)
}

fn capabilities() -> Value {
    json!({"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}, "cancel": {}}})
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_created_when_its_call_is_cancelled_is_cancelled_too() {
    let (relay, mut upstream, _first) = relay_to(capabilities()).await;
    let mut client = Client::open(&relay.into_server(), R5, declares()).await;
    let (mut link, call, called) = called(&mut client, &mut upstream).await;
    client.notify("notifications/cancelled", json!({"requestId": call})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    link.reply(&called, json!({"task": task(None)})).await;
    next(&mut link, "tasks/result", None).await;
    let cancelled = next(&mut link, "tasks/cancel", None).await;
    assert_eq!(cancelled["params"]["taskId"], "t-9");
}

#[tokio::test(start_paused = true)]
async fn the_questions_of_a_task_have_keys_and_its_end_is_sent_to_the_server() {
    let (relay, mut upstream, _first) = relay_to(capabilities()).await;
    let mut client = Client::open(&relay.into_server(), R5, declares()).await;
    let (mut link, call, called) = called(&mut client, &mut upstream).await;
    link.reply(&called, json!({"task": task(None)})).await;
    let created = client.until(call).await["result"].clone();
    assert_eq!((&created["resultType"], &created["ttlMs"]), (&json!("task"), &json!(60_000)), "{created}");
    let id = created["taskId"].clone();
    assert_ne!(id, "t-9");

    // Two questions at once, which have no keys there.
    let awaited = next(&mut link, "tasks/result", None).await;
    assert_eq!(awaited["params"]["taskId"], "t-9");
    for number in [1, 2] {
        let schema = json!({"type": "object", "properties": {"sugar": {"type": "integer"}}});
        let related = json!({"io.modelcontextprotocol/related-task": {"taskId": "t-9"}});
        let params =
            json!({"message": format!("Cup {number}?"), "requestedSchema": schema, "_meta": related});
        let question = json!({"jsonrpc": "2.0", "id": format!("q{number}"), "method": "elicitation/create", "params": params});
        link.line.send(question).await;
    }
    let serving = tokio::spawn(async move {
        let first = next(&mut link, "q1", Some("waiting")).await;
        let second = next(&mut link, "q2", Some("waiting")).await;
        (link, first, second)
    });
    let mut asking = polled(&mut client, &id, "input_required").await;
    while asking["inputRequests"].as_object().map(serde_json::Map::len) != Some(2) {
        asking = polled(&mut client, &id, "input_required").await;
    }
    let mut answers = json!({});
    for (number, key) in [(1, "question-1"), (2, "question-2")] {
        let params = &asking["inputRequests"][key]["params"];
        assert_eq!(params["message"], format!("Cup {number}?"), "{asking}");
        assert_eq!(params.get("_meta"), None, "the client knows another id: {params}");
        answers[key] = json!({"action": "accept", "content": {"sugar": number}});
    }
    client.call("tasks/update", json!({"taskId": id, "inputResponses": answers})).await;
    let (mut link, first, second) = serving.await.unwrap();
    let sugar = |answer: &Value| answer["result"]["content"]["sugar"].clone();
    assert_eq!((sugar(&first), sugar(&second)), (json!(1), json!(2)));

    // The status for people, and the end.
    let serving = tokio::spawn(async move { next(&mut link, "tasks/cancel", Some("boiling")).await });
    for _ in 0..10 {
        if polled(&mut client, &id, "working").await["statusMessage"] == "boiling" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(polled(&mut client, &id, "working").await["statusMessage"], "boiling");
    client.call("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(serving.await.unwrap()["params"]["taskId"], "t-9");
}
