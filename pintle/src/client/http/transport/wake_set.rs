//! Checked with loom: see `loom/src/lib.rs`.

use std::{
    mem,
    sync::{Arc, PoisonError},
    task::{Wake, Waker},
};

use crate::sync::{AtomicBool, Mutex, Ordering};

/// The slots of one task that were woken since it polled them.
#[derive(Debug)]
pub(super) struct WakeSet(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    slots: Vec<usize>,
    /// The task, while it is idle: as long as it runs, it looks again before it returns.
    task: Option<Waker>,
}

/// The waker of one slot.
#[derive(Debug)]
pub(super) struct SlotWaker {
    slot: usize,
    woken: AtomicBool,
    set: Arc<WakeSet>,
}

impl WakeSet {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Inner { slots: Vec::new(), task: None }))
    }

    /// Whether no slot was woken, and this task will be woken when one is.
    pub(super) fn is_idle(&self, waker: &Waker) -> bool {
        self.with(|inner| {
            inner.slots.is_empty() && inner.task.as_ref().is_some_and(|task| task.will_wake(waker))
        })
    }

    /// Moves the woken slots to `due`, which is empty. Returns `false`, and registers the task, if there are none.
    pub(super) fn take(&self, due: &mut Vec<usize>, waker: &Waker) -> bool {
        self.with(|inner| {
            if inner.slots.is_empty() {
                inner.register(waker);
                return false;
            }
            inner.task = None;
            mem::swap(&mut inner.slots, due);
            true
        })
    }

    /// Registers the task, and wakes it at once if slots were woken.
    pub(super) fn yield_now(&self, waker: &Waker) {
        self.with(|inner| {
            inner.register(waker);
            if !inner.slots.is_empty() {
                waker.wake_by_ref();
            }
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Inner {
    fn register(&mut self, waker: &Waker) {
        match &mut self.task {
            Some(task) => task.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }
}

impl SlotWaker {
    pub(super) fn new(slot: usize, woken: bool, set: Arc<WakeSet>) -> Self {
        Self { slot, woken: AtomicBool::new(woken), set }
    }

    pub(super) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    /// Clears the mark, before the slot is polled: what happens from then on wakes it again.
    pub(super) fn clear(&self) {
        self.woken.store(false, Ordering::Release);
    }

    /// Clears the mark, and returns whether there was one.
    pub(super) fn take(&self) -> bool {
        self.is_woken() && self.woken.swap(false, Ordering::AcqRel)
    }

    /// Marks the slot without waking the task.
    pub(super) fn mark(&self) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.set.with(|inner| inner.slots.push(self.slot));
        }
    }
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.woken.swap(true, Ordering::AcqRel) {
            return;
        }
        let task = self.set.with(|inner| {
            inner.slots.push(self.slot);
            inner.task.take()
        });
        task.into_iter().for_each(Waker::wake);
    }
}
