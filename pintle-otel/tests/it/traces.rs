//! One trace across all parties of a call.

use std::time::Duration;

use opentelemetry::{
    Context, KeyValue,
    baggage::BaggageExt as _,
    trace::{FutureExt as _, SpanKind, TraceContextExt as _, Tracer as _, TracerProvider as _},
};
use pintle::{
    Client, Connection, Server,
    client::{Answer, http::Http},
    server::{Cx, ToolError, resource, tool},
    types::RawObject,
};
use pintle_relay::Relay;
use pintle_tasks::{TaskPolling, Tasks};
use serde_json::{Value, json};

use crate::collected::{Collected, attribute, ids, parent};

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const CALL: &str = "tools/call book";

async fn book(cx: Cx) -> Result<String, ToolError> {
    let agreed = cx.elicit::<()>("agreed", "For four?").await?.accepted().is_some();
    Ok(format!("booked: {agreed}"))
}

fn tables() -> Server {
    Server::new("tables", "1").tool(tool("book", book)).tool(tool("look", |cx: Cx| async move {
        let context = Context::current();
        let table = context.baggage().get("table").map_or("none".into(), ToString::to_string);
        format!("{} {table}", cx.meta().get("baggage").and_then(Value::as_str).unwrap_or_default())
    }))
}

fn client(revision: &str) -> Client {
    Client::new("assistant", "1")
        .revisions([revision.parse().unwrap()])
        .on_elicit(|_| async { Answer::accept(json!({})) })
}

/// Calls a tool below a span of the program. Returns the context of that span, and the text of the result: `look` says which baggage its
/// call brings, and which its handler has.
async fn call(collected: &Collected, tables: &Connection, name: &str) -> (Context, String) {
    let tracer = collected.tracers.tracer("test");
    let root = Context::new().with_span(tracer.start("root"));
    let root = root.with_baggage([KeyValue::new("table", "7")]);
    let result = tables.call_tool(name, ()).with_context(root.clone()).await.unwrap();
    root.span().end();
    (root, result.text())
}

#[tokio::test]
async fn a_call_is_one_trace_in_every_revision_on_both_transports() {
    for revision in REVISIONS {
        // The oldest revision has another transport over HTTP.
        for http in [false, true].into_iter().filter(|http| !http || revision != REVISIONS[0]) {
            let collected = Collected::new();
            let server = collected.telemetry().observe_server(tables());
            let client = collected.telemetry().observe_client(client(revision));
            let serving = server.serve_http("127.0.0.1:0").await.unwrap();
            let tables = match http {
                true => {
                    let url = format!("http://{}/mcp", serving.address());
                    client.connect(Http::new(&url).unwrap()).await.unwrap()
                }
                false => client.connect(server.in_process().unwrap()).await.unwrap(),
            };
            let (root, seen) = call(&collected, &tables, "look").await;
            assert_eq!(seen, "table=7 7", "{revision} {http}");
            let sent = collected.only(&SpanKind::Client, "tools/call look");
            let received = collected.only(&SpanKind::Server, "tools/call look");
            assert_eq!(parent(&sent).1, root.span().span_context().span_id(), "{revision} {http}");
            assert_eq!(parent(&received), ids(&sent), "{revision} {http}");
            assert_eq!(attribute(&received, "mcp.protocol.version").as_deref(), Some(revision));
            assert_eq!(attribute(&received, "gen_ai.operation.name").as_deref(), Some("execute_tool"));
            assert_eq!(attribute(&received, "network.transport").as_deref(), http.then_some("tcp"));
            assert!(attribute(&received, "jsonrpc.request.id").is_some());
            assert!(!received.attributes.iter().any(|pair| pair.key.as_str().contains("table")));
            tables.close().await;
        }
    }
}

/// A question in a session is a request with two spans of its own; without a session the call is sent again.
#[tokio::test]
async fn questions_are_part_of_the_trace_in_both_eras() {
    for (revision, http) in [
        ("2025-06-18", false),
        ("2025-11-25", false),
        ("2025-11-25", true),
        ("2026-07-28", false),
        ("2026-07-28", true),
    ] {
        let collected = Collected::new();
        let server = collected.telemetry().observe_server(tables());
        let client = collected.telemetry().observe_client(client(revision));
        let serving = server.serve_http("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", serving.address());
        let tables = match http {
            true => client.connect(Http::new(&url).unwrap()).await.unwrap(),
            false => client.connect(server.in_process().unwrap()).await.unwrap(),
        };
        let (root, _) = call(&collected, &tables, "book").await;
        let sent = collected.only(&SpanKind::Client, CALL);
        assert_eq!(parent(&sent).1, root.span().span_context().span_id());
        let received = collected.all(&SpanKind::Server, CALL);
        assert!(received.iter().all(|span| parent(span) == ids(&sent)), "{revision}");
        assert!(received.iter().all(|span| attribute(span, "error.type").is_none()), "{received:?}");
        let answered = collected.only(&SpanKind::Server, "elicitation/create");
        if revision == "2026-07-28" {
            assert_eq!(received.len(), 2);
            assert_eq!(parent(&answered), ids(&sent));
        } else {
            assert_eq!(received.len(), 1);
            let asked = collected.only(&SpanKind::Client, "elicitation/create");
            assert_eq!(parent(&asked), ids(&received[0]), "{revision}");
            assert_eq!(parent(&answered), ids(&asked), "{revision}");
        }
        tables.close().await;
    }
}

