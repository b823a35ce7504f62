//! Changes: everybody hears of the newest state, nobody holds much, nobody waits for another.

use pintle::{
    Server,
    server::{resource, tool},
};
use serde_json::{Value, json};

use crate::support::{
    line_client::modern,
    pipe::{Pipe, call, cancel, settle, text},
};

fn server() -> Server {
    Server::new("s", "0")
        .tool(tool("one", || async { "one" }))
        .tool(tool("fat", || async { "f".repeat(4 << 20) }))
        .resource(resource("r://1", "r", || async { "r" }))
}

fn listen(id: u64, filter: Value) -> Value {
    let params = modern(json!({ "notifications": filter }), json!({}));
    json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params})
}

fn ping(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

/// What comes until the ping's answer.
async fn received(pipe: &mut Pipe, id: u64) -> Vec<Value> {
    pipe.say(ping(id)).await;
    let mut received = Vec::new();
    loop {
        let line = pipe.receive().await;
        if line["id"] == id {
            return received;
        }
        received.push(line);
    }
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_changes_for_a_slow_listener_are_few_messages() {
    let server = server();
    let (mut pipe, _serving) = Pipe::session(&server, 256, "2025-11-25", json!({})).await;
    for n in 0..10 {
        let params = json!({"uri": format!("r://{n}")});
        pipe.say(json!({"jsonrpc": "2.0", "id": n, "method": "resources/subscribe", "params": params})).await;
        pipe.receive().await;
    }
    // Nothing is read for a while: the pipe is full of a result.
    pipe.say(json!({"jsonrpc": "2.0", "id": 11, "method": "tools/call", "params": {"name": "fat"}})).await;
    settle().await;
    for n in 0..10_000 {
        server.resource_updated(format!("r://{}", n % 10));
        server.resource_updated(format!("other://{n}"));
        if n % 100 == 0 {
            assert!(server.remove_tool("one") || server.add_tool(tool("one", || async { "one" })).is_ok());
            settle().await;
        }
    }
    assert_eq!(pipe.receive().await["id"], 11);
    let received = received(&mut pipe, 12).await;
    let lists = received.iter().filter(|line| line["method"] == "notifications/tools/list_changed").count();
    assert!((1..=2).contains(&lists), "{lists}");
    for n in 0..10 {
        let uri = format!("r://{n}");
        let times = received.iter().filter(|line| line["params"]["uri"] == *uri).count();
        assert!((1..=2).contains(&times), "{uri}: {times}");
    }
    assert!(received.iter().all(|line| !line.to_string().contains("other")));
}

#[tokio::test(start_paused = true)]
async fn more_changes_than_are_counted_reach_all_subscribers() {
    let server = server();
    let (mut pipe, _serving) = Pipe::open(&server, 1 << 16);
    pipe.say(listen(1, json!({"resourceSubscriptions": ["r://1"]}))).await;
    pipe.receive().await;
    server.resource_updated("r://1");
    for n in 0..10_000 {
        server.resource_updated(format!("other://{n}"));
    }
    let received = received(&mut pipe, 2).await;
    assert_eq!(received.len(), 1, "{received:?}");
    assert_eq!(received[0]["params"]["uri"], "r://1");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_subscriptions_are_each_notified_once() {
    let server = server();
    let (mut pipe, _serving) = Pipe::open(&server, 4096);
    for id in 0..1000 {
        pipe.say(listen(id, json!({"toolsListChanged": true}))).await;
        pipe.receive().await;
    }
    for _ in 0..50 {
        server.add_tool(tool("new", || async { "" })).unwrap();
        assert!(server.remove_tool("new"));
    }
    settle().await;
    let notified = received(&mut pipe, 5000).await;
    assert_eq!(notified.len(), 1000);
    for id in 0..1000 {
        pipe.say(cancel(id)).await;
    }
    server.add_tool(tool("newer", || async { "" })).unwrap();
    // The change may be heard of before the last cancellation is read, but not after.
    received(&mut pipe, 5001).await;
    server.remove_tool("newer");
    assert!(received(&mut pipe, 5002).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_slow_listener_keeps_nobody_waiting() {
    let server = server();
    let mut pipes = Vec::new();
    for _ in 0..100 {
        let (mut pipe, serving) = Pipe::open(&server, 4096);
        pipe.say(listen(1, json!({"toolsListChanged": true}))).await;
        pipe.receive().await;
        pipes.push((pipe, serving));
    }
    // Every second one reads nothing.
    for (pipe, _) in pipes.iter_mut().step_by(2) {
        pipe.say(call(2, "fat", json!({}))).await;
    }
    settle().await;
    for round in 0..20 {
        server.add_tool(tool(format!("t{round}"), || async { "" })).unwrap();
        for (pipe, _) in pipes.iter_mut().skip(1).step_by(2) {
            assert_eq!(pipe.receive().await["method"], "notifications/tools/list_changed");
        }
    }
    for (pipe, _) in pipes.iter_mut().step_by(2) {
        assert_eq!(pipe.receive().await["id"], 2);
        assert_eq!(received(pipe, 3).await.len(), 1, "merged into one");
    }
}

#[tokio::test(start_paused = true)]
async fn pages_stay_whole_while_the_catalogue_changes() {
    let mut server = Server::new("s", "0").page_size(10);
    for n in 0..100 {
        server = server.tool(tool(format!("stays-{n}"), || async { "" }));
        server = server.tool(tool(format!("goes-{n}"), || async { "" }));
    }
    let (mut pipe, _serving) = Pipe::open(&server, 1 << 16);
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    for page in 0.. {
        let mut params = modern(json!({}), json!({}));
        if !cursor.is_null() {
            params["cursor"] = cursor;
        }
        pipe.say(json!({"jsonrpc": "2.0", "id": page, "method": "tools/list", "params": params})).await;
        let answer = pipe.receive().await;
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
        seen.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        cursor = answer["result"]["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
        for n in 0..7 {
            server.remove_tool(&format!("goes-{}", page * 7 + n));
        }
        server.add_tool(tool(format!("comes-{page}"), || async { "" })).unwrap();
        assert!(page < 100, "no end");
    }
    for n in 0..100 {
        let name = format!("stays-{n}");
        assert_eq!(seen.iter().filter(|seen| **seen == name).count(), 1, "{name}");
    }
    seen.sort_unstable();
    assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "nothing twice");
    pipe.say(call("x", "stays-1", json!({}))).await;
    assert_eq!(text(&pipe.receive().await), "");
}
