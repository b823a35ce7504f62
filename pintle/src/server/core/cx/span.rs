//! The span of a call.

use pintle_proto::{
    http::MCP_SESSION_ID,
    server::{Body, Outcome},
};
use pintle_types::method;
use tracing::Span;

use super::Cx;
use crate::telemetry::{self, RequestFacts, SpanKind};

/// Creates the span of a call, if a subscriber wants it.
pub(in crate::server) fn of_call(cx: &Cx) -> Span {
    telemetry::span(SpanKind::Server, || {
        // A name that nobody here knows is the client's, and of any length.
        let is_known = method::find(cx.method()).is_some() || cx.snapshot().custom.contains_key(cx.method());
        let method = if is_known { cx.method() } else { "_OTHER" };
        RequestFacts { id: Some(cx.call().id()), params: Some(cx.params()), ..facts(cx, method) }
    })
}

/// Creates the span of a request to the client during a call, if a subscriber wants it.
pub(crate) fn of_question(cx: &Cx, method: &str) -> Span {
    telemetry::span(SpanKind::Client, || facts(cx, method))
}

fn facts<'a>(cx: &'a Cx, method: &'a str) -> RequestFacts<'a> {
    RequestFacts {
        method,
        params: None,
        id: None,
        revision: Some(cx.peer().revision.as_str()),
        session: cx.http().and_then(|head| head.headers.get(&MCP_SESSION_ID)).map(|id| id.as_bytes()),
        transport: cx.transport(),
    }
}

/// Records how a call ended.
pub(in crate::server) fn record(span: &Span, outcome: &Outcome) {
    if span.is_disabled() {
        return;
    }
    match outcome {
        Outcome::Failed(error) => telemetry::failed(span, error),
        Outcome::BadArguments(_) => telemetry::tool_failed(span),
        Outcome::NotFound { .. } => telemetry::fault(span, "not_found"),
        Outcome::Complete(Body::Own(result)) if result.get("isError") == Some("true") => {
            telemetry::tool_failed(span);
        }
        _ => {}
    }
}

/// Records that a call was cancelled.
pub(in crate::server) fn cancelled(span: &Span) {
    if !span.is_disabled() {
        telemetry::fault(span, "cancelled");
    }
}
