use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use pintle::client::{Change, Event};
use tokio::sync::{Notify, watch};

/// The maximum number of unread events.
const MAX_EVENTS: usize = 1024;
/// The maximum size of unread notifications, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// An event of a group, with the name of the member that it is about.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum GroupEvent {
    /// A connection to the member was opened, for the first time or again. Anything may have changed.
    Opened {
        /// The member.
        member: String,
    },
    /// The connection was lost, or could not be opened.
    Closed {
        /// The member.
        member: String,
        /// The reason.
        reason: String,
    },
    /// The server sent a notification.
    Server {
        /// The member.
        member: String,
        /// The notification.
        event: Event,
    },
    /// The server does not send notifications, of changes or of one resource: list or read again to see them.
    Unobserved {
        /// The member.
        member: String,
        /// The reason.
        reason: String,
    },
    /// Events of this member were dropped because they were not read in time: anything of it may have changed.
    Missed {
        /// The member.
        member: String,
        /// The number of events.
        count: u64,
    },
}

impl GroupEvent {
    /// The name of the member.
    pub fn member(&self) -> &str {
        match self {
            Self::Opened { member }
            | Self::Closed { member, .. }
            | Self::Server { member, .. }
            | Self::Unobserved { member, .. }
            | Self::Missed { member, .. } => member,
        }
    }

    /// The bytes that it holds.
    fn size(&self) -> usize {
        match self {
            Self::Server { event: Event::Changed(Change::Resource(uri)), .. } => uri.len(),
            Self::Server { event: Event::Notification(notification), .. } => {
                let params = notification.params.as_ref().map_or(0, |params| params.as_str().len());
                notification.method.len() + params
            }
            Self::Closed { reason, .. } | Self::Unobserved { reason, .. } => reason.len(),
            _ => 0,
        }
    }
}

/// The events of all members of a group, from [`Group::changes`](super::Group::changes).
///
/// Equal changes of one member that were not read yet are one event. If more is sent than is read, events of the member with the
/// most unread ones are dropped.
#[derive(Debug)]
pub struct GroupChanges(pub(super) Arc<EventQueue>);

impl GroupChanges {
    /// The next event; `None` when the group is closed.
    pub async fn next(&mut self) -> Option<GroupEvent> {
        loop {
            let filled = self.0.filled.notified();
            if let Some(next) = self.0.lock().pop() {
                return next;
            }
            filled.await;
        }
    }
}

#[derive(Debug)]
pub(super) struct EventQueue {
    inner: Mutex<QueueState>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    events: VecDeque<GroupEvent>,
    bytes: usize,
    missed: BTreeMap<String, u64>,
    closed: bool,
}

impl EventQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    fn push(&mut self, event: &GroupEvent) {
        let merges = matches!(event, GroupEvent::Server { event: Event::Changed(_), .. });
        if merges && self.events.contains(event) {
            return;
        }
        let size = event.size();
        while self.events.len() >= MAX_EVENTS || self.bytes + size > MAX_BYTES {
            let oldest = self.oldest_of_largest(event);
            let Some(dropped) = oldest.and_then(|at| self.events.remove(at)) else {
                *self.missed.entry(event.member().to_owned()).or_default() += 1;
                return;
            };
            self.bytes -= dropped.size();
            *self.missed.entry(dropped.member().to_owned()).or_default() += 1;
        }
        self.bytes += size;
        self.events.push_back(event.clone());
    }

    /// Returns the position of the oldest event of the member that has the most, in bytes or else in number. `None` if that is the
    /// new event itself.
    fn oldest_of_largest(&self, event: &GroupEvent) -> Option<usize> {
        let in_bytes = self.bytes + event.size() > MAX_BYTES;
        let size = |event: &GroupEvent| if in_bytes { event.size() } else { 1 };
        let mut used = BTreeMap::from([(event.member(), size(event))]);
        for queued in &self.events {
            *used.entry(queued.member()).or_default() += size(queued);
        }
        // Of two that have as much, it is the sender's.
        let (largest, _) =
            used.into_iter().max_by_key(|(member, used)| (*used, *member == event.member()))?;
        self.events.iter().position(|queued| queued.member() == largest)
    }

    /// The next event; `Some(None)` at the end.
    fn pop(&mut self) -> Option<Option<GroupEvent>> {
        if let Some((member, count)) = self.missed.pop_first() {
            return Some(Some(GroupEvent::Missed { member, count }));
        }
        match self.events.pop_front() {
            Some(event) => {
                self.bytes -= event.size();
                Some(Some(event))
            }
            None => self.closed.then_some(None),
        }
    }
}

