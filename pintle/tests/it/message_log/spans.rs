//! The spans of requests, in both roles.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    sync::{Arc, Mutex},
};

use pintle::{
    Client, Server,
    client::{Answer, Mode},
    server::{Cx, Next, ToolError, around, resource, tool},
    types::{RawObject, schema::LoggingLevel},
};
use serde_json::json;
use tracing::{
    Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    layer::{Context, Layer, SubscriberExt as _},
    registry::LookupSpan,
};

use crate::support::line_client::Raw;
#[cfg(all(feature = "http-client", feature = "http-server"))]
use crate::support::over::{Over, TRANSPORTS};

type Fields = BTreeMap<String, String>;

/// Collects the fields of all spans, in the order in which they end.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<Fields>>>);

struct Visitor<'a>(&'a mut Fields);

impl Visit for Visitor<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let span = cx.span(id).unwrap();
        let mut fields = Fields::new();
        fields.insert("target".to_owned(), span.metadata().target().to_owned());
        let parent =
            span.parent().and_then(|parent| parent.extensions().get::<Fields>()?.get("otel.name").cloned());
        fields.insert("parent".to_owned(), parent.unwrap_or_default());
        attributes.record(&mut Visitor(&mut fields));
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, cx: Context<'_, S>) {
        let span = cx.span(id).unwrap();
        values.record(&mut Visitor(span.extensions_mut().get_mut::<Fields>().unwrap()));
    }

    fn on_close(&self, id: Id, cx: Context<'_, S>) {
        let span = cx.span(&id).unwrap();
        let fields = span.extensions_mut().remove::<Fields>().unwrap();
        if fields["target"] == "pintle::request" {
            self.0.lock().unwrap().push(fields);
        }
    }
}

/// The fields of the one span of a kind and name.
fn only(spans: &Spans, kind: &str, name: &str) -> Fields {
    let spans = spans.0.lock().unwrap();
    let mut of = spans.iter().filter(|span| span["otel.kind"] == kind && span["otel.name"] == name);
    let found = of.next().unwrap_or_else(|| panic!("no {kind} {name}: {spans:?}"));
    assert!(of.next().is_none(), "{spans:?}");
    found.clone()
}

