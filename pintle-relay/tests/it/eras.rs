//! One scenario in every pairing of eras: through a relay, clients see what they see without it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server,
    server::{Cx, Next, around, tool},
    types::{RpcError, schema::CreateMessageResult},
};
use pintle_relay::Relay;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::world::{self, ERAS, Seen, answer, everything};
use crate::support::eras::{ALL, Client, R1, R2, R3, R4, R5};

/// Calls every tool, and returns everything that the client saw: answers, questions, notifications.
async fn scenario(server: &Server, revision: &'static str, capabilities: Value) -> Vec<Value> {
    let mut client = Client::open(server, revision, capabilities).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let asked = seen.clone();
    client.answer = Box::new(move |method, params| {
        let mut params = params.clone();
        // Each server mints its own.
        params.as_object_mut().unwrap().remove("elicitationId");
        asked.lock().unwrap().push(json!([method, params]));
        answer(method, &params)
    });
    client.log_level("info").await;
    let requests = [
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/get", json!({"name": "review", "arguments": {"language": "rust"}})),
        ("prompts/get", json!({"name": "review"})),
        ("prompts/get", json!({"name": "nothing"})),
        ("resources/read", json!({"uri": "note://shopping"})),
        ("resources/read", json!({"uri": "note://7"})),
        ("resources/read", json!({"uri": "nothing://7"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "review"},
            "argument": {"name": "language", "value": "ru"}}),
        ),
        ("tools/call", json!({"name": "nothing"})),
    ];
    for (method, params) in requests {
        let answered = client.call(method, params).await;
        seen.lock().unwrap().push(json!([method, without_id(answered)]));
    }
    let trace = json!({"acme/a": {"b": [1]}, "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"});
    let calls = [
        json!({"name": "add", "arguments": {"a": 1, "b": 2}}),
        json!({"name": "add", "arguments": {"a": "one", "b": 2}}),
        json!({"name": "raw", "_meta": trace}),
        json!({"name": "fail"}),
        json!({"name": "sorry"}),
        json!({"name": "count", "_meta": {"progressToken": "mine"}}),
        json!({"name": "count"}),
        json!({"name": "log"}),
        json!({"name": "book", "_meta": {"progressToken": 7}}),
        json!({"name": "pay"}),
        json!({"name": "think"}),
        json!({"name": "where"}),
        json!({"name": "both"}),
    ];
    for params in calls {
        let name = params["name"].clone();
        let answered = client.call("tools/call", params).await;
        let mut seen = seen.lock().unwrap();
        // Without a session a handler runs again in each round, and so does its progress; the server behind may have one.
        let mut received = client.received();
        received.dedup();
        seen.extend(received);
        seen.push(json!([name, without_id(answered)]));
    }
    std::mem::take(&mut *seen.lock().unwrap())
}

fn without_id(mut answer: Value) -> Value {
    answer.as_object_mut().unwrap().remove("id");
    answer
}

fn assert_same(through: &[Value], direct: &[Value], what: &str) {
    for (through, direct) in through.iter().zip(direct) {
        assert_eq!(through, direct, "{what}");
    }
    assert_eq!(through.len(), direct.len(), "{what}");
}

