use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use pintle_types::RpcError;
use tokio::sync::Notify;

use crate::server::core::cx::Cx;

/// The registry of the calls that wait for something. A shutdown waits for them and then ends them.
///
/// A call that completes with its first poll is never in it.
#[derive(Default)]
pub(crate) struct CallRegistry {
    open: Mutex<OpenCalls>,
    /// Whether new calls are refused.
    closed: AtomicBool,
    /// Notified when the last call has left.
    idle: Notify,
}

#[derive(Default)]
struct OpenCalls {
    calls: BTreeMap<u64, Cx>,
    last: u64,
    /// The error that ends calls which enter from now on.
    cut: Option<RpcError>,
}

impl CallRegistry {
    /// Refuses new calls from now on.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().calls.len()
    }

    /// Waits until the registry is empty.
    pub(crate) async fn idle(&self) {
        loop {
            // Created before looking, or a notification in between would be missed.
            let idle = self.idle.notified();
            if self.lock().calls.is_empty() {
                return;
            }
            idle.await;
        }
    }

    /// Ends all calls with this error, and those that enter later. Returns how many there are.
    pub(crate) fn cut(&self, error: &RpcError) -> usize {
        let calls: Vec<Cx> = {
            let mut open = self.lock();
            open.cut = Some(error.clone());
            open.calls.values().cloned().collect()
        };
        calls.iter().for_each(|cx| cut(cx, error));
        calls.len()
    }

    /// Adds a call, until the returned guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>, cx: &Cx) -> RegisteredCall {
        let mut open = self.lock();
        open.last += 1;
        let key = open.last;
        open.calls.insert(key, cx.clone());
        let late = open.cut.clone();
        drop(open);
        if let Some(error) = late {
            cut(cx, &error);
        }
        RegisteredCall { registry: self.clone(), key }
    }

    fn lock(&self) -> MutexGuard<'_, OpenCalls> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cut(cx: &Cx, error: &RpcError) {
    if let Some(sink) = cx.own_sink() {
        sink.fail(error.clone());
    }
}

/// The entry of a call in a [`CallRegistry`], removed on drop.
pub(crate) struct RegisteredCall {
    registry: Arc<CallRegistry>,
    key: u64,
}

impl Drop for RegisteredCall {
    fn drop(&mut self) {
        let mut open = self.registry.lock();
        let cx = open.calls.remove(&self.key);
        let idle = open.calls.is_empty();
        drop(open);
        // Dropped without the lock: the drop of a handler's values may do anything.
        drop(cx);
        if idle {
            self.registry.idle.notify_waiters();
        }
    }
}
