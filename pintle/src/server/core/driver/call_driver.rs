//! The driver of a call: the same for a byte stream, a stateless request and a session over HTTP.
//!
//! | | byte stream | stateless HTTP | session HTTP |
//! |---|---|---|---|
//! | first poll | in the connection's task | in the request's future | in the request's future |
//! | then | [`CallDriver::run`] in a task | the request's future; a task once it streams | likewise |
//! | sink | shared by the connection | the call's own | the call's own |
//! | a question | a request to the client | ends the round (`input_required`) | a request to the client |
//!
//! Questions are the seam for other drivers. A handler asks with a key; [`Ask`](pintle_proto::inputs::Ask) says whether the
//! answer is known, has to be awaited, or ends the round. A question that is awaited is emitted as
//! [`CallEvent::Ask`] with the sender of its answer, and the owner of the sink alone decides who answers: a client, a
//! task's record or a downstream call.

use std::{
    future::Future as _,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use pintle_proto::server::{Call, Outcome};
use pintle_types::{RpcError, method};
#[cfg(feature = "http-server")]
use tokio::sync::oneshot;

#[cfg(feature = "http-server")]
use super::registry::RegisteredCall;
use super::{
    context::RequestContext,
    run::HandlerRun,
    sink::{CallEvent, CallSink},
};
use crate::{
    layer::Handling,
    server::{
        Server,
        core::{
            cx::{Cx, span},
            snapshot::Snapshot,
            subscription,
        },
    },
};

/// A running call. Dropping it drops the handler.
pub(crate) struct CallDriver {
    cx: Cx,
    handler: HandlerState,
    /// Whether the sink may hold more events: they come before the next poll of the handler.
    draining: bool,
    /// Whether the handler is held back until the call may run again.
    #[cfg(feature = "http-server")]
    held: bool,
    /// The entry in the registry of waiting calls, once the call has waited.
    #[cfg(feature = "http-server")]
    registered: Option<RegisteredCall>,
}

/// Where a call's handler is.
enum HandlerState {
    /// Here: polling the driver polls it.
    Inline(HandlerRun),
    /// In a task, which reports the outcome and the notifications that come before it.
    #[cfg(feature = "http-server")]
    Spawned(oneshot::Receiver<(Outcome, Vec<Bytes>)>),
    /// Completed. `outcome` is taken once; `last` are the notifications that come before it, in reverse.
    Done { outcome: Option<Outcome>, last: Vec<Bytes> },
}

impl HandlerState {
    const GONE: Self = Self::Done { outcome: None, last: Vec::new() };
}

/// A step of a call.
pub(crate) enum CallStep {
    /// The call emits an event. With a shared sink only the notifications right before the outcome come this way.
    Event(CallEvent),
    /// The call is over.
    Done(Outcome),
    /// The call was cancelled: no response is owed.
    Cancelled,
}

impl CallDriver {
    /// Dispatches a call. Its handler is not polled yet.
    pub(crate) fn start(
        server: &Server,
        snapshot: &Arc<Snapshot>,
        context: &Arc<RequestContext>,
        call: Call,
        sink: CallSink,
    ) -> Self {
        let cx = Cx::new(call, server.clone(), snapshot.clone(), context.clone(), sink);
        #[cfg(feature = "http-server")]
        if cx.call().charge().bytes() > 0 && cx.own_sink().is_some() {
            cx.give_way(cx.call().charge());
        }
        let span = call_span(&cx);
        let started = {
            let _entered = span.enter();
            catch_unwind(AssertUnwindSafe(|| snapshot.stack.go(cx.clone())))
        };
        let handler = match started {
            Ok(Handling::Running(handler)) => {
                let handler = subscription::ending(&cx, handler);
                HandlerState::Inline(HandlerRun::new(handler, cx.clone(), span))
            }
            Ok(Handling::Ready(outcome)) => {
                outcome.iter().for_each(|outcome| span::record(&span, outcome));
                HandlerState::Done { outcome, last: Vec::new() }
            }
            Err(_) => {
                tracing::error!(method = cx.method(), "a handler panicked before it began");
                let outcome = Outcome::Failed(RpcError::internal("the handler failed: see the server's log"));
                span::record(&span, &outcome);
                HandlerState::Done { outcome: Some(outcome), last: Vec::new() }
            }
        };
        Self {
            cx,
            handler,
            draining: false,
            #[cfg(feature = "http-server")]
            held: false,
            #[cfg(feature = "http-server")]
            registered: None,
        }
    }

    pub(crate) fn call(&self) -> &Call {
        self.cx.call()
    }

    /// Returns whether this is a `ping` that the engine answers, which does not wait for its layers.
    pub(crate) fn is_ping(&self) -> bool {
        self.call().is_own() && self.call().method() == method::PING
    }

    /// Polls the handler, and the events of a call with its own sink.
    pub(crate) fn poll(&mut self, task: &mut Context<'_>) -> Poll<CallStep> {
        if std::mem::take(&mut self.draining)
            && let Some(step @ CallStep::Event(_)) = self.take_event()
        {
            self.draining = true;
            return Poll::Ready(step);
        }
        let ended = match &mut self.handler {
            HandlerState::Inline(run) => match Pin::new(&mut *run).poll(task) {
                Poll::Ready(outcome) => Some((Some(outcome), run.last_notifications())),
                Poll::Pending => None,
            },
            #[cfg(feature = "http-server")]
            HandlerState::Spawned(end) => match Pin::new(end).poll(task) {
                Poll::Ready(Ok((outcome, last))) => Some((Some(outcome), last)),
                // The task was aborted; the sink may know why.
                Poll::Ready(Err(_)) => Some((None, Vec::new())),
                Poll::Pending => None,
            },
            HandlerState::Done { .. } => None,
        };
        if let Some((outcome, mut last)) = ended {
            last.reverse();
            self.handler = HandlerState::Done { outcome, last };
        }
        if !matches!(self.handler, HandlerState::Done { .. }) {
            let polled = self.poll_event(task);
            self.draining = polled.is_ready();
            return polled;
        }
        if let Some(step) = self.take_event() {
            return Poll::Ready(step);
        }
        let HandlerState::Done { outcome, last } = &mut self.handler else { return Poll::Pending };
        Poll::Ready(match last.pop() {
            Some(line) => CallStep::Event(CallEvent::Notification(line)),
            None => outcome.take().map_or(CallStep::Cancelled, CallStep::Done),
        })
    }

    /// Runs a call with a shared sink to its end, and sends the outcome to the sink.
    pub(crate) async fn run(mut self) {
        loop {
            let event = match std::future::poll_fn(|task| self.poll(task)).await {
                CallStep::Event(event) => event,
                CallStep::Done(outcome) => {
                    let done = CallEvent::Done(self.call().clone(), outcome);
                    return self.cx.response_sink().send(done).await;
                }
                CallStep::Cancelled => return,
            };
            self.cx.response_sink().send(event).await;
        }
    }

    /// Polls the next event, if the sink is the call's own.
    #[cfg_attr(
        not(feature = "http-server"),
        expect(unused_variables, reason = "a shared sink has its own receiver")
    )]
    fn poll_event(&self, task: &mut Context<'_>) -> Poll<CallStep> {
        match self.cx.response_sink() {
            CallSink::Shared(_) | CallSink::Detached(_) => Poll::Pending,
            #[cfg(feature = "http-server")]
            CallSink::Own(sink) => sink.poll(task).map(spawned::step),
        }
    }

    /// Takes the next event without waiting, or the end if somebody other than the handler has ended the call.
    fn take_event(&self) -> Option<CallStep> {
        match self.cx.response_sink() {
            CallSink::Shared(_) | CallSink::Detached(_) => None,
            #[cfg(feature = "http-server")]
            CallSink::Own(sink) => sink.take().transpose().map(spawned::step),
        }
    }
}

