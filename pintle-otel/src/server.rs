//! The messages of a server: requests and notifications that it receives, and requests that it sends.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
};

use opentelemetry::{
    Context,
    trace::{Link, SpanKind, TraceContextExt as _},
};
use pintle::{
    server::{AskError, Cx, Next, Outcome, OutgoingNext, OutgoingRequest},
    types::RawObject,
};

use crate::{
    Telemetry, carrier, names,
    operation::{Ending, Operation},
    telemetry::{OperationFacts, bounded_notification},
};

/// A call that is observed. A call that is dropped was cancelled, or has ended its round with a question.
struct ObservedCall {
    cx: Cx,
    operation: Option<Operation>,
}

impl ObservedCall {
    fn context(&self) -> Context {
        self.operation.as_ref().map_or_else(Context::new, |operation| operation.context.clone())
    }

    fn end(&mut self, ending: Ending) {
        if let Some(operation) = self.operation.take() {
            operation.end(ending);
        }
    }
}

impl Drop for ObservedCall {
    fn drop(&mut self) {
        let asked = self.cx.is_input_required();
        self.end(if asked { Ending::success() } else { Ending::failure("cancelled") });
    }
}

/// Runs a call, or handles a notification, in its span.
pub(crate) async fn observe_call(telemetry: Telemetry, cx: Cx, next: Next) -> Outcome {
    let mut is_detached = cx.is_detached();
    let operation = match is_detached {
        // The work of a task, once more after a restart.
        true => task(&telemetry, &cx, &caller(&cx)),
        false => received(&telemetry, &cx),
    };
    let mut observed = ObservedCall { cx: cx.clone(), operation: Some(operation) };
    let mut handling = pin!(next.run(cx));
    let outcome = poll_fn(|waker| {
        let polled = poll_in(observed.context(), handling.as_mut(), waker);
        // The response is sent; what goes on is the work of a task, with a trace of its own.
        if polled.is_pending() && !is_detached && observed.cx.is_detached() {
            is_detached = true;
            let request = observed.context();
            observed.end(Ending::success());
            observed.operation = Some(task(&telemetry, &observed.cx, &request));
        }
        polled
    })
    .await;
    observed.end(ending(&outcome));
    outcome
}

/// Polls a future with a context as the current one.
fn poll_in<F: Future>(
    context: Context,
    future: Pin<&mut F>,
    waker: &mut std::task::Context<'_>,
) -> std::task::Poll<F::Output> {
    let _attached = context.attach();
    future.poll(waker)
}

/// Runs a future with a context as the current one.
pub(crate) async fn within<F: Future>(context: Context, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|waker| poll_in(context.clone(), future.as_mut(), waker)).await
}

/// Returns the context that a request came with.
fn caller(cx: &Cx) -> Context {
    carrier::extract(cx.meta(), &Context::new())
}

/// Starts the span of a request that was received: below that of its caller, with a link to that of the HTTP request.
fn received(telemetry: &Telemetry, cx: &Cx) -> Operation {
    let (caller, ambient) = (caller(cx), Context::current());
    let (parent, linked) = match (caller.has_active_span(), telemetry.links_callers()) {
        (true, false) => (carrier::extract(cx.meta(), &ambient), ambient),
        (true, true) => (ambient, caller),
        (false, false) => (carrier::extract(cx.meta(), &ambient), Context::new()),
        (false, true) => (ambient, Context::new()),
    };
    telemetry.start(facts(cx, SpanKind::Server), &parent, links(&linked))
}

/// Starts the span of the work of a task, with a link to the request that created it.
fn task(telemetry: &Telemetry, cx: &Cx, request: &Context) -> Operation {
    telemetry.start(facts(cx, SpanKind::Internal), &Context::new(), links(request))
}

fn links(context: &Context) -> Vec<Link> {
    match context.has_active_span() {
        true => vec![Link::with_context(context.span().span_context().clone())],
        false => Vec::new(),
    }
}

fn facts(cx: &Cx, kind: SpanKind) -> OperationFacts<'_> {
    OperationFacts {
        kind,
        method: if cx.is_notification() { bounded_notification(cx.method()) } else { cx.method() },
        target: cx.target(),
        // A notification without a session does not name one.
        revision: (!cx.is_notification() || cx.session().is_some()).then(|| cx.peer().revision.as_str()),
        request_id: cx.request_id().map(ToString::to_string),
        client_address: cx.peer_address().map(|address| address.ip().to_string()),
        transport: cx.transport(),
    }
}

fn ending(outcome: &Outcome) -> Ending {
    match outcome {
        Outcome::Failed(error) => Ending::rpc(error),
        Outcome::NotFound { .. } => Ending::failure("not_found"),
        outcome if outcome.is_error() => Ending::failure(names::TOOL_ERROR),
        _ => Ending::success(),
    }
}

/// Sends a request of a call to its client, in a span below that of the call.
pub(crate) async fn observe_outgoing(
    telemetry: Telemetry,
    request: OutgoingRequest,
    next: OutgoingNext,
) -> Result<RawObject, AskError> {
    let cx = request.cx().clone();
    let facts = OperationFacts {
        method: request.method(),
        target: None,
        request_id: None,
        client_address: None,
        ..facts(&cx, SpanKind::Client)
    };
    let operation = telemetry.start(facts, &Context::current(), Vec::new());
    let context = operation.context.clone();
    let mut observed = ObservedCall { cx: cx.clone(), operation: Some(operation) };
    let request = match carrier::carrying(request.params(), &context) {
        Some(params) => request.with_params(params),
        None => request,
    };
    let answered = within(context, next.run(request)).await;
    observed.end(match &answered {
        Ok(_) => Ending::success(),
        Err(AskError::Refused(error)) => Ending::rpc(error),
        Err(AskError::TimedOut { .. }) => Ending::failure("timeout"),
        Err(AskError::CallOver) => Ending::failure("cancelled"),
        Err(_) => Ending::failure("_OTHER"),
    });
    answered
}
