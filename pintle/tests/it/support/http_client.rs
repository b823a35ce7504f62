//! A client of bare hands over HTTP, without a socket: it sends requests to the service and reads what comes.

use std::{collections::VecDeque, future::poll_fn, net::SocketAddr, pin::Pin};

use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body as _;
use pintle::proto::sse::{Decoder, Event};
use pintle::server::{
    PeerAddress,
    http::{Body, Http},
};
use serde_json::{Value, json};
use tower_service::Service as _;

use crate::support::eras::R5;

/// Sends requests to a service as they are.
#[derive(Clone)]
pub(crate) struct Wire {
    pub(crate) http: Http,
    /// On top of what every request has.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The address that its requests come from.
    pub(crate) peer: Option<SocketAddr>,
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Body,
    decoder: Decoder,
    events: VecDeque<Event>,
    /// The bytes of the last piece that had no event.
    pub(crate) idle: Vec<u8>,
}

impl Wire {
    pub(crate) fn new(http: &Http) -> Self {
        Self { http: http.clone(), headers: Vec::new(), peer: None }
    }

    pub(crate) fn with(&self, name: &'static str, value: impl Into<String>) -> Self {
        let mut wire = self.clone();
        wire.headers.retain(|(other, _)| *other != name);
        wire.headers.push((name, value.into()));
        wire
    }

    pub(crate) fn without(&self, name: &'static str) -> Self {
        self.with(name, "")
    }

    pub(crate) fn request(&self, method: &str, target: &str, body: impl Into<String>) -> Request<String> {
        let accept = match method {
            "GET" => "text/event-stream",
            _ => "application/json, text/event-stream",
        };
        let mut request = Request::builder().method(method).uri(target).body(body.into()).unwrap();
        let usual = [("host", "localhost"), ("content-type", "application/json"), ("accept", accept)];
        let usual = usual.iter().map(|(name, value)| (*name, (*value).to_owned()));
        for (name, value) in usual.chain(self.headers.clone()) {
            request.headers_mut().remove(name);
            if !value.is_empty() {
                request.headers_mut().insert(name, value.parse().unwrap());
            }
        }
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(PeerAddress(peer));
        }
        request
    }

    pub(crate) async fn send(&self, request: Request<String>) -> Answer {
        Answer::new(self.http.clone().call(request).await.unwrap())
    }

    pub(crate) async fn post(&self, message: Value) -> Answer {
        self.send(self.request("POST", "/mcp", message.to_string())).await
    }

    pub(crate) async fn get(&self) -> Answer {
        self.send(self.request("GET", "/mcp", "")).await
    }

    pub(crate) async fn delete(&self) -> Answer {
        self.send(self.request("DELETE", "/mcp", "")).await
    }

    /// A request of the stateless era, dressed as it should be.
    pub(crate) async fn modern(&self, id: i64, method: &str, params: Value, capabilities: Value) -> Answer {
        let params = crate::support::line_client::modern(params, capabilities);
        let mut wire = self.with("mcp-protocol-version", R5).with("mcp-method", method);
        if let Some(name) = params.get("name").or(params.get("uri")) {
            wire = wire.with("mcp-name", name.as_str().unwrap());
        }
        wire.post(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await
    }

    /// Opens a session of this revision: a wire on which everything belongs to it.
    pub(crate) async fn open(&self, revision: &str, capabilities: Value) -> Self {
        let params = json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": "raw", "version": "0"}});
        let mut opened =
            self.post(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await;
        let id = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
        assert_eq!(opened.json().await["result"]["protocolVersion"], revision);
        let wire = self.with("mcp-session-id", id).with("mcp-protocol-version", revision);
        let notified = wire.post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        assert_eq!(notified.status, 202);
        wire
    }

    pub(crate) async fn call(&self, id: i64, method: &str, params: Value) -> Answer {
        self.post(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await
    }
}

impl Answer {
    pub(crate) fn new(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        Self {
            status: parts.status,
            headers: parts.headers,
            body,
            decoder: Decoder::default(),
            events: VecDeque::new(),
            idle: Vec::new(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    /// How long the body says it is.
    pub(crate) fn length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    pub(crate) async fn piece(&mut self) -> Option<Vec<u8>> {
        let frame = poll_fn(|task| Pin::new(&mut self.body).poll_frame(task)).await?;
        Some(frame.unwrap().into_data().unwrap().to_vec())
    }

    pub(crate) async fn bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.piece().await {
            bytes.extend(piece);
        }
        bytes
    }

    /// The whole body, which is JSON.
    pub(crate) async fn json(&mut self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{}", self.status);
        let bytes = self.bytes().await;
        serde_json::from_slice(&bytes).unwrap()
    }

    /// The next event, if there is one.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        assert!(self.is_stream(), "{} {:?}", self.status, self.headers);
        while self.events.is_empty() {
            let piece = self.piece().await?;
            let mut rest = &*piece;
            let mut any = false;
            while let Some(event) = self.decoder.next(&mut rest).unwrap() {
                self.events.push_back(event);
                any = true;
            }
            if !any {
                self.idle = piece;
            }
        }
        self.events.pop_front()
    }

    /// Whether all that came was looked at.
    pub(crate) fn is_drained(&self) -> bool {
        self.events.is_empty()
    }

    /// The next message; events without one are passed over.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        loop {
            let event = self.event().await?;
            if !event.data.is_empty() {
                return Some(serde_json::from_str(&event.data).unwrap());
            }
        }
    }

    /// All that is still to come.
    pub(crate) async fn messages(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(message) = self.message().await {
            messages.push(message);
        }
        messages
    }

    /// The answer to the request, whichever way it comes.
    pub(crate) async fn result(&mut self) -> Value {
        if !self.is_stream() {
            return self.json().await;
        }
        loop {
            let message = self.message().await.expect("an answer before the end");
            if message.get("result").or(message.get("error")).is_some() {
                return message;
            }
        }
    }
}
