use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pintle_types::method;
use tokio::sync::{Notify, watch};

use super::{
    hub::{Event, EventHub},
    received::pass,
    settings::ClientSettings,
};
use crate::client::{asking::Report, layer::Cx};

/// Limit of queued events. The oldest are dropped first.
const MAX_WAITING: usize = 1024;
/// Events that are handled before other tasks run.
const BUDGET: u64 = 64;
/// How long a call's result waits for the callbacks of earlier events.
const CALLBACK_TIMEOUT: Duration = Duration::from_secs(1);

/// An event for the callbacks of a connection.
#[derive(Debug)]
pub(in crate::client) enum CallbackEvent {
    /// A line that was not a message.
    Noise(Box<str>),
    /// A notification of the server, for the layers of the client.
    Message(Box<Cx>),
}

/// Passes the notifications of a connection through the layers and to the callbacks, one after the other, in its own task, which
/// starts with the first event.
///
/// A slow callback delays the others, never the connection.
#[derive(Debug)]
pub(in crate::client) struct CallbackQueue {
    queue: Mutex<CallbackBuffer>,
    filled: Notify,
    /// How many events were handled.
    done: watch::Sender<u64>,
    settings: Arc<ClientSettings>,
    /// The name of the connection.
    name: Option<Arc<str>>,
    /// Gets the events, and those that were dropped.
    hub: Arc<EventHub>,
}

#[derive(Debug, Default)]
struct CallbackBuffer {
    waiting: VecDeque<CallbackEvent>,
    /// The size of all queued events.
    bytes: usize,
    /// How many events were ever queued.
    pushed: u64,
    started: bool,
    closed: bool,
}

impl CallbackQueue {
    pub(in crate::client) fn new(
        settings: &Arc<ClientSettings>,
        name: Option<Arc<str>>,
        hub: &Arc<EventHub>,
    ) -> Self {
        Self {
            queue: Mutex::default(),
            filled: Notify::new(),
            done: watch::Sender::new(0),
            settings: settings.clone(),
            name,
            hub: hub.clone(),
        }
    }

    pub(in crate::client) fn push(self: &Arc<Self>, notice: CallbackEvent) {
        let mut queue = self.lock();
        let (bytes, max_bytes) = (notice.size(), self.settings.limits.queued_bytes);
        while queue.waiting.len() >= MAX_WAITING || queue.bytes + bytes > max_bytes {
            tracing::debug!("callbacks are too slow: the oldest message is dropped");
            match queue.pop() {
                Some(dropped) => self.missed(&dropped),
                None => break,
            }
        }
        if bytes <= max_bytes {
            queue.bytes += bytes;
            queue.waiting.push_back(notice);
        } else {
            self.missed(&notice);
        }
        queue.pushed += 1;
        // After the end there may be no runtime.
        let starts = !queue.closed && !std::mem::replace(&mut queue.started, true);
        drop(queue);
        if starts {
            crate::runtime::spawn(self.clone().run());
        }
        self.filled.notify_one();
    }

    /// Reports an event that was dropped before it was delivered. Log messages are no events of listeners.
    fn missed(&self, dropped: &CallbackEvent) {
        if let CallbackEvent::Message(cx) = dropped
            && cx.method() != method::NOTIFICATIONS_MESSAGE
        {
            self.hub.push(&Event::Missed(1));
        }
    }

    /// Returns how many events there have been.
    pub(in crate::client) fn count(&self) -> u64 {
        self.lock().pushed
    }

    /// Whether this many events are handled.
    pub(in crate::client) fn has_reached(&self, count: u64) -> bool {
        count == 0 || *self.done.borrow() >= count
    }

    /// Waits until this many events are handled.
    pub(in crate::client) async fn reached(&self, count: u64) {
        let mut done = self.done.subscribe();
        // Neither a callback that hangs nor one that has ended for good may keep a result back.
        let _ = tokio::time::timeout(CALLBACK_TIMEOUT, done.wait_for(|done| *done >= count)).await;
    }

    /// Ends the task, and the events of listeners, after the queued events.
    pub(in crate::client) fn close(&self) {
        let mut queue = self.lock();
        queue.closed = true;
        let started = queue.started;
        drop(queue);
        match started {
            true => self.filled.notify_one(),
            false => self.hub.close(),
        }
    }

    async fn run(self: Arc<Self>) {
        loop {
            let (next, done) = {
                let mut queue = self.lock();
                let next = queue.pop();
                if next.is_none() && queue.closed {
                    drop(queue);
                    return self.hub.close();
                }
                (next, queue.pushed - queue.waiting.len() as u64)
            };
            match next {
                Some(notice) => {
                    let settings = &self.settings;
                    match (notice, &settings.on_noise) {
                        (CallbackEvent::Message(cx), _) => {
                            pass(&settings.layers, *cx, settings.timeouts.call).await;
                        }
                        (CallbackEvent::Noise(line), Some(callback)) => {
                            call_back(&**callback, self.name.as_ref(), &*line);
                        }
                        (CallbackEvent::Noise(_), None) => {}
                    }
                    self.done.send_replace(done);
                    // Callbacks do not wait, so that this is where others get their turn.
                    if done.is_multiple_of(BUDGET) {
                        tokio::task::yield_now().await;
                    }
                }
                None => {
                    // What was dropped counts as handled, or calls would wait for it.
                    self.done.send_replace(done);
                    self.filled.notified().await;
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, CallbackBuffer> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallbackBuffer {
    fn pop(&mut self) -> Option<CallbackEvent> {
        let notice = self.waiting.pop_front()?;
        self.bytes -= notice.size();
        Some(notice)
    }
}

impl CallbackEvent {
    /// Returns the size in bytes, as far as the server determines it.
    fn size(&self) -> usize {
        match self {
            Self::Noise(line) => line.len(),
            Self::Message(cx) => cx.method().len() + cx.params().as_str().len(),
        }
    }
}

/// Runs a callback. If it panics, that is all that ends.
pub(super) fn call_back<P>(
    callback: &(dyn Fn(Report<P>) + Send + Sync),
    connection: Option<&Arc<str>>,
    params: P,
) {
    let report = Report::new(connection.cloned(), params);
    if catch_unwind(AssertUnwindSafe(|| callback(report))).is_err() {
        tracing::error!("a callback panicked");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Arc<CallbackQueue> {
        let mut settings = ClientSettings::new(pintle_types::schema::Implementation::new("c", "0"));
        settings.limits.queued_bytes = 100;
        Arc::new(CallbackQueue::new(&Arc::new(settings), None, &Arc::new(EventHub::new(100))))
    }

    fn noise(bytes: usize) -> CallbackEvent {
        CallbackEvent::Noise("x".repeat(bytes).into())
    }

    #[tokio::test]
    async fn what_waits_for_slow_callbacks_is_bounded_in_bytes() {
        let notices = queue();
        (0..5).for_each(|_| notices.push(noise(40)));
        let held = || {
            let queue = notices.lock();
            (queue.waiting.len(), queue.bytes)
        };
        assert_eq!(held(), (2, 80));
        notices.push(noise(200));
        assert_eq!(held(), (0, 0));
        // Whoever waits for those that came before a result does not wait for what was dropped.
        assert_eq!(notices.count(), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_does_not_wait_for_what_was_dropped() {
        let notices = queue();
        notices.push(noise(200));
        let before = tokio::time::Instant::now();
        notices.reached(notices.count()).await;
        assert_eq!(before.elapsed(), Duration::ZERO, "it waited until its patience was over");
    }
}
