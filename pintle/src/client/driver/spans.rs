//! The spans of requests that a connection sends by itself, and of those that it answers by itself.

use std::collections::HashMap;

use pintle_proto::{
    Revision,
    client::{Inbound, RequestOutcome},
};
use pintle_types::{RawObject, RequestId, RpcError};
use tracing::Span;

use super::Driver;
use crate::telemetry::{self, AnsweredRequests, ConnectionFacts, ReceivedRequests, RequestFacts, SpanKind};

/// The spans of open requests that the connection has sent by itself. Empty if no subscriber wants spans.
#[derive(Debug, Default)]
pub(super) struct OwnSpans(HashMap<RequestId, Span>);

impl OwnSpans {
    fn insert(&mut self, id: &RequestId, span: Span) {
        self.0.insert(id.clone(), span);
    }

    /// Ends the span of a request, if it has one.
    #[inline]
    pub(super) fn end(&mut self, id: &RequestId, record: impl FnOnce(&Span)) {
        if !self.0.is_empty()
            && let Some(span) = self.0.remove(id)
        {
            record(&span);
        }
    }

    /// Ends all spans, because the connection is lost.
    pub(super) fn lose(&mut self) {
        self.0.drain().for_each(|(_, span)| telemetry::fault(&span, "closed"));
    }
}

/// Records the outcome of a request.
pub(super) fn record(span: &Span, outcome: &RequestOutcome) {
    match outcome {
        RequestOutcome::Error(error) => telemetry::failed(span, error),
        RequestOutcome::Violation(_) => telemetry::fault(span, "violation"),
        _ => {}
    }
}

/// Records the end of a subscription.
pub(super) fn record_end(span: &Span, error: Option<&RpcError>) {
    error.iter().for_each(|error| telemetry::failed(span, error));
}

impl Driver {
    /// Creates the span of a request that the connection sends by itself, if a subscriber wants it.
    pub(super) fn own_span(&self, method: &str, params: &RawObject, revision: Option<Revision>) -> Span {
        if !telemetry::is_enabled() {
            return Span::none();
        }
        let facts = RequestFacts {
            method,
            params: Some(params),
            id: None,
            revision: revision.map(Revision::as_str),
            session: None,
            transport: self.shared.transport,
        };
        telemetry::span(SpanKind::Client, &facts)
    }

    /// Starts the span of a request that the connection sends by itself, if a subscriber wants it.
    pub(super) fn start_span(&mut self, id: &RequestId, method: &str, params: Option<&RawObject>) {
        if telemetry::is_enabled() {
            let empty = RawObject::empty();
            let span = self.own_span(method, params.unwrap_or(&empty), self.engine.revision());
            self.spans.insert(id, span);
        }
    }

    /// Creates the spans of the requests of the server that the engine answers.
    pub(super) fn record_replies(&self, received: ReceivedRequests, inbound: &[Inbound]) {
        let mut answered = AnsweredRequests::default();
        for inbound in inbound {
            match inbound {
                // Its handler has a span.
                Inbound::Question(question) => answered.add_call(&question.id),
                Inbound::Reply(response) => answered.add_response(response),
                _ => {}
            }
        }
        let facts = ConnectionFacts {
            revision: self.engine.revision(),
            session: None,
            transport: self.shared.transport,
        };
        drop(received.spans(facts, &answered));
    }
}
