//! The spans of requests. They are inside of the layers of the application, around each exchange.

use std::pin::Pin;

use pintle_proto::{Revision, client::RequestOutcome};
use pintle_types::{RawObject, RequestId};
use tracing::{Instrument as _, Span};

use super::CxOrigin;
use crate::{
    Error, Result,
    telemetry::{self, RequestFacts, SpanKind},
};

/// Creates the span of a request that is sent, if a subscriber wants it.
pub(in crate::client) fn request_span(
    origin: impl FnOnce() -> CxOrigin,
    method: &str,
    params: &RawObject,
) -> Span {
    telemetry::span(SpanKind::Client, || facts(&origin(), method, Some(params), None))
}

/// Creates the span of a request of the server, if a subscriber wants it.
pub(in crate::client) fn question_span(
    origin: impl FnOnce() -> CxOrigin,
    method: &str,
    id: &RequestId,
) -> Span {
    telemetry::span(SpanKind::Server, || facts(&origin(), method, None, Some(id)))
}

fn facts<'a>(
    origin: &CxOrigin,
    method: &'a str,
    params: Option<&'a RawObject>,
    id: Option<&'a RequestId>,
) -> RequestFacts<'a> {
    RequestFacts {
        method,
        params,
        id: id.map(|id| id as &dyn std::fmt::Display),
        revision: origin.revision.map(Revision::as_str),
        session: None,
        transport: origin.transport,
    }
}

/// Runs an exchange in the span of its request, or as it is if there is no span.
pub(in crate::client) async fn in_span<F>(span: Span, exchange: Pin<&mut F>) -> Result<RequestOutcome>
where
    F: Future<Output = Result<RequestOutcome>>,
{
    if span.is_none() {
        return exchange.await;
    }
    let ended = exchange.instrument(span.clone()).await;
    record(&span, &ended);
    ended
}

fn record(span: &Span, ended: &Result<RequestOutcome>) {
    match ended {
        Ok(RequestOutcome::Complete(result)) if result.get("isError") == Some("true") => {
            telemetry::tool_failed(span);
        }
        Ok(RequestOutcome::Error(error) | RequestOutcome::UrlRequired { error, .. }) => {
            telemetry::failed(span, error);
        }
        Ok(RequestOutcome::Violation(_)) => telemetry::fault(span, "violation"),
        Ok(_) => {}
        Err(Error::Failed(failed)) => match &failed.error {
            Some(error) => telemetry::failed(span, error),
            None => telemetry::fault(span, "_OTHER"),
        },
        Err(Error::Timeout(_)) => telemetry::fault(span, "timeout"),
        Err(Error::Closed(_)) => telemetry::fault(span, "closed"),
        Err(Error::Refused(_)) => telemetry::fault(span, "refused"),
        Err(_) => telemetry::fault(span, "_OTHER"),
    }
}
