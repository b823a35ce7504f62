//! A server whose event streams are anything.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use pintle::{
    Client, Connection,
    client::{
        Answer,
        http::{Body, Http},
    },
};
use serde_json::{Value, json};

use super::{course::Course, run};

/// Answers calls with the events that these bytes describe: each call ends, whatever came.
pub(crate) fn play(course: &[u8]) {
    run(async {
        let pieces = streams(&mut Course(course));
        let calls = pieces.len().min(8);
        let server = Server(Arc::new(Mutex::new(pieces)));
        let remote = Http::new("http://server.test/mcp").expect("a URL").client(server);
        let client = Client::new("c", "1").on_elicit(|_| async { Answer::Decline });
        let connection: Connection = client.connect(remote).await.expect("it opens as it should");
        for _ in 0..calls {
            // How it ends is the server's to say; that it ends is ours.
            let _ = connection.call_tool("any", json!({})).await;
        }
        connection.close().await;
    });
}

/// Streams made of events that a server might send, and of bytes that none would.
fn streams(course: &mut Course<'_>) -> Vec<Vec<u8>> {
    let mut streams = vec![Vec::new()];
    while !course.0.is_empty() {
        let Some(stream) = streams.last_mut() else { break };
        match course.below(8) {
            0 => streams.push(Vec::new()),
            1 | 2 => {
                let data = course.of(MESSAGES);
                stream.extend(format!("data: {data}\n\n").into_bytes());
            }
            3 => stream.extend(b"id: 7\nretry: 10\n"),
            4 => stream.extend(b"event: other\n"),
            5 => stream
                .extend(course.of(&["\u{feff}", "\r\n", "\n\n", ":", "data:", "data", "id: \0\n"]).bytes()),
            _ => {
                let count = course.below(24);
                stream.extend(course.bytes(count));
            }
        }
    }
    streams
}

/// What comes as data; `ID` stands for the id of the call.
const MESSAGES: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"no"}}"#,
    r#"{"jsonrpc":"2.0","id":"ID","result":{}}"#,
    r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":ID,"progress":1}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"Well?"}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"Well?","requestedSchema":{"type":"object","properties":{}}}}},"requestState":"x"}}"#,
    "[]",
    "null",
];

#[derive(Clone)]
struct Server(Arc<Mutex<Vec<Vec<u8>>>>);

impl tower_service::Service<Request<Body>> for Server {
    type Response = Response<Once>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Once>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let message: Value = serde_json::from_slice(request.body().bytes()).unwrap_or_default();
        let id = message["id"].to_string();
        let response = Response::builder();
        let (kind, body) = match message["method"].as_str() {
            Some("server/discover") => {
                let result = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public"}"#;
                (
                    "application/json",
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into_bytes(),
                )
            }
            Some("tools/list") => {
                let result = r#"{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"public"}"#;
                (
                    "application/json",
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into_bytes(),
                )
            }
            _ => {
                let next = self.0.lock().map(|mut streams| streams.pop()).unwrap_or_default();
                ("text/event-stream", replaced(&next.unwrap_or_default(), b"ID", id.as_bytes()))
            }
        };
        let response = response.header("content-type", kind).body(Once(Some(body.into())));
        ready(Ok(response.expect("a header that is one")))
    }
}

fn replaced(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        out.extend(&rest[..at]);
        out.extend(to);
        rest = &rest[at + from.len()..];
    }
    out.extend(rest);
    out
}

struct Once(Option<Bytes>);

impl http_body::Body for Once {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}
