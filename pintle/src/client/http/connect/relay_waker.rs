//! Checked with loom: see `loom/src/lib.rs`.

use std::{
    sync::{Arc, PoisonError},
    task::{Wake, Waker},
};

use crate::sync::{AtomicBool, Mutex, Ordering};

/// A waker that wakes the task that polled last.
///
/// A connection keeps one waker although different tasks poll it, one after the other. It can be muted, because handing
/// over a request wakes the connection, which is polled right afterwards anyway (see `bench/LEDGER.md`).
#[derive(Debug)]
pub(super) struct RelayWaker {
    muted: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl RelayWaker {
    pub(super) fn new() -> Self {
        Self { muted: AtomicBool::new(false), task: Mutex::new(None) }
    }

    /// Sets the task to wake, before it polls.
    pub(super) fn set_task(&self, waker: &Waker) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *task {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// Runs a function during which no task is woken. The caller has to poll the connection afterwards.
    pub(super) fn muted<T>(&self, work: impl FnOnce() -> T) -> T {
        self.muted.store(true, Ordering::Release);
        let done = work();
        self.muted.store(false, Ordering::Release);
        done
    }
}

impl Wake for RelayWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.muted.load(Ordering::Acquire) {
            return;
        }
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        task.into_iter().for_each(Waker::wake);
    }
}
