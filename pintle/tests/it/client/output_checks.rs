//! Results are checked against output schemas, whether or not the tools were listed before.

use std::time::Duration;

use pintle::Error;
use pintle_testing::Peer;
use serde_json::{Value, json};

use crate::support::scripted_server::{BOTH, STATELESS, client, open, settle, text};

fn structured(content: Value) -> Value {
    json!({"resultType": "complete", "content": [], "structuredContent": content})
}

fn tools(of: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"n": {"type": of}}, "required": ["n"]});
    let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema});
    json!({"resultType": "complete", "tools": [tool], "ttlMs": 0, "cacheScope": "private"})
}

async fn answer_call(peer: &mut Peer, result: Value) {
    let call = peer.receives("tools/call").await;
    peer.answers(&call, result).await;
}

async fn answer_list(peer: &mut Peer, result: Value) {
    let list = peer.receives("tools/list").await;
    peer.answers(&list, result).await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_is_looked_up_once() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({"tools": {}})).await;
        let (good, ()) = tokio::join!(server.call_tool("t", ()), async {
            answer_call(&mut peer, structured(json!({"n": 1}))).await;
            answer_list(&mut peer, tools("integer")).await;
        });
        good.unwrap();
        let (called, ()) =
            tokio::join!(server.call_tool("t", ()), answer_call(&mut peer, structured(json!({"n": 1}))));
        called.unwrap();
        // A tool that the server does not list is not looked up with every call.
        for _ in 0..2 {
            let (called, ()) =
                tokio::join!(server.call_tool("hidden", ()), answer_call(&mut peer, structured(json!(7))));
            called.unwrap();
        }
        settle().await;
        assert_eq!(peer.receives_now().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_result_of_an_unknown_tool_is_refused() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({"tools": {}})).await;
        let (wrong, ()) = tokio::join!(server.call_tool("t", ()), async {
            answer_call(&mut peer, structured(json!({}))).await;
            answer_list(&mut peer, tools("integer")).await;
        });
        let error = wrong.unwrap_err();
        assert!(matches!(error, Error::Decode(_)), "{error}");
        assert!(error.to_string().contains("the result of tool `t`"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_at_the_same_time_look_up_together() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({"tools": {}})).await;
        let (a, b, ()) = tokio::join!(server.call_tool("t", ()), server.call_tool("t", ()), async {
            let calls = [peer.receives("tools/call").await, peer.receives("tools/call").await];
            for call in &calls {
                peer.answers(call, structured(json!({"n": 1}))).await;
            }
            let list = peer.receives("tools/list").await;
            settle().await;
            assert_eq!(peer.receives_now().await, None);
            peer.answers(&list, tools("integer")).await;
        });
        a.unwrap();
        b.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_lookup_that_fails_or_takes_too_long_does_not_fail_the_call() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({"tools": {}})).await;
        let (called, ()) = tokio::join!(server.call_tool("t", ()), async {
            answer_call(&mut peer, structured(json!({}))).await;
            let list = peer.receives("tools/list").await;
            peer.refuses(&list, -32603, "not today").await;
        });
        called.unwrap();

        let (server, mut peer) = open(&client(), revision, json!({"tools": {}})).await;
        let call = server.call("t").timeout(Duration::from_secs(5));
        let started = tokio::time::Instant::now();
        let (called, ()) = tokio::join!(call.send(), async {
            answer_call(&mut peer, structured(json!({}))).await;
            peer.receives("tools/list").await;
        });
        called.unwrap();
        assert_eq!(started.elapsed(), Duration::from_secs(5));
        peer.receives("notifications/cancelled").await;
        // The next one does not wait for it again.
        let (called, ()) =
            tokio::join!(server.call_tool("t", ()), answer_call(&mut peer, structured(json!({}))));
        called.unwrap();
        assert_eq!(started.elapsed(), Duration::from_secs(5));
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_looked_up_for_a_result_without_structured_content() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({"tools": {}})).await;
        let (called, ()) = tokio::join!(server.call_tool("t", ()), answer_call(&mut peer, text("done")));
        called.unwrap();
        // Nor for an error of the tool.
        let mut failed = structured(json!({}));
        failed["isError"] = true.into();
        let (called, ()) = tokio::join!(server.call_tool("t", ()), answer_call(&mut peer, failed));
        called.unwrap();
        // Nor where the server has no tools to list.
        let (server, mut other) = open(&client(), revision, json!({})).await;
        let (called, ()) =
            tokio::join!(server.call_tool("t", ()), answer_call(&mut other, structured(json!({}))));
        called.unwrap();
        settle().await;
        assert_eq!((peer.receives_now().await, other.receives_now().await), (None, None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_is_not_refused_by_an_outdated_schema() {
    let (server, mut peer) = open(&client(), STATELESS, json!({"tools": {"listChanged": true}})).await;
    let (listed, ()) = tokio::join!(async { server.tools().await }, answer_list(&mut peer, tools("string")));
    listed.unwrap();
    let (called, ()) = tokio::join!(server.call_tool("t", ()), async {
        answer_call(&mut peer, structured(json!({"n": 1}))).await;
        answer_list(&mut peer, tools("integer")).await;
    });
    called.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_schema_whose_alternatives_multiply_is_not_checked() {
    let mut schema = json!({"type": "object", "required": ["n"], "$ref": "#/$defs/d0", "$defs": {"d12": {}}});
    for at in 0..12 {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        schema["$defs"][format!("d{at}")] = json!({"anyOf": vec![next; 8]});
    }
    let mut list = tools("integer");
    list["tools"][0]["outputSchema"] = schema;
    let (server, mut peer) = open(&client(), STATELESS, json!({"tools": {}})).await;
    let (called, ()) = tokio::join!(server.call_tool("t", ()), async {
        answer_call(&mut peer, structured(json!({"n": "not checked"}))).await;
        answer_list(&mut peer, list).await;
    });
    called.unwrap();
    // Its type and what it requires are looked at all the same.
    let (called, ()) = tokio::join!(server.call_tool("t", ()), answer_call(&mut peer, structured(json!({}))));
    assert!(called.unwrap_err().to_string().contains("lacks `n`"));
}
