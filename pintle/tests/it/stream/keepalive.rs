//! A dead session is closed, a live one never.

use std::time::Duration;

use pintle::{Ended, Server, Timeouts, server::tool};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::support::pipe::{Pipe, call, settle, within};

const EVERY: Duration = Duration::from_secs(10);

fn server() -> Server {
    Server::new("s", "0")
        .tool(tool("fine", || async { "fine" }))
        .tool(tool("fat", || async { "f".repeat(4 << 20) }))
        .timeouts(keepalive(EVERY))
}

fn keepalive(every: Duration) -> Timeouts {
    let mut timeouts = Timeouts::default();
    timeouts.keepalive = Some(every);
    timeouts
}

#[tokio::test(start_paused = true)]
async fn a_silent_session_is_asked_and_then_closed() {
    let (mut pipe, serving) = Pipe::session(&server(), 1 << 16, "2025-11-25", json!({})).await;
    let before = Instant::now();
    assert_eq!(pipe.receive().await["method"], "ping");
    assert_eq!(before.elapsed().as_secs(), EVERY.as_secs());
    assert_eq!(within(serving.wait()).await.unwrap(), Ended::Dead);
    assert!(before.elapsed() <= 4 * EVERY, "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn one_that_answers_lives_however_it_answers() {
    for answer in [json!({"result": {}}), json!({"error": {"code": -32601, "message": "what?"}})] {
        let (mut pipe, serving) = Pipe::session(&server(), 1 << 16, "2025-06-18", json!({})).await;
        for _ in 0..20 {
            let ping = pipe.receive().await;
            assert_eq!(ping["method"], "ping");
            let mut answer = answer.clone();
            answer["jsonrpc"] = "2.0".into();
            answer["id"] = ping["id"].clone();
            pipe.say(answer).await;
        }
        assert!(timeout(EVERY / 2, serving.wait()).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn any_traffic_is_a_sign_of_life() {
    let (mut pipe, serving) = Pipe::session(&server(), 1 << 16, "2025-06-18", json!({})).await;
    for _ in 0..50 {
        sleep(EVERY * 9 / 10).await;
        pipe.say(json!({"jsonrpc": "2.0", "method": "notifications/whatever"})).await;
        settle().await;
    }
    pipe.say(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await;
    assert_eq!(pipe.receive().await["id"], 1, "nothing was asked meanwhile");
    assert!(timeout(EVERY / 2, serving.wait()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn one_that_reads_slowly_lives() {
    let (mut pipe, serving) = Pipe::session(&server(), 64, "2025-06-18", json!({})).await;
    for id in 0..3 {
        let params = json!({"name": "fat"});
        pipe.say(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await;
    }
    for id in 0..3 {
        sleep(EVERY * 2).await;
        let mut line = pipe.receive().await;
        while line["method"] == "ping" {
            line = pipe.receive().await;
        }
        assert_eq!(line["id"], id);
    }
    assert!(timeout(EVERY / 2, serving.wait()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_before_a_session_or_without_one() {
    let (mut pipe, serving) = Pipe::open(&server(), 1 << 16);
    sleep(EVERY * 10).await;
    pipe.say(call(1, "fine", json!({}))).await;
    assert_eq!(pipe.receive().await["id"], 1);
    sleep(EVERY * 10).await;
    pipe.say(call(2, "fine", json!({}))).await;
    assert_eq!(pipe.receive().await["id"], 2);
    assert!(timeout(EVERY, serving.wait()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn intervals_of_nothing_and_without_end_do_no_harm() {
    for every in [Duration::ZERO, Duration::MAX] {
        let (mut pipe, _serving) = Pipe::open(&server().timeouts(keepalive(every)), 1 << 16);
        pipe.say(call(1, "fine", json!({}))).await;
        assert_eq!(pipe.receive().await["id"], 1);
    }
}
