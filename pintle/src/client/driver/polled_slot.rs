//! Checked with loom: see `loom/src/lib.rs`.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::PoisonError,
    task::{Context, Poll, Waker},
};

use crate::sync::Mutex;

/// A value that one task polls, and that other tasks may use between two polls.
#[derive(Debug)]
pub(super) struct PolledSlot<T>(Mutex<Inner<T>>);

#[derive(Debug)]
struct Inner<T> {
    /// `None` while the task does something else with it, and after the task has ended.
    value: Option<T>,
    /// Wakes the task.
    waker: Option<Waker>,
}

impl<T> PolledSlot<T> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Inner { value: None, waker: None }))
    }

    pub(super) fn put(&self, value: T) {
        self.with(|inner| inner.value = Some(value));
    }

    pub(super) fn take(&self) -> Option<T> {
        self.with(|inner| inner.value.take())
    }

    /// Polls the value, and takes it out when that is ready. `None` if there is no value.
    pub(super) fn poll<R>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut T, &mut Context<'_>) -> Poll<R>,
    ) -> Poll<Option<(R, T)>> {
        self.with(|inner| {
            match &mut inner.waker {
                Some(waker) => waker.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            let Some(value) = &mut inner.value else { return Poll::Ready(None) };
            poll(value, cx).map(|ready| Some((ready, inner.value.take()?)))
        })
    }

    /// Uses the value, with the waker of the task that polls it; does nothing if it is in use or absent.
    ///
    /// If that panics, the value is dropped and the task woken, which finds it gone; the caller goes on.
    pub(super) fn try_use(&self, work: impl FnOnce(&mut T, &Waker)) {
        let Ok(mut inner) = self.0.try_lock() else { return };
        let Inner { value: Some(value), waker: Some(waker) } = &mut *inner else { return };
        if catch_unwind(AssertUnwindSafe(|| work(value, waker))).is_err() {
            let broken = inner.value.take();
            inner.waker.iter().for_each(Waker::wake_by_ref);
            drop(inner);
            drop(broken);
        }
    }

    fn with<R>(&self, work: impl FnOnce(&mut Inner<T>) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
