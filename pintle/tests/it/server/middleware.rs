//! Layers see every message of a client, on every transport and in both eras; hooks may refuse connections and sessions.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use pintle::{
    Connection, Server,
    server::{
        Args, Caller, Cx, Extension, Next, Opened, Outcome, Partial, Target, around, prompt, resource,
        template, tool,
    },
    types::{
        ErrorCode, RawObject, RpcError,
        schema::{CompletionReference, LoggingLevel, PromptReference, ResourceReference},
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Notify;

use crate::support::{
    eras::{self, ALL, R1, R4, R5},
    http_client::Wire,
    http_server::{client, soon},
    line_client::{Raw, modern},
    over::{Over, TRANSPORTS},
};

type Log = Arc<Mutex<Vec<String>>>;

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// A server with a tool, a resource and log messages.
fn server() -> Server {
    Server::new("s", "0")
        .logging()
        .resource(resource("note://1", "one", || async { "1" }))
        .tool(tool("greet", |Args(Name { name }): Args<Name>| async move { format!("Hello, {name}!") }))
}

/// Writes down each message, with what it addresses.
fn noting(server: Server, log: &Log) -> Server {
    let log = log.clone();
    server.layer(&around(move |cx: Cx, next: Next| {
        let targets: Vec<_> = cx.targets().iter().map(|target| target.name().to_owned()).collect();
        let line = format!("{} {}", cx.method(), targets.join(" "));
        log.lock().unwrap().push(line.trim().to_owned());
        next.run(cx)
    }))
}

/// Refuses one method.
fn refusing(server: Server, method: &'static str) -> Server {
    server.layer(&around(move |cx: Cx, next: Next| async move {
        if cx.method() == method {
            return Outcome::Failed(RpcError::invalid_request("not today"));
        }
        next.run(cx).await
    }))
}

async fn connect(server: &Server, over: Over, revision: &str) -> pintle::Result<Connection> {
    let client = client(revision, "c");
    over.connect(&client, server, revision).await
}

#[tokio::test]
async fn a_layer_sees_every_message_of_a_conversation() {
    for over in TRANSPORTS {
        for revision in ALL {
            let log = Log::default();
            let server = noting(server(), &log);
            let client = soon(connect(&server, over, revision)).await.unwrap();
            let notified = client.call_tool("greet", json!({"name": "Ann"})).await.unwrap();
            assert_eq!(notified.text(), "Hello, Ann!");
            client.tools().await.unwrap();
            client.read_resource("note://1").await.unwrap();
            client.ping().await.unwrap();
            client.notify("notifications/acme", Default::default()).await.unwrap();
            let mut expected = match revision {
                R5 => vec!["server/discover"],
                _ => vec!["initialize", "notifications/initialized"],
            };
            expected.extend(["tools/call greet", "tools/list", "resources/read note://1"]);
            if revision == R5 {
                let _changes = soon(client.changes()).await.unwrap();
                soon(client.subscribe("note://1")).await.unwrap();
                expected.extend(["subscriptions/listen note://1"]);
            } else {
                client.set_log_level(LoggingLevel::Info).await.unwrap();
                client.subscribe("note://1").await.unwrap();
                client.unsubscribe("note://1").await.unwrap();
                expected.extend(["ping", "logging/setLevel"]);
                expected.extend(["resources/subscribe note://1", "resources/unsubscribe note://1"]);
            }
            // A stateless client sends notifications over HTTP too, although they have no effect there.
            expected.push("notifications/acme");
            let seen = || log.lock().unwrap().clone();
            let missing = || expected.iter().find(|line| !seen().iter().any(|other| other == *line));
            for _ in 0..10_000 {
                if missing().is_none() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            assert_eq!(missing(), None, "{over:?} {revision}: {:?}", seen());
            let unexpected: Vec<_> = seen()
                .into_iter()
                .filter(|line| !expected.contains(&&**line) && line != "subscriptions/listen")
                .filter(|line| line != "notifications/cancelled")
                .collect();
            assert_eq!(unexpected, [""; 0], "{over:?} {revision}");
        }
    }
}

#[tokio::test]
async fn a_layer_may_refuse_what_no_handler_answers() {
    for over in TRANSPORTS {
        for revision in ALL {
            let methods: &[&str] = match revision {
                R5 => &["server/discover", "subscriptions/listen"],
                _ => &[
                    "initialize",
                    "ping",
                    "logging/setLevel",
                    "resources/subscribe",
                    "resources/unsubscribe",
                ],
            };
            for method in methods {
                let server = refusing(server(), method);
                let connected = soon(connect(&server, over, revision)).await;
                let error = match (*method, connected) {
                    ("initialize" | "server/discover", Err(error)) => Some(error),
                    ("initialize", Ok(_)) => None,
                    (_, Err(error)) => panic!("{over:?} {revision} {method}: {error}"),
                    ("ping" | "server/discover", Ok(client)) => {
                        client.call_raw(*method, RawObject::empty()).await.err()
                    }
                    ("logging/setLevel", Ok(client)) => client.set_log_level(LoggingLevel::Info).await.err(),
                    ("resources/subscribe", Ok(client)) => client.subscribe("note://1").await.err(),
                    ("subscriptions/listen", Ok(client)) => client.changes().await.err(),
                    (_, Ok(client)) => client.unsubscribe("note://1").await.err(),
                };
                let error = error.map(|error| error.to_string()).unwrap_or_default();
                assert!(error.contains("not today"), "{over:?} {revision} {method}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn a_layer_sees_and_may_answer_methods_that_nobody_knows() {
    for over in TRANSPORTS {
        for revision in ALL {
            let log = Log::default();
            let server = noting(server(), &log).layer(&around(|cx: Cx, next: Next| async move {
                match cx.method() {
                    "example/greeting" => {
                        let hello: RawObject = r#"{"said":"hello"}"#.parse().unwrap();
                        Outcome::Complete(hello.into())
                    }
                    _ => next.run(cx).await,
                }
            }));
            let client = soon(connect(&server, over, revision)).await.unwrap();
            let reply: serde_json::Value = client.request("example/greeting", json!({})).await.unwrap();
            assert_eq!(reply["said"], "hello", "{over:?} {revision}");
            let direct = soon(connect(&self::server(), over, revision)).await.unwrap();
            let mut refused = Vec::new();
            for client in [client, direct] {
                let error = client.call_raw("example/farewell", RawObject::empty()).await.unwrap_err();
                let pintle::Error::Rpc(error) = error else { panic!("{over:?} {revision}: {error}") };
                refused.push((error.code, error.message));
            }
            assert_eq!(refused[0].0, ErrorCode::METHOD_NOT_FOUND, "{over:?} {revision}");
            assert_eq!(refused[0], refused[1], "{over:?} {revision}: as without layers");
            let log = log.lock().unwrap();
            assert!(log.iter().any(|line| line == "example/farewell"), "{over:?} {revision}: {log:?}");
        }
    }
}

#[tokio::test]
async fn an_unknown_method_has_the_same_status_with_layers() {
    let wire = Wire::new(&noting(server(), &Log::default()).http().unwrap());
    let mut answer = wire.modern(7, "no/such", json!({}), json!({})).await;
    assert_eq!(answer.status, 404);
    assert_eq!(answer.json().await["error"]["code"], -32601);
}

#[tokio::test]
async fn a_layer_may_change_params_and_leave_an_extension_for_the_handler() {
    #[derive(Clone)]
    struct Tenant(&'static str);

    for over in TRANSPORTS {
        for revision in ALL {
            let whose = tool("whose", |Extension(Tenant(name)): Extension<Tenant>| async move { name });
            let server = server().tool(whose).layer(&around(|cx: Cx, next: Next| async move {
                let cx = match cx.target() {
                    Some(Target::Tool(name)) if name == "greet" => {
                        cx.with_params(r#"{"name":"greet","arguments":{"name":"Bob"}}"#.parse().unwrap())
                    }
                    // What is watched is another note than was asked for.
                    Some(Target::Resource(_)) if cx.method() == "resources/subscribe" => {
                        cx.with_params(r#"{"uri":"note://2"}"#.parse().unwrap())
                    }
                    _ => cx,
                };
                next.run(cx.with(Tenant("blue"))).await
            }));
            let client = soon(connect(&server, over, revision)).await.unwrap();
            let greeted = client.call_tool("greet", json!({"name": "Ann"})).await.unwrap();
            assert_eq!(greeted.text(), "Hello, Bob!", "{over:?} {revision}");
            assert_eq!(client.call_tool("whose", ()).await.unwrap().text(), "blue");
            if revision != R5 {
                let mut changes = soon(client.changes()).await.unwrap();
                client.subscribe("note://1").await.unwrap();
                server.resource_updated("note://2");
                let event = soon(changes.next()).await.unwrap();
                assert!(format!("{event:?}").contains("note://2"), "{over:?} {revision}: {event:?}");
            }
        }
    }
}

/// A server whose layer holds one method back until it is let go.
fn holding(server: Server, method: &'static str) -> (Server, Arc<Notify>) {
    let go = Arc::new(Notify::new());
    let held = go.clone();
    let server = server.layer(&around(move |cx: Cx, next: Next| {
        let held = held.clone();
        async move {
            if cx.method() == method {
                held.notified().await;
            }
            next.run(cx).await
        }
    }));
    (server, go)
}

fn initialize(id: i64) -> serde_json::Value {
    let params =
        json!({"protocolVersion": R4, "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}});
    json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params})
}

#[tokio::test]
async fn messages_of_a_pipe_do_not_overtake_a_handshake_that_is_in_a_layer() {
    let (server, go) = holding(server(), "initialize");
    let mut client = Raw::new(&server);
    client.send(initialize(1)).await;
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    client.send(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).await;
    client.send(json!({"jsonrpc": "2.0", "id": 3, "method": "prompts/list"})).await;
    // Cancelled while it waits: it has no response.
    client
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}))
        .await;
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    go.notify_one();
    let opened = client.recv().await;
    assert_eq!((&opened["id"], &opened["result"]["protocolVersion"]), (&json!(1), &json!(R4)));
    assert_eq!(client.recv().await["id"], 3);
}

#[tokio::test]
async fn a_request_in_a_layer_can_be_cancelled_and_others_go_on() {
    let (server, _go) = holding(server(), "logging/setLevel");
    let mut client = Raw::new(&server);
    client.open(R4, json!({})).await;
    let set = client.request("logging/setLevel", json!({"level": "info"})).await;
    let list = client.request("tools/list", json!({})).await;
    client
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": set}}))
        .await;
    assert_eq!(client.recv().await["id"], list);
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_panics_or_never_returns_is_an_error_reply() {
    let server =
        server().call_timeout(Duration::from_secs(5)).layer(&around(|cx: Cx, next: Next| async move {
            match cx.method() {
                "ping" => panic!("on purpose"),
                "logging/setLevel" => std::future::pending().await,
                _ => next.run(cx).await,
            }
        }));
    let mut client = Raw::new(&server);
    client.open(R4, json!({})).await;
    let ping = client.request("ping", json!({})).await;
    let panicked = client.recv().await;
    assert_eq!(panicked["id"], ping);
    assert!(panicked["error"]["message"].as_str().unwrap().contains("see the server's log"), "{panicked}");
    client.request("logging/setLevel", json!({"level": "info"})).await;
    let list = client.request("tools/list", json!({})).await;
    let late = client.recv().await;
    assert!(late["error"]["message"].as_str().unwrap().contains("longer than 5s"), "{late}");
    assert_eq!(client.recv().await["id"], list);
}

#[tokio::test]
async fn a_subscription_that_a_layer_fails_is_not_opened() {
    let server = server().layer(&around(|cx: Cx, next: Next| async move {
        let listens = cx.method() == "subscriptions/listen";
        let outcome = next.run(cx).await;
        if listens { Outcome::Failed(RpcError::invalid_request("not for you")) } else { outcome }
    }));
    let mut client = Raw::new(&server);
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let id = client.request("subscriptions/listen", modern(wanted, json!({}))).await;
    let ended = client.recv().await;
    assert_eq!((&ended["id"], &ended["error"]["message"]), (&json!(id), &json!("not for you")));
    server.tools_changed();
    let list = client.request("tools/list", modern(json!({}), json!({}))).await;
    assert_eq!(client.recv().await["id"], list);
}

#[tokio::test]
async fn a_hook_may_refuse_a_connection_or_a_session() {
    let refuse = || Err(RpcError::invalid_request("closed on Mondays"));
    for over in TRANSPORTS {
        for revision in ALL {
            let closed = server().on_open(move |_| refuse());
            let no_sessions = server().on_session(move |_| refuse());
            for (server, refuses) in [(closed, true), (no_sessions, revision != R5)] {
                let connected = soon(connect(&server, over, revision)).await;
                let connected = match connected {
                    // A stateless client of a pipe is told with its first request.
                    Ok(client) => client.tools().await.map(drop),
                    Err(error) => Err(error),
                };
                let error = connected.err().map(|error| error.to_string()).unwrap_or_default();
                let reason = error.contains("closed on Mondays") || (revision == R1 && error.contains("403"));
                assert_eq!(reason, refuses, "{over:?} {revision}: {error}");
            }
        }
    }
}

/// A request outside of a session belongs to no connection: who decides about it is asked, who only counts is not.
#[tokio::test]
async fn a_hook_that_decides_is_asked_about_requests_without_a_session() {
    let counted = Arc::new(Mutex::new(Vec::new()));
    let (opened, closed) = (counted.clone(), counted.clone());
    let server = server()
        .on_open(move |_| opened.lock().unwrap().push("open"))
        .on_close(move |_, _| closed.lock().unwrap().push("close"))
        .on_open(|opened: &Opened| match opened.principal() {
            Some("ann") => Ok(()),
            _ => Err(RpcError::invalid_request("log in first")),
        });
    let by_header = |head: &http::request::Parts| Some(head.headers.get("x-user")?.to_str().ok()?.to_owned());
    let http = server.http().unwrap().sessionless().principal(by_header);
    let wire = Wire::new(&http);
    let greet = || json!({"name": "greet", "arguments": {"name": "Ann"}});
    for (user, text) in [("ann", "Hello, Ann!"), ("eve", "log in first")] {
        let modern = wire.with("x-user", user);
        let mut answer = modern.modern(1, "tools/call", greet(), json!({})).await;
        let answer = answer.result().await.to_string();
        assert!(answer.contains(text), "{user}: {answer}");
        let mut discovered = modern.modern(2, "server/discover", json!({}), json!({})).await;
        assert_eq!(discovered.result().await.to_string().contains("log in first"), user == "eve");
        let old = wire.with("x-user", user).with("mcp-protocol-version", R4);
        let mut answer = old.call(3, "tools/call", greet()).await;
        let answer = answer.result().await.to_string();
        assert!(answer.contains(text), "{user}: {answer}");
    }
    assert!(counted.lock().unwrap().is_empty(), "{counted:?}");
}

#[tokio::test]
async fn a_subscription_that_a_layer_redirects_needs_the_rights_of_its_new_resource() {
    let redirect = |cx: Cx, next: Next| async move {
        let cx = match cx.method() {
            "resources/subscribe" => {
                let params = RawObject::from_serialize(&json!({"uri": "vault://1"})).unwrap();
                cx.with_params(params)
            }
            "subscriptions/listen" => {
                let mut params: serde_json::Value = serde_json::from_str(cx.params().as_str()).unwrap();
                if params["notifications"].get("resourceSubscriptions").is_some() {
                    params["notifications"]["resourceSubscriptions"] = json!(["vault://1"]);
                }
                cx.with_params(RawObject::from_serialize(&params).unwrap())
            }
            _ => cx,
        };
        next.run(cx).await
    };
    let vault = resource("vault://1", "vault", || async { "gold" }).requires(["gold"]);
    let server = server().resource(vault).layer(&around(redirect));
    for revision in ALL {
        let nobody = Raw::known(&server, Caller::new());
        let mut nobody = eras::Client::over(nobody, revision, json!({})).await;
        let mut user = eras::Client::over(Raw::known(&server, Caller::local()), revision, json!({})).await;
        let (method, params) = match revision {
            R5 => ("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": ["note://1"]}})),
            _ => ("resources/subscribe", json!({"uri": "note://1"})),
        };
        let refused = nobody.call(method, params.clone()).await;
        let reason = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{revision}: {refused}"));
        assert!(reason.contains("`vault://1` needs more than the caller may"), "{reason}");
        if revision == R5 {
            user.send(method, params).await;
            assert_eq!(user.receive().await["method"], "notifications/subscriptions/acknowledged");
        } else {
            let accepted = user.call(method, params).await;
            assert!(accepted["result"].is_object(), "{revision}: {accepted}");
        }
        let over_http = soon(connect(&server, Over::Http, revision)).await.unwrap();
        let error = soon(over_http.subscribe("note://1")).await.unwrap_err().to_string();
        assert!(error.contains("`vault://1` needs more than the caller may"), "{revision}: {error}");
    }
}

#[tokio::test]
async fn a_layer_learns_what_a_completion_and_a_prompt_address() {
    let log = Log::default();
    let typed = |_: Partial| async { vec!["x"] };
    let server = server()
        .tool_completion()
        .prompt(prompt("plan", || async { "" }).optional("from", "Where.").complete("from", typed))
        .template(template("note://{id}", "note", || async { "" }).complete("id", typed));
    let server = noting(server, &log);
    for revision in [R4, R5] {
        let client = connect(&server, Over::Pipe, revision).await.unwrap();
        client.get_prompt("plan", ()).await.unwrap();
        let tool = json!({"type": "ref/tool", "name": "greet"});
        let unknown: CompletionReference = serde_json::from_value(json!({"type": "ref/later"})).unwrap();
        for (reference, argument) in [
            (CompletionReference::Prompt(PromptReference::new("plan")), "from"),
            (CompletionReference::Resource(ResourceReference::new("note://{id}")), "id"),
            (serde_json::from_value(tool).unwrap(), "name"),
        ] {
            client.complete(reference, argument, "", []).await.unwrap();
        }
        client.complete(unknown, "x", "", []).await.unwrap_err();
        let seen = std::mem::take(&mut *log.lock().unwrap());
        let seen: Vec<_> = seen.iter().filter(|line| !line.starts_with("notifications/")).skip(1).collect();
        assert_eq!(
            seen,
            [
                "prompts/get plan",
                "completion/complete plan",
                "completion/complete note://{id}",
                "completion/complete greet",
                "completion/complete",
            ]
        );
    }
}
