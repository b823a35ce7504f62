//! The spans of the requests of a handle.

use std::future::Future;

use pintle_proto::client::RequestOutcome;
use pintle_types::RawObject;
use tracing::{Instrument as _, Span};

use super::Connection;
use crate::{
    Error, Result,
    telemetry::{self, RequestFacts, SpanKind},
};

impl Connection {
    /// Creates the span of a request, if a subscriber wants it.
    pub(super) fn span(&self, method: &str, params: &RawObject) -> Span {
        if !telemetry::is_enabled() {
            return Span::none();
        }
        let verdict = self.shared().server_facts().verdict;
        telemetry::span(
            SpanKind::Client,
            &RequestFacts {
                method,
                params: Some(params),
                id: None,
                revision: verdict.as_ref().map(|verdict| verdict.revision().as_str()),
                session: None,
                transport: self.shared().transport,
            },
        )
    }
}

/// Runs a request in its span.
pub(super) async fn in_span(
    span: Span,
    request: impl Future<Output = Result<RequestOutcome>>,
) -> Result<RequestOutcome> {
    let ended = request.instrument(span.clone()).await;
    record(&span, &ended);
    ended
}

/// Records how a request ended.
pub(super) fn record(span: &Span, ended: &Result<RequestOutcome>) {
    match ended {
        Ok(RequestOutcome::Complete(result)) if result.get("isError") == Some("true") => {
            telemetry::tool_failed(span);
        }
        Ok(RequestOutcome::Error(error) | RequestOutcome::UrlRequired { error, .. }) => {
            telemetry::failed(span, error);
        }
        Ok(RequestOutcome::Violation(_)) => telemetry::fault(span, "violation"),
        Ok(_) => {}
        Err(Error::Timeout(_)) => telemetry::fault(span, "timeout"),
        Err(Error::Closed(_)) => telemetry::fault(span, "closed"),
        Err(Error::Refused(_)) => telemetry::fault(span, "refused"),
        Err(_) => telemetry::fault(span, "_OTHER"),
    }
}
