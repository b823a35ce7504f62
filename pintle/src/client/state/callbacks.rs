use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pintle_proto::client::Change;
use pintle_types::{Notification, RawObject, schema::LoggingMessageParams};
use tokio::sync::{Notify, watch};

use super::{
    hub::{Event, EventHub},
    layered::pass,
    settings::ClientSettings,
};
use crate::client::{asking::Report, layer::Cx};

/// Limit of queued events. The oldest are dropped first.
const MAX_WAITING: usize = 1024;
/// How long a call's result waits for the callbacks of earlier events.
const CALLBACK_TIMEOUT: Duration = Duration::from_secs(1);

/// An event for the callbacks of a connection.
#[derive(Debug)]
pub(in crate::client) enum CallbackEvent {
    /// A log message, decoded when it is delivered: as a tree it may be much larger.
    Log(RawObject),
    Noise(Box<str>),
    Change(Change),
    /// A notification that a handler is registered for.
    Notification(Notification),
    /// A notification that goes through the layers of the client.
    Layered(Box<Cx>),
}

/// Runs the callbacks of a connection, one after the other, in its own task.
///
/// A slow callback delays the others, never the connection.
#[derive(Debug)]
pub(in crate::client) struct CallbackQueue {
    queue: Mutex<CallbackBuffer>,
    filled: Notify,
    /// How many events were handled.
    done: watch::Sender<u64>,
    max_bytes: usize,
    /// The name of the connection.
    name: Option<Arc<str>>,
    /// Reports events that were dropped.
    hub: Arc<EventHub>,
}

#[derive(Debug, Default)]
struct CallbackBuffer {
    waiting: VecDeque<CallbackEvent>,
    /// The size of all queued events.
    bytes: usize,
    /// How many events were ever queued.
    pushed: u64,
    closed: bool,
}

impl CallbackQueue {
    /// Starts the task if the client has callbacks or layers.
    pub(in crate::client) fn start(
        settings: &Arc<ClientSettings>,
        name: Option<Arc<str>>,
        hub: &Arc<EventHub>,
    ) -> Option<Arc<Self>> {
        let callbacks =
            settings.on_log.is_some() || settings.on_noise.is_some() || settings.on_change.is_some();
        let callbacks = callbacks || !settings.notified.is_empty();
        if !callbacks && settings.layers.is_none() {
            return None;
        }
        let notices = Arc::new(Self {
            queue: Mutex::default(),
            filled: Notify::new(),
            done: watch::Sender::new(0),
            max_bytes: settings.limits.queued_bytes,
            name,
            hub: hub.clone(),
        });
        crate::runtime::spawn(Self::run(notices.clone(), settings.clone()));
        Some(notices)
    }

    pub(in crate::client) fn push(&self, notice: CallbackEvent) {
        let mut queue = self.lock();
        let bytes = notice.size();
        while queue.waiting.len() >= MAX_WAITING || queue.bytes + bytes > self.max_bytes {
            tracing::debug!("callbacks are too slow: the oldest message is dropped");
            match queue.pop() {
                Some(dropped) => self.missed(&dropped),
                None => break,
            }
        }
        if bytes <= self.max_bytes {
            queue.bytes += bytes;
            queue.waiting.push_back(notice);
        } else {
            self.missed(&notice);
        }
        queue.pushed += 1;
        drop(queue);
        self.filled.notify_one();
    }

    /// Reports an event that was dropped before the layers could deliver it.
    fn missed(&self, dropped: &CallbackEvent) {
        if let CallbackEvent::Layered(_) = dropped {
            self.hub.push(&Event::Missed(1));
        }
    }

    /// Returns how many events there have been.
    pub(in crate::client) fn count(&self) -> u64 {
        self.lock().pushed
    }

    /// Waits until this many events are handled.
    pub(in crate::client) async fn reached(&self, count: u64) {
        let mut done = self.done.subscribe();
        // Neither a callback that hangs nor one that has ended for good may keep a result back.
        let _ = tokio::time::timeout(CALLBACK_TIMEOUT, done.wait_for(|done| *done >= count)).await;
    }

