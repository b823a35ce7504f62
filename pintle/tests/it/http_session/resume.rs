//! Coming back to a stream of a session that was lost, or left.

use std::{sync::Arc, time::Duration};

use pintle::{
    Server,
    server::{Cx, ToolError, tool},
    types::schema::{ContentBlock, CreateMessageParams, Role, SamplingMessage},
};
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};

use crate::support::{
    eras::{HTTP_SESSIONS, R2, R3, R4},
    http_client::{Answer, Wire},
};

/// Reports up to five steps, one for each permit.
fn stepper(permits: &Arc<Semaphore>) -> Server {
    let permits = permits.clone();
    Server::new("s", "0").tool(tool("steps", move |cx: Cx| {
        let permits = permits.clone();
        async move {
            for n in 1..=5 {
                permits.acquire().await.unwrap().forget();
                cx.progress(f64::from(n), 5.0).await;
            }
            "done"
        }
    }))
}

fn steps() -> Value {
    json!({"name": "steps", "_meta": {"progressToken": 1}})
}

/// What is in a message of these tests: a step, or the end.
fn gist(message: &Value) -> String {
    let step = message["params"]["progress"].as_f64().map(|step| step.to_string());
    step.unwrap_or_else(|| message["result"]["content"][0]["text"].as_str().unwrap().to_owned())
}

async fn all(answer: &mut Answer) -> Vec<String> {
    answer.messages().await.iter().map(gist).collect()
}

#[tokio::test]
async fn each_event_comes_once_and_in_order_wherever_the_stream_was_cut() {
    let expected = ["1", "2", "3", "4", "5", "done"];
    for revision in HTTP_SESSIONS {
        // The stream of the first connection, for the ids of its events.
        for cut in 1..=6 {
            for rest_before in [true, false] {
                let permits = Arc::new(Semaphore::new(cut.min(5)));
                let client = Wire::new(&stepper(&permits).http().unwrap()).open(revision, json!({})).await;
                let mut answer = client.call(1, "tools/call", steps()).await;
                let mut seen = Vec::new();
                let mut last = String::new();
                while seen.len() < cut {
                    let event = answer.event().await.unwrap();
                    last = event.id.unwrap();
                    if !event.data.is_empty() {
                        seen.push(gist(&serde_json::from_str(&event.data).unwrap()));
                    }
                }
                drop(answer);
                if rest_before {
                    permits.add_permits(5);
                    tokio::task::yield_now().await;
                }
                let mut rest = client.with("last-event-id", &*last).get().await;
                assert_eq!(rest.status, 200);
                permits.add_permits(5);
                seen.extend(all(&mut rest).await);
                assert_eq!(seen, expected, "{revision}, cut after {cut}");
            }
        }
    }
}

#[tokio::test]
async fn every_earlier_event_can_be_gone_back_to() {
    let permits = Arc::new(Semaphore::new(5));
    let client = Wire::new(&stepper(&permits).http().unwrap()).open(R4, json!({})).await;
    let mut answer = client.call(1, "tools/call", steps()).await;
    let mut ids = Vec::new();
    while let Some(event) = answer.event().await {
        ids.push(event.id.unwrap());
    }
    assert_eq!(ids.len(), 7, "the first, five steps and the end");
    for (at, id) in ids.iter().enumerate() {
        let rest = all(&mut client.with("last-event-id", &**id).get().await).await;
        assert_eq!(rest, ["1", "2", "3", "4", "5", "done"][at..], "{id}");
    }
    for unknown in ["x", "99-1", "3-77"] {
        let mut refused = client.with("last-event-id", unknown).get().await;
        assert_eq!(refused.status, 400);
        let detail = refused.json().await["error"]["message"].to_string();
        assert!(detail.contains("not kept any more; open a stream without it"), "{detail}");
    }
}

#[tokio::test]
async fn who_comes_back_early_takes_the_stream_over() {
    let permits = Arc::new(Semaphore::new(1));
    let client = Wire::new(&stepper(&permits).http().unwrap()).open(R4, json!({})).await;
    let mut half_open = client.call(1, "tools/call", steps()).await;
    let first = half_open.event().await.unwrap().id.unwrap();
    assert_eq!(gist(&half_open.message().await.unwrap()), "1");
    // The old connection is dead, but nobody has noticed.
    let mut again = client.with("last-event-id", first).get().await;
    permits.add_permits(5);
    assert_eq!(all(&mut again).await, ["1", "2", "3", "4", "5", "done"]);
    assert!(half_open.messages().await.is_empty());
}

#[tokio::test]
async fn one_stream_never_replays_another() {
    let permits = Arc::new(Semaphore::new(0));
    let client = Wire::new(&stepper(&permits).http().unwrap()).open(R4, json!({})).await;
    permits.add_permits(5);
    let mut one = client.call(1, "tools/call", steps()).await;
    let first = one.event().await.unwrap().id.unwrap();
    assert_eq!(all(&mut one).await.len(), 6);
    permits.add_permits(5);
    assert_eq!(all(&mut client.call(2, "tools/call", steps()).await).await.len(), 6);
    let replayed = client.with("last-event-id", first).get().await.messages().await;
    assert_eq!(replayed.len(), 6);
    assert_eq!(replayed[5]["id"], 1);
}

