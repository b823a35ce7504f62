use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::sync::Notify;

use super::port::{ROOM, Said};

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
    /// Who drives the call.
    waker: Option<Waker>,
    /// Whether the call is to be ended without an answer.
    cancelled: bool,
    /// Whether nobody will look any more.
    closed: bool,
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
                if inner.said.len() < ROOM {
                    inner.said.extend(said.take());
                    return wake(inner);
                }
            }
            room.await;
        }
    }

    pub(crate) fn try_say(&self, said: Said) -> bool {
        let mut inner = self.lock();
        let fits = !inner.closed && inner.said.len() < ROOM;
        if fits {
            inner.said.push_back(said);
            wake(inner);
        }
        fits
    }

    pub(crate) fn has_room(&self) -> bool {
        let inner = self.lock();
        !inner.closed && inner.said.len() < ROOM
    }

    /// What was said next; `None` if the call was cancelled.
    pub(crate) fn poll(&self, task: &mut Context<'_>) -> Poll<Option<Said>> {
        let mut inner = self.lock();
        if inner.cancelled {
            return Poll::Ready(None);
        }
        if let Some(said) = inner.said.pop_front() {
            drop(inner);
            self.room.notify_one();
            return Poll::Ready(Some(said));
        }
        match &mut inner.waker {
            Some(waker) => waker.clone_from(task.waker()),
            none => *none = Some(task.waker().clone()),
        }
        Poll::Pending
    }

    /// The same without waiting, for what a call said before its end. `Err` if it was cancelled.
    pub(crate) fn take(&self) -> Result<Option<Said>, ()> {
        let mut inner = self.lock();
        if inner.cancelled {
            return Err(());
        }
        let said = inner.said.pop_front();
        drop(inner);
        if said.is_some() {
            self.room.notify_one();
        }
        Ok(said)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// Has the call ended without an answer.
    pub(crate) fn cancel(&self) {
        let mut inner = self.lock();
        inner.cancelled = true;
        wake(inner);
    }

    /// Nobody looks any more: what is said from here on is lost, and so is what waits.
    pub(crate) fn close(&self) {
        let said = {
            let mut inner = self.lock();
            inner.closed = true;
            inner.waker = None;
            std::mem::take(&mut inner.said)
        };
        drop(said);
        self.room.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(mut inner: MutexGuard<'_, Inner>) {
    let waker = inner.waker.take();
    drop(inner);
    waker.into_iter().for_each(Waker::wake);
}
