//! The spans of requests that no handler answers.

use super::{post::Admitted, request_cx::HttpRequestCx};
use crate::telemetry::{AnsweredRequests, ReceivedRequests};

/// Creates the spans of the requests of a message that no handler answers.
pub(super) fn recorded(cx: &HttpRequestCx, received: ReceivedRequests, mut admitted: Admitted) -> Admitted {
    if received.is_empty() {
        return admitted;
    }
    let mut answered = AnsweredRequests::default();
    match &mut admitted {
        // They have spans of their own.
        Admitted::Called(_) | Admitted::Stateless(_) => {}
        Admitted::InSession(exchange) => exchange.record_spans(&cx.context, received),
        Admitted::Answered(response) => {
            let body = response.body_mut();
            body.complete().into_iter().for_each(|bytes| answered.add_bytes(bytes));
            drop(received.spans(cx.context.connection_facts(), &answered));
        }
    }
    admitted
}
