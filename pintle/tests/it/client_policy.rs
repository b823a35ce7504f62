//! The hook that can refuse a tool call, or have it confirmed.

use std::sync::{Arc, Mutex};

use pintle::{Connection, Error, client::Policy, testing::Peer};
use serde_json::json;

use crate::client_world::{BATCHES, SESSION, client, open, settle, text};

async fn listed(server: &Connection, peer: &mut Peer) {
    let script = async {
        let list = peer.hears("tools/list").await;
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
async fn it_sees_what_the_server_said_and_assumes_the_worst_otherwise() {
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
    assert!(matches!(refused, Error::Refused(said) if said == "nothing is destroyed here"));
    listed(&server, &mut peer).await;
    let script = async {
        for name in ["read", "write"] {
            let call = peer.hears("tools/call").await;
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
            assert_eq!(peer.hears_now().await, None);
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
