use std::{future::poll_fn, task::Poll, time::Duration};

use bytes::Bytes;
use pintle::transport::{Incoming, Memory, Transport, memory};
use serde_json::{Value, json};

/// How long to wait for an expected message.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// The peer of a connection, driven by the test: it returns each message and sends what the test wants.
///
/// Its methods panic if the conversation differs from what is expected.
///
/// ```
/// use pintle::Client;
/// use pintle_testing::Peer;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let (mut server, transport) = Peer::new();
/// let client = Client::new("demo", "1.0.0");
/// let script = async {
///     let probe = server.receives("server/discover").await;
///     server.refuses(&probe, -32601, "what?").await;
///     let hello = server.receives("initialize").await;
///     let offered = &hello["params"]["protocolVersion"];
///     server.answers(&hello, json!({"protocolVersion": offered, "capabilities": {}})).await;
///     server.receives("notifications/initialized").await;
/// };
/// let (connection, ()) = tokio::join!(client.connect(transport), script);
/// assert!(connection?.server_info().is_none());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Peer(Memory);

impl Peer {
    /// Creates a peer, and the transport that connects to it.
    pub fn new() -> (Self, Memory) {
        let (ours, theirs) = memory();
        (Self(ours), theirs)
    }

    /// Receives the next message; `None` if the other side has disconnected.
    pub async fn next(&mut self) -> Option<Value> {
        match poll_fn(|cx| self.0.poll_recv(cx)).await {
            Ok(Some(Incoming::Message(bytes))) => Some(
                serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("no JSON: {error}: {bytes:?}")),
            ),
            Ok(Some(Incoming::Oversized(_))) => panic!("a message that is too large"),
            Ok(Some(Incoming::Failed(failed))) => panic!("a request that has no answer: {failed}"),
            Ok(None) | Err(_) => None,
        }
    }

    /// Receives the next message, which must have this method.
    pub async fn receives(&mut self, method: &str) -> Value {
        // Better than a test that hangs. Instant where time is paused.
        let next = tokio::time::timeout(TIMEOUT, self.next()).await;
        let Ok(next) = next else { panic!("`{method}` was expected and nothing came") };
        let Some(message) = next else { panic!("`{method}` was expected and the connection ended") };
        assert_eq!(message["method"], method, "another message was expected: {message}");
        message
    }

    /// Receives the next message if there is one already.
    pub async fn receives_now(&mut self) -> Option<Value> {
        let incoming = poll_fn(|cx| match self.0.poll_recv(cx) {
            Poll::Ready(Ok(Some(Incoming::Message(bytes)))) => Poll::Ready(Some(bytes)),
            _ => Poll::Ready(None),
        });
        serde_json::from_slice(&incoming.await?).ok()
    }

    /// Sends a line, which need not be JSON.
    pub async fn prints(&mut self, line: impl Into<String>) {
        self.0.send(Bytes::from(line.into()));
        // The other side may have disconnected; the test looks at what it did before.
        let _ = poll_fn(|cx| self.0.poll_flush(cx)).await;
    }

    /// Sends a message; `jsonrpc` is added.
    pub async fn sends(&mut self, mut message: Value) {
        if let Value::Object(members) = &mut message {
            members.insert("jsonrpc".into(), "2.0".into());
        }
        self.prints(message.to_string()).await;
    }

    /// Answers a request.
    pub async fn answers(&mut self, request: &Value, result: Value) {
        self.sends(json!({"id": request["id"], "result": result})).await;
    }

    /// Answers a request with an error.
    pub async fn refuses(&mut self, request: &Value, code: i32, message: &str) {
        self.sends(json!({"id": request["id"], "error": {"code": code, "message": message}})).await;
    }

    /// Sends a notification.
    pub async fn notifies(&mut self, method: &str, params: Value) {
        self.sends(json!({"method": method, "params": params})).await;
    }

    /// Sends a request with this id.
    pub async fn asks(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.sends(json!({"id": id.into(), "method": method, "params": params})).await;
    }
}
