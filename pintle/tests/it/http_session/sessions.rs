//! Sessions over HTTP, in each revision that has them.

use std::{sync::Arc, time::Duration};

use http::Request;
use pintle::{
    Server, Timeouts,
    server::{Args, Cx, Next, ToolError, around, http::Http, resource, tool},
    types::schema::{ContentBlock, CreateMessageParams, Role, SamplingMessage},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{
    eras::{HTTP_SESSIONS, R2, R3, R4},
    http_client::Wire,
    http_server::soon,
};

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

fn server() -> Server {
    Server::new("adder", "1.0.0")
        .tool(tool("add", |Args(Add { a, b })| async move { a + b }))
        .tool(tool("count", |cx: Cx| async move {
            for n in 1..=3 {
                cx.progress(f64::from(n), 3.0).await;
            }
            "counted"
        }))
        .tool(tool("write", |cx: Cx| async move {
            let question = SamplingMessage::new(Role::User, ContentBlock::text("Write!"));
            let written = cx.sample("text", CreateMessageParams::new(vec![question], 10)).await?;
            let texts = written.content.as_slice().iter().filter_map(ContentBlock::as_text);
            Ok::<String, ToolError>(texts.collect())
        }))
        .resource(resource("note://1", "one", || async { "" }))
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

#[tokio::test(start_paused = true)]
async fn a_ping_does_not_wait_for_its_layers() {
    let (ask, gone_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (asked, going_on) = (ask.clone(), gone_on.clone());
    let slow = around(move |cx: Cx, next: Next| {
        let (asked, going_on) = (asked.clone(), going_on.clone());
        async move {
            if cx.method() == "ping" {
                asked.notified().await;
                going_on.notify_one();
            }
            next.run(cx).await
        }
    });
    let http = server().layer(&slow).http().unwrap();
    let client = Wire::new(&http).open(R4, json!({})).await;
    let mut answer = soon(client.call(1, "ping", json!({}))).await;
    assert_eq!(answer.json().await["result"], json!({}));
    ask.notify_one();
    soon(gone_on.notified()).await;
}

#[tokio::test]
async fn a_session_from_its_handshake_to_its_end() {
    let http = server().http().unwrap();
    for revision in HTTP_SESSIONS {
        let client = Wire::new(&http).open(revision, json!({})).await;
        assert_eq!(http.sessions(), 1);
        let mut sum = client.call(1, "tools/call", call("add", json!({"a": 1, "b": 2}))).await;
        assert_eq!((sum.status.as_u16(), sum.header("mcp-session-id")), (200, None));
        let sum = sum.json().await;
        assert_eq!(sum["result"]["content"][0]["text"], "3");
        assert_eq!(sum["result"].get("resultType"), None);
        assert_eq!(client.call(2, "ping", json!({})).await.json().await["result"], json!({}));
        let mut unknown = client.call(3, "no/such", json!({})).await;
        assert_eq!(unknown.status, 200, "404 would say that the session is gone");
        assert_eq!(unknown.json().await["error"]["code"], -32601);

        assert_eq!(client.delete().await.status, 204);
        assert_eq!(http.sessions(), 0);
        let mut gone = client.call(4, "ping", json!({})).await;
        assert_eq!(gone.status, 404);
        assert_eq!(gone.json().await["id"], 4);
        assert_eq!(client.get().await.status, 404);
        assert_eq!(client.delete().await.status, 404);
    }
}

#[tokio::test]
async fn a_request_may_name_any_revision_that_sessions_have() {
    let client = Wire::new(&server().http().unwrap()).open(R3, json!({})).await;
    let other = client.with("mcp-protocol-version", R4).call(1, "ping", json!({})).await;
    assert_eq!(other.status, 200, "some clients always name the same one");
    let mut refused = client.with("mcp-protocol-version", "2025-01-01").call(1, "ping", json!({})).await;
    assert_eq!(refused.status, 400);
    let message = refused.json().await["error"]["message"].to_string();
    assert!(message.contains("is `2025-01-01`; send `2025-11-25`"), "{message}");
    assert_eq!(client.without("mcp-protocol-version").call(1, "ping", json!({})).await.status, 200);
}

#[tokio::test]
async fn progress_makes_a_stream_of_the_answer() {
    let http = server().http().unwrap();
    for revision in HTTP_SESSIONS {
        let client = Wire::new(&http).open(revision, json!({})).await;
        let mut params = call("count", json!({}));
        params["_meta"] = json!({"progressToken": 5});
        let mut answer = client.call(1, "tools/call", params).await;
        let first = answer.event().await.unwrap();
        if revision == R4 {
            assert_eq!(
                (&*first.data, first.retry),
                ("", Some(1000)),
                "one can come back before anything was said"
            );
            assert!(first.id.is_some());
        } else {
            assert!(first.data.contains("notifications/progress"));
        }
        let messages = answer.messages().await;
        assert_eq!(messages.last().unwrap()["result"]["content"][0]["text"], "counted");
        assert_eq!(messages.len(), if revision == R4 { 4 } else { 3 });
    }
}

#[tokio::test]
async fn a_question_goes_on_the_stream_of_its_call_and_the_answer_comes_by_another_post() {
    let http = server().http().unwrap();
    for revision in HTTP_SESSIONS {
        let client = Wire::new(&http).open(revision, json!({"sampling": {}})).await;
        let mut other = client.get().await;
        let mut answer = client.call(1, "tools/call", call("write", json!({}))).await;
        let asked = answer.message().await.unwrap();
        assert_eq!(asked["method"], "sampling/createMessage");
        let text = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Done."}});
        let notified = client.post(json!({"jsonrpc": "2.0", "id": asked["id"], "result": text})).await;
        assert_eq!(notified.status, 202);
        assert_eq!(answer.result().await["result"]["content"][0]["text"], "Done.");
        assert!(answer.message().await.is_none(), "the answer is the last");
        // The same answer once more is nobody's.
        let again = client.post(json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}})).await;
        assert_eq!(again.status, 202);
        client.delete().await;
        assert!(other.messages().await.is_empty(), "each message is on one stream");
    }
}