#[tokio::test(start_paused = true)]
async fn every_pairing_of_eras_is_the_direct_connection() {
    for downstream in ERAS {
        for upstream in ERAS {
            let behind = world::server(&Seen::default());
            let direct = scenario(&behind, downstream, everything()).await;
            let front = world::relayed(&behind, upstream).await;
            let through = scenario(&front, downstream, everything()).await;
            assert_same(&through, &direct, &format!("{downstream} to {upstream}"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn changes_pass_two_relays_in_a_row() {
    for downstream in ERAS {
        for middle in ERAS {
            for upstream in ERAS {
                let behind = world::server(&Seen::default());
                let front = world::relayed(&world::relayed(&behind, upstream).await, middle).await;
                let what = format!("{downstream} to {middle} to {upstream}");
                let mut client = Client::open(&front, downstream, everything()).await;
                client.listen(&["note://shopping"]).await;
                client.call("tools/list", json!({})).await;
                behind.resource_updated("note://shopping");
                assert_eq!(client.receive().await["params"]["uri"], "note://shopping", "{what}");
                behind.add_tool(tool("new", |_: Cx| async { "it is new" })).unwrap();
                assert_eq!(client.receive().await["method"], "notifications/tools/list_changed", "{what}");
                assert_eq!(client.tool("new").await, "it is new", "{what}");
            }
        }
    }
}

/// What every revision has. An older server behind has no forms, no structured content, no titles.
async fn oldest_scenario(server: &Server, revision: &'static str) -> Vec<Value> {
    let mut client = Client::open(server, revision, json!({"sampling": {}, "roots": {}})).await;
    client.answer = Box::new(answer);
    client.log_level("info").await;
    let mut seen = Vec::new();
    let requests = [
        ("prompts/get", json!({"name": "review", "arguments": {"language": "rust"}})),
        ("prompts/get", json!({"name": "nothing"})),
        ("resources/read", json!({"uri": "note://shopping"})),
        ("resources/read", json!({"uri": "note://7"})),
        ("resources/read", json!({"uri": "nothing://7"})),
        ("tools/call", json!({"name": "nothing"})),
        ("tools/call", json!({"name": "add", "arguments": {"a": 1, "b": 2}})),
        ("tools/call", json!({"name": "raw", "_meta": {"acme/a": {"b": [1]}}})),
        ("tools/call", json!({"name": "fail"})),
        ("tools/call", json!({"name": "sorry"})),
        ("tools/call", json!({"name": "count", "_meta": {"progressToken": "mine"}})),
        ("tools/call", json!({"name": "log"})),
        ("tools/call", json!({"name": "think"})),
        ("tools/call", json!({"name": "where"})),
    ];
    for (method, params) in requests {
        let what = json!([method, params]);
        let answered = client.call(method, params).await;
        let mut received = client.received();
        // The message of a progress notification is newer than the oldest revision.
        received.iter_mut().for_each(|it| drop(it["params"].as_object_mut().unwrap().remove("message")));
        received.dedup();
        seen.extend(received);
        seen.push(json!([what, without_id(answered)]));
    }
    for list in ["tools", "prompts", "resources"] {
        let answered = client.call(&format!("{list}/list"), json!({})).await;
        let entries = answered["result"][list].as_array().unwrap_or_else(|| panic!("{answered}"));
        seen.push(entries.iter().map(|entry| entry["name"].clone()).collect());
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn every_pairing_of_revisions_is_the_direct_connection() {
    for downstream in ALL {
        for upstream in ALL {
            let behind = world::server(&Seen::default());
            let direct = oldest_scenario(&behind, downstream).await;
            let front = world::relayed(&behind, upstream).await;
            let through = oldest_scenario(&front, downstream).await;
            assert_same(&through, &direct, &format!("{downstream} to {upstream}"));
        }
    }
}

/// Clients of all revisions, and a server behind that has everything.
#[tokio::test(start_paused = true)]
async fn clients_of_every_revision_have_the_direct_connection() {
    // Invalid arguments are an error of the protocol in old revisions: the server behind returns what its client's has.
    let is_refusal = |seen: &Value| seen.to_string().contains("should be an integer");
    for downstream in [R1, R2, R3] {
        for upstream in ERAS {
            let behind = world::server(&Seen::default());
            let mut direct = scenario(&behind, downstream, everything()).await;
            let front = world::relayed(&behind, upstream).await;
            let mut through = scenario(&front, downstream, everything()).await;
            direct.retain(|seen| !is_refusal(seen));
            through.retain(|seen| !is_refusal(seen));
            assert_same(&through, &direct, &format!("{downstream} to {upstream}"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_relays_in_a_row_are_the_direct_connection() {
    for downstream in ERAS {
        for (middle, upstream) in [(R4, R4), (R4, R5), (R5, R4), (R5, R5)] {
            let behind = world::server(&Seen::default());
            let direct = scenario(&behind, downstream, everything()).await;
            let first = world::relayed(&behind, upstream).await;
            let second = world::relayed(&first, middle).await;
            let through = scenario(&second, downstream, everything()).await;
            assert_same(&through, &direct, &format!("{downstream} to {middle} to {upstream}"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_be_asked_is_not_asked() {
    for downstream in ERAS {
        for upstream in ERAS {
            let behind = world::server(&Seen::default());
            let direct = scenario(&behind, downstream, json!({})).await;
            let front = world::relayed(&behind, upstream).await;
            let through = scenario(&front, downstream, json!({})).await;
            assert_same(&through, &direct, &format!("{downstream} to {upstream}"));
        }
    }
}

/// All clients share one session, which has declared more than this client can do.
#[tokio::test(start_paused = true)]
async fn a_question_beyond_the_capabilities_of_the_request_is_refused_by_the_relay() {
    for downstream in ERAS {
        let behind = world::server(&Seen::default());
        let declares = world::client(R4).on_sample(|_| async {
            Err::<CreateMessageResult, _>(RpcError::internal("the client of the relay was asked"))
        });
        let connection = declares.connect(behind.in_process().unwrap()).await.unwrap();
        let front = world::front(&Relay::new(connection));
        let mut client = Client::open(&front, downstream, json!({"roots": {}})).await;
        let refused = client.tool("think").await;
        assert_eq!(refused, "no such method: `sampling/createMessage`");
        let mut client = Client::open(&front, downstream, everything()).await;
        client.answer = Box::new(answer);
        assert_eq!(client.tool("think").await, "4");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_cancelled_behind_the_relay() {
    for downstream in ERAS {
        for upstream in ERAS {
            let seen = Seen::default();
            let behind = world::server(&seen);
            let front = world::relayed(&behind, upstream).await;
            let mut client = Client::open(&front, downstream, everything()).await;
            let id = client.send("tools/call", json!({"name": "wait"})).await;
            seen.reaches(1, 0).await;
            client.notify("notifications/cancelled", json!({"requestId": id, "reason": "enough"})).await;
            seen.reaches(1, 1).await;
            let alive = client.tool("count").await;
            assert_eq!(alive, "counted", "{downstream} to {upstream}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_list_is_reported_and_its_entries_can_be_called() {
    for downstream in ERAS {
        for upstream in ERAS {
            let behind = world::server(&Seen::default());
            let front = world::relayed(&behind, upstream).await;
            let mut client = Client::open(&front, downstream, everything()).await;
            client.listen(&[]).await;
            let before = client.call("tools/list", json!({})).await;
            behind.add_tool(tool("new", |_: Cx| async { "it is new" })).unwrap();
            let received = client.receive().await;
            assert_eq!(received["method"], "notifications/tools/list_changed", "{downstream} to {upstream}");
            let after = client.call("tools/list", json!({})).await;
            let count = |list: &Value| list["result"]["tools"].as_array().unwrap().len();
            assert_eq!(count(&after), count(&before) + 1);
            assert_eq!(client.tool("new").await, "it is new");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_updated_resource_is_reported_to_those_that_watch_it() {
    for downstream in ERAS {
        for upstream in ERAS {
            let behind = world::server(&Seen::default());
            let front = world::relayed(&behind, upstream).await;
            let mut client = Client::open(&front, downstream, everything()).await;
            client.call("resources/list", json!({})).await;
            // When it is acknowledged, it is in effect behind the relay.
            client.listen(&["note://shopping", "note://7"]).await;
            for uri in ["note://shopping", "note://7"] {
                behind.resource_updated(uri);
                let received = client.receive().await;
                assert_eq!(
                    received["method"], "notifications/resources/updated",
                    "{downstream} to {upstream}"
                );
                assert_eq!(received["params"]["uri"], uri);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn changed_roots_of_a_session_are_reported_behind_the_relay() {
    let notified = Arc::new(AtomicUsize::new(0));
    let counted = notified.clone();
    let behind = world::server(&Seen::default()).on_roots_changed(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async {}
    });
    let front = world::relayed(&behind, R4).await;
    let mut client = Client::open(&front, R4, everything()).await;
    client.tool("count").await;
    client.notify("notifications/roots/list_changed", json!({})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(notified.load(Ordering::SeqCst), 1);
}

/// The server behind answers no subscription for now.
#[tokio::test(start_paused = true)]
async fn subscriptions_are_sent_one_after_the_other() {
    let (gate, open, most) =
        (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (waits, running, highest) = (gate.clone(), open.clone(), most.clone());
    let behind = world::server(&Seen::default()).layer(&around(move |cx: Cx, next: Next| {
        let (waits, running, highest) = (waits.clone(), running.clone(), highest.clone());
        async move {
            if cx.method().starts_with("resources/") && cx.method().ends_with("subscribe") {
                highest.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                waits.acquire().await.unwrap().forget();
                running.fetch_sub(1, Ordering::SeqCst);
            }
            next.run(cx).await
        }
    }));
    let front = world::relayed(&behind, R4).await;
    let mut client = Client::open(&front, R4, json!({})).await;
    for at in 0..4 {
        let uri = format!("note://{at}");
        let late = client.call("resources/subscribe", json!({"uri": uri})).await;
        assert!(late["error"]["message"].as_str().unwrap().contains("within 5s"), "{late}");
        client.call("resources/unsubscribe", json!({"uri": uri})).await;
    }
    let last = client.send("resources/subscribe", json!({"uri": "note://shopping"})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(most.load(Ordering::SeqCst), 1);
    // The first one and its end, and the last one.
    gate.add_permits(3);
    assert!(client.until(last).await["result"].is_object());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((open.load(Ordering::SeqCst), gate.available_permits()), (0, 0));
    behind.resource_updated("note://0");
    behind.resource_updated("note://shopping");
    assert_eq!(client.receive().await["params"]["uri"], "note://shopping");
}
