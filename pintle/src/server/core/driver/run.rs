use std::{
    any::Any,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use pintle_proto::server::Outcome;
use pintle_types::RpcError;
use tokio::time::{Instant, sleep};

use super::detached::DetachedEvents;
use crate::{
    layer::BoxHandling,
    server::{
        Cx,
        clock::sealed_at,
        core::cx::{
            detached::{Adopt, DetachedCall},
            span,
        },
        replay::{Acquired, StateClaim},
    },
};

/// The boxed future of a handler.
pub(crate) type HandlerFuture = BoxHandling<Outcome>;

/// The future of a handler with its timeout, its span and its claim. It also completes if a question ends the round.
pub(crate) struct HandlerRun {
    handler: Option<HandlerFuture>,
    cx: Cx,
    /// Set when the handler first waits.
    deadline: Option<Pin<Box<tokio::time::Sleep>>>,
    /// The rest of the timeout, while the call waits for its client.
    left: Option<Duration>,
    /// Whether the handler has completed, and `handler` is the completion of its claim.
    settling: bool,
    /// The notifications before the outcome, if they were taken already.
    last: Vec<Bytes>,
    /// The span of the call, if a subscriber wants it or the client receives log messages.
    span: tracing::Span,
    place: RunPlace,
}

/// Where a handler runs.
#[derive(Clone, Copy, Eq, PartialEq)]
enum RunPlace {
    /// In its request: the outcome is the response.
    Request,
    /// No longer here: it was detached, and what is left is to respond to the request.
    Elsewhere,
    /// After the response of its request.
    Detached,
}

impl HandlerRun {
    pub(crate) fn new(handler: HandlerFuture, cx: Cx, span: tracing::Span) -> Self {
        #[cfg(feature = "logging")]
        let span = match crate::server::core::cx::current::Here::new(&cx).filter(|_| span.is_disabled()) {
            Some(_here) => tracing::error_span!(target: "pintle::call", "call", method = cx.method()),
            None => span,
        };
        Self {
            handler: Some(handler),
            cx,
            deadline: None,
            left: None,
            settling: false,
            last: Vec::new(),
            span,
            place: RunPlace::Request,
        }
    }

    /// Creates the run of a handler that goes on after the response of its request.
    pub(crate) fn detached(handler: HandlerFuture, cx: Cx) -> Self {
        let mut run = Self::new(handler, cx, tracing::Span::none());
        run.place = RunPlace::Detached;
        run
    }

    /// Hands the handler over, and goes on with the response to its request.
    fn hand_over(&mut self, (adopt, events): (Adopt, Arc<DetachedEvents>), handler: HandlerFuture) {
        self.place = RunPlace::Elsewhere;
        let run = Box::pin(Self::detached(handler, self.cx.clone()));
        self.handler = Some(adopt(DetachedCall::new(run, &self.cx, events)));
    }

    /// Returns the notifications that have to be sent before the outcome.
    pub(crate) fn last_notifications(&mut self) -> Vec<Bytes> {
        let mut last = std::mem::take(&mut self.last);
        last.extend(self.cx.last_notifications());
        last
    }

    /// Polls the timeout only, for a handler that is held back.
    pub(crate) fn poll_time(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        let limit = self.cx.timeout().filter(|_| !self.settling && self.place == RunPlace::Request);
        let Some(after) = limit else { return Poll::Pending };
        if self.cx.is_asking() {
            // The timeout does not run while the call waits for its client.
            let left = self.deadline.take().map(|sleep| sleep.deadline() - Instant::now());
            self.left = left.or(self.left);
            return Poll::Pending;
        }
        let left = self.left.take();
        let sleep = self.deadline.get_or_insert_with(|| Box::pin(sleep(left.unwrap_or(after))));
        ready!(sleep.as_mut().poll(cx));
        let message = format!("the call took longer than {after:?} and was ended: ask for less");
        Poll::Ready(Outcome::Failed(RpcError::internal(message)))
    }

    /// Drops the handler, so that nothing of it runs when the response is sent. A panic of its destructor is ignored.
    fn drop_handler(&mut self) {
        let handler = self.handler.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(handler)));
    }
}