#[tokio::test]
async fn a_cancelled_call_is_dropped_and_not_answered() {
    let (begun, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let signals = (begun.clone(), ended.clone());
    let server = Server::new("s", "0").tool(tool("wait", move |cx: Cx| {
        let (begun, ended) = signals.clone();
        async move {
            let _dropped = Dropped(ended);
            cx.progress(1.0, None).await;
            begun.notify_one();
            std::future::pending::<()>().await;
            ""
        }
    }));
    let http = server.http().unwrap();
    for revision in HTTP_SESSIONS {
        let client = Wire::new(&http).open(revision, json!({})).await;
        let cancel = |id: i64| {
            let params = json!({"requestId": id});
            client.post(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
        };
        let silent = tokio::spawn({
            let client = client.clone();
            async move { client.call(1, "tools/call", call("wait", json!({}))).await }
        });
        begun.notified().await;
        assert_eq!(cancel(1).await.status, 202);
        assert_eq!(silent.await.unwrap().status, 202);
        ended.notified().await;

        let params = json!({"name": "wait", "_meta": {"progressToken": 1}});
        let mut answer = client.call(2, "tools/call", params).await;
        assert_eq!(answer.message().await.unwrap()["params"]["progress"], 1.0);
        begun.notified().await;
        assert_eq!(cancel(2).await.status, 202);
        assert!(answer.messages().await.is_empty());
        ended.notified().await;
        assert_eq!(cancel(3).await.status, 202, "of what is not there");

        // And with its session.
        let params = json!({"name": "wait", "_meta": {"progressToken": 1}});
        let mut answer = client.call(4, "tools/call", params).await;
        begun.notified().await;
        assert_eq!(client.delete().await.status, 204);
        let rest = answer.messages().await;
        let last = rest.last().unwrap();
        assert_eq!(last["id"], 4);
        assert!(last["error"]["message"].as_str().unwrap().contains("the session ended"), "{last}");
        ended.notified().await;
    }
}

/// Says when it is dropped.
struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn the_get_stream_tells_of_changes_once() {
    for revision in HTTP_SESSIONS {
        let server = server();
        let client = Wire::new(&server.http().unwrap()).open(revision, json!({})).await;
        client.call(1, "resources/subscribe", json!({"uri": "note://1"})).await;
        // What happened before there was a stream is told when there is one.
        server.add_tool(tool("one", || async { "" })).unwrap();
        server.add_tool(tool("two", || async { "" })).unwrap();
        let mut stream = client.get().await;
        assert_eq!(stream.message().await.unwrap()["method"], "notifications/tools/list_changed");
        for uri in ["note://1", "note://2"] {
            server.resource_updated(uri);
        }
        let received = stream.message().await.unwrap();
        assert_eq!(
            (&received["method"], &received["params"]["uri"]),
            (&json!("notifications/resources/updated"), &json!("note://1"))
        );
        client.delete().await;
        assert!(stream.messages().await.is_empty());
    }
}

#[tokio::test]
async fn the_newest_of_two_get_streams_is_notified_and_the_other_takes_over() {
    let server = server();
    let client = Wire::new(&server.http().unwrap()).open(R4, json!({})).await;
    let mut first = client.get().await;
    let mut second = client.get().await;
    server.add_tool(tool("one", || async { "" })).unwrap();
    assert!(second.message().await.is_some());
    drop(second);
    server.remove_tool("one");
    assert!(first.message().await.is_some());
    client.delete().await;
    assert!(first.messages().await.is_empty(), "not the one that the second was told");
}

#[tokio::test]
async fn a_session_is_only_there_for_who_opened_it() {
    let http = server().http().unwrap().principal(|head| {
        let name = head.headers.get("x-user")?;
        Some(name.to_str().ok()?.to_owned())
    });
    let ann = Wire::new(&http).with("x-user", "ann").open(R4, json!({})).await;
    for thief in [ann.with("x-user", "bob"), ann.without("x-user")] {
        assert_eq!(thief.call(1, "ping", json!({})).await.status, 404);
        assert_eq!(thief.get().await.status, 404);
        assert_eq!(thief.delete().await.status, 404);
    }
    assert_eq!(ann.call(1, "ping", json!({})).await.status, 200);
}

#[tokio::test]
async fn batches_are_for_the_one_revision_that_has_them() {
    let http = server().http().unwrap();
    let batch = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call("add", json!({"a": 1, "b": 2}))},
        {"jsonrpc": "2.0", "method": "notifications/x"},
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
        {"jsonrpc": "2.0", "id": 3},
        {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": call("count", json!({}))},
        {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": call("count", json!({}))},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}},
    ]);
    for revision in HTTP_SESSIONS {
        let client = Wire::new(&http).open(revision, json!({})).await;
        let mut answer = client.post(batch.clone()).await;
        if revision != R2 {
            assert_eq!(answer.status, 400);
            continue;
        }
        let mut ids: Vec<_> =
            answer.json().await.as_array().unwrap().iter().map(|one| one["id"].as_i64().unwrap()).collect();
        ids.sort_unstable();
        assert_eq!(ids, [1, 2, 3, 4]);
        let notified = client.post(json!([{"jsonrpc": "2.0", "method": "notifications/x"}])).await;
        assert_eq!(notified.status, 202, "nothing was asked");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_is_forgotten_and_one_in_use_is_not() {
    let mut timeouts = Timeouts::default();
    timeouts.idle_session = Duration::from_secs(60);
    let http: Http = server().timeouts(timeouts).http().unwrap();
    let idle = Wire::new(&http).open(R4, json!({})).await;
    let used = Wire::new(&http).open(R4, json!({})).await;
    let held = Wire::new(&http).open(R4, json!({})).await;
    let stream = held.get().await;
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(used.call(1, "ping", json!({})).await.status, 200);
    }
    assert_eq!(idle.call(1, "ping", json!({})).await.status, 404);
    assert_eq!(held.call(1, "ping", json!({})).await.status, 200);
    drop(stream);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(http.sessions(), 0);
    // The one who looks for idle ones went too, and comes again.
    Wire::new(&http).open(R4, json!({})).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(http.sessions(), 0);
}

#[tokio::test]
async fn a_handshake_never_touches_a_session_that_is_there() {
    let http = server().http().unwrap();
    let first = Wire::new(&http).open(R3, json!({})).await;
    // The id of the first is in the head of the second handshake.
    let params =
        json!({"protocolVersion": R4, "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}});
    let second = first.call(0, "initialize", params).await;
    assert_eq!(second.status, 200);
    assert!(second.header("mcp-session-id").is_some());
    assert_eq!(http.sessions(), 2);
    // Of the two, only the newer revision tells the model what is wrong with its arguments.
    let mut wrong = first.call(1, "tools/call", call("add", json!({"a": "x"}))).await;
    assert_eq!(wrong.json().await["error"]["code"], -32602);
}

#[tokio::test]
async fn as_many_sessions_as_there_may_be() {
    let http = server().http().unwrap().max_sessions(1);
    let wire = Wire::new(&http);
    let first = wire.open(R4, json!({})).await;
    // It is in use, so it makes no room.
    let _stream = first.get().await;
    let params =
        json!({"protocolVersion": R4, "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}});
    let mut second = wire.call(0, "initialize", params).await;
    assert_eq!(second.status, 503);
    assert!(second.json().await["error"]["message"].as_str().unwrap().contains("try again later"));
    first.delete().await;
    wire.open(R4, json!({})).await;
}

#[tokio::test]
async fn a_session_runs_so_many_calls_at_once_and_the_others_wait() {
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let signals = (begun.clone(), go.clone());
    let server = Server::new("s", "0").concurrency(1).tool(tool("wait", move || {
        let (begun, go) = signals.clone();
        async move {
            begun.notify_one();
            go.notified().await;
            ""
        }
    }));
    let client = Wire::new(&server.http().unwrap()).open(R4, json!({})).await;
    let begin = |id| {
        let client = client.clone();
        tokio::spawn(async move { client.call(id, "tools/call", call("wait", json!({}))).await })
    };
    let first = begin(1);
    begun.notified().await;
    let (cancelled, waiting) = (begin(2), begin(3));
    tokio::task::yield_now().await;
    let params = json!({"requestId": 2});
    client.post(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})).await;
    assert_eq!(cancelled.await.unwrap().status, 202, "before its turn came");
    go.notify_one();
    assert_eq!(first.await.unwrap().status, 200);
    begun.notified().await;
    go.notify_one();
    assert_eq!(waiting.await.unwrap().status, 200);
}

#[tokio::test]
async fn one_session_from_many_connections_at_once() {
    let http = server().http().unwrap();
    let client = Wire::new(&http).open(R4, json!({"sampling": {}})).await;
    let mut calls = Vec::new();
    for id in 1..=50 {
        let client = client.clone();
        calls.push(tokio::spawn(async move {
            let mut answer = client.call(id, "tools/call", call("write", json!({}))).await;
            let asked = answer.message().await.unwrap();
            let text = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": id.to_string()}});
            client.post(json!({"jsonrpc": "2.0", "id": asked["id"], "result": text})).await;
            let answer = answer.result().await;
            assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(id), &json!(id.to_string())));
        }));
    }
    for call in calls {
        call.await.unwrap();
    }
}

#[tokio::test]
async fn a_custom_endpoint_needs_no_tower() {
    let http = server().http().unwrap();
    let wire = Wire::new(&http).open(R4, json!({})).await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let request: Request<String> = wire.request("POST", "/mine", body);
    let (head, body) = request.into_parts();
    let mut answer = crate::support::http_client::Answer::new(http.answer(head, body.into()).await);
    assert_eq!(answer.json().await["result"], json!({}));
    let id = wire.headers.iter().find(|(name, _)| *name == "mcp-session-id").unwrap().1.clone();
    assert!(http.end_session(&id).await.unwrap());
    assert!(!http.end_session(&id).await.unwrap());
}
