//! Layers of a client, with a server that the test plays.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Client, Error, Result,
    client::{Answer, Change, Cx, Direction, Event, Next, Policy, Target, around},
    types::{Meta, RawObject, RpcError, schema::LoggingLevel},
};
use pintle_testing::Peer;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::scripted_server::{BOTH, SESSION, STATELESS, client, open, settle, text};

type Log = Arc<Mutex<Vec<String>>>;

/// Writes down each message, and its end.
fn noting(client: Client, log: &Log, name: &'static str) -> Client {
    let log = log.clone();
    client.layer(&around(move |cx: Cx, next: Next| {
        let log = log.clone();
        async move {
            let direction = if cx.direction() == Direction::Out { ">" } else { "<" };
            let line = format!("{name}{direction} {}", cx.method());
            log.lock().unwrap().push(line.clone());
            let result = next.run(cx).await;
            log.lock().unwrap().push(format!("{line}: {}", if result.is_ok() { "ok" } else { "error" }));
            result
        }
    }))
}

/// Refuses one method.
fn refusing(client: Client, method: &'static str) -> Client {
    client.layer(&around(move |cx: Cx, next: Next| async move {
        if cx.method() == method {
            return Err(Error::Refused("not today".into()));
        }
        next.run(cx).await
    }))
}

