//! The durations of requests, and how they ended.

use opentelemetry::trace::SpanKind;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use pintle::{
    Client, Server,
    server::{Cx, Outcome, Target, around, resource, tool},
    types::{ErrorCode, RawObject, RpcError},
};

use crate::collected::{Collected, attribute};

/// Returns the attributes and the counts of a histogram.
fn points(collected: &Collected, name: &str) -> Vec<(String, u64)> {
    collected.meters.force_flush().unwrap();
    let exported = collected.metrics.get_finished_metrics().unwrap();
    let scopes = exported.last().unwrap().scope_metrics();
    let metric = scopes.flat_map(|scope| scope.metrics()).find(|metric| metric.name() == name).unwrap();
    assert_eq!(metric.unit(), "s");
    let AggregatedMetrics::F64(MetricData::Histogram(histogram)) = metric.data() else {
        panic!("`{name}` is no histogram of numbers")
    };
    let mut points: Vec<_> = histogram
        .data_points()
        .map(|point| {
            assert_eq!(point.bounds().collect::<Vec<_>>(), pintle_otel::names::BOUNDARIES);
            let mut pairs: Vec<_> =
                point.attributes().map(|pair| format!("{}={}", pair.key, pair.value)).collect();
            pairs.sort();
            (pairs.join(" "), point.count())
        })
        .collect();
    points.sort();
    points
}

#[tokio::test]
async fn requests_are_counted_by_method_tool_and_error_on_both_sides() {
    let collected = Collected::new();
    let server = Server::new("s", "1")
        .tool(tool("ok", || async { "fine" }))
        .tool(tool("bad", || async { Err::<String, _>("no") }))
        .resource(resource("note:///a?key=secret", "a", || async { "a" }));
    let server = collected.telemetry().observe_server(server);
    let client = collected.telemetry().observe_client(Client::new("c", "1"));
    let connection = client.connect(server.in_process().unwrap()).await.unwrap();
    for _ in 0..3 {
        connection.call_tool("ok", ()).await.unwrap();
    }
    connection.call_tool("bad", ()).await.unwrap();
    // Names that no tool has make no series.
    for name in ["one", "two", "three"] {
        connection.call_tool(name, ()).await.unwrap_err();
    }
    for name in ["example.com/one", "example.com/two"] {
        connection.request::<_, serde_json::Value>(name, serde_json::json!({})).await.unwrap_err();
    }
    connection.read_resource("note:///a?key=secret").await.unwrap();
    for side in [pintle_otel::names::CLIENT_DURATION, pintle_otel::names::SERVER_DURATION] {
        let points = points(&collected, side);
        let count = |wanted: &str| {
            let found: Vec<_> = points.iter().filter(|(pairs, _)| pairs.contains(wanted)).collect();
            assert_eq!(found.len(), 1, "{wanted}: {points:?}");
            found[0].1
        };
        assert_eq!(count("gen_ai.tool.name=ok mcp.method.name=tools/call"), 3, "{side}");
        assert_eq!(count("error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=bad"), 1);
        assert_eq!(count("error.type=-32602"), 3);
        assert_eq!(count("mcp.method.name=resources/read"), 1);
        assert_eq!(count("error.type=-32601 mcp.method.name=_OTHER"), 2);
        assert!(
            !points.iter().any(|(pairs, _)| pairs.contains("secret") || pairs.contains("two")),
            "{points:?}"
        );
    }
    for kind in [SpanKind::Client, SpanKind::Server] {
        let unknown = collected.only(&kind, "tools/call two");
        assert_eq!(attribute(&unknown, "rpc.response.status_code").as_deref(), Some("-32602"));
        let read = collected.only(&kind, "resources/read");
        assert!(!attribute(&read, "mcp.resource.uri").unwrap().contains("secret"));
    }
    assert_eq!(collected.all(&SpanKind::Server, "server/discover").len(), 1, "{:?}", collected.names());
}

#[tokio::test]
async fn a_call_that_is_dropped_was_cancelled() {
    let collected = Collected::new();
    let (started, mut has_started) = tokio::sync::mpsc::channel(1);
    let wait = move |_: Cx| {
        let started = started.clone();
        async move {
            let _ = started.send(()).await;
            std::future::pending::<String>().await
        }
    };
    let server = collected.telemetry().observe_server(Server::new("s", "1").tool(tool("wait", wait)));
    let client = collected.telemetry().observe_client(Client::new("c", "1"));
    let connection = client.connect(server.in_process().unwrap()).await.unwrap();
    tokio::select! {
        _ = connection.call_tool("wait", ()) => panic!("it never ends"),
        _ = has_started.recv() => {}
    }
    connection.ping().await.unwrap();
    for kind in [SpanKind::Client, SpanKind::Server] {
        let cancelled = collected.only(&kind, "tools/call wait");
        assert_eq!(attribute(&cancelled, "error.type").as_deref(), Some("cancelled"));
    }
}

/// A server behind another one may answer whatever it is asked, with any code.
#[tokio::test]
async fn names_and_codes_that_peers_choose_make_a_bounded_number_of_series() {
    let collected = Collected::new();
    let answer = around(|cx: Cx, next| async move {
        let number = match cx.target() {
            Some(Target::Tool(name)) => name.strip_prefix('t').and_then(|number| number.parse::<i32>().ok()),
            _ => None,
        };
        match number {
            Some(number) if number % 2 == 0 => Outcome::Failed(RpcError::new(ErrorCode(number), "no")),
            Some(_) => {
                Outcome::Complete(r#"{"content":[],"isError":true}"#.parse::<RawObject>().unwrap().into())
            }
            None => next.run(cx).await,
        }
    });
    let server = Server::new("s", "1").tool(tool("ok", || async { "fine" })).layer(&answer);
    let server = collected.telemetry().observe_server(server);
    let client = collected.telemetry().observe_client(Client::new("c", "1"));
    let connection = client.connect(server.in_process().unwrap()).await.unwrap();
    for number in 0..300 {
        let _ = connection.call_tool(&format!("t{number}"), ()).await;
    }
    connection.call_tool("ok", ()).await.unwrap();
    for side in [pintle_otel::names::CLIENT_DURATION, pintle_otel::names::SERVER_DURATION] {
        let points = points(&collected, side);
        assert!(points.len() < 100, "{}", points.len());
        let named = points.iter().filter(|(pairs, _)| pairs.contains("gen_ai.tool.name=ok"));
        assert_eq!(named.count(), 1, "others are still told apart");
    }
}
