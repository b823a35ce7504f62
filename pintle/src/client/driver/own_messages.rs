//! Messages that a connection sends by itself, and their way through the layers of the client.

use std::{
    fmt,
    future::poll_fn,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};

use pintle_proto::{
    Revision,
    client::{Extras, RequestOutcome},
};
use pintle_types::{RawObject, method};
use tokio::sync::{mpsc, oneshot};

use super::{BUDGET, Driver, Waiter};
use crate::{
    Error, Result,
    client::{
        asking::{BoxFuture, caught},
        layer::{Cx, CxOrigin, MessageFuture, in_span, request_span},
        state::ConnectionState,
    },
};

/// A message that the connection sends by itself, in the layers of the client.
pub(super) struct OwnMessage {
    kind: OwnKind,
    running: BoxFuture<Option<Result<RawObject>>>,
    passed: mpsc::Receiver<(RawObject, LayerReply)>,
    /// Whether the layers have passed it on.
    is_passed: bool,
    /// Whether another one is to follow it.
    again: bool,
}

/// The kind of a message that the connection sends by itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum OwnKind {
    /// A request whose result the connection does not use, or that it awaits while it is opened.
    Request(&'static str),
    Notification(&'static str),
    /// The request for all subscriptions.
    Listen,
}

/// A step of a message through the layers.
pub(super) enum LayerStep {
    /// The layers pass it on, with these params.
    Passed(RawObject, LayerReply),
    /// The layers have ended.
    Ended(Result<RawObject>),
}

/// Returns the outcome of a message to the layers, which may have ended meanwhile.
#[derive(Debug)]
pub(super) struct LayerReply(oneshot::Sender<Result<RequestOutcome>>);

impl LayerReply {
    pub(super) fn send(self, outcome: Result<RequestOutcome>) {
        let _ = self.0.send(outcome);
    }

    pub(super) fn complete(self) {
        self.send(Ok(RequestOutcome::Complete(RawObject::empty())));
    }
}

impl OwnKind {
    fn method(self) -> &'static str {
        match self {
            Self::Request(method) | Self::Notification(method) => method,
            Self::Listen => method::SUBSCRIPTIONS_LISTEN,
        }
    }
}

impl OwnMessage {
    /// Creates a message, of a revision that may still be under negotiation. The layers get it with the first poll.
    pub(super) fn new(
        shared: &Arc<ConnectionState>,
        kind: OwnKind,
        params: RawObject,
        revision: Option<Revision>,
    ) -> Self {
        let (method, is_notification) = (kind.method(), matches!(kind, OwnKind::Notification(_)));
        let (passing, passed) = mpsc::channel(1);
        let state = shared.clone();
        let perform = move |cx: Cx| -> MessageFuture {
            let (passing, state) = (passing.clone(), state.clone());
            Box::pin(async move {
                let params = cx.into_params();
                let origin = || CxOrigin { revision, ..state.cx_origin() };
                let span = (!is_notification).then(|| request_span(origin, method, &params));
                let exchange = async {
                    let (reply, replied) = oneshot::channel();
                    let closed = || Error::Closed(state.how_ended());
                    passing.send((params, LayerReply(reply))).await.map_err(|_| closed())?;
                    replied.await.unwrap_or_else(|_| Err(closed()))
                };
                match in_span(span.unwrap_or_else(tracing::Span::none), pin!(exchange)).await? {
                    RequestOutcome::Complete(result) | RequestOutcome::Extension { result, .. } => Ok(result),
                    RequestOutcome::Error(error) => Err(Error::Rpc(error)),
                    RequestOutcome::Violation(violation) => Err(Error::Protocol(violation)),
                    _ => Err(Error::Decode("the response is of an unknown kind".into())),
                }
            })
        };
        let cx = Cx::sent(shared.cx_origin(), method.into(), params, perform);
        let cx = if is_notification { cx.notification() } else { cx };
        let running = Box::pin(caught(shared.settings.layers.start(cx)));
        Self { kind, running, passed, is_passed: false, again: false }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<LayerStep> {
        if let Poll::Ready(result) = self.running.as_mut().poll(cx) {
            let panicked = || Err(Error::Refused("a layer panicked".into()));
            return Poll::Ready(LayerStep::Ended(result.unwrap_or_else(panicked)));
        }
        match self.passed.poll_recv(cx) {
            Poll::Ready(Some((params, reply))) => {
                self.is_passed = true;
                Poll::Ready(LayerStep::Passed(params, reply))
            }
            _ => Poll::Pending,
        }
    }

    pub(super) async fn next(&mut self) -> LayerStep {
        poll_fn(|cx| self.poll(cx)).await
    }
}

impl fmt::Debug for OwnMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnMessage").field(&self.kind).finish()
    }
}

