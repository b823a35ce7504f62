//! Requests that no handler answers, and notifications, of a server with layers: they run inside the future of their request.

use std::{future::poll_fn, sync::Arc};

use http::Response;
use pintle_proto::{
    http::{Accepts, Refusal},
    server::{Call, Listen, Outcome, Performed},
};
use pintle_types::{Notification, RawObject};

use super::{
    Body,
    edge::response::{accepted, refused},
    request_cx::HttpRequestCx,
    stateless::{self, listen},
};
use crate::server::{
    Cx, Server,
    call::{
        context::RequestContext,
        driver::{CallDriver, CallStep},
        own_sink::OwnSink,
        sink::{CallEvent, CallSink},
    },
    clock::sealed_at,
    dispatch,
    snapshot::Snapshot,
};

/// Runs the layers around a request. `perform` carries it out when they pass it on. The outcome is `None` if the call was
/// cancelled.
pub(super) async fn run(
    cx: &HttpRequestCx,
    call: Call,
    mut perform: impl FnMut(&Call, &RawObject) -> Outcome,
) -> (Call, Option<Outcome>) {
    let sink = CallSink::Own(OwnSink::default());
    let mut driver = CallDriver::start(&cx.server, &cx.snapshot, &cx.context, call.clone(), sink);
    loop {
        match poll_fn(|task| driver.poll_registered(&cx.http.0.calls, task)).await {
            CallStep::Event(CallEvent::Perform(params, reply)) => {
                // The layers may have ended meanwhile.
                let _ = reply.send(perform(&call, &params));
            }
            // There is no stream for notifications.
            CallStep::Event(_) => {}
            CallStep::Done(outcome) => return (call, Some(outcome)),
            CallStep::Cancelled => return (call, None),
        }
    }
}

/// Answers a stateless request.
pub(super) async fn answer(cx: &HttpRequestCx, call: Call, accepts: Accepts) -> Response<Body> {
    let mut opened: Option<Listen> = None;
    let service = &cx.snapshot.service;
    let (call, outcome) = run(cx, call, |call, params| match service.perform(call, params) {
        Ok(Performed::Outcome(outcome)) => outcome,
        Ok(Performed::Listen(listen)) => {
            opened = Some(listen);
            Outcome::Complete(RawObject::empty().into())
        }
        Err(error) => Outcome::Failed(error),
    })
    .await;
    let Some(outcome) = outcome else { return accepted() };
    if let Some(listen) = opened.filter(|_| !matches!(outcome, Outcome::Failed(_))) {
        let id = call.id();
        return match stateless::streams(cx, accepts) {
            false => refused(&Refusal::not_acceptable(stateless::EVENTS), Some(id)),
            true => listen::answer(cx, listen).unwrap_or_else(|refusal| refused(&refusal, Some(id))),
        };
    }
    let sealed_at = sealed_at(&outcome);
    let end = call.finish(service, outcome, sealed_at);
    let status = end.error.map_or(http::StatusCode::OK, stateless::admission_status);
    stateless::finished(status, end.bytes, accepts, cx)
}

/// Passes a notification that belongs to no session through the layers.
pub(super) async fn notify(cx: &HttpRequestCx, notification: Notification) {
    let call = Call::of_notification(&cx.snapshot.service, notification, None, cx.principal.as_deref());
    let sink = OwnSink::default();
    dispatch::notify(notification_cx(&cx.server, &cx.snapshot, &cx.context, call, sink)).await;
}

/// Returns the context of a notification.
pub(super) fn notification_cx(
    server: &Server,
    snapshot: &Arc<Snapshot>,
    context: &Arc<RequestContext>,
    call: Call,
    sink: OwnSink,
) -> Cx {
    // Nobody receives its events.
    sink.close();
    Cx::new(call, server.clone(), snapshot.clone(), context.clone(), CallSink::Own(sink))
}