/// Delivers events to all that read them.
#[derive(Debug)]
pub(super) struct EventHub {
    queues: Mutex<Vec<Weak<EventQueue>>>,
    /// Whether anybody wants changes of servers.
    wanted: watch::Sender<bool>,
}

impl EventHub {
    pub(super) fn new() -> Self {
        Self { queues: Mutex::default(), wanted: watch::Sender::new(false) }
    }

    pub(super) fn listen(&self) -> Arc<EventQueue> {
        let queue = Arc::new(EventQueue { inner: Mutex::default(), filled: Notify::new() });
        let mut queues = self.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(&queue));
        drop(queues);
        self.wanted.send_replace(true);
        queue
    }

    /// Waits until somebody wants changes of servers.
    pub(super) async fn wanted(&self) {
        // It cannot fail: the sender is in `self`.
        let _ = self.wanted.subscribe().wait_for(|wanted| *wanted).await;
    }

    pub(super) fn push(&self, event: &GroupEvent) {
        for queue in self.lock().iter().filter_map(Weak::upgrade) {
            queue.lock().push(event);
            queue.filled.notify_one();
        }
    }

    pub(super) fn close(&self) {
        for queue in self.lock().drain(..).filter_map(|queue| queue.upgrade()) {
            queue.lock().closed = true;
            queue.filled.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<EventQueue>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(member: &str, uri: &str) -> GroupEvent {
        let event = Event::Changed(Change::Resource(uri.into()));
        GroupEvent::Server { member: member.to_owned(), event }
    }

    #[tokio::test]
    async fn large_events_displace_none_of_others() {
        let hub = EventHub::new();
        let mut changes = GroupChanges(hub.listen());
        let calm: Vec<_> =
            (0..100).map(|at| changed("calm", &format!("{}{at}", "x".repeat(30 << 10)))).collect();
        calm.iter().for_each(|event| hub.push(event));
        // One that is too large for the queue, and one that would fit if the others gave way.
        hub.push(&changed("busy", &"x".repeat(5 << 20)));
        hub.push(&changed("busy", &"x".repeat(3 << 20)));
        assert_eq!(changes.next().await, Some(GroupEvent::Missed { member: "busy".into(), count: 2 }));
        for event in &calm {
            assert_eq!(changes.next().await.as_ref(), Some(event));
        }
        // The member with the most gives way to others, however few its events are.
        hub.push(&changed("busy", &"x".repeat(4 << 20)));
        hub.push(&calm[0]);
        assert_eq!(changes.next().await, Some(GroupEvent::Missed { member: "busy".into(), count: 1 }));
        assert_eq!(changes.next().await.as_ref(), Some(&calm[0]));
    }

    #[tokio::test]
    async fn a_member_that_sends_too_much_displaces_its_own_events() {
        let hub = EventHub::new();
        let mut changes = GroupChanges(hub.listen());
        hub.push(&changed("calm", "a"));
        (0..5000).for_each(|at| hub.push(&changed("busy", &at.to_string())));
        (0..5000).for_each(|_| hub.push(&changed("calm", "a")));
        assert_eq!(changes.next().await, Some(GroupEvent::Missed { member: "busy".into(), count: 3977 }));
        assert_eq!(changes.next().await, Some(changed("calm", "a")));
        assert_eq!(changes.next().await, Some(changed("busy", "3977")));
        // In bytes too.
        let large = "x".repeat(3 << 20);
        hub.push(&changed("busy", &large));
        hub.push(&changed("busy", &format!("{large}y")));
        hub.push(&changed("busy", &"x".repeat(5 << 20)));
        assert!(changes.0.lock().bytes <= MAX_BYTES);
        hub.close();
        let mut left = 0;
        while let Some(event) = changes.next().await {
            assert_eq!(event.member(), "busy");
            left += 1;
        }
        assert!(left > 0);
    }
}
