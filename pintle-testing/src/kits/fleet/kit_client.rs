//! A client of the kit: it sends each message to the service that it is given.

use std::{collections::VecDeque, future::poll_fn, pin::Pin, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, request};
use http_body::Body as _;
use pintle::{
    proto::{
        Revision,
        sse::{Decoder, Event},
    },
    server::http::{Body, Http},
    types::method,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::kits::harness::{Checked, wrong};

/// A session of the kit's client.
#[derive(Clone, Debug)]
pub(super) struct KitClient {
    session: String,
    revision: &'static str,
    /// Whether it sends the revision with every request, as older ones do not.
    names_revision: bool,
}

/// The time that a response or an event may take.
pub(super) const SOON: Duration = Duration::from_secs(20);

impl KitClient {
    /// Opens a session at a service, with the newest revision that has sessions.
    pub(super) async fn open(http: &Http) -> Checked<Self> {
        let revision = Revision::all().find(|revision| revision.facts().keeps_session);
        let client = Self::open_as(http, revision.ok_or("no revision has sessions")?).await?;
        Ok(Self { names_revision: true, ..client })
    }

    /// Opens a session at a service, with a revision that has sessions.
    pub(super) async fn open_as(http: &Http, revision: Revision) -> Checked<Self> {
        let mut client = Self::without_session(revision);
        let params = json!({
            "protocolVersion": client.revision,
            "capabilities": capabilities(),
            "clientInfo": {"name": "kit", "version": "0"},
        });
        let opened = client.call(http, 0, method::INITIALIZE, params).await?;
        let id = opened.headers.get("mcp-session-id").and_then(|id| id.to_str().ok());
        client.session = id.ok_or("`initialize` opened no session")?.to_owned();
        let initialized = json!({"jsonrpc": "2.0", "method": method::NOTIFICATIONS_INITIALIZED});
        client.post(http, &initialized).await?.expect_status(StatusCode::ACCEPTED)?;
        Ok(client)
    }

    /// Creates a client without a session.
    pub(super) fn without_session(revision: Revision) -> Self {
        Self { session: String::new(), revision: revision.as_str(), names_revision: false }
    }

    /// Calls a tool without a session.
    pub(super) async fn call_stateless(&self, http: &Http, id: i64, params: &Value) -> Checked<KitResponse> {
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": self.revision,
            "io.modelcontextprotocol/clientCapabilities": capabilities(),
        });
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method::TOOLS_CALL, "params": params});
        let request = request("POST")
            .header("mcp-protocol-version", self.revision)
            .header("mcp-method", method::TOOLS_CALL)
            .header("mcp-name", name);
        exchange(http, request, message.to_string()).await
    }

    pub(super) async fn call(
        &self,
        http: &Http,
        id: i64,
        method: &str,
        params: Value,
    ) -> Checked<KitResponse> {
        self.post(http, &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await
    }

    pub(super) async fn call_tool(&self, http: &Http, id: i64, name: &str) -> Checked<KitResponse> {
        let params = json!({"name": name, "_meta": {"progressToken": id}});
        self.call(http, id, method::TOOLS_CALL, params).await
    }

    pub(super) async fn post(&self, http: &Http, message: &Value) -> Checked<KitResponse> {
        self.send(http, "POST", None, message.to_string()).await
    }

    /// Opens the GET stream, or resumes a stream after an event.
    pub(super) async fn get(&self, http: &Http, last: Option<&str>) -> Checked<KitResponse> {
        self.send(http, "GET", last, String::new()).await
    }

    pub(super) async fn delete(&self, http: &Http) -> Checked<KitResponse> {
        self.send(http, "DELETE", None, String::new()).await
    }

    async fn send(
        &self,
        http: &Http,
        method: &str,
        last: Option<&str>,
        body: String,
    ) -> Checked<KitResponse> {
        let mut request = request(method);
        if !self.session.is_empty() {
            request = request.header("mcp-session-id", &self.session);
        }
        if !self.session.is_empty() && self.names_revision {
            request = request.header("mcp-protocol-version", self.revision);
        }
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        exchange(http, request, body).await
    }
}

fn capabilities() -> Value {
    json!({"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}})
}

fn request(method: &str) -> request::Builder {
    let accept = if method == "GET" { "text/event-stream" } else { "application/json, text/event-stream" };
    Request::builder()
        .method(method)
        .uri("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", accept)
}

async fn exchange(http: &Http, request: request::Builder, body: String) -> Checked<KitResponse> {
    let (parts, body) = request.body(body)?.into_parts();
    let shown = parts.method.clone();
    let response = timeout(SOON, http.answer(parts, Bytes::from(body))).await;
    let (parts, body) = response.map_err(|_| format!("no response to a {shown}"))?.into_parts();
    Ok(KitResponse {
        status: parts.status,
        headers: parts.headers,
        body,
        decoder: Decoder::default(),
        whole: Vec::new(),
        events: VecDeque::new(),
    })
}

/// A response of a service.
pub(super) struct KitResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    body: Body,
    decoder: Decoder,
    /// The body of a response that is no stream.
    whole: Vec<u8>,
    events: VecDeque<Event>,
}

impl KitResponse {
    pub(super) fn expect_status(self, status: StatusCode) -> Checked<Self> {
        if self.status == status {
            Ok(self)
        } else {
            wrong(format!("the response is {}, expected {status}", self.status))
        }
    }

    /// Returns the next event with a message, with its id. `None` at the end of the stream.
    pub(super) async fn next(&mut self) -> Checked<Option<(String, Value)>> {
        loop {
            while let Some(event) = self.events.pop_front() {
                if let Ok(message) = serde_json::from_str(&event.data) {
                    return Ok(Some((event.id.unwrap_or_default(), message)));
                }
            }
            let piece = timeout(SOON, poll_fn(|task| Pin::new(&mut self.body).poll_frame(task))).await;
            let Some(piece) = piece.map_err(|_| "no event was received")? else {
                let whole = std::mem::take(&mut self.whole);
                return Ok(serde_json::from_slice(&whole).ok().map(|message| (String::new(), message)));
            };
            let Ok(Some(piece)) = piece.map(|frame| frame.into_data().ok()) else { return Ok(None) };
            if self.headers.get("content-type").is_some_and(|kind| kind == "application/json") {
                self.whole.extend_from_slice(&piece);
                continue;
            }
            let mut rest = &piece[..];
            while let Some(event) = self.decoder.next(&mut rest)? {
                self.events.push_back(event);
            }
        }
    }

    /// Returns the next message, which has to be there.
    pub(super) async fn message(&mut self) -> Checked<(String, Value)> {
        Ok(self.next().await?.ok_or("the stream has ended before its last message")?)
    }

    /// Returns all messages until the end of the stream.
    pub(super) async fn rest(&mut self) -> Checked<Vec<Value>> {
        let mut all = Vec::new();
        while let Some((_, message)) = self.next().await? {
            all.push(message);
        }
        Ok(all)
    }
}
