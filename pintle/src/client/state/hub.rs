use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, Weak},
};

use pintle_proto::client::Change;
use pintle_types::Notification;
use tokio::sync::Notify;

use crate::lock::lock;

/// Limit of queued events per listener. The oldest are dropped first, and counted.
const MAX_EVENTS: usize = 256;

/// An event on the server.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A list or a resource has changed.
    Changed(Change),
    /// A custom notification, or one of an extension.
    Notification(Notification),
    /// The connection, or a subscription, was lost and opened again: anything may have changed.
    Reopened,
    /// This many events were dropped because the queue was full: anything may have changed.
    Missed(u64),
}

/// Delivers events to all listeners.
#[derive(Debug)]
pub(in crate::client) struct EventHub {
    listeners: Mutex<Listeners>,
    /// Limit of queued bytes per listener.
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct Listeners {
    queues: Vec<Weak<EventQueue>>,
    closed: bool,
}

#[derive(Debug)]
pub(in crate::client) struct EventQueue {
    inside: Mutex<QueueState>,
    filled: Notify,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct QueueState {
    events: VecDeque<Event>,
    /// The size of all queued events.
    bytes: usize,
    missed: u64,
    closed: bool,
}

impl EventHub {
    pub(in crate::client) fn new(max_bytes: usize) -> Self {
        Self { listeners: Mutex::default(), max_bytes }
    }

    pub(in crate::client) fn listen(&self) -> Arc<EventQueue> {
        let max_bytes = self.max_bytes;
        let queue = Arc::new(EventQueue { inside: Mutex::default(), filled: Notify::new(), max_bytes });
        let mut listeners = lock(&self.listeners);
        lock(&queue.inside).closed = listeners.closed;
        listeners.queues.retain(|queue| queue.strong_count() > 0);
        listeners.queues.push(Arc::downgrade(&queue));
        queue
    }

    pub(in crate::client) fn push(&self, event: &Event) {
        for queue in lock(&self.listeners).queues.iter().filter_map(Weak::upgrade) {
            queue.push(event);
        }
    }

    pub(in crate::client) fn close(&self) {
        let mut listeners = lock(&self.listeners);
        listeners.closed = true;
        for queue in listeners.queues.drain(..).filter_map(|queue| queue.upgrade()) {
            lock(&queue.inside).closed = true;
            queue.filled.notify_one();
        }
    }
}

impl EventQueue {
    fn push(&self, event: &Event) {
        let mut inside = lock(&self.inside);
        if matches!(event, Event::Changed(_)) && inside.events.contains(event) {
            return;
        }
        let bytes = size(event);
        while inside.events.len() >= MAX_EVENTS || inside.bytes + bytes > self.max_bytes {
            inside.missed += 1;
            if inside.pop().is_none() {
                break;
            }
        }
        if bytes <= self.max_bytes {
            inside.bytes += bytes;
            inside.events.push_back(event.clone());
        }
        drop(inside);
        self.filled.notify_one();
    }

    pub(in crate::client) async fn next(&self) -> Option<Event> {
        loop {
            {
                let mut inside = lock(&self.inside);
                if inside.missed > 0 {
                    return Some(Event::Missed(std::mem::take(&mut inside.missed)));
                }
                if let Some(event) = inside.pop() {
                    return Some(event);
                }
                if inside.closed {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }
}

impl QueueState {
    fn pop(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.bytes -= size(&event);
        Some(event)
    }
}

/// The size of an event in bytes, as far as the server determines it.
fn size(event: &Event) -> usize {
    match event {
        Event::Changed(Change::Resource(uri)) => uri.len(),
        Event::Notification(Notification { method, params, .. }) => {
            method.len() + params.as_ref().map_or(0, |params| params.as_str().len())
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized_event(bytes: usize) -> Event {
        let params = format!(r#"{{"x":"{}"}}"#, "x".repeat(bytes - 9)).parse().unwrap();
        Event::Notification(Notification::new("n", Some(params)))
    }

    #[tokio::test]
    async fn what_waits_is_bounded_in_bytes() {
        let hub = EventHub::new(100);
        let queue = hub.listen();
        (0..3).for_each(|_| hub.push(&sized_event(40)));
        assert_eq!(queue.next().await, Some(Event::Missed(1)));
        assert_eq!(queue.next().await, Some(sized_event(40)));
        // One that is too large by itself takes the place of all others, and is missed as they are.
        hub.push(&sized_event(101));
        hub.push(&Event::Reopened);
        assert_eq!(queue.next().await, Some(Event::Missed(2)));
        assert_eq!(queue.next().await, Some(Event::Reopened));
        hub.push(&Event::Changed(Change::Resource("u".repeat(60).into())));
        hub.push(&Event::Changed(Change::Resource("v".repeat(60).into())));
        assert_eq!(queue.next().await, Some(Event::Missed(1)));
        assert!(
            matches!(queue.next().await, Some(Event::Changed(Change::Resource(uri))) if uri.starts_with('v'))
        );
    }
}
