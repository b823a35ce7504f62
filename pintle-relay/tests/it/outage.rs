//! A server behind that is lost, and one that stays down.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server, Timeouts,
    server::{Cx, tool},
};
use pintle_relay::Relay;
use serde_json::{Value, json};

use super::world::{self, ERAS, Seen, everything};
use crate::support::{
    eras::{Client, R4},
    line_client::Raw,
};

/// A relay to a server that cannot be reached while the flag is set.
async fn unsteady(behind: &Server, down: &Arc<AtomicBool>) -> Relay {
    let (behind, down) = (behind.clone(), down.clone());
    let connector = move || {
        let connected = match down.load(Ordering::SeqCst) {
            true => Err(io::Error::new(io::ErrorKind::ConnectionRefused, "nobody listens")),
            false => behind.in_process().map_err(io::Error::other),
        };
        async { connected }
    };
    Relay::connect(world::client(R4), connector).await.unwrap()
}

/// Ends all sessions of the server.
async fn crash(behind: &Server) {
    for session in behind.sessions() {
        session.close().await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
}

fn count(list: &Value) -> usize {
    list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}")).len()
}

#[tokio::test(start_paused = true)]
async fn a_lost_session_is_opened_again_and_the_client_is_notified() {
    for downstream in ERAS {
        let behind = world::server(&Seen::default());
        let front = world::front(&unsteady(&behind, &Arc::default()).await);
        let mut client = Client::open(&front, downstream, everything()).await;
        client.listen(&[]).await;
        let before = client.call("tools/list", json!({})).await;
        crash(&behind).await;
        let after = client.call("tools/list", json!({})).await;
        assert_eq!(count(&after), count(&before), "{downstream}");
        let called = client.call("tools/call", json!({"name": "add", "arguments": {"a": 1, "b": 2}})).await;
        assert_eq!(called["result"]["content"][0]["text"], "3", "{downstream}: {called}");
        let received = client.receive().await;
        assert!(received["method"].as_str().unwrap().ends_with("/list_changed"), "{received}");
    }
}

