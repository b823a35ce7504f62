//! A client that is connected to a server played by the test.

use pintle::{Client, Connection};
use pintle_testing::Peer;
use serde_json::{Value, json};

pub(crate) const SESSION: &str = "2025-11-25";
pub(crate) const STATELESS: &str = "2026-07-28";
pub(crate) const BATCHES: &str = "2025-03-26";
/// One of each era.
pub(crate) const BOTH: [&str; 2] = [SESSION, STATELESS];

/// An open connection, and the server's side of it.
pub(crate) async fn open(client: &Client, revision: &str, capabilities: Value) -> (Connection, Peer) {
    let (mut server, transport) = Peer::new();
    let script = accept(&mut server, revision, capabilities);
    let (connection, ()) = tokio::join!(client.connect(transport), script);
    (connection.unwrap(), server)
}

/// The server's side of an opening.
pub(crate) async fn accept(server: &mut Peer, revision: &str, capabilities: Value) {
    let info = json!({"name": "played", "version": "7"});
    let probe = server.receives("server/discover").await;
    if revision == STATELESS {
        let result = json!({
            "resultType": "complete", "supportedVersions": [revision], "capabilities": capabilities,
            "instructions": "Be kind.", "ttlMs": 0, "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": info}
        });
        return server.answers(&probe, result).await;
    }
    server.refuses(&probe, -32601, "what?").await;
    let hello = server.receives("initialize").await;
    let result = json!({
        "protocolVersion": revision, "capabilities": capabilities, "serverInfo": info, "instructions": "Be kind."
    });
    server.answers(&hello, result).await;
    server.receives("notifications/initialized").await;
}

/// A result with one text in it.
pub(crate) fn text(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

/// Lets every task that can run do so.
pub(crate) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

pub(crate) fn client() -> Client {
    Client::new("test", "1")
}
