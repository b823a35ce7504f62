//! Servers behind a relay that behave as those of this SDK do not: the test plays them, line by line.

use std::{collections::VecDeque, io, time::Duration};

use pintle::transport::{Memory, memory};
use pintle_relay::Relay;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::world::{self, everything};
use crate::support::{
    eras::{Client, R4, R5},
    line_client::Raw,
};

/// The server behind: its end of each connection that the relay opens.
pub(super) struct Upstream {
    opened: mpsc::UnboundedReceiver<Memory>,
    capabilities: Value,
}

/// One connection to the server behind.
pub(super) struct Link {
    pub(super) line: Raw,
    /// Messages that were received and not yet asked for.
    received: VecDeque<Value>,
}

impl Upstream {
    /// Accepts a connection, and opens a session.
    pub(super) async fn accept(&mut self) -> Link {
        let mut link = Link { line: Raw::over(self.opened.recv().await.unwrap()), received: VecDeque::new() };
        link.open(&self.capabilities).await;
        link
    }
}

impl Link {
    async fn open(&mut self, capabilities: &Value) {
        let initialize = self.expect("initialize").await;
        let result = json!({"protocolVersion": R4, "serverInfo": {"name": "dice", "version": "1"},
            "capabilities": capabilities});
        self.reply(&initialize, result).await;
        self.expect("notifications/initialized").await;
    }

    /// Waits for a message of this method. Pings are answered.
    pub(super) async fn expect(&mut self, method: &str) -> Value {
        loop {
            let message = match self.received.pop_front() {
                Some(message) => message,
                None => tokio::time::timeout(Duration::from_secs(20), self.line.recv())
                    .await
                    .unwrap_or_else(|_| panic!("no `{method}` came")),
            };
            match message["method"].as_str() {
                Some(found) if found == method => return message,
                Some("ping") => self.reply(&message, json!({})).await,
                Some("notifications/cancelled") => {}
                _ => panic!("expected `{method}`: {message}"),
            }
        }
    }