/// A notification of a client is received in the trace that it was sent in; what a server sends has a span where it is received.
#[tokio::test]
async fn notifications_have_spans_in_both_directions() {
    for (revision, http) in [("2025-11-25", false), ("2025-11-25", true), ("2026-07-28", false)] {
        let collected = Collected::new();
        let (arrived, mut notifications) = tokio::sync::mpsc::channel(1);
        let server = Server::new("tables", "1")
            .tool(tool("seat", |cx: Cx| async move {
                cx.progress(0.5, None).await;
                "seated"
            }))
            .on_notification("example.com/waved", move |_, _| {
                let arrived = arrived.clone();
                async move { arrived.send(()).await.unwrap() }
            });
        let server = collected.telemetry().observe_server(server);
        let client = collected.telemetry().observe_client(client(revision));
        let serving = server.serve_http("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", serving.address());
        let tables = match http {
            true => client.connect(Http::new(&url).unwrap()).await.unwrap(),
            false => client.connect(server.in_process().unwrap()).await.unwrap(),
        };
        let root = Context::new().with_span(collected.tracers.tracer("test").start("root"));
        let params = RawObject::from_serialize(&json!({"hands": 2})).unwrap();
        let waving = tables.notify("example.com/waved", Some(params));
        waving.with_context(root.clone()).await.unwrap();
        notifications.recv().await.unwrap();
        // The span ends after its handler; the answer to a later request comes after that.
        let call = tables.call("seat").on_progress(|_| {}).send().with_context(root.clone());
        call.await.unwrap();
        let sent = collected.only(&SpanKind::Client, "example.com/waved");
        assert_eq!(parent(&sent).1, root.span().span_context().span_id(), "{revision} {http}");
        let received = collected.only(&SpanKind::Server, "_OTHER");
        assert_eq!(parent(&received), ids(&sent), "{revision} {http}");
        let named = (revision != "2026-07-28").then_some(revision);
        assert_eq!(attribute(&received, "mcp.protocol.version").as_deref(), named, "a session has one");
        assert_eq!(attribute(&received, "error.type"), None, "{revision} {http}");
        let progress = collected.only(&SpanKind::Server, "notifications/progress");
        assert_eq!(attribute(&progress, "mcp.protocol.version").as_deref(), Some(revision));
        if revision != "2026-07-28" {
            collected.only(&SpanKind::Client, "notifications/initialized");
        }
        tables.close().await;
    }
}

/// The request of a task ends with its response. The work goes on in a trace of its own, which links to the request.
#[tokio::test]
async fn the_work_of_a_task_links_to_its_request() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let collected = Collected::new();
        let server =
            Server::new("tables", "1").with(Tasks::new().poll_interval(Duration::from_millis(1))).tool(
                tool("book", |cx: Cx| async move {
                    cx.detach().await;
                    book(cx).await
                })
                .task(pintle::types::schema::TaskSupport::Optional),
            );
        let server = collected.telemetry().observe_server(server);
        let polling = TaskPolling::new().intervals(Duration::from_millis(1), Duration::from_millis(1));
        let client = collected.telemetry().observe_client(client(revision).with(polling));
        let tables = client.connect(server.in_process().unwrap()).await.unwrap();
        call(&collected, &tables, "book").await;
        let (sent, received) =
            (collected.only(&SpanKind::Client, CALL), collected.only(&SpanKind::Server, CALL));
        assert_eq!(parent(&received), ids(&sent), "{revision}");
        let work = collected.only(&SpanKind::Internal, CALL);
        assert_ne!(ids(&work).0, ids(&received).0, "{revision}");
        let linked: Vec<_> = work.links.iter().map(|link| link.span_context.span_id()).collect();
        assert_eq!(linked, [ids(&received).1], "{revision}");
        assert_eq!(attribute(&work, "error.type"), None, "{revision}");
        // What the client sends to follow the task is part of its call.
        let polls = collected.all(&SpanKind::Client, "tasks/get");
        assert!(!polls.is_empty() && polls.iter().all(|poll| parent(poll) == ids(&sent)), "{revision}");
        tables.close().await;
    }
}

