use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
};

use pintle_types::RpcError;
use tokio::{sync::Notify, task::AbortHandle};

use super::sink::{CAPACITY, CallEvent};
use crate::server::core::sessions::LiveSession;

/// The capacity of the sink in bytes of notifications: one may be as long as the arguments of the call.
const CAPACITY_BYTES: usize = 64 << 10;

/// A bounded queue of the events of one call. It is part of the call and empty for most, so that a call without events
/// allocates no queue.
#[derive(Default)]
pub(crate) struct OwnSink {
    state: Mutex<SinkState>,
    capacity: Notify,
    session: Option<Weak<dyn LiveSession>>,
}

impl fmt::Debug for OwnSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnSink").field("state", &self.state).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct SinkState {
    events: VecDeque<CallEvent>,
    /// Bytes of the notifications among them.
    bytes: usize,
    /// The waker of the driver.
    waker: Option<Waker>,
    /// The handler's task, if it has one.
    task: Option<AbortHandle>,
    /// Whether the handler is held back, and its waker.
    held: bool,
    runner: Option<Waker>,
    /// Set if somebody other than the handler ends the call.
    ended: Option<CallEnd>,
    /// Whether somebody has waited for capacity.
    awaited: bool,
    /// Whether the driver is gone.
    closed: bool,
}

/// How somebody other than its handler ends a call.
#[derive(Clone, Debug)]
pub(crate) enum CallEnd {
    /// No response is owed.
    Cancelled,
    /// The response is this error.
    Failed(Box<RpcError>),
}

impl OwnSink {
    /// Creates the sink of a call in a session.
    pub(crate) fn in_session(session: Weak<dyn LiveSession>) -> Self {
        Self { session: Some(session), ..Self::default() }
    }

    pub(crate) fn session(&self) -> Option<&Weak<dyn LiveSession>> {
        self.session.as_ref()
    }

    pub(crate) async fn send(&self, event: CallEvent) {
        let mut event = Some(event);
        loop {
            // Created before looking, or a notification in between would be missed.
            let capacity = self.capacity.notified();
            {
                let mut state = self.lock();
                if state.closed {
                    return;
                }
                if state.has_capacity() {
                    event.take().into_iter().for_each(|event| state.push(event));
                    return wake(state);
                }
                state.awaited = true;
            }
            capacity.await;
        }
    }

    pub(crate) fn try_send(&self, event: CallEvent) -> bool {
        let mut state = self.lock();
        let fits = !state.closed && state.has_capacity();
        if fits {
            state.push(event);
            wake(state);
        }
        fits
    }

    pub(crate) fn has_capacity(&self) -> bool {
        let state = self.lock();
        !state.closed && state.has_capacity()
    }

    /// Polls the next event; `Err` if the call was ended.
    pub(crate) fn poll(&self, task: &mut Context<'_>) -> Poll<Result<CallEvent, CallEnd>> {
        let mut state = self.lock();
        if let Some(end) = &state.ended {
            return Poll::Ready(Err(end.clone()));
        }
        if let Some(event) = state.pop() {
            drop(state);
            self.capacity.notify_one();
            return Poll::Ready(Ok(event));
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(task.waker()),
            none => *none = Some(task.waker().clone()),
        }
        Poll::Pending
    }

    /// Takes the next event without waiting; `Err` if the call was ended.
    pub(crate) fn take(&self) -> Result<Option<CallEvent>, CallEnd> {
        let mut state = self.lock();
        if let Some(end) = &state.ended {
            return Err(end.clone());
        }
        let event = state.pop();
        drop(state);
        if event.is_some() {
            self.capacity.notify_one();
        }
        Ok(event)
    }

    /// Returns whether the call was ended.
    pub(crate) fn is_ended(&self) -> bool {
        self.lock().ended.is_some()
    }

    /// Ends the call without a response.
    pub(crate) fn cancel(&self) {
        self.end(CallEnd::Cancelled);
    }

    /// Ends the call with this error, unless it was ended before.
    pub(crate) fn fail(&self, error: RpcError) {
        self.end(CallEnd::Failed(Box::new(error)));
    }

    fn end(&self, end: CallEnd) {
        let mut state = self.lock();
        if state.ended.is_none() {
            state.ended = Some(end);
        }
        // The driver may wait for a client that does not read; the handler is dropped now.
        if let Some(task) = state.task.take() {
            task.abort();
        }
        wake(state);
    }

    /// Holds back a handler that runs in a task, or lets it go on.
    pub(crate) fn hold(&self, held: bool) {
        let mut state = self.lock();
        state.held = held;
        let runner = if held { None } else { state.runner.take() };
        drop(state);
        runner.into_iter().for_each(Waker::wake);
    }

    /// Returns whether the handler may run. If not, its task is woken when it may.
    pub(crate) fn may_run(&self, task: &Context<'_>) -> bool {
        let mut state = self.lock();
        if state.held {
            state.runner = Some(task.waker().clone());
        }
        !state.held
    }

    /// Wakes the driver.
    pub(crate) fn wake(&self) {
        wake(self.lock());
    }

    /// Sets the task that the handler runs in. Ending the call aborts it.
    pub(crate) fn set_task(&self, task: AbortHandle) {
        let mut state = self.lock();
        if state.ended.is_some() || state.closed {
            task.abort();
        } else {
            state.task = Some(task);
        }
    }

    /// Closes the sink: its events are dropped, and so are those that are sent from now on.
    pub(crate) fn close(&self) {
        let (events, awaited) = {
            let mut state = self.lock();
            state.closed = true;
            state.waker = None;
            if let Some(task) = state.task.take() {
                task.abort();
            }
            state.bytes = 0;
            (std::mem::take(&mut state.events), state.awaited)
        };
        drop(events);
        if awaited {
            self.capacity.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, SinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SinkState {
    fn has_capacity(&self) -> bool {
        self.events.len() < CAPACITY && self.bytes < CAPACITY_BYTES
    }

    fn push(&mut self, event: CallEvent) {
        self.bytes += event.size();
        self.events.push_back(event);
    }

    fn pop(&mut self) -> Option<CallEvent> {
        let event = self.events.pop_front()?;
        self.bytes -= event.size();
        Some(event)
    }
}

fn wake(mut state: MutexGuard<'_, SinkState>) {
    let waker = state.waker.take();
    drop(state);
    waker.into_iter().for_each(Waker::wake);
}
