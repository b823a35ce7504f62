use std::{future::poll_fn, task::Poll, time::Duration};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::transport::{Incoming, Memory, Transport, memory};

/// How long to wait for a message that has to come.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The other side of a connection, played by the test: it hands over each message and says what it is told to.
///
/// Its methods panic when the conversation goes another way; that is the test failing.
///
/// ```
/// use pintle::{Client, testing::Peer};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let (mut server, transport) = Peer::new();
/// let client = Client::new("demo", "1.0.0");
/// let script = async {
///     let probe = server.hears("server/discover").await;
///     server.refuses(&probe, -32601, "what?").await;
///     let hello = server.hears("initialize").await;
///     let offered = &hello["params"]["protocolVersion"];
///     server.answers(&hello, json!({"protocolVersion": offered, "capabilities": {}})).await;
///     server.hears("notifications/initialized").await;
/// };
/// let (connection, ()) = tokio::join!(client.connect(transport), script);
/// assert!(connection?.server_info().is_none());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Peer(Memory);

impl Peer {
    /// A peer, and the transport that leads to it.
    pub fn new() -> (Self, Memory) {
        let (ours, theirs) = memory();
        (Self(ours), theirs)
    }

    /// The next message, or `None` if the other side has gone.
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

    /// The next message, which must be of this method.
    pub async fn hears(&mut self, method: &str) -> Value {
        // A test that waits for ever says less than one that fails. Where time is paused this takes none.
        let next = tokio::time::timeout(PATIENCE, self.next()).await;
        let Ok(next) = next else { panic!("`{method}` was expected and nothing came") };
        let Some(message) = next else { panic!("`{method}` was expected and the connection ended") };
        assert_eq!(message["method"], method, "another message was expected: {message}");
        message
    }

    /// The next message if one is there already.
    pub async fn hears_now(&mut self) -> Option<Value> {
        let incoming = poll_fn(|cx| match self.0.poll_recv(cx) {
            Poll::Ready(Ok(Some(Incoming::Message(bytes)))) => Poll::Ready(Some(bytes)),
            _ => Poll::Ready(None),
        });
        serde_json::from_slice(&incoming.await?).ok()
    }

    /// Sends anything, JSON or not.
    pub async fn prints(&mut self, line: impl Into<String>) {
        self.0.send(Bytes::from(line.into()));
        // A side that has gone hears nothing; what it did before is what the test looks at.
        let _ = poll_fn(|cx| self.0.poll_flush(cx)).await;
    }

    /// Sends a message; `jsonrpc` is added.
    pub async fn says(&mut self, mut message: Value) {
        if let Value::Object(members) = &mut message {
            members.insert("jsonrpc".into(), "2.0".into());
        }
        self.prints(message.to_string()).await;
    }

    /// Answers a request.
    pub async fn answers(&mut self, request: &Value, result: Value) {
        self.says(json!({"id": request["id"], "result": result})).await;
    }

    /// Answers a request with an error.
    pub async fn refuses(&mut self, request: &Value, code: i32, message: &str) {
        self.says(json!({"id": request["id"], "error": {"code": code, "message": message}})).await;
    }

    /// Tells something that wants no answer.
    pub async fn tells(&mut self, method: &str, params: Value) {
        self.says(json!({"method": method, "params": params})).await;
    }

    /// Asks something, under this id.
    pub async fn asks(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.says(json!({"id": id.into(), "method": method, "params": params})).await;
    }
}
