use std::{
    any::Any,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use pintle_proto::server::Outcome;
use pintle_types::RpcError;
use tokio::time::{Instant, sleep};

use super::replay::StateClaim;
use crate::server::{Cx, clock::sealed_at};

/// A handler's future, whatever its type was.
pub(crate) type HandlerFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// The result of dispatching a call.
pub(crate) enum Start {
    /// The outcome, which was available at once.
    Done(Outcome),
    /// A handler that has started.
    Run(HandlerFuture),
}

/// A call on its way to its end, or to the point where it waits for the client's next round.
pub(crate) struct HandlerRun {
    handler: Option<HandlerFuture>,
    cx: Cx,
    timeout: Option<Duration>,
    /// Set when the handler first waits: a call that waits for its turn has not begun.
    deadline: Option<Pin<Box<tokio::time::Sleep>>>,
    /// What was left of its time when it began to ask.
    left: Option<Duration>,
    /// Whether the handler is done, and only what came of it is being kept.
    settling: bool,
    /// What is to be said before the end, if it was asked for already.
    last: Vec<Bytes>,
    /// Carries the call to whatever carries the span; only where the client wants to read what is logged there.
    #[cfg(feature = "logging")]
    span: tracing::Span,
}

impl HandlerRun {
    pub(crate) fn new(handler: HandlerFuture, cx: Cx, timeout: Option<Duration>) -> Self {
        #[cfg(feature = "logging")]
        let span = match super::current::Here::new(&cx) {
            Some(_here) => tracing::error_span!(target: "pintle::call", "call", method = cx.method()),
            None => tracing::Span::none(),
        };
        Self {
            handler: Some(handler),
            cx,
            timeout,
            deadline: None,
            left: None,
            settling: false,
            last: Vec::new(),
            #[cfg(feature = "logging")]
            span,
        }
    }

    /// What must be said before the call's end.
    pub(crate) fn last_notifications(&mut self) -> Vec<Bytes> {
        let mut last = std::mem::take(&mut self.last);
        last.extend(self.cx.last_notifications());
        last
    }

    /// Ready when its time is up. For a call whose handler has to wait for its turn again, this is all there is to look at.
    pub(crate) fn poll_time(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        let Some(after) = self.timeout else { return Poll::Pending };
        if self.cx.is_asking() {
            // The client's time is not the call's: what is left of it is for afterwards.
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

    /// Before anybody is told, so that nothing of it runs any more when the answer is read. A handler that panics while it
    /// is dropped is as good as gone too.
    fn drop_handler(&mut self) {
        let handler = self.handler.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(handler)));
    }
}

impl Future for HandlerRun {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        #[cfg(feature = "logging")]
        let _here = super::current::Here::new(&self.cx);
        #[cfg(feature = "logging")]
        let span = self.span.clone();
        #[cfg(feature = "logging")]
        let _entered = span.enter();
        loop {
            let Some(handler) = &mut self.handler else { return Poll::Pending };
            // The handler first: questions that it asks side by side go out in one round.
            let polled = catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(cx)));
            let outcome = match polled {
                Ok(Poll::Ready(outcome)) => outcome,
                Err(panic) => panicked(&self.cx, &*panic),
                Ok(Poll::Pending) if !self.settling && self.cx.is_parked(cx.waker()) => {
                    let replied = self.cx.held().and_then(StateClaim::take_reply);
                    replied.map_or(Outcome::InputRequired, Outcome::Replied)
                }
                Ok(Poll::Pending) => ready!(self.poll_time(cx)),
            };
            self.drop_handler();
            let Some(held) = self.cx.held().filter(|_| !self.settling) else { return Poll::Ready(outcome) };
            // What is said at the end is made before the end: from there on the call is silent.
            let (last, sealed_at) = (self.cx.last_notifications(), sealed_at(&outcome));
            match held.settle(&self.cx, outcome, sealed_at) {
                Err(outcome) => {
                    self.last = last;
                    return Poll::Ready(outcome);
                }
                Ok(settling) => {
                    (self.handler, self.last) = (Some(settling), last);
                    (self.settling, self.timeout) = (true, None);
                }
            }
        }
    }
}

impl Drop for HandlerRun {
    fn drop(&mut self) {
        if self.cx.held().is_some() {
            // Nothing of it may act when somebody else is told what was done.
            self.drop_handler();
        }
        self.cx.end();
        if let Some(held) = self.cx.held() {
            held.release(self.cx.call());
        }
    }
}

/// The client learns that it happened; what was said is for the log of this side.
fn panicked(cx: &Cx, panic: &(dyn Any + Send)) -> Outcome {
    let message =
        panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(method = cx.method(), panic = message.unwrap_or("?"), "a handler panicked");
    Outcome::Failed(RpcError::internal("the handler failed: see the server's log"))
}
