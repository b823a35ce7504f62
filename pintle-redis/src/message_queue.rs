use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use pintle::server::http::nodes::NodeEvent;
use tokio::sync::Notify;

/// The number of messages that are received and not handled. Above it, they are replaced by a gap.
const CAPACITY: usize = 10_000;

/// The start of a Redis stream.
pub(crate) const START: &str = "0-0";

/// The bytes of messages above which no more are read.
const CAPACITY_BYTES: usize = 16 << 20;

/// The messages that a process has received, and how far it has read.
pub(crate) struct MessageQueue {
    messages: Mutex<VecDeque<NodeEvent>>,
    /// The bytes of the messages.
    bytes: AtomicUsize,
    added: Notify,
    taken: Notify,
    /// The last entry of the inbox that was read.
    position: Mutex<String>,
    /// The last change that this process has published.
    published: Mutex<String>,
}

fn size(received: &NodeEvent) -> usize {
    match received {
        NodeEvent::Message(bytes) | NodeEvent::Change(bytes) => bytes.len(),
        _ => 0,
    }
}

impl Default for MessageQueue {
    fn default() -> Self {
        Self {
            messages: Mutex::default(),
            bytes: AtomicUsize::new(0),
            added: Notify::new(),
            taken: Notify::new(),
            position: Mutex::new(START.to_owned()),
            published: Mutex::new(START.to_owned()),
        }
    }
}

impl MessageQueue {
    pub(crate) fn push(&self, received: NodeEvent) {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if messages.len() >= CAPACITY {
            messages.clear();
            self.bytes.store(0, Ordering::Relaxed);
            messages.push_back(NodeEvent::Gap);
        }
        self.bytes.fetch_add(size(&received), Ordering::Relaxed);
        messages.push_back(received);
        drop(messages);
        self.added.notify_one();
    }

    /// Waits for the next message.
    pub(crate) async fn next(&self) -> NodeEvent {
        loop {
            // Created before looking, or a notification in between would be missed.
            let added = self.added.notified();
            let next = {
                let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
                let next = messages.pop_front();
                let size = next.as_ref().map_or(0, size);
                self.bytes.fetch_sub(size, Ordering::Relaxed);
                next
            };
            if let Some(received) = next {
                self.taken.notify_one();
                return received;
            }
            added.await;
        }
    }

    /// Waits until there is room for more messages.
    pub(crate) async fn wait_for_room(&self) {
        while self.bytes.load(Ordering::Relaxed) > CAPACITY_BYTES {
            self.taken.notified().await;
        }
    }

    pub(crate) fn position(&self) -> String {
        self.position.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_position(&self, position: &str) {
        position.clone_into(&mut self.position.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn published(&self) -> String {
        self.published.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_published(&self, position: String) {
        *self.published.lock().unwrap_or_else(PoisonError::into_inner) = position;
    }
}
