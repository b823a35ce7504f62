//! Requests that were lost are sent again if repeating them is safe, and those that an overloaded server has refused.

use std::time::Duration;

use pintle::{Connection, Error, client::Reconnect, types::ErrorCode};
use pintle_testing::Peer;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::scripted_server::{BOTH, SESSION, accept, client, settle, text};

/// A connection of a client with two retries to one played server after the other.
async fn connect(peers: &mut Vec<Peer>, revision: &str, servers: usize) -> Connection {
    let mut lines = Vec::new();
    for _ in 0..servers {
        let (peer, line) = Peer::new();
        peers.push(peer);
        lines.push(line);
    }
    let mut lines = lines.into_iter();
    let transport = Reconnect::connect(move || {
        std::future::ready(lines.next().ok_or(std::io::ErrorKind::ConnectionRefused.into()))
    });
    let (client, transport) = (client().retries(2).reconnects(9), transport.await.unwrap());
    let capabilities = json!({"tools": {}});
    let (server, ()) = tokio::join!(client.connect(transport), accept(&mut peers[0], revision, capabilities));
    server.unwrap()
}

/// The server's side of a connection that is opened again.
async fn reopen(peer: &mut Peer, revision: &str) {
    if revision == SESSION {
        let hello = peer.receives("initialize").await;
        let result = json!({"protocolVersion": revision, "capabilities": {"tools": {}}});
        peer.answers(&hello, result).await;
        peer.receives("notifications/initialized").await;
    }
}

async fn list(peer: &mut Peer, annotations: Value) {
    let list = peer.receives("tools/list").await;
    let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "annotations": annotations});
    peer.answers(&list, json!({"resultType": "complete", "tools": [tool]})).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_call_is_sent_again_if_the_current_hints_allow_it() {
    for revision in BOTH {
        for hint in ["idempotentHint", "readOnlyHint"] {
            let mut peers = Vec::new();
            let server = connect(&mut peers, revision, 2).await;
            let mut second = peers.pop().unwrap();
            let mut first = peers.pop().unwrap();
            let (called, ()) = tokio::join!(server.call_tool("t", json!({"n": 1})), async {
                first.receives("tools/call").await;
                drop(first);
                reopen(&mut second, revision).await;
                // The hints of the server that answers now count.
                list(&mut second, json!({hint: true})).await;
                let again = second.receives("tools/call").await;
                assert_eq!(again["params"]["arguments"], json!({"n": 1}));
                second.answers(&again, text("done")).await;
            });
            assert_eq!(called.unwrap().text(), "done");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_call_of_another_tool_is_not_sent_again() {
    for revision in BOTH {
        let mut peers = Vec::new();
        let server = connect(&mut peers, revision, 2).await;
        let mut second = peers.pop().unwrap();
        let mut first = peers.pop().unwrap();
        let (called, ()) = tokio::join!(server.call_tool("t", ()), async {
            first.receives("tools/call").await;
            drop(first);
            reopen(&mut second, revision).await;
            list(&mut second, json!({"idempotentHint": false})).await;
        });
        assert!(matches!(called, Err(Error::Closed(_))), "{called:?}");
        settle().await;
        assert_eq!(second.receives_now().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn reads_are_sent_again_as_often_as_the_client_allows() {
    for revision in BOTH {
        let mut peers = Vec::new();
        let server = connect(&mut peers, revision, 4).await;
        let (read, last) = tokio::join!(async { server.read_resource("x:y").await }, async {
            let mut peers = peers.into_iter();
            let mut first = peers.next().unwrap();
            first.receives("resources/read").await;
            drop(first);
            for mut peer in peers.by_ref().take(2) {
                reopen(&mut peer, revision).await;
                peer.receives("resources/read").await;
            }
            let mut last = peers.next().unwrap();
            reopen(&mut last, revision).await;
            last
        });
        assert!(matches!(read, Err(Error::Closed(_))), "{read:?}");
        settle().await;
        let mut last = last;
        assert_eq!(last.receives_now().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_over_is_not_waited_for() {
    for revision in BOTH {
        let mut peers = Vec::new();
        let server = connect(&mut peers, revision, 1).await;
        let mut only = peers.pop().unwrap();
        let (read, ()) = tokio::join!(async { server.read_resource("x:y").await }, async {
            only.receives("resources/read").await;
            server.close().await;
        });
        assert!(matches!(read, Err(Error::Closed(_))), "{read:?}");
    }
}

/// An overloaded server has done nothing, so that every request may be repeated.
#[tokio::test(start_paused = true)]
async fn what_an_overloaded_server_refused_is_sent_again_when_it_asks_for_it() {
    for revision in BOTH {
        let mut peers = Vec::new();
        let server = connect(&mut peers, revision, 1).await;
        let mut peer = peers.pop().unwrap();
        let started = Instant::now();
        let (called, ()) = tokio::join!(server.call_tool("t", json!({"n": 1})), async {
            for wait in [700, 1300] {
                let call = peer.receives("tools/call").await;
                refuse(&mut peer, &call, json!({"retryAfterMs": wait})).await;
            }
            let again = peer.receives("tools/call").await;
            assert_eq!(again["params"]["arguments"], json!({"n": 1}));
            peer.answers(&again, text("done")).await;
        });
        assert_eq!(called.unwrap().text(), "done");
        assert_eq!(started.elapsed(), Duration::from_millis(2000));
    }
}

#[tokio::test(start_paused = true)]
async fn an_overload_is_the_error_after_the_last_retry_or_if_the_wait_is_too_long() {
    for (waits, tries) in [(vec![10, 10, 10], 3), (vec![31_000], 1)] {
        let mut peers = Vec::new();
        let server = connect(&mut peers, SESSION, 1).await;
        let mut peer = peers.pop().unwrap();
        let (read, ()) = tokio::join!(async { server.read_resource("x:y").await }, async {
            for wait in &waits {
                let read = peer.receives("resources/read").await;
                refuse(&mut peer, &read, json!({"retryAfterMs": wait})).await;
            }
        });
        let error = read.unwrap_err();
        assert!(matches!(&error, Error::Rpc(error) if error.code == ErrorCode::OVERLOADED), "{error}");
        assert_eq!(waits.len(), tries);
        settle().await;
        assert_eq!(peer.receives_now().await, None);
    }
}

async fn refuse(peer: &mut Peer, request: &Value, data: Value) {
    let error = json!({"code": -31503, "message": "too many requests", "data": data});
    peer.sends(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
}
