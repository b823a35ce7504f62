//! The hook that can refuse a tool call, or have it confirmed.

use std::sync::{Arc, Mutex};

use pintle::{
    Connection, Error,
    client::{Answer, Policy},
};
use pintle_testing::Peer;
use serde_json::json;

use crate::support::scripted_server::{BATCHES, SESSION, STATELESS, client, open, settle, text};

async fn listed(server: &Connection, peer: &mut Peer) {
    let script = async {
        let list = peer.receives("tools/list").await;
        let tool = |name: &str, hints| json!({"name": name, "inputSchema": {}, "annotations": hints});
        let tools = json!({"tools": [
            tool("read", json!({"readOnlyHint": true})),
            tool("write", json!({"destructiveHint": false, "openWorldHint": false})),
            tool("drop", json!({})),
        ]});
        peer.answers(&list, tools).await;
    };
    let (tools, ()) = tokio::join!(server.tools(), script);
    assert_eq!(tools.unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_policy_sees_declared_hints_and_assumes_the_worst_otherwise() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let client = client().policy({
        let seen = seen.clone();
        move |call| {
            let hints = call.hints();
            seen.lock().unwrap().push((call.name.to_owned(), hints.destructive, hints.open_world));
            match hints {
                hints if hints.read_only => Policy::Allow,
                hints if hints.destructive => Policy::deny("nothing is destroyed here"),
                _ => Policy::ask(async { true }),
            }
        }
    });
    let (server, mut peer) = open(&client, SESSION, json!({})).await;
    let refused = server.call_tool("read", ()).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(message) if message == "nothing is destroyed here"));
    listed(&server, &mut peer).await;
    let script = async {
        for name in ["read", "write"] {
            let call = peer.receives("tools/call").await;
            assert_eq!(call["params"]["name"], name);
            peer.answers(&call, text("ok")).await;
        }
    };
    let calls = async {
        assert!(server.call_tool("read", ()).await.is_ok());
        assert!(server.call_tool("write", ()).await.is_ok());
        assert!(matches!(server.call_tool("drop", ()).await.unwrap_err(), Error::Refused(_)));
    };
    tokio::join!(calls, script);
    let expected =
        [("read", true, true), ("read", false, true), ("write", false, false), ("drop", true, true)];
    assert_eq!(*seen.lock().unwrap(), expected.map(|(name, d, o)| (name.to_owned(), d, o)));
}

