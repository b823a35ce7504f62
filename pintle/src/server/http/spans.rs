//! The spans of requests that no handler answers.

use super::{post::Admitted, request_cx::HttpRequestCx};
use crate::telemetry::{AnsweredRequests, ReceivedRequests};

/// Creates the spans of the requests of a message that no handler answers. That of a request that is answered by an event stream
/// ends with the stream.
pub(super) fn recorded(cx: &HttpRequestCx, received: ReceivedRequests, mut admitted: Admitted) -> Admitted {
    let mut answered = AnsweredRequests::default();
    match &mut admitted {
        // They have spans of their own.
        Admitted::Called(_) | Admitted::Stateless(_) | Admitted::Deferred(_) => {}
        Admitted::InSession(exchange) => exchange.record_spans(&cx.context, received),
        Admitted::Answered(response) => {
            let body = response.body_mut();
            body.complete().into_iter().for_each(|bytes| answered.add_bytes(bytes));
            let spans = received.spans(cx.context.connection_facts(), &answered);
            body.hold_spans(spans);
        }
    }
    admitted
}