/// A relay adds its spans to the trace; without telemetry it passes the context on.
#[tokio::test]
async fn a_relay_is_in_the_trace_in_every_pairing_of_eras() {
    for (front_revision, behind_revision) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-11-25", "2026-07-28"),
        ("2026-07-28", "2025-11-25"),
        ("2026-07-28", "2026-07-28"),
    ] {
        for observed in [true, false] {
            let (collected, middle) = (Collected::new(), Collected::new());
            let behind = collected.telemetry().observe_server(tables());
            let mut upstream = Client::new("front", "1").revisions([behind_revision.parse().unwrap()]);
            if observed {
                upstream = middle.telemetry().observe_client(upstream);
            }
            let relay = Relay::connect(upstream, move || {
                let transport = behind.in_process().map_err(std::io::Error::other);
                async { transport }
            });
            let mut front = Server::new("front", "1").provider(relay.await.unwrap());
            if observed {
                front = middle.telemetry().observe_server(front);
            }
            let client = collected.telemetry().observe_client(client(front_revision));
            let tables = client.connect(front.in_process().unwrap()).await.unwrap();
            let (_, seen) = call(&collected, &tables, "look").await;
            let shown = format!("{front_revision} to {behind_revision}, observed: {observed}");
            assert_eq!(seen, "table=7 7", "{shown}");
            let sent = collected.only(&SpanKind::Client, "tools/call look");
            let received = collected.only(&SpanKind::Server, "tools/call look");
            if observed {
                let passed = middle.only(&SpanKind::Server, "tools/call look");
                let forwarded = middle.only(&SpanKind::Client, "tools/call look");
                assert_eq!(parent(&passed), ids(&sent), "{shown}");
                assert_eq!(parent(&forwarded), ids(&passed), "{shown}");
                assert_eq!(parent(&received), ids(&forwarded), "{shown}");
            } else {
                assert_eq!(parent(&received), ids(&sent), "{shown}");
            }
            tables.close().await;
        }
    }
}

#[tokio::test]
async fn a_server_for_anyone_links_to_its_callers() {
    let collected = Collected::new();
    let server = collected.telemetry().link_callers().observe_server(tables());
    let client = collected.telemetry().observe_client(client("2026-07-28"));
    let tables = client.connect(server.in_process().unwrap()).await.unwrap();
    let (_, seen) = call(&collected, &tables, "look").await;
    assert_eq!(seen, "table=7 none");
    let sent = collected.only(&SpanKind::Client, "tools/call look");
    let received = collected.only(&SpanKind::Server, "tools/call look");
    assert_ne!(ids(&received).0, ids(&sent).0);
    assert_eq!(received.links.iter().next().unwrap().span_context.span_id(), ids(&sent).1);
}

#[tokio::test]
async fn a_malformed_context_is_ignored() {
    let collected = Collected::new();
    let server = collected.telemetry().observe_server(tables());
    let tables = client("2026-07-28").connect(server.in_process().unwrap()).await.unwrap();
    for parent in ["00-1-2-01", "", "00-00000000000000000000000000000000-00f067aa0ba902b7-01"] {
        let params =
            json!({"name": "look", "arguments": {}, "_meta": {"traceparent": parent, "tracestate": "\u{0}"}});
        tables.call_raw("tools/call", RawObject::from_serialize(&params).unwrap()).await.unwrap();
    }
    let received = collected.all(&SpanKind::Server, "tools/call look");
    assert_eq!(received.len(), 3);
    assert!(received.iter().all(|span| span.parent_span_id == opentelemetry::trace::SpanId::INVALID));
}

#[tokio::test]
async fn a_context_of_any_size_is_kept_within_limits() {
    let collected = Collected::new();
    let server =
        collected.telemetry().observe_server(Server::new("tables", "1").tool(tool("look", || async {
            let context = Context::current();
            let baggage: usize = context
                .baggage()
                .iter()
                .map(|(key, (value, _))| key.as_str().len() + value.as_str().len())
                .sum();
            format!(
                "{} {}",
                baggage <= 8 * 1024,
                context.span().span_context().trace_state().header().len() <= 32 * 514
            )
        })));
    let tables = client("2026-07-28").connect(server.in_process().unwrap()).await.unwrap();
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let pairs: String = (0..20_000).map(|number| format!("k{number}=value,")).collect();
    for long in [pairs, format!("a={}", "b".repeat(1 << 20)), format!("{}=b", "a".repeat(1 << 20))] {
        let meta = json!({"traceparent": parent, "tracestate": long, "baggage": long});
        let params = json!({"name": "look", "arguments": {}, "_meta": meta});
        let seen = tables.call_raw("tools/call", RawObject::from_serialize(&params).unwrap()).await.unwrap();
        assert!(seen.as_str().contains("true true"), "{}", seen.as_str());
    }
}

/// An error names the URI that was asked for.
#[tokio::test]
async fn the_query_of_a_uri_is_in_no_span() {
    let collected = Collected::new();
    let server = tables().resource(resource("notes://a", "a", || async { "text" }));
    let server = collected.telemetry().observe_server(server);
    let client = collected.telemetry().observe_client(client("2026-07-28"));
    let tables = client.connect(server.in_process().unwrap()).await.unwrap();
    let error = tables.read_resource("notes://ann:s3cret@host/a?key=s3cret").await.unwrap_err();
    assert!(error.to_string().contains("s3cret"), "the caller knows it: {error}");
    for kind in [SpanKind::Client, SpanKind::Server] {
        let span = collected.only(&kind, "resources/read");
        let shown = format!("{:?} {:?}", span.status, span.attributes);
        assert!(shown.contains("notes://") && !shown.contains("s3cret"), "{kind:?}: {shown}");
    }
}
