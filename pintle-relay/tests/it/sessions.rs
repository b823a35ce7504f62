//! Which connection to the server behind a client uses.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use pintle::{
    Server,
    server::{Caller, Cx, ToolError, tool},
};
use serde_json::{Value, json};

use super::world::{self, Seen};
use crate::support::{
    eras::{R4, R5},
    line_client::{Raw, modern},
};

#[derive(Default)]
struct Calls(AtomicU32);

/// A server that counts the calls of each session.
fn counting() -> Server {
    Server::new("dice", "1.0.0").tool(tool("count", |cx: Cx| async move {
        let session = cx.session().ok_or("no session")?;
        let calls = session.get_or_insert_with(Calls::default)?;
        Ok::<_, ToolError>((calls.0.fetch_add(1, Ordering::SeqCst) + 1).to_string())
    }))
}

async fn count(client: &mut Raw, params: Value) -> String {
    let id = client.request("tools/call", params).await;
    loop {
        let message = client.recv().await;
        if message["id"] == id {
            return message["result"]["content"][0]["text"]
                .as_str()
                .unwrap_or_else(|| panic!("{message}"))
                .to_owned();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_session_has_its_own_behind_the_relay() {
    let front = world::relayed(&counting(), R4).await;
    let (mut ann, mut bob) = (Raw::new(&front), Raw::new(&front));
    ann.open(R4, json!({})).await;
    bob.open(R4, json!({})).await;
    let params = json!({"name": "count"});
    assert_eq!(count(&mut ann, params.clone()).await, "1");
    assert_eq!(count(&mut ann, params.clone()).await, "2");
    assert_eq!(count(&mut bob, params).await, "1");
}

#[tokio::test(start_paused = true)]
async fn principals_without_a_session_share_nothing_behind_the_relay() {
    let front = world::relayed(&counting(), R4).await;
    let mut ann = Raw::known(&front, Caller::new().principal("ann"));
    let mut bob = Raw::known(&front, Caller::new().principal("bob"));
    let mut nobody = Raw::known(&front, Caller::new());
    let params = modern(json!({"name": "count"}), json!({}));
    assert_eq!(count(&mut ann, params.clone()).await, "1");
    assert_eq!(count(&mut ann, params.clone()).await, "2");
    assert_eq!(count(&mut bob, params.clone()).await, "1");
    for _ in 0..2 {
        assert_eq!(count(&mut nobody, params.clone()).await, "1", "anonymous clients share nothing");
    }
}

#[tokio::test(start_paused = true)]
async fn anonymous_clients_share_a_session_only_if_that_is_allowed() {
    let behind = counting();
    // The options are those of one handle, whatever other handles there are.
    let denied = world::relay(&behind, R4).await;
    let front = world::front(&denied.clone().share_anonymous());
    let mut nobody = Raw::known(&front, Caller::new());
    let params = modern(json!({"name": "count"}), json!({}));
    assert_eq!(count(&mut nobody, params.clone()).await, "1");
    assert_eq!(count(&mut nobody, params.clone()).await, "2");
    let mut local = Raw::known(&front, Caller::local());
    assert_eq!(count(&mut local, params.clone()).await, "1", "the local user shares nothing with them");
    let mut nobody = Raw::known(&world::front(&denied), Caller::new());
    for _ in 0..2 {
        assert_eq!(count(&mut nobody, params.clone()).await, "1");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_ends_behind_the_relay() {
    let behind = counting();
    let front = world::relayed(&behind, R4).await;
    let reaches = async |count: usize| {
        for _ in 0..1000 {
            if behind.sessions().len() == count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{} sessions instead of {count}", behind.sessions().len());
    };
    let mut ann = Raw::new(&front);
    ann.open(R4, json!({})).await;
    count(&mut ann, json!({"name": "count"})).await;
    // The one that told what the server offers has ended.
    reaches(1).await;
    drop(ann);
    reaches(0).await;
    // A server without sessions has one connection, whoever calls.
    assert_eq!(world::relayed(&behind, R5).await.sessions().len(), 0);
}

/// Has a caller make calls that do not end, each of which has a connection of its own.
async fn occupy(front: &Server, caller: &Caller, count: usize) -> Vec<(Raw, i64)> {
    let mut wait = modern(json!({"name": "wait"}), asked());
    let mut waiting = Vec::new();
    for number in 0..count {
        let mut client = Raw::known(front, caller.clone());
        wait["_meta"]["io.modelcontextprotocol/clientInfo"] =
            json!({"name": number.to_string(), "version": "1"});
        let id = client.request("tools/call", wait.clone()).await;
        waiting.push((client, id));
    }
    waiting
}

/// The capabilities of a client that can be asked: it shares no connection with those of another name.
fn asked() -> Value {
    json!({"roots": {}})
}

async fn cancel((mut client, id): (Raw, i64)) {
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    client.send(cancelled).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_for_which_there_is_no_connection_waits_and_is_then_refused() {
    let seen = Seen::default();
    let front = world::relayed(&world::server(&seen), R4).await;
    let (ann, bob) = (Caller::new().principal("ann"), Caller::new().principal("bob"));
    let mut waiting = occupy(&front, &ann, 40).await;
    waiting.extend(occupy(&front, &bob, 24).await);
    seen.reaches(64, 0).await;
    let add = modern(json!({"name": "add", "arguments": {"a": 1, "b": 2}}), json!({}));
    let mut late = Raw::known(&front, Caller::new());
    let started = tokio::time::Instant::now();
    late.request("tools/call", add.clone()).await;
    let refused = late.recv().await;
    assert_eq!(started.elapsed().as_secs(), 30);
    assert!(refused["error"]["message"].as_str().unwrap().contains("in use"), "{refused}");
    assert!(refused["error"]["data"]["retryAfterMs"].is_u64(), "{refused}");
    // One that becomes free is used at once.
    late.request("tools/call", add).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    cancel(waiting.pop().unwrap()).await;
    assert_eq!(late.recv().await["result"]["content"][0]["text"], "3");
}

#[tokio::test(start_paused = true)]
async fn a_principal_does_not_have_all_connections_of_a_relay() {
    let add = modern(json!({"name": "add", "arguments": {"a": 1, "b": 2}}), asked());
    let named = Caller::new().principal("ann");
    for (greedy, other) in [(named.clone(), Caller::new()), (Caller::new(), named)] {
        let seen = Seen::default();
        let front = world::relayed(&world::server(&seen), R4).await;
        let mut waiting = occupy(&front, &greedy, 48).await;
        seen.reaches(48, 0).await;
        let mut late = Raw::known(&front, greedy);
        let started = tokio::time::Instant::now();
        late.request("tools/call", add.clone()).await;
        // Others are served meanwhile.
        let mut other = Raw::known(&front, other);
        other.request("tools/call", add.clone()).await;
        assert_eq!(other.recv().await["result"]["content"][0]["text"], "3");
        assert_eq!(started.elapsed().as_secs(), 0);
        let refused = late.recv().await;
        assert_eq!(started.elapsed().as_secs(), 30);
        assert_eq!(
            refused["error"]["message"],
            "this caller has too many calls to the server behind this one at once: wait for some of them to end, and call again"
        );
        assert!(refused["error"]["data"]["retryAfterMs"].is_u64(), "{refused}");
        // One of its own that becomes free is used at once.
        late.request("tools/call", add.clone()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel(waiting.pop().unwrap()).await;
        assert_eq!(late.recv().await["result"]["content"][0]["text"], "3");
    }
}

/// A call that waits because of its own principal does not take what is released from one that waits because of all.
#[tokio::test(start_paused = true)]
async fn a_connection_that_is_released_goes_to_a_call_that_may_have_it() {
    let seen = Seen::default();
    let front = world::relayed(&world::server(&seen), R4).await;
    let (ann, bob) = (Caller::new().principal("ann"), Caller::new().principal("bob"));
    let _of_ann = occupy(&front, &ann, 48).await;
    let mut anonymous = occupy(&front, &Caller::new(), 16).await;
    seen.reaches(64, 0).await;
    let add = modern(json!({"name": "add", "arguments": {"a": 1, "b": 2}}), asked());
    let mut first = Raw::known(&front, ann);
    first.request("tools/call", add.clone()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut second = Raw::known(&front, bob);
    let started = tokio::time::Instant::now();
    second.request("tools/call", add).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    cancel(anonymous.pop().unwrap()).await;
    assert_eq!(second.recv().await["result"]["content"][0]["text"], "3");
    assert_eq!(started.elapsed().as_secs(), 1);
}

/// The server behind asks for the roots of a client outside of any call.
#[tokio::test(start_paused = true)]
async fn a_question_outside_of_a_call_goes_to_the_session_or_to_the_next_call() {
    let behind = counting();
    let front = world::relayed(&behind, R4).await;
    let roots = json!({"roots": {}});
    let mut ann = Raw::new(&front);
    ann.open(R4, roots.clone()).await;
    count(&mut ann, json!({"name": "count"})).await;
    let session = behind.sessions().pop().unwrap();
    let asking = tokio::spawn(async move { session.roots().await });
    let question = ann.recv().await;
    assert_eq!(question["method"], "roots/list", "{question}");
    let result = json!({"roots": [{"uri": "file:///srv"}]});
    ann.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": result})).await;
    assert_eq!(asking.await.unwrap().unwrap()[0].uri, "file:///srv");
    // Its error is that of the answer.
    let session = behind.sessions().pop().unwrap();
    let asking = tokio::spawn(async move { session.roots().await });
    let question = ann.recv().await;
    let error = json!({"code": -31999, "message": "not today"});
    ann.send(json!({"jsonrpc": "2.0", "id": question["id"], "error": error})).await;
    let refused = asking.await.unwrap().unwrap_err().to_string();
    assert_eq!(refused.matches("did not return a result").count(), 1, "{refused}");
    assert!(refused.contains("not today"), "{refused}");
    let mut bob = Raw::known(&front, Caller::new().principal("bob"));
    let mut call = modern(json!({"name": "count"}), roots);
    count(&mut bob, call.clone()).await;
    let session = behind.sessions().pop().unwrap();
    let asking = tokio::spawn(async move { session.roots().await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    bob.request("tools/call", call.clone()).await;
    let asked = bob.recv().await;
    let (key, question) = asked["result"]["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["method"], "roots/list", "{asked}");
    call["requestState"] = asked["result"]["requestState"].clone();
    call["inputResponses"][key] = json!({"roots": [{"uri": "file:///bob"}]});
    count(&mut bob, call).await;
    assert_eq!(asking.await.unwrap().unwrap()[0].uri, "file:///bob");
}
