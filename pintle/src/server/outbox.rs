use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::sync::Notify;

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

    /// What was said next; `None` if the call was cancelled.
    pub(crate) fn poll(&self, task: &mut Context<'_>) -> Poll<Option<Said>> {
        let mut inner = self.lock();
        if inner.cancelled {
            return Poll::Ready(None);
        }
        if let Some(said) = inner.pop() {
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
        let said = inner.pop();
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
