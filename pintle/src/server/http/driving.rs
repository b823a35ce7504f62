use std::{
    future::{Future as _, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use pintle_proto::server::{Call, Finished, Outcome};
use pintle_types::RpcError;
use tokio::{runtime::Handle, sync::oneshot};

use super::{calls::Entered, service::Shared, session::Session};
use crate::server::{
    Cx, Server,
    call::{
        around::Around,
        dispatch::{self, Start},
        outbox::{End, Outbox},
        port::{Port, Said},
        run::Run,
    },
    state::State,
    stream::sealed_at,
};

/// A call on its way, driven by whoever waits for its answer.
pub(super) struct Driving {
    cx: Cx,
    handler: Handler,
    /// Whether more may wait of what was said: then that comes before the handler's next steps.
    talking: bool,
    /// Whether its handler has to wait for its turn again.
    held: bool,
    /// Its place among the calls that wait, if it ever had to.
    entered: Option<Entered>,
}

/// Where a call's handler is.
enum Handler {
    /// Here: whoever drives the call runs it.
    Here(Run),
    /// In a task of its own, which tells how it ended and what must be said before the end.
    Away(oneshot::Receiver<(Outcome, Vec<Bytes>)>),
    /// It came to its end, unless that was taken, and this must be said before, the first last.
    Over { end: Option<Outcome>, last: Vec<Bytes> },
}

impl Handler {
    /// Nothing is left of it.
    const GONE: Self = Self::Over { end: None, last: Vec::new() };
}

/// How far a call came.
pub(super) enum Step {
    /// It says something.
    Said(Said),
    /// It is over.
    Done(Outcome),
    /// It was cancelled, and no answer is owed.
    Cancelled,
}

impl Driving {
    /// Begins a call. Nothing of its handler has run yet.
    pub(super) fn begin(server: &Server, state: &Arc<State>, around: &Arc<Around>, call: Call) -> Self {
        let port = Port::Own(Outbox::default());
        let cx = Cx::new(call, server.clone(), state.clone(), around.clone(), port);
        let started = catch_unwind(AssertUnwindSafe(|| dispatch::start(&cx)));
        let handler = match started {
            Ok(Start::Run(handling)) => {
                let run = Run::new(handling, cx.clone(), state.settings.timeout);
                Handler::Here(run)
            }
            Ok(Start::Done(outcome)) => Handler::Over { end: Some(outcome), last: Vec::new() },
            Err(_) => {
                tracing::error!(method = cx.method(), "a handler panicked before it began");
                let error = RpcError::internal("the handler failed: see the server's log");
                Handler::Over { end: Some(Outcome::Failed(error)), last: Vec::new() }
            }
        };
        Self { cx, handler, talking: false, held: false, entered: None }
    }

    pub(super) fn call(&self) -> &Call {
        self.cx.call()
    }

    /// Prints its answer, if it is one that stands alone.
    pub(super) fn finish(&self, state: &State, outcome: Outcome) -> Finished {
        let sealed_at = sealed_at(&outcome);
        self.call().finish(&state.service, outcome, sealed_at)
    }

    /// The way to cancel it from elsewhere.
    pub(super) fn cx(&self) -> &Cx {
        &self.cx
    }

    /// Whether somebody else than its handler ends it.
    pub(super) fn is_ended(&self) -> bool {
        self.cx.outbox().is_none_or(Outbox::is_ended)
    }

    /// The same for a call whose turn has not come: it can only be ended.
    pub(super) fn poll_waiting(&mut self, shared: &Arc<Shared>, task: &mut Context<'_>) -> Poll<Step> {
        self.enter(shared);
        let Some(outbox) = self.cx.outbox() else { return Poll::Ready(Step::Cancelled) };
        outbox.poll(task).map(said)
    }

    /// Goes on with it.
    pub(super) fn poll(&mut self, shared: &Arc<Shared>, task: &mut Context<'_>) -> Poll<Step> {
        let polled = self.poll_step(task);
        if polled.is_pending() {
            self.enter(shared);
        }
        polled
    }

    /// Has a shutdown wait for it.
    pub(super) fn enter(&mut self, shared: &Arc<Shared>) {
        if self.entered.is_none() {
            self.entered = Some(Entered::new(shared, &self.cx));
        }
    }

    /// Has the handler run in a task of its own from here on, so that it comes to its end in time whether or not the one
    /// who drives the call can go on. It ends with the call. In a session it waits for its turn again after it has asked.
    pub(super) fn send_away(&mut self, session: Option<&Arc<Session>>) {
        // Without a runtime there are no tasks.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut run = match std::mem::replace(&mut self.handler, Handler::GONE) {
            Handler::Here(run) => run,
            other => return self.handler = other,
        };
        let (tell, end) = oneshot::channel();
        let (cx, session) = (self.cx.clone(), session.cloned());
        let task = runtime.spawn(async move {
            let outcome = poll_fn(|task| {
                let held = cx.outbox().filter(|outbox| !outbox.may_run(task));
                match held {
                    Some(outbox) if !session.as_ref().is_some_and(|session| session.asks(cx.call())) => {
                        // It may have been answered: whoever drives it has to ask for its turn.
                        outbox.nudge();
                        run.poll_time(task)
                    }
                    _ => Pin::new(&mut run).poll(task),
                }
            })
            .await;
            let last = run.last_words();
            // Dropped before anybody is told, so that nothing of it runs any more when the answer is read.
            drop(run);
            let _ = tell.send((outcome, last));
        });
        if let Some(outbox) = self.cx.outbox() {
            outbox.runs_in(task.abort_handle());
        }
        self.handler = Handler::Away(end);
    }

    /// Has the handler wait for its turn, or go on, if it is in a task of its own.
    pub(super) fn hold(&mut self, held: bool) {
        if self.held != held
            && let Some(outbox) = self.cx.outbox()
        {
            self.held = held;
            outbox.hold(held);
        }
    }

    fn poll_step(&mut self, task: &mut Context<'_>) -> Poll<Step> {
        let Some(outbox) = self.cx.outbox() else { return Poll::Ready(Step::Cancelled) };
        if std::mem::take(&mut self.talking)
            && let Ok(Some(said)) = outbox.take()
        {
            self.talking = true;
            return Poll::Ready(Step::Said(said));
        }
        let ended = match &mut self.handler {
            Handler::Here(run) => match Pin::new(&mut *run).poll(task) {
                Poll::Ready(outcome) => Some((Some(outcome), run.last_words())),
                Poll::Pending => None,
            },
            Handler::Away(end) => match Pin::new(end).poll(task) {
                Poll::Ready(Ok((outcome, last))) => Some((Some(outcome), last)),
                // It was aborted; the outbox may know why.
                Poll::Ready(Err(_)) => Some((None, Vec::new())),
                Poll::Pending => None,
            },
            Handler::Over { .. } => None,
        };
        if let Some((end, mut last)) = ended {
            last.reverse();
            self.handler = Handler::Over { end, last };
        }
        let Handler::Over { end, last } = &mut self.handler else {
            let polled = outbox.poll(task);
            self.talking = polled.is_ready();
            return polled.map(said);
        };
        // What it said comes before its end.
        Poll::Ready(match outbox.take() {
            Err(end) => said(Err(end)),
            Ok(Some(said)) => Step::Said(said),
            Ok(None) => match last.pop() {
                Some(line) => Step::Said(Said::Notice(line)),
                None => end.take().map_or(Step::Cancelled, Step::Done),
            },
        })
    }
}

fn said(said: Result<Said, End>) -> Step {
    match said {
        Ok(said) => Step::Said(said),
        Err(End::Cancelled) => Step::Cancelled,
        Err(End::Failed(error)) => Step::Done(Outcome::Failed(*error)),
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        // First the handler: it may have last words of its own, that nobody will hear.
        let handler = std::mem::replace(&mut self.handler, Handler::GONE);
        if catch_unwind(AssertUnwindSafe(|| drop(handler))).is_err() {
            tracing::error!(method = self.cx.method(), "a handler panicked while it was dropped");
        }
        self.call().close();
        if let Some(outbox) = self.cx.outbox() {
            outbox.close();
        }
    }
}