fn taken(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

fn tools() -> Value {
    json!({"tools": {"listChanged": true}})
}

/// Answers one call of a tool; returns its params.
async fn answer_call(peer: &mut Peer, result: Value) -> Value {
    let call = peer.receives("tools/call").await;
    peer.answers(&call, result).await;
    call["params"].clone()
}

#[tokio::test(start_paused = true)]
async fn the_last_layer_added_is_the_outermost() {
    for revision in BOTH {
        let log = Log::default();
        let client = noting(noting(client(), &log, "inner"), &log, "outer");
        let (connection, mut peer) = open(&client, revision, json!({})).await;
        taken(&log);
        let (result, _) = tokio::join!(connection.call_tool("t", ()), answer_call(&mut peer, text("done")));
        assert_eq!(result.unwrap().text(), "done");
        let expected =
            ["outer> tools/call", "inner> tools/call", "inner> tools/call: ok", "outer> tools/call: ok"];
        assert_eq!(taken(&log), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_refuses_a_request_and_the_caller_gets_the_reason() {
    for revision in BOTH {
        let (connection, mut peer) = open(&refusing(client(), "tools/call"), revision, json!({})).await;
        let error = connection.call_tool("t", ()).await.unwrap_err();
        assert!(matches!(&error, Error::Refused(reason) if reason == "not today"), "{error}");
        assert_eq!(peer.receives_now().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_changes_params_metadata_and_the_result() {
    for revision in BOTH {
        let client = client().layer(&around(|cx: Cx, next: Next| async move {
            let Some(Target::Tool(name)) = cx.target() else { return next.run(cx).await };
            assert_eq!(name, "t");
            let mut meta = Meta::new();
            meta.insert("traceparent", "00-1-2-01");
            let result = next
                .run(cx.with_params(r#"{"name":"u","_meta":{"a":1}}"#.parse().unwrap()).with_meta(meta))
                .await?;
            assert!(result.as_str().contains("done"));
            Ok(r#"{"content":[{"type":"text","text":"changed"}]}"#.parse().unwrap())
        }));
        let (connection, mut peer) = open(&client, revision, json!({})).await;
        let (result, params) =
            tokio::join!(connection.call_tool("t", ()), answer_call(&mut peer, text("done")));
        assert_eq!(result.unwrap().text(), "changed");
        assert_eq!((&params["name"], &params["_meta"]["a"]), (&json!("u"), &json!(1)));
        assert_eq!(params["_meta"]["traceparent"], "00-1-2-01");
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_may_answer_by_itself_or_send_a_request_twice() {
    for revision in BOTH {
        let client = client().layer(&around(|cx: Cx, next: Next| async move {
            match cx.target() {
                Some(Target::Tool(name)) if name == "local" => {
                    Ok(r#"{"content":[{"type":"text","text":"here"}]}"#.parse().unwrap())
                }
                Some(Target::Tool(_)) => match next.clone().run(cx.clone()).await {
                    Err(Error::Rpc(_)) => next.run(cx).await,
                    other => other,
                },
                _ => next.run(cx).await,
            }
        }));
        let (connection, mut peer) = open(&client, revision, json!({})).await;
        assert_eq!(connection.call_tool("local", ()).await.unwrap().text(), "here");
        let steps = Arc::new(AtomicUsize::new(0));
        let seen = steps.clone();
        let call = connection.call("t").on_progress(move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
        });
        let script = async {
            let first = peer.receives("tools/call").await;
            peer.refuses(&first, -32000, "busy").await;
            let second = peer.receives("tools/call").await;
            let token = second["params"]["_meta"]["progressToken"].clone();
            peer.notifies("notifications/progress", json!({"progressToken": token, "progress": 1})).await;
            peer.answers(&second, text("done")).await;
        };
        let (result, ()) = tokio::join!(call.send(), script);
        assert_eq!(result.unwrap().text(), "done");
        assert_eq!(steps.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_in_a_layer_cancels_it() {
    struct Guard(Arc<AtomicBool>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    for revision in BOTH {
        let (dropped, release) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
        let (flag, gate) = (dropped.clone(), release.clone());
        let client = client().layer(&around(move |cx: Cx, next: Next| {
            let (flag, gate) = (flag.clone(), gate.clone());
            async move {
                if cx.method() != "tools/call" {
                    return next.run(cx).await;
                }
                let _guard = Guard(flag);
                gate.notified().await;
                next.run(cx).await
            }
        }));
        let (connection, mut peer) = open(&client, revision, json!({})).await;
        // Before it is sent.
        let waiting = tokio::time::timeout(Duration::from_millis(1), connection.call_tool("t", ())).await;
        assert!(waiting.is_err() && dropped.swap(false, Ordering::Relaxed));
        assert_eq!(peer.receives_now().await, None);
        // After it is sent.
        release.notify_one();
        let waiting = tokio::time::timeout(Duration::from_millis(1), connection.call_tool("t", ())).await;
        assert!(waiting.is_err() && dropped.load(Ordering::Relaxed));
        let call = peer.receives("tools/call").await;
        let cancelled = peer.receives("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], call["id"]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_policy_the_output_check_and_retries_are_inside_the_layers() {
    for revision in BOTH {
        let log = Log::default();
        let policy = log.clone();
        let client = client().policy(move |call| {
            policy.lock().unwrap().push(format!("policy {} {}", call.name, call.tool.is_some()));
            Policy::Allow
        });
        // It renames tools, in lists and in calls.
        let client = noting(client, &log, "").layer(&around(|cx: Cx, next: Next| async move {
            let renamed =
                |text: &str, from: &str, to: &str| -> RawObject { text.replace(from, to).parse().unwrap() };
            match cx.method() {
                "tools/call" => {
                    let params = renamed(cx.params().as_str(), "\"mine_", "\"");
                    next.run(cx.with_params(params)).await
                }
                "tools/list" => Ok(renamed(next.run(cx).await?.as_str(), "\"name\":\"", "\"name\":\"mine_")),
                _ => next.run(cx).await,
            }
        }));
        let (connection, mut peer) = open(&client, revision, tools()).await;
        taken(&log);
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let listed = json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [
            {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}]});
        let script = async {
            let list = peer.receives("tools/list").await;
            peer.answers(&list, listed).await;
            let result = json!({"resultType": "complete", "content": [], "structuredContent": {"n": "one"}});
            assert_eq!(answer_call(&mut peer, result).await["name"], "t");
            while let Some(list) = peer.receives_now().await {
                peer.refuses(&list, -32000, "no more").await;
            }
        };
        let (result, ()) = tokio::join!(connection.call_tool("mine_t", ()), script);
        assert!(matches!(result, Err(Error::Decode(_))), "{result:?}");
        let log = taken(&log);
        let start = ["> tools/call", "> tools/list", "> tools/list: ok", "policy t true"].map(String::from);
        assert_eq!(log[..4], start);
        assert_eq!(log.last().unwrap(), "> tools/call: error");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_retried_is_seen_once() {
    let log = Log::default();
    let client = noting(client().retries(2), &log, "");
    let (mut server, transport) = Peer::new();
    let script = crate::support::scripted_server::accept(&mut server, SESSION, json!({"prompts": {}}));
    let (connection, ()) = tokio::join!(client.connect(transport), script);
    let connection = connection.unwrap();
    taken(&log);
    drop(server);
    assert!(connection.get_prompt("p", ()).await.is_err());
    assert_eq!(taken(&log), ["> prompts/get", "> prompts/get: error"]);
}

#[tokio::test(start_paused = true)]
async fn input_requests_pass_the_layers_in_both_eras() {
    #[derive(Clone)]
    struct Window(u32);

    let form = json!({"method": "elicitation/create", "params": {
        "message": "who?", "requestedSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}});
    for revision in BOTH {
        for refuse in [false, true] {
            let log = Log::default();
            let client = client().on_elicit(|question| async move {
                let Window(number) = question.extensions().get().unwrap();
                assert_eq!(question.message, "changed");
                Answer::accept(json!({"n": number}))
            });
            let client = noting(client, &log, "").layer(&around(move |cx: Cx, next: Next| async move {
                if cx.method() != "elicitation/create" {
                    return next.run(cx).await;
                }
                assert_eq!(cx.direction(), Direction::In);
                assert_eq!(cx.server().unwrap().name, "played");
                if refuse {
                    return Err(Error::Rpc(RpcError::invalid_request("not today")));
                }
                let params = cx.params().as_str().replace("who?", "changed").parse().unwrap();
                next.run(cx.with_params(params).with(Window(7))).await
            }));
            let (connection, mut peer) = open(&client, revision, json!({})).await;
            taken(&log);
            let script = async {
                let call = peer.receives("tools/call").await;
                if revision == STATELESS {
                    let asked = json!({"resultType": "input_required", "inputRequests": {"k": form}});
                    peer.answers(&call, asked).await;
                    if refuse {
                        return Value::Null;
                    }
                    let retry = peer.receives("tools/call").await;
                    peer.answers(&retry, text("done")).await;
                    return retry["params"]["inputResponses"]["k"].clone();
                }
                peer.asks("k", "elicitation/create", form["params"].clone()).await;
                let answer = peer.next().await.unwrap();
                peer.answers(&call, text("done")).await;
                answer.get("result").or(answer.get("error")).unwrap().clone()
            };
            let (result, answer) = tokio::join!(connection.call_tool("t", ()), script);
            match (revision, refuse) {
                (_, false) => assert_eq!(answer["content"], json!({"n": 7})),
                (STATELESS, true) => assert!(result.unwrap_err().to_string().contains("not today")),
                (_, true) => assert_eq!(answer["message"], "not today"),
            }
            let seen = taken(&log);
            assert_eq!(seen.contains(&"< elicitation/create: ok".into()), !refuse, "{seen:?}");
            assert_eq!(seen.iter().filter(|line| *line == "> tools/call").count(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_panics_is_an_error_for_the_server() {
    let client = client().layer(&around(|cx: Cx, next: Next| {
        assert_ne!(cx.method(), "ping", "on purpose");
        next.run(cx)
    }));
    let (_connection, mut peer) = open(&client, SESSION, json!({})).await;
    peer.asks(1, "ping", json!({})).await;
    let answer = peer.next().await.unwrap();
    assert_eq!(answer["error"]["message"], "the client failed to answer");
}

#[tokio::test(start_paused = true)]
async fn a_ping_of_the_server_passes_the_layers() {
    let log = Log::default();
    let (_connection, mut peer) = open(&noting(client(), &log, ""), SESSION, json!({})).await;
    taken(&log);
    peer.asks(1, "ping", json!({})).await;
    assert_eq!(peer.next().await.unwrap()["result"], json!({}));
    assert_eq!(taken(&log), ["< ping", "< ping: ok"]);
}

#[tokio::test(start_paused = true)]
async fn notifications_pass_the_layers_in_order_and_before_the_result() {
    for revision in BOTH {
        let log = Log::default();
        let (logs, steps) = (log.clone(), log.clone());
        let client = client()
            .log_level(LoggingLevel::Info)
            .on_log(move |report| logs.lock().unwrap().push(format!("logged {}", report.data)))
            .on_progress(move |report| steps.lock().unwrap().push(format!("progress {}", report.progress)));
        let client = noting(client, &log, "").layer(&around(|cx: Cx, next: Next| async move {
            if cx.direction() == Direction::In {
                tokio::time::sleep(Duration::from_millis(10)).await;
                if cx.params().as_str().contains("secret") {
                    let params = cx.params().as_str().replace("secret", "***").parse().unwrap();
                    return next.run(cx.with_params(params)).await;
                }
            }
            next.run(cx).await
        }));
        let (connection, mut peer) = open(&client, revision, tools()).await;
        let mut changes = {
            let script = async {
                if revision == STATELESS {
                    let listen = peer.receives("subscriptions/listen").await;
                    let meta = json!({"io.modelcontextprotocol/subscriptionId": listen["id"]});
                    let granted = json!({"notifications": {"toolsListChanged": true}, "_meta": meta});
                    peer.notifies("notifications/subscriptions/acknowledged", granted).await;
                    return listen["id"].clone();
                }
                Value::Null
            };
            let (changes, id) = tokio::join!(connection.changes(), script);
            (changes.unwrap(), id)
        };
        taken(&log);
        let script = async {
            let call = peer.receives("tools/call").await;
            let token = call["params"]["_meta"]["progressToken"].clone();
            for step in 1..4 {
                let params = json!({"progressToken": token, "progress": step});
                peer.notifies("notifications/progress", params).await;
            }
            peer.notifies("notifications/message", json!({"level": "info", "data": "secret"})).await;
            let params = match revision {
                STATELESS => json!({"_meta": {"io.modelcontextprotocol/subscriptionId": changes.1}}),
                _ => json!({}),
            };
            peer.notifies("notifications/tools/list_changed", params).await;
            peer.answers(&call, text("done")).await;
        };
        let (result, ()) = tokio::join!(connection.call_tool("t", ()), script);
        assert_eq!(result.unwrap().text(), "done");
        let seen = taken(&log);
        let steps: Vec<_> = seen.iter().filter(|line| line.starts_with("progress")).collect();
        assert_eq!(steps, ["progress 1", "progress 2", "progress 3"], "{seen:?}");
        assert!(seen.contains(&r#"logged "***""#.into()), "{seen:?}");
        assert_eq!(seen.iter().filter(|line| *line == "< notifications/progress: ok").count(), 3);
        assert!(seen.contains(&"< notifications/tools/list_changed: ok".into()), "{seen:?}");
        assert_eq!(changes.0.next().await, Some(Event::Changed(Change::Tools)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_notification_that_a_layer_refuses_is_not_delivered_but_has_been_used() {
    let counted = Arc::new(AtomicUsize::new(0));
    let calls = counted.clone();
    let client = refusing(client(), "notifications/tools/list_changed").on_change(move |_| {
        calls.fetch_add(1, Ordering::Relaxed);
    });
    let (connection, mut peer) = open(&refusing(client, "notifications/acme"), SESSION, tools()).await;
    let mut changes = connection.changes().await.unwrap();
    peer.notifies("notifications/acme", json!({})).await;
    peer.notifies("notifications/tools/list_changed", json!({})).await;
    peer.notifies("notifications/prompts/list_changed", json!({})).await;
    assert_eq!(changes.next().await, Some(Event::Changed(Change::Prompts)));
    settle().await;
    assert_eq!(counted.load(Ordering::Relaxed), 1);
    // Notifications that are sent.
    connection.notify("notifications/other", None).await.unwrap();
    let error = connection.notify("notifications/acme", None).await.unwrap_err();
    assert_eq!(error.to_string(), "not today");
    peer.receives("notifications/other").await;
    assert_eq!(peer.receives_now().await, None);
}

#[tokio::test(start_paused = true)]
async fn notifications_that_slow_layers_cannot_take_are_reported_as_missed() {
    let mut limits = pintle::proto::Limits::default();
    limits.queued_bytes = 200;
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    let client = client().limits(limits).layer(&around(move |cx: Cx, next: Next| {
        let held = held.clone();
        async move {
            if cx.method() == "notifications/acme" {
                held.notified().await;
            }
            next.run(cx).await
        }
    }));
    let (connection, mut peer) = open(&client, SESSION, json!({})).await;
    let mut changes = connection.changes().await.unwrap();
    for number in 0..10 {
        peer.notifies("notifications/acme", json!({"number": number, "text": "x".repeat(40)})).await;
        settle().await;
    }
    (0..10).for_each(|_| gate.notify_waiters());
    let mut missed = 0;
    while let Some(Event::Missed(count)) = changes.next().await {
        missed += count;
        gate.notify_one();
        if missed >= 5 {
            break;
        }
    }
    assert!(missed >= 5, "{missed}");
}

#[tokio::test(start_paused = true)]
async fn the_log_level_is_sent_before_the_first_call_although_layers_are_slow() {
    let client = client().log_level(LoggingLevel::Info).layer(&around(|cx: Cx, next: Next| async move {
        if cx.method() == "logging/setLevel" {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        next.run(cx).await
    }));
    let (connection, mut peer) = open(&client, SESSION, json!({"logging": {}})).await;
    let script = async {
        let level = peer.receives("logging/setLevel").await;
        peer.answers(&level, json!({})).await;
        answer_call(&mut peer, text("done")).await
    };
    let (result, _) = tokio::join!(connection.call_tool("t", ()), script);
    assert_eq!(result.unwrap().text(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_layer_may_refuse_the_opening() {
    for (revision, method) in
        [(STATELESS, "server/discover"), (SESSION, "initialize"), (SESSION, "notifications/initialized")]
    {
        let client = refusing(client(), method);
        let (mut peer, transport) = Peer::new();
        let script = async {
            while let Some(message) = peer.next().await {
                match message["method"].as_str().unwrap() {
                    "initialize" => {
                        let result = json!({"protocolVersion": revision, "capabilities": {},
                            "serverInfo": {"name": "played", "version": "7"}});
                        peer.answers(&message, result).await;
                    }
                    "server/discover" => peer.refuses(&message, -32601, "what?").await,
                    other => panic!("{other}"),
                }
            }
        };
        let (connected, ()) = tokio::join!(client.connect(transport), script);
        let error = connected.map(drop).unwrap_err();
        assert_eq!(error.to_string(), "not today", "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_a_layer_refuses_after_its_acknowledgement_ends() {
    for after in [false, true] {
        let client = client().layer(&around(move |cx: Cx, next: Next| async move {
            if cx.targets().iter().all(|target| target.name() != "note://1") {
                return next.run(cx).await;
            }
            if after {
                let granted = next.run(cx).await?;
                assert_eq!(granted.get("resourceSubscriptions"), Some(r#"["note://1"]"#));
            }
            Err(Error::Refused("not today".into()))
        }));
        let capabilities = json!({"resources": {"subscribe": true}});
        let (connection, mut peer) = open(&client, STATELESS, capabilities).await;
        let script = async {
            if !after {
                return;
            }
            let listen = peer.receives("subscriptions/listen").await;
            let meta = json!({"io.modelcontextprotocol/subscriptionId": listen["id"]});
            let granted = json!({"notifications": {"resourceSubscriptions": ["note://1"]}, "_meta": meta});
            peer.notifies("notifications/subscriptions/acknowledged", granted).await;
            let cancelled = peer.receives("notifications/cancelled").await;
            assert_eq!(cancelled["params"]["requestId"], listen["id"]);
        };
        let (subscribed, ()) = tokio::join!(connection.subscribe("note://1"), script);
        assert_eq!(subscribed.unwrap_err().to_string(), "not today");
        assert_eq!(peer.receives_now().await, None);
        // Another one is not affected.
        let script = async {
            let listen = peer.receives("subscriptions/listen").await;
            let uris = json!(["note://2"]);
            assert_eq!(listen["params"]["notifications"]["resourceSubscriptions"], uris);
            let meta = json!({"io.modelcontextprotocol/subscriptionId": listen["id"]});
            let granted = json!({"notifications": {"resourceSubscriptions": uris}, "_meta": meta});
            peer.notifies("notifications/subscriptions/acknowledged", granted).await;
        };
        let (subscribed, ()) = tokio::join!(connection.subscribe("note://2"), script);
        subscribed.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn errors_of_foreign_layers_are_refusals_and_ours_keep_their_kind() {
    use std::task::{Context, Poll};

    use tower_service::Service;

    /// Boxes errors, as `tower::timeout` does.
    #[derive(Clone)]
    struct Boxing(Next);

    impl Service<Cx> for Boxing {
        type Response = RawObject;
        type Error = Box<dyn std::error::Error + Send + Sync>;
        type Future =
            std::pin::Pin<Box<dyn Future<Output = std::result::Result<RawObject, Self::Error>> + Send>>;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<std::result::Result<(), Self::Error>> {
            self.0.poll_ready(cx).map_err(Into::into)
        }

        fn call(&mut self, cx: Cx) -> Self::Future {
            if cx.method() == "prompts/get" {
                return Box::pin(async { Err("overloaded".into()) });
            }
            let calling = self.0.call(cx);
            Box::pin(async move { Ok(calling.await?) })
        }
    }

    let client = client().layer(&tower_layer::layer_fn(Boxing));
    let (connection, mut peer) = open(&client, SESSION, json!({})).await;
    let refuse = async {
        let call = peer.receives("tools/call").await;
        peer.refuses(&call, -32001, "no").await;
    };
    let (result, ()) = tokio::join!(connection.call_tool("t", ()), refuse);
    assert!(matches!(result, Err(Error::Rpc(error)) if error.code.0 == -32001));
    let error = connection.get_prompt("p", ()).await.unwrap_err();
    assert!(matches!(&error, Error::Refused(reason) if reason == "overloaded"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_layers_has_the_same_messages() -> Result<()> {
    let (connection, mut peer) = open(&client(), SESSION, json!({"logging": {}})).await;
    let script = async {
        for _ in 0..2 {
            let request = peer.next().await.unwrap();
            peer.answers(&request, json!({})).await;
        }
    };
    let (ended, ()) = tokio::join!(
        async {
            connection.ping().await?;
            connection.set_log_level(LoggingLevel::Info).await
        },
        script
    );
    ended
}
