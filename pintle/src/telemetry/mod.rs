//! The spans of requests, with the names of the OpenTelemetry conventions for MCP. All names are in this file.
//!
//! A span has the target `pintle::request`, the level `INFO` and, in `otel.name`, the name that exporters show: the method, for
//! tools and prompts followed by their name.
//!
//! A span is created by the `CallDriver` of a call, and around one exchange of a client (`client/layer/spans.rs`). `ReceivedRequests` copies the
//! requests of a message, if a subscriber wants spans; those that are refused before they are calls get theirs in `server/core/refused.rs`.
//! Layers see both directions of both roles: requests of calls to clients pass `Server::around_outgoing` (`server/core/cx/outgoing.rs`).
//! `pintle-otel` is made of these alone.

mod received;

use std::{fmt::Display, sync::OnceLock};

use pintle_types::{RawObject, RpcError, method};
use serde_json::Value;
use tracing::{Level, Span, field::Empty};

pub(crate) use self::received::{AnsweredRequests, ConnectionFacts, ReceivedRequests};
use crate::{
    excerpt::excerpt,
    message_log::{Redactor, transport_kind::TransportKind},
};

/// The limit of a name in a span, in characters. The peer chooses it.
const MAX_NAME: usize = 128;
/// The limit of a URI in a span, in characters.
const MAX_URI: usize = 1024;

/// Which side of a request a span is of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SpanKind {
    /// The sender of the request.
    Client,
    /// The receiver of the request.
    Server,
}

/// The facts that are known when a request starts.
pub(crate) struct RequestFacts<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a RawObject>,
    pub(crate) id: Option<&'a dyn Display>,
    /// The revision, once it is negotiated.
    pub(crate) revision: Option<&'a str>,
    /// The id of the session over HTTP.
    pub(crate) session: Option<&'a [u8]>,
    pub(crate) transport: TransportKind,
}

/// Returns whether any subscriber wants spans of requests. Costs one load if there is no subscriber.
fn is_enabled() -> bool {
    tracing::span_enabled!(target: "pintle::request", Level::INFO)
}

/// Creates the span of a request, if a subscriber wants it.
pub(crate) fn span<'a>(kind: SpanKind, facts: impl FnOnce() -> RequestFacts<'a>) -> Span {
    if is_enabled() { span_of(kind, &facts()) } else { Span::none() }
}

fn span_of(kind: SpanKind, facts: &RequestFacts<'_>) -> Span {
    let method = facts.method;
    let text = |name: &str| facts.params?.decode_member::<String>(name).ok().flatten();
    let member = |name: &str| text(name).map(|text| excerpt(&text, MAX_NAME));
    let (tool, prompt, uri) = match method {
        method::TOOLS_CALL => (member("name"), None, None),
        method::PROMPTS_GET => (None, member("name"), None),
        method::RESOURCES_READ | method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => {
            (None, None, text("uri"))
        }
        _ => (None, None, None),
    };
    let name = match tool.as_ref().or(prompt.as_ref()) {
        Some(name) => format!("{method} {name}"),
        None => method.to_owned(),
    };
    let kind = match kind {
        SpanKind::Client => "client",
        SpanKind::Server => "server",
    };
    let span = tracing::info_span!(
        target: "pintle::request",
        "request",
        otel.name = name,
        otel.kind = kind,
        otel.status_code = Empty,
        mcp.method.name = method,
        mcp.protocol.version = facts.revision,
        mcp.session.id = Empty,
        mcp.resource.uri = Empty,
        gen_ai.operation.name = Empty,
        gen_ai.tool.name = tool,
        gen_ai.prompt.name = prompt,
        jsonrpc.request.id = Empty,
        network.transport = facts.transport.network_transport(),
        traceparent = Empty,
        error.r#type = Empty,
        rpc.response.status_code = Empty,
    );
    if method == method::TOOLS_CALL {
        span.record("gen_ai.operation.name", "execute_tool");
    }
    if let Some(uri) = uri {
        span.record("mcp.resource.uri", excerpt(&redactor().url(&uri), MAX_URI));
    }
    if let Some(id) = facts.id {
        span.record("jsonrpc.request.id", excerpt(&id.to_string(), MAX_NAME));
    }
    if let Some(session) = facts.session {
        span.record("mcp.session.id", redactor().tag(session));
    }
    let meta = facts.params.and_then(|params| params.decode_member::<Value>("_meta").ok().flatten());
    if let Some(parent) = meta.as_ref().and_then(|meta| meta.get("traceparent")?.as_str()) {
        span.record("traceparent", excerpt(parent, MAX_NAME));
    }
    span
}

/// Records that a request failed with an error of the protocol.
pub(crate) fn failed(span: &Span, error: &RpcError) {
    let code = error.code.0.to_string();
    span.record("rpc.response.status_code", &code);
    fault(span, &code);
}

/// Records that a tool returned an error to the model.
pub(crate) fn tool_failed(span: &Span) {
    fault(span, "tool_error");
}

/// Records a failure of some type.
pub(crate) fn fault(span: &Span, kind: &str) {
    span.record("error.type", kind);
    span.record("otel.status_code", "ERROR");
}

/// Redacts what spans contain: the same session has the same text in all spans of the process.
fn redactor() -> &'static Redactor {
    static REDACTOR: OnceLock<Redactor> = OnceLock::new();
    REDACTOR.get_or_init(Redactor::new)
}