/// Creates the span of a call, if a subscriber wants it.
fn call_span(cx: &Cx) -> tracing::Span {
    // Log messages in it are those of the call.
    #[cfg(feature = "logging")]
    let _here = crate::server::core::cx::current::Here::new(cx);
    span::of_call(cx)
}

impl Drop for CallDriver {
    fn drop(&mut self) {
        // First the handler: its drop may send events that nobody receives.
        let handler = std::mem::replace(&mut self.handler, HandlerState::GONE);
        if catch_unwind(AssertUnwindSafe(|| drop(handler))).is_err() {
            tracing::error!(method = self.cx.method(), "a handler panicked while it was dropped");
        }
        self.call().close();
        #[cfg(feature = "http-server")]
        if let Some(sink) = self.cx.own_sink() {
            sink.close();
        }
    }
}

/// The methods of calls with their own sink: they can run in a task, be held back, and be awaited by a shutdown.
#[cfg(feature = "http-server")]
mod spawned {
    use std::{
        future::{Future as _, poll_fn},
        pin::Pin,
        sync::Arc,
        task::{Context, Poll},
    };

    use pintle_proto::server::{Call, Finished, Outcome, Service};
    use tokio::{runtime::Handle, sync::oneshot};

    use super::{CallDriver, CallStep, HandlerState};
    use crate::server::{
        clock::sealed_at,
        core::{
            cx::Cx,
            driver::{
                own_sink::{CallEnd, OwnSink},
                registry::CallRegistry,
                sink::CallEvent,
            },
        },
    };

