use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use pintle::server::http::nodes::NodeEvent;
use tokio::sync::Notify;

/// The number of messages that are received and not handled. Above it, they are replaced by a gap.
const CAPACITY: usize = 10_000;

/// The start of a Redis stream.
pub(crate) const START: &str = "0-0";

/// The messages that a process has received, and how far it has read.
pub(crate) struct MessageQueue {
    messages: Mutex<VecDeque<NodeEvent>>,
    added: Notify,
    /// The last entry of the inbox that was read.
    position: Mutex<String>,
    /// The last change that this process has published.
    published: Mutex<String>,
}

impl Default for MessageQueue {
    fn default() -> Self {
        Self {
            messages: Mutex::default(),
            added: Notify::new(),
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
            messages.push_back(NodeEvent::Gap);
        }
        messages.push_back(received);
        drop(messages);
        self.added.notify_one();
    }

    /// Waits for the next message.
    pub(crate) async fn next(&self) -> NodeEvent {
        loop {
            // Created before looking, or a notification in between would be missed.
            let added = self.added.notified();
            let next = self.messages.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            if let Some(received) = next {
                return received;
            }
            added.await;
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
