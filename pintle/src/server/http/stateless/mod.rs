//! The stateless era: a call runs inside the future of its request, and ends with it.

pub(super) mod listen;

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Response, StatusCode};
use pintle_proto::{
    http::{Accepts, Refusal, stateless_status},
    server::{Arrival, Call, CarriedOut, Listen, Outcome, Stamped},
    sse::Frame,
};
use pintle_types::{ErrorCode, Request};

use super::{
    Body,
    edge::{
        keep_alive::KeepAlive,
        response::{EventSource, PIECE, events, json, refused},
    },
    request_cx::HttpRequestCx,
    rights,
    shared::HttpShared,
};
use crate::server::{
    clock::now,
    core::{
        driver::{
            call_driver::{CallDriver, CallStep},
            own_sink::OwnSink,
            sink::{CallEvent, CallSink},
        },
        snapshot::Snapshot,
    },
};

/// Admits a request, or returns the response that refuses it. `stamped` is its `_meta`.
pub(super) fn admit(
    cx: &HttpRequestCx,
    request: Request,
    stamped: Option<&Stamped>,
) -> Result<Call, Box<Response<Body>>> {
    let account = || cx.account();
    let mut arrival = Arrival::with_clock(now).charged_to(&account);
    if let Some(stamped) = stamped {
        arrival = arrival.stamped(stamped);
    }
    if let Some(principal) = &cx.principal {
        arrival = arrival.by(principal);
    }
    let admitted = cx.snapshot.service.admit_call(request, &arrival).map_err(|(id, error)| {
        Box::new(refused(&Refusal::new(admission_status(error.code), error), Some(&id)))
    });
    admitted.and_then(|call| rights::check_call(&cx.snapshot, &cx.context, &call).map(|()| call))
}

/// Returns the status of an error of a request that no handler has seen. A handler returns the code of invalid params for an
/// unknown tool, which is no HTTP error; here the request is malformed.
fn admission_status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::INVALID_PARAMS => StatusCode::BAD_REQUEST,
        code => stateless_status(code),
    }
}

/// Returns whether the response may be an event stream.
fn streams(cx: &HttpRequestCx, accepts: Accepts) -> bool {
    accepts.events && !cx.settings.json_only
}

const EVENTS: &str = "text/event-stream";

/// Runs a call. The response is JSON if the call completes without an event; its first notification, or a long silence, makes
/// it an event stream.
pub(super) async fn run(cx: &HttpRequestCx, call: Call, accepts: Accepts) -> Response<Body> {
    let mut driver =
        CallDriver::start(&cx.server, &cx.snapshot, &cx.context, call, CallSink::Own(OwnSink::default()));
    // The engine answers at once, or with a stream of its own.
    let may_stream = streams(cx, accepts) && !driver.call().is_own();
    let mut keep_alive = KeepAlive::new(cx.settings.keep_alive);
    let first = poll_fn(|task| {
        loop {
            match driver.poll_registered(&cx.http.0.calls, task) {
                Poll::Ready(CallStep::Event(CallEvent::Notification(line))) if may_stream => {
                    return Poll::Ready(FirstStep::Stream(Some(line)));
                }
                Poll::Ready(CallStep::Event(_)) => {}
                Poll::Ready(CallStep::Done(outcome)) => return Poll::Ready(FirstStep::Done(Some(outcome))),
                Poll::Ready(CallStep::Cancelled) => return Poll::Ready(FirstStep::Done(None)),
                Poll::Pending if may_stream => {
                    return keep_alive.poll(task).map(|()| FirstStep::Stream(None));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    });
    match first.await {
        FirstStep::Stream(line) => {
            let mut first = Vec::new();
            line.iter().for_each(|line| event(&mut first, line));
            driver.register(&cx.http.0.calls);
            driver.spawn(|_| false);
            events(
                CallStream { driver, shared: cx.http.0.clone(), snapshot: cx.snapshot.clone(), first },
                cx.settings.keep_alive,
            )
        }
        FirstStep::Done(Some(outcome)) => {
            let service = &cx.snapshot.service;
            let outcome = match service.carry_out(driver.call(), outcome) {
                CarriedOut::Outcome(outcome) => outcome,
                CarriedOut::Listen(listen) => return opened(cx, listen, accepts),
            };
            let status = if driver.call().is_own() { admission_status } else { stateless_status };
            let end = driver.finish(service, outcome);
            finished(end.error.map_or(StatusCode::OK, status), end.bytes, accepts, cx)
        }
        FirstStep::Done(None) => super::edge::response::accepted(),
    }
}

/// Answers with the stream of a subscription.
fn opened(cx: &HttpRequestCx, listen: Listen, accepts: Accepts) -> Response<Body> {
    let id = listen.call.id().clone();
    let opened = match streams(cx, accepts) {
        true => listen::answer(cx, listen),
        false => Err(Refusal::not_acceptable(EVENTS)),
    };
    opened.unwrap_or_else(|refusal| refused(&refusal, Some(&id)))
}

/// The end of the first phase of a call.
enum FirstStep {
    /// The response becomes an event stream, with this notification.
    Stream(Option<Bytes>),
    /// The call has completed; `None` if it was cancelled.
    Done(Option<Outcome>),
}

/// Returns a complete response: JSON, unless the client accepts only event streams.
fn finished(status: StatusCode, bytes: Vec<u8>, accepts: Accepts, cx: &HttpRequestCx) -> Response<Body> {
    let settings = &cx.settings;
    if accepts.json || settings.json_only || status != StatusCode::OK {
        return json(status, bytes);
    }
    let mut first = Vec::new();
    event(&mut first, &bytes);
    events(OneEvent(first), settings.keep_alive)
}

/// The event stream of a call.
struct CallStream {
    driver: CallDriver,
    shared: Arc<HttpShared>,
    snapshot: Arc<Snapshot>,
    first: Vec<u8>,
}

impl EventSource for CallStream {
    fn poll(&mut self, task: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()> {
        out.append(&mut self.first);
        while out.len() < PIECE {
            match std::task::ready!(self.driver.poll_registered(&self.shared.calls, task)) {
                CallStep::Event(CallEvent::Notification(line)) => event(out, &line),
                CallStep::Event(_) => {}
                CallStep::Done(outcome) => {
                    let end = self.driver.finish(&self.snapshot.service, outcome);
                    event(out, &end.bytes);
                    return Poll::Ready(());
                }
                CallStep::Cancelled => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }
}

/// An event stream with one event.
struct OneEvent(Vec<u8>);

impl EventSource for OneEvent {
    fn poll(&mut self, _: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()> {
        out.append(&mut self.0);
        Poll::Ready(())
    }
}

/// Writes a message as an event without an id: streams of this era cannot be resumed.
pub(super) fn event(out: &mut Vec<u8>, message: &[u8]) {
    // Serialized messages are UTF-8.
    if let Ok(text) = std::str::from_utf8(message) {
        let _ = Frame::data(text).write(out);
    }
}
