//! Calls whose client reads no more, or has left: for how long they run, and how many of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server, Timeouts,
    server::{Cx, Field, Form, ToolError, http::Http, tool},
};
use serde_json::{Value, json};
use tokio::{sync::Notify, time::sleep};

use crate::support::{
    eras::{R1, R2, R3, R4},
    http_client::{Answer, Wire},
};

/// A service, and a value that every handler holds which was not dropped.
struct Test {
    http: Http,
    alive: Arc<()>,
}

impl Test {
    fn new(change: impl FnOnce(Server) -> Server) -> Self {
        let alive = Arc::new(());
        let held = alive.clone();
        let silent = tool("silent", move || {
            let held = held.clone();
            async move {
                std::future::pending::<()>().await;
                drop(held);
                ""
            }
        });
        let held = alive.clone();
        let talking = tool("talking", move |cx: Cx| {
            let held = held.clone();
            async move {
                let text = "x".repeat(10_000);
                for step in 1_u32.. {
                    cx.progress_with(f64::from(step), None, &text).await;
                    sleep(Duration::from_secs(1)).await;
                }
                drop(held);
                ""
            }
        });
        let server = Server::new("left", "0").tool(silent).tool(talking);
        let http = change(server).http().unwrap().two_endpoints("/sse", "/messages");
        Self { http, alive }
    }

    /// Handlers that were begun and not dropped.
    fn alive(&self) -> usize {
        // One is ours, and two tools have one each.
        Arc::strong_count(&self.alive) - 3
    }
}

fn call(name: &str) -> Value {
    json!({"name": name, "arguments": {}, "_meta": {"progressToken": "p"}})
}

/// Sends a call and hangs up, before there is anything to read.
async fn leave_behind(wire: &Wire, id: i64) {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call("silent")});
    let wire = wire.clone();
    let sent = tokio::spawn(async move { wire.post(request).await });
    settle().await;
    sent.abort();
    settle().await;
}