impl Future for HandlerRun {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        #[cfg(feature = "logging")]
        let _here = crate::server::core::cx::current::Here::new(&self.cx);
        let span = self.span.clone();
        let _entered = span.enter();
        loop {
            let Some(handler) = &mut self.handler else { return Poll::Pending };
            // The handler is polled before `parked` is read, so that concurrent questions are sent in one round.
            let polled = catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(cx)));
            let outcome = match polled {
                Ok(Poll::Ready(outcome)) => outcome,
                Err(panic) => panicked(&self.cx, &*panic),
                Ok(Poll::Pending) if self.place == RunPlace::Elsewhere => return Poll::Pending,
                Ok(Poll::Pending) if !self.settling && self.cx.is_parked(cx.waker()) => {
                    let replied = self.cx.held().and_then(StateClaim::take_reply);
                    replied.map_or(Outcome::InputRequired, Outcome::Replied)
                }
                Ok(Poll::Pending) => match (self.cx.adoption(false), self.handler.take()) {
                    (Some(adoption), Some(handler)) => {
                        self.hand_over(adoption, handler);
                        continue;
                    }
                    (_, handler) => {
                        self.handler = handler;
                        ready!(self.poll_time(cx))
                    }
                },
            };
            self.drop_handler();
            if self.place == RunPlace::Request
                && !matches!(outcome, Outcome::InputRequired | Outcome::Replied(_))
                && let Some(adoption) = self.cx.adoption(true)
            {
                self.hand_over(adoption, Box::pin(std::future::ready(outcome)));
                continue;
            }
            let is_settled = self.settling || self.place == RunPlace::Detached;
            let Some(held) = self.cx.held().filter(|_| !is_settled) else {
                span::record(&span, &outcome);
                return Poll::Ready(outcome);
            };
            // Taken before the call is finished: it emits nothing after that.
            let (last, sealed_at) = (self.cx.last_notifications(), sealed_at(&outcome));
            match held.settle(self.cx.call(), &self.cx.snapshot().service, outcome, sealed_at) {
                Err(outcome) => {
                    self.last = last;
                    span::record(&span, &outcome);
                    return Poll::Ready(outcome);
                }
                Ok(settling) => {
                    (self.handler, self.last) = (Some(settling), last);
                    self.settling = true;
                }
            }
        }
    }
}

impl Drop for HandlerRun {
    fn drop(&mut self) {
        if self.handler.is_some() {
            span::cancelled(&self.span);
        }
        if self.cx.held().is_some() {
            // Dropped before the state is released with its progress.
            self.drop_handler();
        }
        if self.place != RunPlace::Elsewhere {
            self.cx.end();
        }
        if let Some(held) = self.cx.held().filter(|_| self.place != RunPlace::Detached) {
            held.release(self.cx.call());
        }
    }
}

/// Runs a handler once the state that its call came with is claimed. If the state was used before, its reply is the call's.
pub(crate) fn run_claimed(
    cx: &Cx,
    handler: impl FnOnce(Cx) -> HandlerFuture + Send + 'static,
) -> HandlerFuture {
    let cx = cx.clone();
    Box::pin(async move {
        let Some(used) = cx.call().state_use() else { return handler(cx).await };
        let guard = &cx.outermost_snapshot().settings.replay;
        let claim = cx.hold(|| StateClaim::new(guard.clone(), cx.call(), &used));
        match claim.acquire(cx.call()).await {
            Ok(Acquired::First) => handler(cx.clone()).await,
            Ok(Acquired::Replied) => cx.end_round().await,
            Err(outcome) => outcome,
        }
    })
}

/// Returns the outcome of a handler that panicked. The message of the panic is logged and not sent to the client.
fn panicked(cx: &Cx, panic: &(dyn Any + Send)) -> Outcome {
    let message =
        panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(method = cx.method(), panic = message.unwrap_or("?"), "a handler panicked");
    Outcome::Failed(RpcError::internal("the handler failed: see the server's log"))
}
