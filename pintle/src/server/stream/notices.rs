use std::collections::VecDeque;

use tokio::task;

use crate::server::core::cx::Cx;

/// The limit of notifications that wait for their handlers. Above it reading stops.
const NOTICES: usize = 1024;
/// The limit in bytes of their params.
const NOTICE_BYTES: usize = 16 << 20;

/// Notifications for handlers of the application, which run one after the other.
#[derive(Default)]
pub(super) struct Notices {
    pub(super) waiting: VecDeque<Cx>,
    /// The bytes of the params of those that wait.
    bytes: usize,
    pub(super) handling: Option<task::Id>,
}

impl Notices {
    pub(super) fn push(&mut self, notification: Cx) {
        self.bytes += bytes(&notification);
        self.waiting.push_back(notification);
    }

    pub(super) fn pop(&mut self) -> Option<Cx> {
        let notification = self.waiting.pop_front()?;
        self.bytes -= bytes(&notification);
        Some(notification)
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= NOTICES || self.bytes >= NOTICE_BYTES
    }
}

fn bytes(notification: &Cx) -> usize {
    notification.call().params().as_str().len()
}
