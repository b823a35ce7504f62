//! Methods, notifications and result types that the relay does not know.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{
    Server,
    server::{Cx, Decision, Entry, GateRequest, Installation, Outcome, ProtocolExtension, method, tool},
    types::{JsonObject, RawObject, RpcError},
};
use serde_json::{Value, json};

use super::world::{self, ERAS};
use crate::support::{
    eras::{ALL, Client, R4, R5},
    line_client::{Raw, modern},
};

struct Clock {
    set: Arc<AtomicUsize>,
}

impl ProtocolExtension for Clock {
    fn name(&self) -> &str {
        "com.example/clock"
    }

    fn settings(&self) -> JsonObject {
        serde_json::from_value(json!({"zones": {"eu": [1, {"dst": true}]}})).unwrap()
    }

    fn install(self, clock: Installation) -> Installation {
        clock
            .method(method("clock/wind", |cx: Cx, params: JsonObject| async move {
                // Asks the client, where it can.
                let zone = match cx.session() {
                    Some(_) => cx.request::<_, Value>("clock/zone", json!({"of": "client"})).await?,
                    None => Value::Null,
                };
                Ok::<_, RpcError>(json!({"wound": params, "zone": zone}))
            }))
            .result_type("alarm")
            .on_notification("notifications/clock/set", move |_, _| {
                self.set.fetch_add(1, Ordering::SeqCst);
                async {}
            })
    }
}

fn behind(set: &Arc<AtomicUsize>) -> Server {
    Server::new("clock", "1.0.0")
        .with(Clock { set: set.clone() })
        .experimental("chimes", json!({"loud": [1, 2]}))
        .method(method("example.com/add", |_, params: JsonObject| async move { Ok::<_, RpcError>(params) }))
        .method(method("tasks/get", |_, params: JsonObject| async move {
            Ok::<_, RpcError>(json!({"taskId": params["taskId"], "status": "working"}))
        }))
        .tool(tool("alarm", |cx: Cx| async move {
            let kind = if cx.session().is_some() { "complete" } else { "alarm" };
            let result = json!({"resultType": kind, "content": [], "at": {"hour": 7}});
            Outcome::Complete(result.to_string().parse::<RawObject>().unwrap().into())
        }))
        .tool(tool("tick", |cx: Cx| async move {
            if let Some(session) = cx.session() {
                session.notify("notifications/clock/tick", &json!({"hour": 7})).unwrap();
            }
            "ticked"
        }))
}

async fn bridge(behind: &Server, upstream: &str) -> Server {
    world::relay(behind, upstream).await.into_server()
}

fn declares() -> Value {
    json!({"extensions": {"com.example/clock": {"hands": {"count": 2}}}})
}