#[tokio::test]
async fn every_request_has_a_span_on_both_sides() {
    for (mode, version) in [(Mode::Modern, "2026-07-28"), (Mode::Legacy, "2025-11-25")] {
        let spans = Spans::default();
        let _subscribed =
            crate::support::subscriber::set_subscriber(tracing_subscriber::registry().with(spans.clone()));
        let greet = |cx: Cx| async move {
            cx.elicit::<()>("sure", "Sure?").await?;
            Ok::<_, ToolError>("hello")
        };
        let server = Server::new("s", "1")
            .tool(tool("greet", greet))
            .tool(tool("fail", || async { Err::<String, _>("no") }));
        let client = Client::new("c", "1").mode(mode).on_elicit(|_| async { Answer::accept(json!({})) });
        let connection = client.connect(server.in_process().unwrap()).await.unwrap();
        let trace = json!({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"});
        let params = RawObject::from_serialize(&json!({"_meta": trace})).unwrap();
        connection.call_raw("tools/list", params).await.unwrap();
        connection.call_tool("fail", ()).await.unwrap();
        connection.call_tool("none", ()).await.unwrap_err();
        for kind in ["client", "server"] {
            let listed = only(&spans, kind, "tools/list");
            assert_eq!(listed["mcp.method.name"], "tools/list");
            assert_eq!(listed["mcp.protocol.version"], version);
            assert!(listed["traceparent"].starts_with("00-0af7"), "{listed:?}");
            assert!(!listed.contains_key("error.type") && !listed.contains_key("gen_ai.tool.name"));
            let failed = only(&spans, kind, "tools/call fail");
            assert_eq!((&*failed["gen_ai.tool.name"], &*failed["error.type"]), ("fail", "tool_error"));
            assert_eq!(failed["gen_ai.operation.name"], "execute_tool");
            assert_eq!(failed["otel.status_code"], "ERROR");
            let none = only(&spans, kind, "tools/call none");
            assert_eq!((&*none["error.type"], &*none["rpc.response.status_code"]), ("-32602", "-32602"));
        }
        assert!(only(&spans, "server", "tools/list").contains_key("jsonrpc.request.id"));

        spans.0.lock().unwrap().clear();
        assert_eq!(connection.call_tool("greet", ()).await.unwrap().text(), "hello");
        let seen: Vec<_> = spans
            .0
            .lock()
            .unwrap()
            .iter()
            .map(|span| format!("{} {}", span["otel.kind"], span["otel.name"]))
            .collect();
        let count = |wanted: &str| seen.iter().filter(|span| *span == wanted).count();
        match mode {
            // A question is a request of its own in a session, and another round without one.
            Mode::Legacy => {
                assert_eq!(
                    (count("server tools/call greet"), count("client tools/call greet")),
                    (1, 1),
                    "{seen:?}"
                );
                let asked = only(&spans, "client", "elicitation/create");
                assert_eq!(asked["parent"], "tools/call greet");
                only(&spans, "server", "elicitation/create");
            }
            _ => {
                assert_eq!(
                    (count("server tools/call greet"), count("client tools/call greet")),
                    (2, 2),
                    "{seen:?}"
                );
            }
        }
        connection.close().await;
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_is_recorded_as_such() {
    let spans = Spans::default();
    let _subscribed =
        crate::support::subscriber::set_subscriber(tracing_subscriber::registry().with(spans.clone()));
    let (started, mut has_started) = tokio::sync::mpsc::channel(1);
    let wait = move || {
        let started = started.clone();
        async move {
            let _ = started.send(()).await;
            std::future::pending::<String>().await
        }
    };
    let server = Server::new("s", "1").tool(tool("wait", wait));
    let connection = Client::new("c", "1").connect(server.in_process().unwrap()).await.unwrap();
    tokio::select! {
        _ = connection.call_tool("wait", ()) => panic!("it never ends"),
        _ = has_started.recv() => {}
    }
    connection.ping().await.unwrap();
    assert_eq!(only(&spans, "server", "tools/call wait")["error.type"], "cancelled");
}

/// The kinds and names of all spans that have ended, sorted, without duplicates.
fn names(spans: &Spans) -> BTreeSet<String> {
    let spans = spans.0.lock().unwrap();
    spans.iter().map(|span| format!("{} {}", span["otel.kind"], span["otel.name"])).collect()
}

/// What a client of either era causes besides its calls, over a pipe or HTTP.
#[cfg(all(feature = "http-client", feature = "http-server"))]
async fn protocol_requests(mode: Mode, over: Over, layered: bool) {
    let spans = Spans::default();
    let _subscribed =
        crate::support::subscriber::set_subscriber(tracing_subscriber::registry().with(spans.clone()));
    let mut server = Server::new("s", "1")
        .tool(tool("greet", || async { "hello" }))
        .resource(resource("note:///a", "a", || async { "a" }))
        .logging();
    if layered {
        server = server.layer(&around(|cx: Cx, next: Next| next.run(cx)));
    }
    let client = Client::new("c", "1").mode(mode);
    let modern = matches!(mode, Mode::Modern);
    let version = if modern { "2026-07-28" } else { "2025-11-25" };
    let connection = over.connect(&client, &server, version).await.unwrap();
    connection.subscribe("note:///a").await.unwrap();
    if !modern {
        connection.ping().await.unwrap();
        connection.set_log_level(LoggingLevel::Info).await.unwrap();
        // The server asks too.
        server.sessions()[0].ping().await.unwrap();
    }
    connection.unsubscribe("note:///a").await.unwrap();
    connection.call_raw("no/such/method", RawObject::empty()).await.unwrap_err();
    connection.close().await;
    let wanted: &[&str] = match mode {
        Mode::Modern => &["server/discover", "subscriptions/listen"],
        _ => &["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"],
    };
    let context = format!("{mode:?} over {over:?}, layers: {layered}");
    for kind in ["client", "server"] {
        for name in wanted {
            let names = names(&spans);
            assert!(names.contains(&format!("{kind} {name}")), "{context}: no {kind} {name}: {names:?}");
        }
    }
    // One of the client, and one of the server: both directions of `ping` have both.
    for name in wanted.iter().filter(|name| **name != "ping") {
        only(&spans, "client", name);
        let span = only(&spans, "server", name);
        assert!(!span.contains_key("error.type"), "{context}: {span:?}");
        assert!(span.contains_key("jsonrpc.request.id"), "{context}: {span:?}");
        if *name != "initialize" {
            assert_eq!(span["mcp.protocol.version"], version, "{context}: {span:?}");
        }
    }
    if !modern {
        assert_eq!(
            spans.0.lock().unwrap().iter().filter(|span| span["otel.name"] == "ping").count(),
            4,
            "{context}"
        );
    }
    // A name that the peer invents is in no name of a span.
    let refused = only(&spans, "server", "_OTHER");
    assert_eq!(refused["error.type"], "-32601", "{context}");
}

#[cfg(all(feature = "http-client", feature = "http-server"))]
#[tokio::test]
async fn requests_that_no_handler_answers_have_spans_on_both_sides() {
    for mode in [Mode::Modern, Mode::Legacy] {
        for over in TRANSPORTS {
            for layered in [false, true] {
                protocol_requests(mode, over, layered).await;
            }
        }
    }
}

#[tokio::test]
async fn each_request_of_a_batch_has_one_span() {
    let spans = Spans::default();
    let _subscribed =
        crate::support::subscriber::set_subscriber(tracing_subscriber::registry().with(spans.clone()));
    let server = Server::new("s", "1").tool(tool("greet", || async { "hello" }));
    let mut raw = Raw::new(&server);
    raw.open("2025-03-26", json!({})).await;
    raw.send(json!([
        {"jsonrpc": "2.0", "id": 8, "method": "ping"},
        {"jsonrpc": "2.0", "id": 9, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 10, "method": "initialize", "params": {}},
    ]))
    .await;
    raw.recv().await;
    assert!(!only(&spans, "server", "ping").contains_key("error.type"));
    only(&spans, "server", "tools/list");
    let initialized: Vec<_> =
        spans.0.lock().unwrap().iter().filter(|span| span["otel.name"] == "initialize").cloned().collect();
    assert_eq!(initialized.len(), 2, "{initialized:?}");
}