#[tokio::test(start_paused = true)]
async fn there_is_no_way_around_it() {
    for revision in [SESSION, BATCHES] {
        for denied in [true, false] {
            let client = client()
                .policy(move |_| if denied { Policy::deny("no") } else { Policy::ask(async { false }) });
            let (server, mut peer) = open(&client, revision, json!({})).await;
            let params = || r#"{"name":"t"}"#.parse().unwrap();
            assert!(matches!(server.call_raw("tools/call", params()).await.unwrap_err(), Error::Refused(_)));
            let batch = server.batch().call_tool("t", ()).request("tools/call", params());
            for result in batch.send().await {
                assert!(matches!(result.unwrap_err(), Error::Refused(_)));
            }
            settle().await;
            assert_eq!(peer.receives_now().await, None);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_panics_is_a_no() {
    let client = client().policy(|_| Policy::ask(async { panic!("this policy is broken") }));
    let (server, _peer) = open(&client, SESSION, json!({})).await;
    let refused = server.call_tool("t", ()).await.unwrap_err();
    assert_eq!(refused.to_string(), "calling `t` was not confirmed");
}

/// Lets pass what only reads.
fn reads_only() -> pintle::Client {
    client().policy(|call| match call.hints().read_only {
        true => Policy::Allow,
        false => Policy::deny("it writes"),
    })
}

async fn lists(peer: &mut Peer, hints: serde_json::Value) {
    let list = peer.receives("tools/list").await;
    let tools = json!([{"name": "t", "inputSchema": {"type": "object"}, "annotations": hints}]);
    let result = json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"});
    peer.answers(&list, result).await;
}

async fn runs(peer: &mut Peer) {
    let call = peer.receives("tools/call").await;
    peer.answers(&call, text("ok")).await;
}

const CHANGING: fn() -> serde_json::Value = || json!({"tools": {"listChanged": true}});

#[tokio::test(start_paused = true)]
async fn what_is_not_known_is_looked_up_and_a_change_is_looked_at() {
    let (server, mut peer) = open(&reads_only(), SESSION, CHANGING()).await;
    let calls = async {
        server.call_tool("t", ()).await.unwrap();
        server.call_tool("t", ()).await.unwrap();
    };
    let script = async {
        lists(&mut peer, json!({"readOnlyHint": true})).await;
        runs(&mut peer).await;
        // A session tells of changes: there is no need to list before each call.
        runs(&mut peer).await;
        peer.notifies("notifications/tools/list_changed", json!({})).await;
        settle().await;
    };
    tokio::join!(calls, script);
    let script = async {
        lists(&mut peer, json!({})).await;
        settle().await;
        assert_eq!(peer.receives_now().await, None);
    };
    let (refused, ()) = tokio::join!(server.call_tool("t", ()), script);
    assert!(matches!(refused.unwrap_err(), Error::Refused(message) if message == "it writes"));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_cannot_be_looked_up_is_taken_for_the_worst() {
    let (server, mut peer) = open(&reads_only(), SESSION, CHANGING()).await;
    let script = async {
        let list = peer.receives("tools/list").await;
        peer.refuses(&list, -32603, "broken").await;
        settle().await;
        assert_eq!(peer.receives_now().await, None);
    };
    let (refused, ()) = tokio::join!(server.call_tool("t", ()), script);
    assert!(matches!(refused.unwrap_err(), Error::Refused(_)));
}

#[tokio::test(start_paused = true)]
async fn without_change_notifications_the_tools_are_listed_before_each_call() {
    let (server, mut peer) = open(&reads_only(), STATELESS, CHANGING()).await;
    let calls = async {
        server.call_tool("t", ()).await.unwrap();
        server.call_tool("t", ()).await.unwrap_err()
    };
    let script = async {
        lists(&mut peer, json!({"readOnlyHint": true})).await;
        runs(&mut peer).await;
        lists(&mut peer, json!({})).await;
    };
    let (refused, ()) = tokio::join!(calls, script);
    assert!(matches!(refused, Error::Refused(_)));
}

#[tokio::test(start_paused = true)]
async fn what_changes_while_the_user_thinks_is_decided_on_anew() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let thinking = Arc::new(tokio::sync::Notify::new());
    let client = client().policy({
        let (asked, thinking) = (asked.clone(), thinking.clone());
        move |call| {
            asked.lock().unwrap().push(call.hints().read_only);
            let thinking = thinking.clone();
            Policy::ask(async move {
                thinking.notified().await;
                true
            })
        }
    });
    let (server, mut peer) = open(&client, SESSION, CHANGING()).await;
    let call = tokio::spawn(async move { server.call_tool("t", ()).await });
    lists(&mut peer, json!({"readOnlyHint": true})).await;
    settle().await;
    // It was asked about a tool that is another one by now.
    peer.notifies("notifications/tools/list_changed", json!({})).await;
    settle().await;
    thinking.notify_one();
    lists(&mut peer, json!({"destructiveHint": true})).await;
    settle().await;
    assert_eq!(*asked.lock().unwrap(), [true, false]);
    // A change that is none for this tool is no reason to ask once more.
    peer.notifies("notifications/tools/list_changed", json!({})).await;
    settle().await;
    thinking.notify_one();
    lists(&mut peer, json!({"destructiveHint": true})).await;
    runs(&mut peer).await;
    call.await.unwrap().unwrap();
    assert_eq!(asked.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_changes_while_the_user_answers_the_server_is_decided_on_anew() {
    for (hints, refused) in [(json!({"readOnlyHint": true}), false), (json!({}), true)] {
        let client = reads_only().on_elicit(|_| async { Answer::accept(json!({"city": "Rome"})) });
        let (server, mut peer) = open(&client, STATELESS, CHANGING()).await;
        let script = async {
            lists(&mut peer, json!({"readOnlyHint": true})).await;
            let call = peer.receives("tools/call").await;
            let form = json!({"method": "elicitation/create", "params": {"mode": "form", "message": "Where?",
                "requestedSchema": {"type": "object", "properties": {"city": {"type": "string"}}}}});
            let asks =
                json!({"resultType": "input_required", "inputRequests": {"a": form}, "requestState": "s"});
            peer.answers(&call, asks).await;
            // Nobody tells of changes: what the tool is now has to be looked up.
            lists(&mut peer, hints).await;
            if !refused {
                runs(&mut peer).await;
            }
        };
        let (called, ()) = tokio::join!(server.call_tool("t", ()), script);
        assert_eq!(matches!(called, Err(Error::Refused(_))), refused, "{called:?}");
        settle().await;
        assert_eq!(peer.receives_now().await, None);
    }
}