/// Returns the capabilities that a server declares in a revision.
pub(super) async fn capabilities(server: &Server, revision: &str) -> Value {
    let mut client = Raw::new(server);
    let id = match revision {
        R5 => client.request("server/discover", modern(json!({}), json!({}))).await,
        _ => {
            let params = json!({"protocolVersion": revision, "capabilities": {},
                "clientInfo": {"name": "raw", "version": "0"}});
            client.request("initialize", params).await
        }
    };
    let answer = client.recv().await;
    assert_eq!(answer["id"], id);
    answer["result"]["capabilities"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_bridge_declares_exactly_what_its_server_does() {
    for upstream in [R4, R5] {
        let behind = behind(&Arc::default());
        let front = bridge(&behind, upstream).await;
        for downstream in ALL {
            let direct = capabilities(&behind, downstream).await;
            assert!(direct["tools"].is_object(), "{direct}");
            assert_eq!(capabilities(&front, downstream).await, direct, "{downstream} to {upstream}");
        }
        let declared = capabilities(&front, R5).await;
        assert_eq!(declared["extensions"]["com.example/clock"]["zones"]["eu"][1]["dst"], true, "{declared}");
        assert_eq!(declared["experimental"]["chimes"]["loud"][1], 2);
    }
}

#[tokio::test(start_paused = true)]
async fn methods_and_results_of_extensions_pass_through_a_bridge() {
    for downstream in ERAS {
        for upstream in ERAS {
            let set = Arc::default();
            let behind = behind(&set);
            let front = bridge(&behind, upstream).await;
            for capabilities in [json!({}), declares()] {
                let mut direct = Client::open(&behind, downstream, capabilities.clone()).await;
                let mut through = Client::open(&front, downstream, capabilities.clone()).await;
                for client in [&mut direct, &mut through] {
                    client.answer = Box::new(|method, params| json!({"method": method, "params": params}));
                }
                let calls = [
                    ("example.com/add", json!({"a": 1.50, "b": {"c": []}})),
                    ("example.com/nothing", json!({})),
                    ("tasks/get", json!({"taskId": "t-1"})),
                    ("tasks/nothing", json!({})),
                    // One revision has it.
                    ("tasks/result", json!({"taskId": "t-1"})),
                    ("clock/wind", json!({"turns": 3})),
                    ("tools/call", json!({"name": "alarm"})),
                ];
                for (method, params) in calls {
                    if matches!(method, "clock/wind" | "tools/call") && downstream != upstream {
                        // Their handlers do what the era of their client allows, which is that of the relay.
                        continue;
                    }
                    let what = format!("{downstream} to {upstream}: {method} with {capabilities}");
                    let expected = direct.call(method, params.clone()).await;
                    let found = through.call(method, params).await;
                    assert_eq!(found["result"], expected["result"], "{what}");
                    assert_eq!(found["error"], expected["error"], "{what}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn custom_notifications_pass_through_a_bridge() {
    for (downstream, upstream) in [(R4, R4), (R4, R5), (R5, R5)] {
        let set = Arc::default();
        let front = bridge(&behind(&set), upstream).await;
        let mut client = Client::open(&front, downstream, declares()).await;
        client.notify("notifications/clock/set", json!({"hour": 7})).await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(set.load(Ordering::SeqCst), 1, "{downstream} to {upstream}");
        assert_eq!(client.tool("tick").await, "ticked");
        if (downstream, upstream) == (R4, R4) {
            let received = client.receive().await;
            assert_eq!(received["method"], "notifications/clock/tick");
            assert_eq!(received["params"], json!({"hour": 7}));
        }
    }
}

/// What a client declares reaches the server behind: unknown names, names with two slashes and nested settings too.
#[tokio::test(start_paused = true)]
async fn the_extensions_that_a_client_declares_pass_through_a_relay() {
    let declared = json!({
        "com.example/unknown": {"a": {"b": [1, null, {"c": 1.5}]}},
        "io.modelcontextprotocol/auth/dpop": {},
    });
    for upstream in [R4, R5] {
        let behind = Server::new("s", "1").tool(tool("declared", |cx: Cx| async move {
            serde_json::to_string(&cx.peer().capabilities.extensions).unwrap_or_default()
        }));
        let beside = Server::new("front", "1").provider(world::relay(&behind, upstream).await);
        for front in [bridge(&behind, upstream).await, beside] {
            for downstream in ALL {
                let capabilities = json!({ "extensions": declared });
                let mut client = Client::open(&front, downstream, capabilities).await;
                let called = client.call("tools/call", json!({"name": "declared", "arguments": {}})).await;
                let text = called["result"]["content"][0]["text"].as_str().unwrap_or_default();
                let found: Value = serde_json::from_str(text).unwrap_or_default();
                for (name, settings) in declared.as_object().unwrap() {
                    assert_eq!(found[name], *settings, "{downstream} to {upstream}: {called}");
                }
            }
        }
    }
}

/// A relay that is a whole server does not change the ids of tasks. What it sends on is judged by its method, whatever the id is.
#[tokio::test(start_paused = true)]
async fn requests_for_tasks_of_a_whole_server_are_judged_whatever_their_ids_are() {
    for upstream in ERAS {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = asked.clone();
        let behind = Server::new("tasks", "1").method(method("tasks/get", move |_, _: JsonObject| {
            counter.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, RpcError>(json!({"taskId": "t-1", "status": "completed"})) }
        }));
        for decision in [Decision::Hide, Decision::Deny("closed".to_owned())] {
            let decided = decision.clone();
            let gate = move |request: &GateRequest<'_>| match request.entry {
                Entry::Method(_) => decided.clone(),
                _ => Decision::Allow,
            };
            let front = bridge(&behind, upstream).await.gate(gate);
            let mut client = Client::open(&front, R4, json!({})).await;
            for id in [json!("t-1"), json!(["t-1"]), json!({"t-1": 1}), json!(1), Value::Null] {
                let refused = client.call("tasks/get", json!({"taskId": id})).await;
                assert!(refused["error"].is_object(), "{upstream}, {decision:?}: {refused}");
            }
        }
        assert_eq!(asked.load(Ordering::SeqCst), 0, "{upstream}");
    }
}
