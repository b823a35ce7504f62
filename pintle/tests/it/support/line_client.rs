//! A client of bare hands: it sends lines and reads lines.

use std::future::poll_fn;

use pintle::{
    Server,
    server::Caller,
    transport::{Incoming, Memory, Transport, memory},
};
use serde_json::{Value, json};

pub(crate) struct Raw {
    wire: Memory,
    next_id: i64,
}

impl Raw {
    pub(crate) fn new(server: &Server) -> Self {
        Self { wire: server.in_process().unwrap(), next_id: 100 }
    }

    /// One whom the server knows.
    pub(crate) fn known(server: &Server, caller: Caller) -> Self {
        let (ours, wire) = memory();
        drop(server.serve_to(ours, caller).unwrap());
        Self::over(wire)
    }

    pub(crate) fn over(wire: Memory) -> Self {
        Self { wire, next_id: 100 }
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.send_text(message.to_string()).await;
    }

    /// Sends what a value cannot hold.
    pub(crate) async fn send_text(&mut self, message: String) {
        self.wire.send(message.into());
        poll_fn(|cx| self.wire.poll_flush(cx)).await.unwrap();
    }

    pub(crate) async fn recv(&mut self) -> Value {
        match poll_fn(|cx| self.wire.poll_recv(cx)).await.unwrap() {
            Some(Incoming::Message(bytes)) => serde_json::from_slice(&bytes).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// Waits until the connection ends, whatever comes before.
    #[allow(dead_code, reason = "servers behind relays end")]
    pub(crate) async fn ends(&mut self) {
        while let Ok(Some(_)) = poll_fn(|cx| self.wire.poll_recv(cx)).await {}
    }

    /// Opens a session of this revision.
    pub(crate) async fn open(&mut self, revision: &str, capabilities: Value) -> Value {
        let params = json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": "raw", "version": "0"}});
        self.send(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await;
        let declared = self.recv().await["result"].clone();
        assert_eq!(declared["protocolVersion"], revision);
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        declared
    }

    /// Sends a request; returns its id.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        self.send(json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params})).await;
        self.next_id
    }
}

/// `_meta` of a request that stands alone.
pub(crate) fn modern(mut params: Value, capabilities: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    params
}
