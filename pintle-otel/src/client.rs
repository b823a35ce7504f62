//! The messages of a client: those that it sends, and those that it receives.

use opentelemetry::{Context, trace::SpanKind};
use pintle::{
    Error, Result,
    client::{Cx, Direction, Next},
    types::RawObject,
};

use crate::{
    Telemetry, carrier, names,
    operation::{Ending, Operation},
    server::within,
    telemetry::{OperationFacts, bounded_notification},
};

/// The context of a call, for the input requests that come with its result.
#[derive(Clone)]
struct CallContext(Context);

/// A request or a notification that is observed. One that is dropped was cancelled.
struct ObservedRequest(Option<Operation>);

impl ObservedRequest {
    fn end(&mut self, ending: Ending) {
        if let Some(operation) = self.0.take() {
            operation.end(ending);
        }
    }
}

impl Drop for ObservedRequest {
    fn drop(&mut self) {
        self.end(Ending::failure("cancelled"));
    }
}

/// Sends or answers a message in its span.
pub(crate) async fn observe_message(telemetry: Telemetry, cx: Cx, next: Next) -> Result<RawObject> {
    let (kind, parent) = match cx.direction() {
        Direction::Out => (SpanKind::Client, Context::current()),
        Direction::In => {
            let call = cx.extensions().get::<CallContext>().map(|call| call.0.clone());
            (SpanKind::Server, carrier::extract(cx.meta(), &call.unwrap_or_else(Context::current)))
        }
    };
    let facts = OperationFacts {
        kind: kind.clone(),
        method: match (cx.is_notification(), cx.direction()) {
            (true, Direction::In) => bounded_notification(cx.method()),
            _ => cx.method(),
        },
        target: cx.target(),
        revision: cx.revision().map(|revision| revision.as_str()),
        request_id: None,
        client_address: None,
        transport: cx.transport(),
    };
    let operation = telemetry.start(facts, &parent, Vec::new());
    let context = operation.context.clone();
    let mut observed = ObservedRequest(Some(operation));
    let cx = if kind == SpanKind::Client { carrying(cx, &context) } else { cx };
    let ended = within(context, next.run(cx)).await;
    observed.end(ending(&ended));
    ended
}

/// Returns a message that carries the context.
fn carrying(cx: Cx, context: &Context) -> Cx {
    let cx = cx.with(CallContext(context.clone()));
    match carrier::carrying(cx.params(), context) {
        Some(params) => cx.with_params(params),
        None => cx,
    }
}

fn ending(ended: &Result<RawObject>) -> Ending {
    match ended {
        Ok(result) if result.get("isError") == Some("true") => Ending::failure(names::TOOL_ERROR),
        Ok(_) => Ending::success(),
        Err(Error::Rpc(error)) => Ending::rpc(error),
        Err(Error::Timeout(_)) => Ending::failure("timeout"),
        Err(Error::Closed(_)) => Ending::failure("closed"),
        Err(Error::Refused(_)) => Ending::failure("refused"),
        Err(Error::Protocol(_)) => Ending::failure("violation"),
        // It goes on when the input is there.
        Err(Error::Suspended(_)) => Ending::success(),
        Err(_) => Ending::failure("_OTHER"),
    }
}
