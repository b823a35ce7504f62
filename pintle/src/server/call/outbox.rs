use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use pintle_types::RpcError;
use tokio::{sync::Notify, task::AbortHandle};

use super::port::{ROOM, Said};

/// Above so many bytes of notices nothing more is taken from the call: what one says may be as long as its arguments.
const ROOM_BYTES: usize = 64 << 10;

/// What one call has said and nobody has taken yet. It lies in the call itself and is empty for most, so a call that
/// says nothing pays for no queue.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    inner: Mutex<Inner>,
    room: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    said: VecDeque<Said>,
    /// Bytes of the notices among them.
    bytes: usize,
    /// Who drives the call.
    waker: Option<Waker>,
    /// The handler's task, if it has one.
    task: Option<AbortHandle>,
    /// Whether the handler has to wait for its turn, and whom to wake when it comes.
    held: bool,
    runner: Option<Waker>,
    /// How the call is to be ended, if somebody else than its handler wants so.
    ended: Option<End>,
    /// Whether nobody will look any more.
    closed: bool,
}

/// How a call ends that is ended by somebody else than its handler.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// No answer is owed.
    Cancelled,
    /// This is the answer.
    Failed(Box<RpcError>),
}

impl Outbox {
    pub(crate) async fn say(&self, said: Said) {
        let mut said = Some(said);
        loop {
            // Registered before looking, or room made in between would go unnoticed.
            let room = self.room.notified();
            {
                let mut inner = self.lock();
                if inner.closed {
                    return;
                }
                if inner.has_room() {
                    said.take().into_iter().for_each(|said| inner.push(said));
                    return wake(inner);
                }
            }
            room.await;
        }
    }

    pub(crate) fn try_say(&self, said: Said) -> bool {
        let mut inner = self.lock();
        let fits = !inner.closed && inner.has_room();
        if fits {
            inner.push(said);
            wake(inner);
        }
        fits
    }

    pub(crate) fn has_room(&self) -> bool {
        let inner = self.lock();
        !inner.closed && inner.has_room()
    }

    /// What was said next; `Err` if the call is to be ended.
    pub(crate) fn poll(&self, task: &mut Context<'_>) -> Poll<Result<Said, End>> {
        let mut inner = self.lock();
        if let Some(end) = &inner.ended {
            return Poll::Ready(Err(end.clone()));
        }
        if let Some(said) = inner.pop() {
            drop(inner);
            self.room.notify_one();
            return Poll::Ready(Ok(said));
        }
        match &mut inner.waker {
            Some(waker) => waker.clone_from(task.waker()),
            none => *none = Some(task.waker().clone()),
        }
        Poll::Pending
    }

    /// The same without waiting, for what a call said before its end. `Err` if it is to be ended.
    pub(crate) fn take(&self) -> Result<Option<Said>, End> {
        let mut inner = self.lock();
        if let Some(end) = &inner.ended {
            return Err(end.clone());
        }
        let said = inner.pop();
        drop(inner);
        if said.is_some() {
            self.room.notify_one();
        }
        Ok(said)
    }

    /// Whether the call is to be ended.
    pub(crate) fn is_ended(&self) -> bool {
        self.lock().ended.is_some()
    }

    /// Has the call ended without an answer.
    pub(crate) fn cancel(&self) {
        self.end(End::Cancelled);
    }

    /// Has the call ended with this answer, unless it is cancelled.
    pub(crate) fn fail(&self, error: RpcError) {
        self.end(End::Failed(Box::new(error)));
    }

    fn end(&self, end: End) {
        let mut inner = self.lock();
        if inner.ended.is_none() {
            inner.ended = Some(end);
        }
        // Whoever drives the call may wait for somebody who does not read; the handler goes now.
        if let Some(task) = inner.task.take() {
            task.abort();
        }
        wake(inner);
    }

    /// Has a handler in a task of its own wait for its turn, or go on.
    pub(crate) fn hold(&self, held: bool) {
        let mut inner = self.lock();
        inner.held = held;
        let runner = if held { None } else { inner.runner.take() };
        drop(inner);
        runner.into_iter().for_each(Waker::wake);
    }

    /// Whether the handler has its turn. If not, its task is woken when it has.
    pub(crate) fn may_run(&self, task: &Context<'_>) -> bool {
        let mut inner = self.lock();
        if inner.held {
            inner.runner = Some(task.waker().clone());
        }
        !inner.held
    }

    /// Has whoever drives the call look again.
    pub(crate) fn nudge(&self) {
        wake(self.lock());
    }

    /// The handler runs in this task from here on. Whatever ends the call ends the task.
    pub(crate) fn runs_in(&self, task: AbortHandle) {
        let mut inner = self.lock();
        if inner.ended.is_some() || inner.closed {
            task.abort();
        } else {
            inner.task = Some(task);
        }
    }

    /// Nobody looks any more: what is said from here on is lost, and so is what waits.
    pub(crate) fn close(&self) {
        let said = {
            let mut inner = self.lock();
            inner.closed = true;
            inner.waker = None;
            if let Some(task) = inner.task.take() {
                task.abort();
            }
            inner.bytes = 0;
            std::mem::take(&mut inner.said)
        };
        drop(said);
        self.room.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn has_room(&self) -> bool {
        self.said.len() < ROOM && self.bytes < ROOM_BYTES
    }

    fn push(&mut self, said: Said) {
        self.bytes += said.size();
        self.said.push_back(said);
    }

    fn pop(&mut self) -> Option<Said> {
        let said = self.said.pop_front()?;
        self.bytes -= said.size();
        Some(said)
    }
}

fn wake(mut inner: MutexGuard<'_, Inner>) {
    let waker = inner.waker.take();
    drop(inner);
    waker.into_iter().for_each(Waker::wake);
}