    pub(super) async fn reply(&mut self, request: &Value, result: Value) {
        self.line.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    /// Asks a question, and returns the whole answer to it.
    async fn ask(&mut self, id: &str) -> Value {
        let params = json!({"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}});
        let question = json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
        self.line.send(question).await;
        loop {
            let message = self.line.recv().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.received.push_back(message);
        }
    }
}

impl Link {
    /// Waits for the answer to this question, before any call. Pings are answered.
    async fn gets_roots(&mut self, id: &str) {
        loop {
            let message = self.line.recv().await;
            match message["method"].as_str() {
                Some("ping") => self.reply(&message, json!({})).await,
                None => {
                    let root = &message["result"]["roots"][0]["uri"];
                    return assert_eq!((&message["id"], root), (&json!(id), &json!("file:///work")));
                }
                Some(_) => panic!("the roots are not known: {message}"),
            }
        }
    }
}

/// A relay to a server that the test plays, and the first connection to it.
async fn relay() -> (Relay, Upstream, Link) {
    relay_to(json!({"tools": {}, "logging": {}})).await
}

/// A relay to a server that declares these capabilities, and the first connection to it.
pub(super) async fn relay_to(capabilities: Value) -> (Relay, Upstream, Link) {
    let (accepted, opened) = mpsc::unbounded_channel();
    let mut upstream = Upstream { opened, capabilities };
    let connector = move || {
        let (ours, theirs) = memory();
        let sent = accepted.send(theirs).map_err(|_| io::ErrorKind::ConnectionRefused.into());
        async { sent.map(|()| ours) }
    };
    let connecting = tokio::spawn(Relay::connect(world::client(R4), connector));
    let first = upstream.accept().await;
    (connecting.await.unwrap().unwrap(), upstream, first)
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// The server asks something for a call that was cancelled, before it has read the cancellation.
#[tokio::test(start_paused = true)]
async fn a_late_question_of_a_cancelled_call_does_not_reach_the_next_one() {
    for downstream in world::ERAS {
        let (relay, mut upstream, mut first) = relay().await;
        let front = world::front(&relay.forward_unlisted());
        let mut client = Client::open(&front, downstream, everything()).await;
        let id = client.send("tools/call", json!({"name": "roll"})).await;
        let mut link = upstream.accept().await;
        link.expect("tools/call").await;
        client.notify("notifications/cancelled", json!({"requestId": id})).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let next = client.send("tools/call", json!({"name": "roll"})).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        // The question is on its way before anything that follows is read.
        let asked = tokio::time::Instant::now();
        let refused = link.ask("late").await;
        assert!(asked.elapsed() < Duration::from_secs(10), "{downstream}: nobody is asked");
        assert!(refused["error"].is_object(), "{downstream}: {refused}");
        let call = link.expect("tools/call").await;
        // A question of the next call is asked.
        client.answer = Box::new(|_, _| json!({"action": "accept", "content": {}}));
        let answering = async {
            let mut answer = client.until(next).await;
            if let Some(state) = answer["result"]["requestState"].as_str().map(str::to_owned) {
                let keys = answer["result"]["inputRequests"].as_object().unwrap().keys();
                let answers: serde_json::Map<_, _> =
                    keys.map(|key| (key.clone(), json!({"action": "accept", "content": {}}))).collect();
                let params = json!({"name": "roll", "requestState": state, "inputResponses": answers});
                let again = client.send("tools/call", params).await;
                answer = client.until(again).await;
            }
            answer
        };
        let serving = async {
            let answered = link.ask("timely").await;
            assert_eq!(answered["result"]["action"], "accept", "{answered}");
            link.reply(&call, json!({"content": [{"type": "text", "text": "4"}]})).await;
        };
        let (answer, ()) = tokio::join!(answering, serving);
        assert_eq!(text(&answer), "4", "{downstream}");
        drop(first.received.pop_front());
    }
}

/// One session behind, which all clients share.
#[tokio::test(start_paused = true)]
async fn the_log_level_behind_is_the_lowest_that_a_client_wants_by_now() {
    let (ours, theirs) = memory();
    let connecting = tokio::spawn(async { world::client(R4).connect(ours).await });
    let mut link = Link { line: Raw::over(theirs), received: VecDeque::new() };
    link.open(&json!({"tools": {}, "logging": {}})).await;
    let front = world::front(&Relay::new(connecting.await.unwrap().unwrap()).forward_unlisted());
    let mut chatty = Client::open(&front, R5, json!({})).await;
    chatty.log_level("debug").await;
    let mut quiet = Client::open(&front, R5, json!({})).await;
    quiet.log_level("error").await;
    // Which level is set before a call, and which messages its client gets.
    let mut steps = Vec::new();
    for (who, wait) in [("quiet", 0), ("chatty", 0), ("quiet", 0), ("quiet", 90), ("chatty", 0)] {
        tokio::time::sleep(Duration::from_secs(wait)).await;
        let client = if who == "quiet" { &mut quiet } else { &mut chatty };
        let id = client.send("tools/call", json!({"name": "roll"})).await;
        let mut level = Value::Null;
        let call = loop {
            let message = link.line.recv().await;
            match message["method"].as_str().unwrap() {
                "logging/setLevel" => {
                    level = message["params"]["level"].clone();
                    link.reply(&message, json!({})).await;
                }
                "tools/call" => break message,
                other => panic!("{other}"),
            }
        };
        for level in ["info", "error"] {
            let params = json!({"level": level, "data": level});
            let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params});
            link.line.send(log).await;
        }
        link.reply(&call, json!({"content": [{"type": "text", "text": "4"}]})).await;
        client.until(id).await;
        let arrived: Vec<_> = client.received().iter().map(|log| log["params"]["level"].clone()).collect();
        steps.push(json!([who, level, arrived]));
    }
    assert_eq!(
        json!(steps),
        json!([
            ["quiet", "error", ["error"]],
            ["chatty", "debug", ["info", "error"]],
            ["quiet", null, ["error"]],
            ["quiet", "error", ["error"]],
            ["chatty", "debug", ["info", "error"]],
        ])
    );
}

/// A server that asks for the roots as soon as its session is open, as the filesystem server does: it must not work without them.
#[tokio::test(start_paused = true)]
async fn roots_that_are_asked_for_before_the_first_call_are_asked_of_its_client_before_it_runs() {
    let (relay, mut upstream, _first) = relay().await;
    let front = world::front(&relay.forward_unlisted());
    let mut client = Client::open(&front, R5, everything()).await;
    client.answer = Box::new(|method, _| {
        assert_eq!(method, "roots/list");
        json!({"roots": [{"uri": "file:///work"}]})
    });
    let serving = async {
        let mut link = upstream.accept().await;
        for (id, text) in [("roots", "4"), ("again", "5")] {
            // The second time it is between two calls.
            link.line.send(json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"})).await;
            link.gets_roots(id).await;
            let call = link.expect("tools/call").await;
            link.reply(&call, json!({"content": [{"type": "text", "text": text}]})).await;
        }
    };
    let calling = async {
        let first = client.tool("roll").await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        (first, client.tool("roll").await)
    };
    let (texts, ()) = tokio::join!(calling, serving);
    assert_eq!(texts, ("4".to_owned(), "5".to_owned()));
    assert_eq!(client.questions, 2);
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_client_at_once_go_to_one_program() {
    let (relay, mut upstream, _first) = relay().await;
    let front = world::front(&relay.forward_unlisted());
    let mut client = Client::open(&front, R5, everything()).await;
    let mut sent = Vec::new();
    for _ in 0..4 {
        sent.push(client.send("tools/call", json!({"name": "roll"})).await);
    }
    let mut link = upstream.accept().await;
    let mut calls = Vec::new();
    for _ in 0..4 {
        calls.push(link.expect("tools/call").await);
    }
    assert!(upstream.opened.try_recv().is_err(), "there is one");
    for call in &calls {
        link.reply(call, json!({"content": [{"type": "text", "text": "4"}]})).await;
    }
    for id in sent {
        assert_eq!(text(&client.until(id).await), "4");
    }
}

/// Servers of the official Python SDK do not declare them.
#[tokio::test(start_paused = true)]
async fn log_messages_that_nobody_declared_or_asked_for_pass() {
    let (relay, mut upstream, _first) = relay_to(json!({"tools": {}})).await;
    let front = world::front(&relay.forward_unlisted());
    let mut client = Client::open(&front, R4, json!({})).await;
    let id = client.send("tools/call", json!({"name": "roll"})).await;
    let mut link = upstream.accept().await;
    let call = link.expect("tools/call").await;
    let log = |data: &str| json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "debug", "data": data}});
    link.line.send(log("rolling")).await;
    assert_eq!(client.receive().await, log("rolling"));
    link.reply(&call, json!({"content": [{"type": "text", "text": "4"}]})).await;
    assert_eq!(text(&client.until(id).await), "4");
    link.line.send(log("afterwards")).await;
    assert_eq!(client.receive().await, log("afterwards"));
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_is_dropped_closes_the_first_connection() {
    let (relay, _upstream, mut first) = relay().await;
    let front = world::front(&relay);
    // It listens to changes from the first client on.
    let client = Client::open(&front, R4, json!({})).await;
    drop((client, front, relay));
    tokio::time::timeout(Duration::from_secs(20), first.line.ends()).await.unwrap();
}