    impl CallDriver {
        /// Serializes the response of a call that belongs to no session.
        pub(crate) fn finish(&self, service: &Service, outcome: Outcome) -> Finished {
            let sealed_at = sealed_at(&outcome);
            self.call().finish(service, outcome, sealed_at)
        }

        /// Runs a call that has its response already to its end. Nobody receives its events.
        pub(crate) async fn run_answered(mut self) {
            while let CallStep::Event(_) = poll_fn(|task| self.poll(task)).await {}
        }

        pub(crate) fn cx(&self) -> &Cx {
            &self.cx
        }

        /// Returns whether somebody other than the handler has ended the call.
        pub(crate) fn is_ended(&self) -> bool {
            self.cx.own_sink().is_none_or(OwnSink::is_ended)
        }

        /// Polls the call, and enters it into the registry if it has to wait.
        pub(crate) fn poll_registered(
            &mut self,
            registry: &Arc<CallRegistry>,
            task: &mut Context<'_>,
        ) -> Poll<CallStep> {
            let polled = self.poll(task);
            if polled.is_pending() {
                self.register(registry);
            }
            polled
        }

        /// Polls a call that may not run yet: it can only be ended.
        pub(crate) fn poll_waiting(
            &mut self,
            registry: &Arc<CallRegistry>,
            task: &mut Context<'_>,
        ) -> Poll<CallStep> {
            self.register(registry);
            self.poll_event(task)
        }

        /// Enters the call into the registry of waiting calls.
        pub(crate) fn register(&mut self, registry: &Arc<CallRegistry>) {
            if self.registered.is_none() {
                self.registered = Some(registry.enter(&self.cx));
            }
        }

        /// Moves the handler to a task, so that it completes in time even if nobody polls the driver. The task ends with
        /// the call. While the handler is held back, it is polled only if `is_asking` returns that the client still has to
        /// answer it.
        pub(crate) fn spawn(&mut self, is_asking: impl Fn(&Call) -> bool + Send + Sync + 'static) {
            // Without a runtime there are no tasks.
            let Ok(runtime) = Handle::try_current() else { return };
            let mut run = match std::mem::replace(&mut self.handler, HandlerState::GONE) {
                HandlerState::Inline(run) => run,
                other => return self.handler = other,
            };
            let (report, end) = oneshot::channel();
            let cx = self.cx.clone();
            let task = crate::runtime::spawn_on(&runtime, async move {
                let outcome = poll_fn(|task| {
                    let held = cx.own_sink().filter(|sink| !sink.may_run(task));
                    match held {
                        Some(sink) if !is_asking(cx.call()) => {
                            // It may have been answered: the driver has to acquire a slot for it.
                            sink.wake();
                            run.poll_time(task)
                        }
                        _ => Pin::new(&mut run).poll(task),
                    }
                })
                .await;
                let last = run.last_notifications();
                // Dropped before the outcome is known, so that nothing of it runs when the response is read.
                drop(run);
                let _ = report.send((outcome, last));
            });
            if let Some(sink) = self.cx.own_sink() {
                sink.set_task(task.abort_handle());
            }
            self.handler = HandlerState::Spawned(end);
        }

        /// Holds a spawned handler back, or lets it go on.
        pub(crate) fn hold(&mut self, held: bool) {
            if self.held != held
                && let Some(sink) = self.cx.own_sink()
            {
                self.held = held;
                sink.hold(held);
            }
        }
    }

    pub(super) fn step(event: Result<CallEvent, CallEnd>) -> CallStep {
        match event {
            Ok(event) => CallStep::Event(event),
            Err(CallEnd::Cancelled) => CallStep::Cancelled,
            Err(CallEnd::Failed(error)) => CallStep::Done(Outcome::Failed(*error)),
        }
    }
}
