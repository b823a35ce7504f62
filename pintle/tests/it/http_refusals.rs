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
        http::{Http, Patience},
        tool,
    },
};
use serde_json::json;
use tower_service::Service as _;

use crate::{
    eras::R4,
    http_kit::{Answer, Wire},
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
    let mut small = Patience::default();
    small.limit = 64;
    let wire = Wire::new(&http().patience(small));
    let long = "x".repeat(65);
    let nobody = "00000000000000000000000000000000";
    let table: &[(Sent<'_>, u16, &str)] = &[
        (
            ("POST", "/mcp", &[("host", "evil.example")], PING),
            403,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"`Host: evil.example` is not let in here; add it to the server's hosts"}}"#,
        ),
        (
            ("POST", "/mcp", &[("origin", "https://evil.example")], PING),
            403,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"`Origin: https://evil.example` is not let in here; add it to the server's origins"}}"#,
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
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params._meta` lacks `io.modelcontextprotocol/protocolVersion`; every request of `2026-07-28` has it"}}"#,
        ),
        (
            ("GET", "/mcp", &[], ""),
            400,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"the `Mcp-Session-Id` header is missing; send `initialize` first, and the id it is answered with from then on"}}"#,
        ),
        (
            ("DELETE", "/mcp", &[], ""),
            400,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"the `Mcp-Session-Id` header is missing; send `initialize` first, and the id it is answered with from then on"}}"#,
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
    for ((method, path, fields, body), status, said) in table {
        let wire = fields.iter().fold(wire.clone(), |wire, (name, value)| wire.with(name, *value));
        let mut answer = wire.send(wire.request(method, path, *body)).await;
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let came = String::from_utf8(answer.bytes().await).unwrap();
        if (answer.status.as_u16(), &*came) != (*status, *said) {
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
    let said = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"the `MCP-Protocol-Version` header says `1999-01-01`; send `2025-11-25` or `2025-06-18` or `2025-03-26`"}}"#;
    assert_eq!(String::from_utf8(answer.bytes().await).unwrap(), said);
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
    let said = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"the body did not arrive in time; send the whole request at once"}}"#;
    assert_eq!(String::from_utf8(answer.bytes().await).unwrap(), said);
}
