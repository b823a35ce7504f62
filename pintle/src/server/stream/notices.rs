use std::collections::VecDeque;

use tokio::task;

use super::layered::PendingNotification;

/// The limit of notifications that wait for their handlers. Above it reading stops.
const NOTICES: usize = 1024;
/// The limit in bytes of their params.
const NOTICE_BYTES: usize = 16 << 20;

/// Notifications for handlers of the application, which run one after the other.
#[derive(Default)]
pub(super) struct Notices {
    pub(super) waiting: VecDeque<PendingNotification>,
    /// The bytes of the params of those that wait.
    bytes: usize,
    pub(super) handling: Option<task::Id>,
}

impl Notices {
    pub(super) fn push(&mut self, notification: PendingNotification) {
        self.bytes += notification.bytes();
        self.waiting.push_back(notification);
    }

    pub(super) fn pop(&mut self) -> Option<PendingNotification> {
        let notification = self.waiting.pop_front()?;
        self.bytes -= notification.bytes();
        Some(notification)
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= NOTICES || self.bytes >= NOTICE_BYTES
    }
}
