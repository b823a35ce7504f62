//! What is not served: the status, and a body that says what to change.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::Frame;
use pintle::{
    Server,
    server::{
        http::{BodyLimits, Http},
        tool,
    },
};
use serde_json::json;
use tower_service::Service as _;

use crate::support::{
    eras::R4,
    http_client::{Answer, Wire},
};

fn http() -> Http {
    let server = Server::new("s", "0").tool(tool("greet", || async { "Hello!" }));
    server.http().unwrap().at("/mcp").two_endpoints("/sse", "/messages")
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// What is sent: a method, a path, fields on top of those that every request has (an empty one is left out), a body.
type Sent<'a> = (&'a str, &'a str, &'a [(&'static str, &'a str)], &'a str);

#[tokio::test]
async fn a_refusal_says_what_to_change() {
    let mut small = BodyLimits::default();
    small.limit = 64;
    let wire = Wire::new(&http().body_limits(small));
    let long = "x".repeat(65);
    let nobody = "00000000000000000000000000000000";
    let table: &[(Sent<'_>, u16, &str)] = &[
        (
            ("POST", "/mcp", &[("host", "evil.example")], PING),
            403,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"`Host: evil.example` is not allowed here; add it on the server with `Guard::hosts`"}}"#,
        ),
        (
            ("POST", "/mcp", &[("origin", "https://evil.example")], PING),
            403,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"`Origin: https://evil.example` is not allowed here; add it on the server with `Guard::origins`"}}"#,
        ),
        (
            ("POST", "/mcp", &[("content-type", "text/plain")], PING),
            415,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"send `Content-Type: application/json`"}}"#,
        ),
        (
            ("POST", "/mcp", &[("content-type", "")], PING),
            415,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"send `Content-Type: application/json`"}}"#,
        ),
        (
            ("POST", "/mcp", &[("accept", "text/html")], PING),
            406,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"send `Accept: application/json, text/event-stream`"}}"#,
        ),
        (
            ("PUT", "/mcp", &[], PING),
            405,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"`PUT` is not served here; use POST, GET, DELETE"}}"#,
        ),
        (
            ("POST", "/mcp", &[], &long),
            413,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"the body is larger than 64 bytes; send less"}}"#,
        ),
        (
            ("POST", "/mcp", &[], "{"),
            400,
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"not JSON: EOF while parsing an object at line 1 column 1"}}"#,
        ),
        (
            ("POST", "/mcp", &[], "[]"),
            400,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"an empty batch: send at least one message"}}"#,
        ),
        (
            ("POST", "/mcp", &[], PING),
            400,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"the `MCP-Protocol-Version` header is missing; send `2026-07-28` there and in `params._meta`, or `initialize` first"}}"#,
        ),
        (
            ("POST", "/mcp", &[("mcp-protocol-version", "1.0")], PING),
            400,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params._meta` lacks `io.modelcontextprotocol/protocolVersion`; send it with every request"}}"#,
        ),
        (
            ("GET", "/mcp", &[], ""),
            400,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"the `Mcp-Session-Id` header is missing; send `initialize` first, then the id from its response"}}"#,
        ),
        (
            ("DELETE", "/mcp", &[], ""),
            400,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"the `Mcp-Session-Id` header is missing; send `initialize` first, then the id from its response"}}"#,
        ),
        (
            ("POST", "/mcp", &[("mcp-session-id", nobody)], PING),
            404,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"no such session; send `initialize` without an `Mcp-Session-Id` header to start another"}}"#,
        ),
        (
            ("GET", "/mcp", &[("mcp-session-id", nobody)], ""),
            404,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no such session; send `initialize` without an `Mcp-Session-Id` header to start another"}}"#,
        ),
        (
            ("DELETE", "/mcp", &[("mcp-session-id", "nobody")], ""),
            404,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no such session; send `initialize` without an `Mcp-Session-Id` header to start another"}}"#,
        ),
        (
            ("POST", "/elsewhere", &[], PING),
            404,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"nothing is served at `/elsewhere`; send MCP requests to `/mcp`"}}"#,
        ),
        (
            ("POST", "/sse", &[], PING),
            405,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"`POST` is not served here; use GET"}}"#,
        ),
        (
            ("GET", "/messages", &[], ""),
            405,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"`GET` is not served here; use POST"}}"#,
        ),
        (
            ("POST", "/messages", &[], PING),
            404,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no such session: open the event stream, and post to the endpoint that it names"}}"#,
        ),
        (
            ("GET", "/sse", &[("accept", "application/json")], ""),
            406,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"send `Accept: text/event-stream`"}}"#,
        ),
    ];
    let mut wrong = Vec::new();
    for ((method, path, fields, body), status, reply) in table {
        let wire = fields.iter().fold(wire.clone(), |wire, (name, value)| wire.with(name, *value));
        let mut answer = wire.send(wire.request(method, path, *body)).await;
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let came = String::from_utf8(answer.bytes().await).unwrap();
        if (answer.status.as_u16(), &*came) != (*status, *reply) {
            wrong.push(format!("{method} {path} {fields:?} {body}: {} {came}", answer.status));
        }
        let allow = match (*status, *path) {
            (405, "/mcp") => Some("POST, GET, DELETE"),
            (405, "/sse") => Some("GET"),
            (405, _) => Some("POST"),
            _ => None,
        };
        assert_eq!(answer.header("allow"), allow, "{method} {path}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_version_that_is_not_served_is_refused_with_those_that_are() {
    let wire = Wire::new(&http()).open(R4, json!({})).await;
    let mut answer = wire.with("mcp-protocol-version", "1999-01-01").call(1, "ping", json!({})).await;
    assert_eq!(answer.status, 400);
    let reply = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"the `MCP-Protocol-Version` header is `1999-01-01`; send `2025-11-25` or `2025-06-18` or `2025-03-26`"}}"#;
    assert_eq!(String::from_utf8(answer.bytes().await).unwrap(), reply);
}

/// A body that never comes.
struct Never;

impl http_body::Body for Never {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let mut http = http();
    let request = Wire::new(&http).request("POST", "/mcp", "").map(|_| Never);
    let mut answer = Answer::new(http.call(request).await.unwrap());
    assert_eq!(answer.status, 408);
    let reply = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"the body did not arrive in time; send the whole request at once"}}"#;
    assert_eq!(String::from_utf8(answer.bytes().await).unwrap(), reply);
}

#[tokio::test(start_paused = true)]
async fn a_host_or_origin_is_refused_before_the_body_is_read() {
    let mut http = http();
    let started = tokio::time::Instant::now();
    for (name, value) in [("host", "evil.example"), ("origin", "https://evil.example")] {
        let wire = Wire::new(&http).with(name, value);
        let request = wire.request("POST", "/mcp", "").map(|_| Never);
        assert_eq!(http.call(request).await.unwrap().status(), 403, "{name}");
    }
    assert_eq!(started.elapsed().as_secs(), 0);
}

#[tokio::test]
async fn a_malformed_answer_is_refused_without_its_id() {
    let http = Server::new("s", "0").http().unwrap();
    let wire = Wire::new(&http).open(R4, json!({})).await;
    let mut answer = wire.post(json!({"jsonrpc": "2.0", "id": 7, "result": 5})).await;
    assert_eq!(answer.status, 400);
    let reply = answer.json().await;
    assert_eq!(reply.get("id"), None, "{reply}");
    let mut answer = wire.post(json!({"jsonrpc": "2.0", "id": 7, "method": 5})).await;
    assert_eq!(answer.json().await["id"], 7);
}

#[tokio::test]
async fn arguments_that_are_no_object_are_bad_params() {
    let server = Server::new("s", "0").tool(pintle::server::tool("greet", || async { "Hello!" }));
    let http = server.http().unwrap();
    let wire = Wire::new(&http);
    for arguments in [json!([1]), json!("x"), json!(7), json!(true)] {
        let params = json!({"name": "greet", "arguments": arguments});
        let reply = wire.modern(1, "tools/call", params.clone(), json!({})).await.json().await;
        assert_eq!(reply["error"]["code"], -32602, "{reply}");
        let reply = wire.open(R4, json!({})).await.call(1, "tools/call", params).await.json().await;
        assert_eq!(reply["error"]["code"], -32602, "{reply}");
    }
    let params = json!({"name": "greet", "arguments": null});
    let reply = wire.modern(1, "tools/call", params, json!({})).await.json().await;
    assert!(reply.get("result").is_some(), "{reply}");
}

#[tokio::test]
async fn a_long_unknown_path_is_not_echoed_in_full() {
    let server = Server::new("s", "0").resource(pintle::server::resource("a://b", "b", || async { "" }));
    let http = server.http().unwrap();
    let uri = format!("a://{}", "x".repeat(8000));
    let session = Wire::new(&http).open(R4, json!({})).await;
    let mut answer = session.call(1, "resources/read", json!({ "uri": uri })).await;
    let reply = answer.json().await;
    assert_eq!(reply["error"]["code"], -32002);
    assert!(reply.to_string().len() < 1500, "{}", reply.to_string().len());
    assert!(reply["error"]["data"]["uri"].as_str().unwrap().starts_with("a://xxx"));
    let version = "9".repeat(4000);
    let mut answer = Wire::new(&http)
        .with("mcp-protocol-version", &version)
        .post(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {}}}}))
        .await;
    let reply = answer.json().await;
    assert_eq!(reply["error"]["code"], -32022);
    assert!(reply.to_string().len() < 800, "{reply}");
}

#[tokio::test]
async fn a_request_of_http_1_1_needs_a_host() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let serving = Server::new("s", "0").serve_http("127.0.0.1:0").await.unwrap();
    for (version, host, status) in
        [("1.1", "", "400"), ("1.1", "Host: localhost\r\n", "204"), ("1.0", "", "204")]
    {
        let mut socket = tokio::net::TcpStream::connect(serving.address()).await.unwrap();
        let request = format!("OPTIONS /mcp HTTP/{version}\r\n{host}connection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer.split(' ').nth(1), Some(status), "{answer}");
        assert_eq!(answer.contains("send a `Host` header"), status == "400");
    }
}

#[cfg(feature = "logging")]
#[tokio::test]
async fn who_runs_the_server_reads_whom_it_turns_away() {
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

    #[derive(Clone, Default)]
    struct Recorded(Arc<Mutex<Vec<String>>>);

    impl<S: tracing::Subscriber> Layer<S> for Recorded {
        fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
            struct Words(String);
            impl tracing::field::Visit for Words {
                fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                    self.0 += &format!(" {field}={value:?}");
                }
            }
            let mut words = Words(event.metadata().level().to_string());
            event.record(&mut words);
            self.0.lock().unwrap().push(words.0);
        }
    }

    let received = Recorded::default();
    let _guard =
        crate::support::subscriber::set_subscriber(tracing_subscriber::registry().with(received.clone()));
    let http = Server::new("s", "0").http().unwrap();
    let mut answer = Wire::new(&http).with("host", "vm:8000").post(json!({})).await;
    assert_eq!(answer.status, 403);
    let reason = "`Host: vm:8000` is not allowed here; add it on the server with `Guard::hosts`";
    assert_eq!(answer.json().await["error"]["message"], reason);
    let wire = Wire::new(&http.at("/mcp"));
    let mut lost = wire.send(wire.request("POST", "/", "{}")).await;
    assert_eq!(lost.status, 404);
    let lost_reason = "nothing is served at `/`; send MCP requests to `/mcp`";
    assert_eq!(lost.json().await["error"]["message"], lost_reason);
    let received = received.0.lock().unwrap();
    for reason in [reason, lost_reason] {
        assert!(
            received.iter().any(|reply| reply.starts_with("WARN") && reply.contains(reason)),
            "{received:?}"
        );
    }
}
