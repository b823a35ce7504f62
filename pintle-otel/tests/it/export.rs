//! The example, with a receiver of OTLP.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use axum::{Router, body::Bytes, extract::State, routing::post};
use serde_json::Value;

type Received = Arc<Mutex<Vec<Value>>>;

async fn receive(State(received): State<Received>, body: Bytes) -> &'static str {
    received.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
    "{}"
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_and_a_client_export_one_trace() {
    let (spans, metrics) = (Received::default(), Received::default());
    let traces = Router::new().route("/v1/traces", post(receive)).with_state(spans.clone());
    let routes = traces.merge(Router::new().route("/v1/metrics", post(receive)).with_state(metrics.clone()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let collector = format!("http://{}", listener.local_addr().unwrap());
    let receiver = tokio::spawn(async move { axum::serve(listener, routes).await });

    let trace = crate::example::run(&collector).await.map_err(|error| error.to_string()).unwrap();

    let mut seen = BTreeSet::new();
    for exported in spans.lock().unwrap().iter() {
        for resource in list(exported, "resourceSpans") {
            let of_service =
                list(&resource["resource"], "attributes").find(|pair| pair["key"] == "service.name");
            let service = of_service.unwrap()["value"]["stringValue"].as_str().unwrap();
            for span in list(resource, "scopeSpans").flat_map(|scope| list(scope, "spans")) {
                if span["traceId"] == *trace {
                    seen.insert(format!("{service} {}", span["name"].as_str().unwrap()));
                }
            }
        }
    }
    for wanted in [
        "assistant plan the evening",
        "assistant tools/call book",
        "assistant elicitation/create",
        "tables tools/call book",
    ] {
        assert!(seen.contains(wanted), "{wanted}: {seen:?}");
    }
    let metrics = serde_json::to_string(&*metrics.lock().unwrap()).unwrap();
    for name in [pintle_otel::names::CLIENT_DURATION, pintle_otel::names::SERVER_DURATION] {
        assert!(metrics.contains(name), "{name}");
    }
    receiver.abort();
}
