//! Clients that send and do not read: how much is kept for them, and for how long.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{Server, server::tool};
use serde_json::{Value, json};

use crate::support::{
    eras::R1,
    http_client::{Answer, Wire},
};

/// A client of the oldest revision whose stream is open and read only when a test says so.
struct Unread {
    wire: Wire,
    stream: Answer,
    target: String,
}

impl Unread {
    async fn open(wire: Wire) -> Self {
        let mut stream = wire.send(wire.request("GET", "/sse", "")).await;
        let target = stream.event().await.unwrap().data;
        let mut client = Self { wire, stream, target };
        let params =
            json!({"protocolVersion": R1, "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}});
        let opening = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        assert_eq!(client.post(opening).await.status, 202);
        client.stream.message().await.unwrap();
        client
    }

    async fn post(&self, message: Value) -> Answer {
        self.wire.send(self.wire.request("POST", &self.target, message.to_string())).await
    }

    async fn call(&self, id: usize, name: &str) -> Answer {
        let params = json!({"name": name, "arguments": {}});
        self.post(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await
    }
}

/// Lets every task take the steps that it can take.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_not_read_are_bounded_in_bytes() {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let large = tool("large", move || {
        counter.fetch_add(1, Ordering::SeqCst);
        async { "x".repeat(500_000) }
    });
    let server = Server::new("old", "0").tool(large);
    let http = server.http().unwrap().two_endpoints("/sse", "/messages");
    let mut client = Unread::open(Wire::new(&http)).await;
    let (mut taken, mut refused) = (0, 0);
    for id in 1..=300 {
        let mut answer = client.call(id, "large").await;
        settle().await;
        match answer.status.as_u16() {
            202 => taken += 1,
            429 => {
                refused += 1;
                assert_eq!(answer.header("retry-after"), Some("1"));
                let reply = answer.json().await;
                assert_eq!(reply["id"], id);
                let message = reply["error"]["message"].as_str().unwrap();
                assert!(message.contains("read its event stream"), "{message}");
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(made.load(Ordering::SeqCst), taken, "what is refused does not run");
    assert!(taken * 500_000 <= 10 << 20, "{taken} answers are kept");
    assert!(refused > 200);
    // What was taken is answered, and then there is room again.
    for _ in 0..taken {
        assert!(client.stream.message().await.unwrap()["result"].is_object());
    }
    settle().await;
    assert_eq!(client.call(1000, "large").await.status, 202);
    assert_eq!(client.stream.message().await.unwrap()["id"], 1000);
}

#[tokio::test(start_paused = true)]
async fn a_call_has_its_turn_until_its_answer_has_a_place() {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let large = tool("large", move || {
        let counter = counter.clone();
        async move {
            counter.fetch_add(1, Ordering::SeqCst);
            "x".repeat(100_000)
        }
    });
    let server = Server::new("old", "0").concurrency(1).tool(large);
    let http = server.http().unwrap().two_endpoints("/sse", "/messages");
    let mut client = Unread::open(Wire::new(&http)).await;
    for id in 1..=5 {
        assert_eq!(client.call(id, "large").await.status, 202);
        settle().await;
    }
    // The first is in the stream's buffer, and the second waits for its place there.
    assert_eq!(made.load(Ordering::SeqCst), 2);
    for id in 1..=5 {
        assert_eq!(client.stream.message().await.unwrap()["id"], id);
    }
    assert_eq!(made.load(Ordering::SeqCst), 5);
}