    /// Ends the task after the queued events.
    pub(in crate::client) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    async fn run(self: Arc<Self>, settings: Arc<ClientSettings>) {
        loop {
            let (next, done) = {
                let mut queue = self.lock();
                let next = queue.pop();
                if next.is_none() && queue.closed {
                    return;
                }
                (next, queue.pushed - queue.waiting.len() as u64)
            };
            match next {
                Some(notice) => {
                    match (notice, &settings.layers) {
                        (CallbackEvent::Layered(cx), Some(layers)) => {
                            pass(layers, *cx, settings.timeouts.call).await;
                        }
                        (notice, _) => call(&settings, self.name.as_ref(), notice),
                    }
                    self.done.send_replace(done);
                    // Callbacks do not wait, so that this is where others get their turn.
                    tokio::task::yield_now().await;
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
            Self::Log(params) => params.as_str().len(),
            Self::Noise(line) => line.len(),
            Self::Change(Change::Resource(uri)) => uri.len(),
            Self::Change(_) => 0,
            Self::Notification(notification) => {
                let params = notification.params.as_ref().map_or(0, |params| params.as_str().len());
                notification.method.len() + params
            }
            Self::Layered(cx) => cx.method().len() + cx.params().as_str().len(),
        }
    }
}

/// Runs the callback of an event.
pub(super) fn call(settings: &ClientSettings, name: Option<&Arc<str>>, notice: CallbackEvent) {
    let called = catch_unwind(AssertUnwindSafe(|| match notice {
        CallbackEvent::Log(params) => match params.decode::<LoggingMessageParams>() {
            Ok(message) => {
                settings.on_log.iter().for_each(|call| call(Report::new(name.cloned(), message.clone())));
            }
            Err(error) => tracing::debug!(%error, "a log message that does not fit"),
        },
        CallbackEvent::Noise(line) => {
            settings.on_noise.iter().for_each(|call| call(Report::new(name.cloned(), &*line)));
        }
        CallbackEvent::Change(change) => {
            settings.on_change.iter().for_each(|call| call(Report::new(name.cloned(), change.clone())));
        }
        CallbackEvent::Notification(Notification { method, params, .. }) => {
            if let Some(call) = settings.notified.get(&*method) {
                call(Report::new(name.cloned(), params.unwrap_or_default()));
            }
        }
        // Without layers there is none.
        CallbackEvent::Layered(_) => {}
    }));
    if called.is_err() {
        tracing::error!("a callback panicked");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_slow_callbacks_is_bounded_in_bytes() {
        let notices = CallbackQueue {
            queue: Mutex::default(),
            filled: Notify::new(),
            done: watch::Sender::new(0),
            max_bytes: 100,
            name: None,
            hub: Arc::new(EventHub::new(100)),
        };
        let log =
            |bytes: usize| CallbackEvent::Log(format!(r#"{{"x":"{}"}}"#, "x".repeat(bytes)).parse().unwrap());
        (0..5).for_each(|_| notices.push(log(32)));
        let held = || {
            let queue = notices.lock();
            (queue.waiting.len(), queue.bytes)
        };
        assert_eq!(held(), (2, 80));
        notices.push(CallbackEvent::Change(Change::Resource("u".repeat(200).into())));
        assert_eq!(held(), (0, 0));
        // Whoever waits for those that came before a result does not wait for what was dropped.
        assert_eq!(notices.count(), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_does_not_wait_for_what_was_dropped() {
        let mut settings = ClientSettings::new(pintle_types::schema::Implementation::new("c", "0"));
        settings.on_change = Some(Arc::new(|_| {}));
        settings.limits.queued_bytes = 100;
        let notices = CallbackQueue::start(&Arc::new(settings), None, &Arc::new(EventHub::new(100))).unwrap();
        notices.push(CallbackEvent::Change(Change::Resource("u".repeat(200).into())));
        let before = tokio::time::Instant::now();
        notices.reached(notices.count()).await;
        assert_eq!(before.elapsed(), Duration::ZERO, "it waited until its patience was over");
    }
}
