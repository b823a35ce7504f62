//! What clients see of a Redis that is slow, or restarts with its data: rows of `docs/scale.md`.

mod failovers;

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use pintle::{
    Server,
    server::{
        http::{
            Http,
            log::{EventId, EventLog as _, Replay},
        },
        tool,
    },
};
use pintle_redis::RedisOptions;
use tokio::time::timeout;

use crate::{
    faults::{INITIALIZE, PING, SESSION, post},
    kits::first_use,
    redis_server::RedisServer,
};

const SOON: Duration = Duration::from_secs(10);

/// Calls a tool as a client without a session does.
pub(crate) async fn call_stateless(http: &Http) -> u16 {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let request = Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "hello");
    let (head, ()) = request.body(()).unwrap().into_parts();
    timeout(SOON, http.answer(head, Bytes::from_static(body.as_bytes()))).await.unwrap().status().as_u16()
}

/// Pings until the response is not 503 any more.
pub(crate) async fn reconnected(http: &Http, session: &str) -> u16 {
    for _ in 0..200 {
        let status = post(http, Some(session), PING).await.status().as_u16();
        if status != 503 {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    503
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_slower_than_its_time_limit_is_503_for_sessions_and_nothing_for_others() {
    let Some(server) = RedisServer::start().await else { return };
    let options = RedisOptions::default().timeout(Duration::from_millis(300));
    let notes = Server::new("notes", "1").tool(tool("hello", || async { "hello" }));
    let redis = server.connect(&options).await.unwrap();
    let http = notes.http().unwrap().shared(redis.clone());
    let opened = post(&http, None, INITIALIZE).await;
    let session = opened.headers()[SESSION].to_str().unwrap().to_owned();
    server.set_paused(true);
    for (session, body) in [(Some(&*session), PING), (None, INITIALIZE)] {
        let refused = post(&http, session, body).await;
        assert_eq!(refused.status(), 503);
        assert!(refused.headers().contains_key("retry-after"));
    }
    // Whether it was used is not known, so it is not the first use.
    first_use(&redis, &[7; 32], u64::from(u32::MAX)).await.unwrap_err();
    assert_eq!(call_stateless(&http).await, 200);
    server.set_paused(false);
    assert_eq!(reconnected(&http, &session).await, 200, "the session is there as before");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_restarts_with_its_data_has_sessions_and_streams_as_before() {
    let Some(mut server) = RedisServer::start().await else { return };
    server.keep_data().await;
    let options = RedisOptions::default().timeout(Duration::from_millis(500));
    let redis = server.connect(&options).await.unwrap();
    let notes = Server::new("notes", "1");
    let http = notes.http().unwrap().shared(redis.clone());
    let opened = post(&http, None, INITIALIZE).await;
    let session = opened.headers()[SESSION].to_str().unwrap().to_owned();
    let mut id = EventId::start(1);
    redis.open("s", 1, Bytes::new()).await.unwrap();
    for place in 1..=3 {
        id.place = place;
        redis.append("s", id, Bytes::from(format!("event {place}"))).await.unwrap();
    }
    assert!(first_use(&redis, &[7; 32], u64::from(u32::MAX)).await.unwrap());
    server.restart().await;
    assert_eq!(reconnected(&http, &session).await, 200);
    let Replay::Events(missed) = redis.after("s", EventId::start(1)).await.unwrap() else {
        panic!("it is gone")
    };
    assert_eq!(missed.events.len(), 3);
    assert!(!first_use(&redis, &[7; 32], u64::from(u32::MAX)).await.unwrap(), "it is still used");
}