async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("no error: {answer}"))
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_holds_no_handler_past_its_time() {
    let test = Test::new(|server| server.call_timeout(Duration::from_secs(60)));
    let mut answers: Vec<Answer> = Vec::new();
    for revision in [R2, R3, R4] {
        let wire = Wire::new(&test.http).open(revision, json!({})).await;
        answers.push(wire.call(1, "tools/call", call("talking")).await);
    }
    answers.push(Wire::new(&test.http).modern(1, "tools/call", call("talking"), json!({})).await);
    let wire = Wire::new(&test.http);
    let mut oldest = wire.send(wire.request("GET", "/sse", "")).await;
    let target = oldest.event().await.unwrap().data;
    let params =
        json!({"protocolVersion": R1, "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call("talking")});
    for message in [initialize, request] {
        assert_eq!(wire.send(wire.request("POST", &target, message.to_string())).await.status, 202);
    }
    answers.push(oldest);
    sleep(Duration::from_secs(59)).await;
    assert_eq!(test.alive(), 5);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(test.alive(), 0, "nobody has read a word");
    // Who reads after all learns why.
    for mut answer in answers {
        let mut last = answer.message().await.unwrap();
        while last["error"].is_null() {
            last = answer.message().await.unwrap();
        }
        assert!(message(&last).contains("took longer than 60s"), "{last}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_client_has_left_has_ten_minutes() {
    let test = Test::new(|server| {
        let mut timeouts = Timeouts::default();
        timeouts.idle_session = Duration::from_secs(60);
        server.timeouts(timeouts)
    });
    for revision in [R3, R4] {
        let wire = Wire::new(&test.http).open(revision, json!({})).await;
        leave_behind(&wire, 1).await;
        let mut talking = wire.call(2, "tools/call", call("talking")).await;
        let first = talking.event().await.unwrap().id.unwrap();
        drop(talking);
        sleep(Duration::from_secs(30)).await;
        // Who comes back has the whole time again when it goes.
        let back = wire.with("last-event-id", first).get().await;
        assert_eq!(back.status, 200);
        sleep(Duration::from_secs(700)).await;
        assert_eq!(test.alive(), 1, "{revision}: only what somebody reads is left");
        drop(back);
        sleep(Duration::from_secs(595)).await;
        assert_eq!((test.alive(), test.http.sessions()), (1, 1), "{revision}");
        sleep(Duration::from_secs(120)).await;
        assert_eq!((test.alive(), test.http.sessions()), (0, 0), "{revision}: nothing holds the session");
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_is_configurable_and_the_reason_is_kept() {
    let test = Test::new(|server| {
        let mut timeouts = Timeouts::default();
        timeouts.detached_call = Duration::from_secs(5);
        server.timeouts(timeouts)
    });
    let wire = Wire::new(&test.http).open(R4, json!({})).await;
    let mut talking = wire.call(2, "tools/call", call("talking")).await;
    talking.message().await.unwrap();
    let last = loop {
        let event = talking.event().await.unwrap();
        if !event.data.is_empty() {
            break event.id.unwrap();
        }
    };
    drop(talking);
    sleep(Duration::from_secs(6)).await;
    assert_eq!(test.alive(), 0);
    let rest = wire.with("last-event-id", last).get().await.messages().await;
    let answer = rest.last().unwrap();
    assert_eq!(answer["id"], 2);
    assert!(message(answer).contains("5s after its client had left"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn only_so_many_go_on() {
    let test = Test::new(|server| server);
    let wire = Wire::new(&test.http).open(R4, json!({})).await;
    for id in 1..=300 {
        leave_behind(&wire, id).await;
    }
    assert_eq!(test.alive(), 128, "of one session");
    let other = Wire::new(&test.http).open(R4, json!({})).await;
    leave_behind(&other, 1).await;
    assert_eq!(test.alive(), 129, "others have places of their own");
    assert_eq!(wire.delete().await.status, 204);
    settle().await;
    assert_eq!(test.alive(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_sessions_of_one_address_leave_room_for_the_calls_of_others() {
    let test = Test::new(|server| server);
    let wire = |address: &str| Wire { peer: Some(address.parse().unwrap()), ..Wire::new(&test.http) };
    let flooding = wire("192.0.2.1:1");
    let mut id = 0;
    for _ in 0..9 {
        let session = flooding.open(R4, json!({})).await;
        for _ in 0..128 {
            id += 1;
            leave_behind(&session, id).await;
        }
    }
    assert_eq!(test.alive(), 1024, "of one address");
    let other = wire("192.0.2.2:1").open(R4, json!({})).await;
    leave_behind(&other, 1).await;
    assert_eq!(test.alive(), 1025, "others have places of their own");
}

#[tokio::test(start_paused = true)]
async fn after_its_answer_a_call_waits_for_its_turn_again() {
    let (gate, resumed) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (waits, counts) = (gate.clone(), resumed.clone());
    let ask = tool("ask", move |cx: Cx| {
        let counts = counts.clone();
        async move {
            cx.progress(1.0, None).await;
            let form = Form::new().field("answer", Field::text());
            cx.elicit_form("q", "?", &form).await?;
            counts.fetch_add(1, Ordering::SeqCst);
            Ok::<_, ToolError>("asked")
        }
    });
    let hold = tool("hold", move || {
        let waits = waits.clone();
        async move {
            waits.notified().await;
            "held"
        }
    });
    let http = Server::new("turns", "0").concurrency(1).tool(ask).tool(hold).http().unwrap();
    let wire = Wire::new(&http).open(R4, json!({"elicitation": {}})).await;
    let asks = wire.clone();
    let asks = tokio::spawn(async move {
        let mut answer = asks.call(1, "tools/call", call("ask")).await;
        answer.message().await.unwrap();
        let question = answer.message().await.unwrap();
        let result = json!({"action": "accept", "content": {"answer": "yes"}});
        // Meanwhile it is another one's turn.
        let other = asks.clone();
        let held = tokio::spawn(async move { other.call(2, "tools/call", call("hold")).await.json().await });
        settle().await;
        let notified = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        assert_eq!(asks.post(notified).await.status, 202);
        (answer.result().await, held.await.unwrap())
    });
    for _ in 0..20 {
        settle().await;
    }
    assert_eq!(resumed.load(Ordering::SeqCst), 0);
    gate.notify_one();
    let (asked, held) = asks.await.unwrap();
    assert_eq!(asked["result"]["content"][0]["text"], "asked");
    assert_eq!(held["result"]["content"][0]["text"], "held");
}