#[tokio::test(start_paused = true)]
async fn while_it_is_down_the_last_list_stays_and_calls_name_it() {
    for downstream in ERAS {
        let (behind, down) = (world::server(&Seen::default()), Arc::<AtomicBool>::default());
        let front = world::front(&unsteady(&behind, &down).await);
        let mut client = Client::open(&front, downstream, everything()).await;
        let before = client.call("tools/list", json!({})).await;
        down.store(true, Ordering::SeqCst);
        crash(&behind).await;
        let during = client.call("tools/list", json!({})).await;
        assert_eq!(count(&during), count(&before), "{downstream}");
        let called = client.call("tools/call", json!({"name": "add", "arguments": {"a": 1, "b": 2}})).await;
        let message = called["error"]["message"].as_str().unwrap_or_else(|| panic!("{called}"));
        for part in ["`dice`", "has been down for", "attempts", "nobody listens", "call again later"] {
            assert!(message.contains(part), "{downstream}: {message}");
        }
        tokio::time::sleep(Duration::from_secs(301)).await;
        let late = client.call("tools/list", json!({})).await;
        assert!(late["error"]["message"].as_str().unwrap().contains("`dice`"), "{downstream}: {late}");
        down.store(false, Ordering::SeqCst);
        let again = client.call("tools/list", json!({})).await;
        assert_eq!(count(&again), count(&before), "{downstream}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_server_that_is_down_does_not_reach_another_one() {
    for downstream in ERAS {
        let roll = |name: &'static str| {
            Server::new(name, "1.0.0").tool(tool("roll", move |_: Cx| async move { name }))
        };
        let (first, second, down) = (roll("first"), roll("second"), Arc::<AtomicBool>::default());
        let front = Server::new("front", "1.0.0")
            .provider(unsteady(&first, &down).await)
            .provider(unsteady(&second, &Arc::default()).await);
        let mut client = Client::open(&front, downstream, everything()).await;
        assert_eq!(client.tool("roll").await, "first");
        down.store(true, Ordering::SeqCst);
        crash(&first).await;
        let mut new = Client::open(&front, downstream, everything()).await;
        for client in [&mut client, &mut new] {
            let called = client.call("tools/call", json!({"name": "roll"})).await;
            let message = called["error"]["message"].as_str().unwrap_or_else(|| panic!("{called}"));
            assert!(message.contains("`first`"), "{downstream}: {message}");
        }
        down.store(false, Ordering::SeqCst);
        assert_eq!(client.tool("roll").await, "first");
    }
}

/// The session behind ends during the first call of each tool.
#[tokio::test(start_paused = true)]
async fn a_lost_call_is_sent_again_only_if_that_is_safe() {
    for downstream in ERAS {
        let (safe, unsafe_calls) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let dropping = |calls: &Arc<AtomicUsize>| {
            let calls = calls.clone();
            move |cx: Cx| {
                let call = calls.fetch_add(1, Ordering::SeqCst);
                async move {
                    if call < 2 {
                        cx.session().unwrap().close().await.unwrap();
                        std::future::pending::<()>().await;
                    }
                    format!("call {}", call + 1)
                }
            }
        };
        let mut timeouts = Timeouts::default();
        timeouts.disconnect = Duration::ZERO;
        let behind = Server::new("dice", "1.0.0")
            .timeouts(timeouts)
            .tool(tool("peek", dropping(&safe)).read_only())
            .tool(tool("roll", dropping(&unsafe_calls)));
        let front = world::front(&unsteady(&behind, &Arc::default()).await);
        let mut client = Client::open(&front, downstream, json!({})).await;
        client.call("tools/list", json!({})).await;
        assert_eq!(client.tool("peek").await, "call 3", "{downstream}");
        let lost = client.call("tools/call", json!({"name": "roll"})).await;
        let message = lost["error"]["message"].as_str().unwrap_or_else(|| panic!("{lost}"));
        assert!(message.contains("`dice`") && message.contains("did not answer"), "{downstream}: {message}");
        assert_eq!(unsafe_calls.load(Ordering::SeqCst), 1, "{downstream}");
    }
}

/// The server behind has no timeout of its own.
#[tokio::test(start_paused = true)]
async fn a_relayed_call_that_is_never_answered_ends() {
    for (downstream, upstream) in ERAS.into_iter().flat_map(|front| ERAS.map(|behind| (front, behind))) {
        let slow = || std::future::pending::<String>();
        let behind = Server::new("slow", "1.0.0").call_timeout(None).tool(tool("slow", slow));
        let front = world::relayed(&behind, upstream).await;
        let mut client = Client::open(&front, downstream, json!({})).await;
        let id = client.send("tools/call", json!({"name": "slow"})).await;
        tokio::time::sleep(Duration::from_secs(1790)).await;
        let ended = client.until(id).await;
        let message = ended["error"]["message"].as_str().unwrap_or_else(|| panic!("{ended}"));
        assert!(message.contains("longer than 1800s"), "{downstream} to {upstream}: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_in_which_a_user_answers_is_not_that_of_a_relayed_call() {
    for upstream in ERAS {
        let front = world::relayed(&world::server(&Seen::default()).call_timeout(None), upstream).await;
        let mut raw = Raw::new(&front);
        raw.open(R4, json!({"elicitation": {}})).await;
        raw.request("tools/call", json!({"name": "book"})).await;
        for content in [json!({"count": 4}), json!({})] {
            let question = raw.recv().await;
            assert_eq!(question["method"], "elicitation/create", "{upstream}: {question}");
            tokio::time::sleep(Duration::from_secs(2400)).await;
            let accepted = json!({"action": "accept", "content": content});
            raw.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": accepted})).await;
        }
        let answer = raw.recv().await;
        assert_eq!(answer["result"]["content"][0]["text"], "4 guests, true", "{upstream}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_says_whether_the_server_answers_and_one_of_them_opens_a_connection() {
    let (behind, down) = (world::server(&Seen::default()), Arc::<AtomicBool>::default());
    let relay = unsteady(&behind, &down).await;
    assert!(relay.probe().await.is_ok() && relay.probe_open().await.is_ok());
    crash(&behind).await;
    // Nobody has tried.
    assert!(relay.probe_open().await.is_ok() && behind.sessions().is_empty());
    down.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        let refused = relay.probe().await.unwrap_err();
        assert!(refused.message.contains("nobody listens"), "{refused:?}");
        assert_eq!(relay.probe_open().await.unwrap_err().message, refused.message);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    down.store(false, Ordering::SeqCst);
    assert!(relay.probe().await.is_ok() && relay.probe_open().await.is_ok());
}