impl Driver {
    /// Begins to send a message, if the revision has it. While a notification is in the layers, others of its method are merged into
    /// one that follows it.
    pub(super) fn send_own(&mut self, kind: OwnKind, params: RawObject) {
        let revision = self.engine.revision();
        if !revision.is_some_and(|revision| revision.has_method(kind.method())) {
            return;
        }
        let mut running = self.own.iter_mut();
        match running.find(|own| own.kind == kind && matches!(kind, OwnKind::Notification(_))) {
            Some(running) => running.again = true,
            None => self.own.push(OwnMessage::new(&self.shared, kind, params, revision)),
        }
    }

    /// Ends the way of the request for subscriptions through the layers, because it is no longer wanted.
    pub(super) fn stop_own_listen(&mut self) {
        self.own.retain(|own| own.kind != OwnKind::Listen);
    }

    /// Sends what the layers have passed on, up to a budget. Returns whether there may be more.
    pub(super) fn poll_own(&mut self, cx: &mut Context<'_>) -> bool {
        let (mut at, mut steps) = (0, 0);
        while let Some(own) = self.own.get_mut(at) {
            let kind = own.kind;
            match own.poll(cx) {
                Poll::Pending => {
                    at += 1;
                    continue;
                }
                Poll::Ready(LayerStep::Passed(params, reply)) => self.send_passed(kind, &params, reply),
                Poll::Ready(LayerStep::Ended(result)) => {
                    let own = self.own.remove(at);
                    self.own_ended(&own, result);
                }
            }
            steps += 1;
            if steps == BUDGET {
                return true;
            }
        }
        false
    }

    /// Waits until the layers have passed on or refused what was sent so far.
    pub(super) async fn own_passed(&mut self) {
        poll_fn(|cx| {
            if self.poll_own(cx) {
                cx.waker().wake_by_ref();
            }
            if self.own.iter().all(|own| own.is_passed) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn send_passed(&mut self, kind: OwnKind, params: &RawObject, reply: LayerReply) {
        match kind {
            OwnKind::Request(method) => match self.engine.request(method, params, &Extras::default()) {
                Ok(request) => self.send_request(request, Waiter::Own(reply)),
                Err(error) => reply.send(Err(Error::Misuse(error.to_string()))),
            },
            OwnKind::Notification(method) => {
                match self.engine.notify(method, Some(params.clone()).filter(|params| !params.is_empty())) {
                    Ok(notification) => {
                        self.send_notification(notification);
                        reply.complete();
                    }
                    Err(error) => reply.send(Err(Error::Misuse(error.to_string()))),
                }
            }
            OwnKind::Listen => self.listen_passed(params, reply),
        }
    }

    fn own_ended(&mut self, own: &OwnMessage, result: Result<RawObject>) {
        if own.again {
            self.send_own(own.kind, RawObject::empty());
        }
        match (own.kind, result) {
            (OwnKind::Listen, result) => self.listen_ended(result),
            (kind, Err(error)) => {
                tracing::debug!(method = kind.method(), %error, "a message of the connection was not answered");
            }
            (_, Ok(_)) => {}
        }
    }
}
