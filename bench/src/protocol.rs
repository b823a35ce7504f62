//! The protocol without I/O: bytes to an admitted call, an outcome to bytes.

use std::hint::black_box;

use pintle_proto::server::{Arrival, Call, Engine, Inbound, Outcome, Service};
use pintle_types::{
    Frame, Message, RawObject,
    schema::{Implementation, ServerCapabilities, ToolsCapability},
};

/// One hot path.
#[expect(clippy::exhaustive_structs, reason = "a row of a table")]
#[derive(Debug)]
pub struct Case {
    /// The name in the figures.
    pub name: &'static str,
    /// Runs it that many times; returns something that depends on each run.
    pub run: fn(usize) -> usize,
}

/// All of them.
pub const CASES: &[Case] = &[
    Case { name: "parse small session", run: |n| parse(n, &session_call("hello")) },
    Case { name: "parse small stateless", run: |n| parse(n, &stateless_call("hello")) },
    Case { name: "admit small session", run: |n| admit(n, &session_call("hello")) },
    Case { name: "admit small stateless", run: |n| admit(n, &stateless_call("hello")) },
    Case { name: "admit small stateless alone", run: |n| admit_alone(n, &stateless_call("hello")) },
    Case { name: "print small session", run: |n| print(n, &session_call("hello"), "hello") },
    Case { name: "print small stateless", run: |n| print(n, &stateless_call("hello"), "hello") },
    Case { name: "admit 1 MiB session", run: |n| admit(n, &session_call(&mebibyte())) },
    Case { name: "admit 1 MiB stateless", run: |n| admit(n, &stateless_call(&mebibyte())) },
    Case { name: "print 1 MiB session", run: |n| print(n, &session_call("hello"), &mebibyte()) },
    Case { name: "print 1 MiB stateless", run: |n| print(n, &stateless_call("hello"), &mebibyte()) },
];

fn mebibyte() -> String {
    "abcdefgh".repeat(1 << 17)
}

pub(crate) fn session_call(text: &str) -> Vec<u8> {
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}}}}}}"#
    )
    .into_bytes()
}

/// As a TypeScript client sends it: info, and the capabilities of a host that can do everything.
pub(crate) fn stateless_call(text: &str) -> Vec<u8> {
    format!(
        concat!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{}"}},"#,
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{}","#,
            r#""io.modelcontextprotocol/clientInfo":{{"name":"bench","version":"1.0.0"}},"#,
            r#""io.modelcontextprotocol/clientCapabilities":{{"sampling":{{}},"elicitation":{{}},"roots":{{}}}}}}}}}}"#
        ),
        text,
        pintle_proto::Revision::LATEST
    )
    .into_bytes()
}

fn service() -> Service {
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools = Some(ToolsCapability::default());
    Service::new(Implementation::new("bench", "1.0.0"), capabilities)
}

/// Opens a session of the newest revision that has one.
pub(crate) fn hello() -> String {
    let newest = pintle_proto::Revision::all().nth(1).map_or("", pintle_proto::Revision::as_str);
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{newest}","capabilities":{{}},"clientInfo":{{"name":"b","version":"1"}}}}}}"#
    )
}

/// An engine whose handshake is done.
fn engine(service: &Service) -> Engine {
    let mut engine = Engine::new();
    if let Ok(frame) = Frame::parse(hello().as_bytes(), 1) {
        engine.receive(service, frame, &Arrival::at(0));
    }
    engine
}

fn parse(times: usize, bytes: &[u8]) -> usize {
    (0..times).filter(|_| Frame::parse(black_box(bytes), 100).is_ok()).count()
}

fn admitted(engine: &mut Engine, service: &Service, bytes: &[u8]) -> Option<Call> {
    let frame = Frame::parse(black_box(bytes), 100).ok()?;
    match engine.receive(service, frame, &Arrival::at(0)) {
        Inbound::Call(call) => Some(call),
        _ => None,
    }
}

/// From bytes to an admitted call, on a stream, and out of the table of requests in flight again.
fn admit(times: usize, bytes: &[u8]) -> usize {
    let service = service();
    let mut engine = engine(&service);
    let mut admitted_calls = 0;
    for _ in 0..times {
        if let Some(call) = admitted(&mut engine, &service, bytes) {
            admitted_calls += 1;
            engine.forget(&call);
        }
    }
    assert_eq!(admitted_calls, times, "every call is let in");
    admitted_calls
}

/// From bytes to an admitted call, as over HTTP: no engine.
fn admit_alone(times: usize, bytes: &[u8]) -> usize {
    let service = service();
    let one = || match Message::parse(black_box(bytes)) {
        Ok(Message::Request(request)) => service.admit(request, &Arrival::at(0)).is_ok(),
        _ => false,
    };
    let admitted_calls = (0..times).filter(|_| one()).count();
    assert_eq!(admitted_calls, times, "every call is let in");
    admitted_calls
}

/// From an outcome to bytes. The result is made anew for each call, as a handler would.
fn print(times: usize, call: &[u8], text: &str) -> usize {
    let service = service();
    let mut engine = engine(&service);
    let Some(call) = admitted(&mut engine, &service, call) else { return 0 };
    let result: RawObject =
        format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#).parse().unwrap_or_default();
    let result = std::sync::Arc::new(result);
    (0..times)
        .map(|_| call.finish(&service, Outcome::Complete(black_box(result.clone()).into()), 0).bytes.len())
        .sum()
}
