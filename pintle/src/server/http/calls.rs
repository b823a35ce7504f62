use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::Notify;

use super::{edge::response::shutting_down, service::Shared};
use crate::server::Cx;

/// The registry of the calls that wait for something: what a shutdown waits for, and cuts.
///
/// A call that ends with its first steps is never in it.
#[derive(Default)]
pub(super) struct Calls {
    open: Mutex<Open>,
    /// Whether new calls are refused.
    closed: AtomicBool,
    /// Told when the last one has left.
    idle: Notify,
}

#[derive(Default)]
struct Open {
    calls: HashMap<u64, Cx>,
    last: u64,
    /// Whether those that enter are cut at once.
    cut: bool,
}

impl Calls {
    /// Refuses new calls from here on.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(super) fn len(&self) -> usize {
        self.lock().calls.len()
    }

    /// Waits until there are none.
    pub(super) async fn idle(&self) {
        loop {
            // Made before looking, or an end in between would go unnoticed.
            let idle = self.idle.notified();
            if self.lock().calls.is_empty() {
                return;
            }
            idle.await;
        }
    }

    /// Ends all calls with an error that says why, and those that enter later. How many there are.
    pub(super) fn cut(&self) -> usize {
        let calls: Vec<Cx> = {
            let mut open = self.lock();
            open.cut = true;
            open.calls.values().cloned().collect()
        };
        calls.iter().for_each(cut);
        calls.len()
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cut(cx: &Cx) {
    if let Some(outbox) = cx.outbox() {
        outbox.fail(shutting_down());
    }
}

/// A call in the registry, for as long as this is there.
pub(super) struct Entered {
    shared: Arc<Shared>,
    key: u64,
}

impl Entered {
    pub(super) fn new(shared: &Arc<Shared>, cx: &Cx) -> Self {
        let mut open = shared.calls.lock();
        open.last += 1;
        let key = open.last;
        open.calls.insert(key, cx.clone());
        let late = open.cut;
        drop(open);
        if late {
            cut(cx);
        }
        Self { shared: shared.clone(), key }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let calls = &self.shared.calls;
        let mut open = calls.lock();
        let cx = open.calls.remove(&self.key);
        let idle = open.calls.is_empty();
        drop(open);
        // Dropped here: a handler's values may do anything when they go.
        drop(cx);
        if idle {
            calls.idle.notify_waiters();
        }
    }
}
