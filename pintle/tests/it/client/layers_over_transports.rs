//! Layers of a client see what layers of the server see, on every transport and in both eras.

use std::sync::{Arc, Mutex};

use pintle::{
    Error, Server,
    client::{self, Direction},
    server::{self, Outcome, resource, tool},
    types::{RawObject, schema::LoggingLevel},
};

use crate::support::{
    eras::{ALL, R5},
    http_server::{client, soon},
    over::TRANSPORTS,
};

type Log = Arc<Mutex<Vec<String>>>;

fn server() -> Server {
    Server::new("s", "0")
        .logging()
        .may_change()
        .resource(resource("note://1", "one", || async { "1" }))
        .prompt(server::prompt("hello", || async { "Say hello." }))
        .tool(tool("greet", || async { "Hello!" }))
}

/// Writes down what clients send.
fn noting_server(server: Server, log: &Log) -> Server {
    let log = log.clone();
    server.layer(&server::around(move |cx: server::Cx, next: server::Next| {
        log.lock().unwrap().push(cx.method().to_owned());
        next.run(cx)
    }))
}

/// Writes down what the client sends.
fn noting(client: pintle::Client, log: &Log) -> pintle::Client {
    let log = log.clone();
    client.layer(&client::around(move |cx: client::Cx, next: client::Next| {
        if cx.direction() == Direction::Out {
            log.lock().unwrap().push(cx.method().to_owned());
        }
        next.run(cx)
    }))
}

/// Waits until both logs have the same lines, in any order.
async fn agree(sent: &Log, received: &Log) -> (Vec<String>, Vec<String>) {
    let sorted = |log: &Log| {
        let mut lines = log.lock().unwrap().clone();
        lines.retain(|line| line != "notifications/cancelled");
        lines.sort();
        // Over HTTP a handshake may be refused before the server sees it, and is sent again to another endpoint.
        lines.dedup();
        lines
    };
    for _ in 0..10_000 {
        if sorted(sent) == sorted(received) {
            break;
        }
        tokio::task::yield_now().await;
    }
    (sorted(sent), sorted(received))
}

#[tokio::test]
async fn what_the_client_sends_is_what_the_server_receives() {
    for over in TRANSPORTS {
        for revision in ALL {
            let (sent, received) = (Log::default(), Log::default());
            let server = noting_server(server(), &received);
            let client = noting(client(revision, "c").log_level(LoggingLevel::Error), &sent);
            let connection = soon(over.connect(&client, &server, revision)).await.unwrap();
            connection.call_tool("greet", ()).await.unwrap();
            connection.tools().await.unwrap();
            connection.resource_templates().await.unwrap();
            connection.read_resource("note://1").await.unwrap();
            connection.get_prompt("hello", ()).await.unwrap();
            connection.ping().await.unwrap();
            connection.set_log_level(LoggingLevel::Info).await.unwrap();
            let _changes = soon(connection.changes()).await.unwrap();
            soon(connection.subscribe("note://1")).await.unwrap();
            soon(connection.unsubscribe("note://1")).await.unwrap();
            connection.notify("notifications/acme", None).await.unwrap();
            connection.notify_roots_changed().await.unwrap();
            let (sent, received) = agree(&sent, &received).await;
            assert_eq!(sent, received, "{over:?} {revision}");
            let count = if revision == R5 { 8 } else { 13 };
            assert!(sent.len() >= count, "{over:?} {revision}: {sent:?}");
        }
    }
}

#[tokio::test]
async fn a_layer_of_the_client_may_refuse_whatever_the_client_sends() {
    for over in TRANSPORTS {
        for revision in ALL {
            let methods: &[&str] = match revision {
                R5 => &["tools/call", "tools/list", "subscriptions/listen"],
                _ => &[
                    "tools/call",
                    "tools/list",
                    "ping",
                    "logging/setLevel",
                    "resources/subscribe",
                    "resources/unsubscribe",
                ],
            };
            for method in methods {
                let method = *method;
                let received = Log::default();
                let server = noting_server(server(), &received);
                let client = client(revision, "c").layer(&client::around(
                    move |cx: client::Cx, next: client::Next| async move {
                        if cx.method() == method {
                            return Err(Error::Refused("not today".into()));
                        }
                        next.run(cx).await
                    },
                ));
                let client = soon(over.connect(&client, &server, revision)).await.unwrap();
                let error = match method {
                    "tools/call" => client.call_tool("greet", ()).await.map(drop),
                    "tools/list" => client.tools().await.map(drop),
                    "ping" => client.ping().await,
                    "logging/setLevel" => client.set_log_level(LoggingLevel::Info).await,
                    "resources/subscribe" => client.subscribe("note://1").await,
                    "subscriptions/listen" => client.changes().await.map(drop),
                    _ => client.unsubscribe("note://1").await,
                };
                assert_eq!(error.unwrap_err().to_string(), "not today", "{over:?} {revision} {method}");
                assert!(!received.lock().unwrap().iter().any(|line| line == method), "{method}");
                // The connection is usable.
                let other = if method == "tools/list" { "prompts/list" } else { "tools/list" };
                client.call_raw(other, RawObject::empty()).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_gateway_of_layers_composes() {
    // The layers of a client and those of a server in one program have the same words.
    let server = server().layer(&server::around(|cx: server::Cx, next: server::Next| async move {
        match cx.meta().get("traceparent") {
            Some(_) => next.run(cx).await,
            None if cx.method() == "tools/call" => {
                Outcome::Failed(pintle::types::RpcError::invalid_request("no trace"))
            }
            None => next.run(cx).await,
        }
    }));
    for over in TRANSPORTS {
        for revision in ALL {
            let client = client(revision, "c").layer(&client::around(
                |cx: client::Cx, next: client::Next| async move {
                    let mut meta = pintle::types::Meta::new();
                    meta.insert("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
                    next.run(if cx.is_notification() { cx } else { cx.with_meta(meta) }).await
                },
            ));
            let connection = soon(over.connect(&client, &server, revision)).await.unwrap();
            let result = connection.call_tool("greet", ()).await.unwrap();
            assert_eq!(result.text(), "Hello!", "{over:?} {revision}");
        }
    }
}
