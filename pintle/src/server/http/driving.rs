use std::{
    future::Future as _,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use pintle_proto::server::{Call, Finished, Outcome};
use pintle_types::RpcError;

use super::{calls::Entered, service::Shared};
use crate::server::{
    Cx, Server,
    around::Around,
    connection::sealed_at,
    dispatch::{self, Start},
    outbox::{End, Outbox},
    port::{Port, Said},
    run::Run,
    state::State,
};

/// A call on its way, driven by whoever waits for its answer.
pub(super) struct Driving {
    cx: Cx,
    /// `None` when it came to its end.
    run: Option<Run>,
    end: Option<Outcome>,
    /// What must be said before the end.
    last: Vec<Bytes>,
    /// Whether more may wait of what was said: then that comes before the handler's next steps.
    talking: bool,
    /// Its place among the calls that wait, if it ever had to.
    entered: Option<Entered>,
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
        let (run, end) = match started {
            Ok(Start::Run(handling)) => (Some(Run::new(handling, cx.clone(), state.settings.timeout)), None),
            Ok(Start::Done(outcome)) => (None, Some(outcome)),
            Err(_) => {
                tracing::error!(method = cx.method(), "a handler panicked before it began");
                let error = RpcError::internal("the handler failed: see the server's log");
                (None, Some(Outcome::Failed(error)))
            }
        };
        Self { cx, run, end, last: Vec::new(), talking: false, entered: None }
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

    fn poll_step(&mut self, task: &mut Context<'_>) -> Poll<Step> {
        let Some(outbox) = self.cx.outbox() else { return Poll::Ready(Step::Cancelled) };
        if std::mem::take(&mut self.talking)
            && let Ok(Some(said)) = outbox.take()
        {
            self.talking = true;
            return Poll::Ready(Step::Said(said));
        }
        if let Some(run) = &mut self.run
            && let Poll::Ready(outcome) = Pin::new(&mut *run).poll(task)
        {
            self.last = run.last_words();
            self.last.reverse();
            self.run = None;
            self.end = Some(outcome);
        }
        if self.run.is_some() {
            let polled = outbox.poll(task);
            self.talking = polled.is_ready();
            return polled.map(said);
        }
        // What it said comes before its end.
        Poll::Ready(match outbox.take() {
            Err(end) => said(Err(end)),
            Ok(Some(said)) => Step::Said(said),
            Ok(None) => match (self.last.pop(), self.end.take()) {
                (Some(line), end) => {
                    self.end = end;
                    Step::Said(Said::Notice(line))
                }
                (None, Some(outcome)) => Step::Done(outcome),
                (None, None) => Step::Cancelled,
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
        let run = self.run.take();
        if catch_unwind(AssertUnwindSafe(|| drop(run))).is_err() {
            tracing::error!(method = self.cx.method(), "a handler panicked while it was dropped");
        }
        self.call().close();
        if let Some(outbox) = self.cx.outbox() {
            outbox.close();
        }
    }
}