#[tokio::test]
async fn a_call_whose_client_went_before_any_answer_comes_to_its_end() {
    let (begun, go, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let signals = (begun.clone(), go.clone(), done.clone());
    let server = Server::new("s", "0").tool(tool("work", move || {
        let (begun, go, done) = signals.clone();
        async move {
            begun.notify_one();
            go.notified().await;
            done.notify_one();
            ""
        }
    }));
    let http = server.http().unwrap();
    for revision in HTTP_SESSIONS {
        let client = Wire::new(&http).open(revision, json!({})).await;
        let request = tokio::spawn({
            let client = client.clone();
            async move { client.call(1, "tools/call", json!({"name": "work"})).await }
        });
        begun.notified().await;
        request.abort();
        assert!(request.await.is_err_and(|error| error.is_cancelled()));
        go.notify_one();
        done.notified().await;
    }
}

#[tokio::test]
async fn a_question_waits_for_the_client_to_come_back() {
    let go = Arc::new(Notify::new());
    let signal = go.clone();
    let server = Server::new("s", "0").tool(tool("write", move |cx: Cx| {
        let go = signal.clone();
        async move {
            cx.progress(1.0, None).await;
            go.notified().await;
            let question = SamplingMessage::new(Role::User, ContentBlock::text("Write!"));
            let written = cx.sample("text", CreateMessageParams::new(vec![question], 10)).await?;
            let texts = written.content.as_slice().iter().filter_map(ContentBlock::as_text);
            Ok::<String, ToolError>(texts.collect())
        }
    }));
    let http = server.http().unwrap();
    for revision in HTTP_SESSIONS {
        let client = Wire::new(&http).open(revision, json!({"sampling": {}})).await;
        let params = json!({"name": "write", "_meta": {"progressToken": 1}});
        let mut answer = client.call(1, "tools/call", params).await;
        let mut last = answer.event().await.unwrap();
        if last.data.is_empty() {
            last = answer.event().await.unwrap();
        }
        drop(answer);
        go.notify_one();
        let mut rest = client.with("last-event-id", last.id.unwrap()).get().await;
        let asked = rest.message().await.unwrap();
        assert_eq!(asked["method"], "sampling/createMessage");
        drop(rest);
        let text = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Done."}});
        assert_eq!(
            client.post(json!({"jsonrpc": "2.0", "id": asked["id"], "result": text})).await.status,
            202
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_send_its_client_away_for_a_while() {
    let server = Server::new("s", "0").tool(tool("render", |cx: Cx| async move {
        cx.hang_up(Duration::from_millis(500)).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        "rendered"
    }));
    let http = server.http().unwrap();
    let client = Wire::new(&http).open(R4, json!({})).await;
    let mut answer = client.call(1, "tools/call", json!({"name": "render"})).await;
    let first = answer.event().await.unwrap();
    assert_eq!((&*first.data, first.retry), ("", Some(1000)));
    assert_eq!(answer.event().await.unwrap().retry, Some(500));
    assert!(answer.event().await.is_none(), "the connection ends, the stream does not");
    let mut rest = client.with("last-event-id", first.id.unwrap()).get().await;
    assert_eq!(rest.message().await.unwrap()["result"]["content"][0]["text"], "rendered");
    assert!(rest.message().await.is_none());

    // For everybody else it changes nothing.
    for revision in [R2, R3] {
        let client = Wire::new(&http).open(revision, json!({})).await;
        let mut answer = client.call(1, "tools/call", json!({"name": "render"})).await;
        assert_eq!(answer.json().await["result"]["content"][0]["text"], "rendered");
    }
    let mut answer = Wire::new(&http).modern(1, "tools/call", json!({"name": "render"}), json!({})).await;
    assert_eq!(answer.json().await["result"]["content"][0]["text"], "rendered");
}

#[tokio::test]
async fn the_get_stream_is_resumed_too() {
    for revision in HTTP_SESSIONS {
        let server = Server::new("s", "0").tool(tool("t", || async { "" }));
        let client = Wire::new(&server.http().unwrap()).open(revision, json!({})).await;
        let mut stream = client.get().await;
        server.add_tool(tool("one", || async { "" })).unwrap();
        let mut first = stream.event().await.unwrap();
        if first.data.is_empty() {
            first = stream.event().await.unwrap();
        }
        server.remove_tool("one");
        assert!(stream.message().await.is_some());
        drop(stream);
        server.add_tool(tool("two", || async { "" })).unwrap();
        // One that was sent and perhaps lost, and one that happened since.
        let mut again = client.with("last-event-id", first.id.unwrap()).get().await;
        for _ in 0..2 {
            assert_eq!(again.message().await.unwrap()["method"], "notifications/tools/list_changed");
        }
        client.delete().await;
        assert!(again.messages().await.is_empty());
    }
}

#[tokio::test]
async fn a_json_only_server_asks_on_the_get_stream() {
    let server = Server::new("s", "0").tool(tool("write", |cx: Cx| async move {
        cx.progress(1.0, None).await;
        let question = SamplingMessage::new(Role::User, ContentBlock::text("Write!"));
        let written = cx.sample("text", CreateMessageParams::new(vec![question], 10)).await?;
        let texts = written.content.as_slice().iter().filter_map(ContentBlock::as_text);
        Ok::<String, ToolError>(texts.collect())
    }));
    let http = server.http().unwrap().json_only();
    for revision in HTTP_SESSIONS {
        let client = Wire::new(&http).open(revision, json!({"sampling": {}})).await;
        let params = json!({"name": "write", "_meta": {"progressToken": 1}});
        let mut unheard = client.call(1, "tools/call", params.clone()).await;
        let detail = unheard.json().await.to_string();
        assert!(detail.contains("the client has no open stream"), "{detail}");

        let mut stream = client.get().await;
        let call = tokio::spawn({
            let client = client.clone();
            async move { client.call(2, "tools/call", params).await }
        });
        let asked = stream.message().await.unwrap();
        assert_eq!(asked["method"], "sampling/createMessage");
        let text = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Done."}});
        client.post(json!({"jsonrpc": "2.0", "id": asked["id"], "result": text})).await;
        assert_eq!(call.await.unwrap().json().await["result"]["content"][0]["text"], "Done.");
    }
}
