use std::{collections::VecDeque, mem, sync::Arc};

use pintle_proto::ledger::{Charge, FREE};

use super::notice::Notice;

/// The notifications of extensions that an inbox keeps until they are read.
#[derive(Debug, Default)]
pub(super) struct NoticeQueue {
    queued: VecDeque<QueuedNotice>,
    /// The bytes of their params.
    bytes: usize,
}

/// A notification that waits. Only the first bytes of a queue are free, so what exceeds them has a charge of its own.
#[derive(Debug)]
pub(super) struct QueuedNotice {
    pub(super) notice: Arc<Notice>,
    pub(super) _charge: Charge,
}

/// The capacity while somebody reads, and while nobody does. The oldest is dropped when it is full.
const CAPACITY: (usize, usize) = (1024, 32);
/// The capacity in bytes. One may be longer.
const BYTES: (usize, usize) = (1 << 20, 64 << 10);

impl NoticeQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.queued.len()
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether so many more bytes are free.
    pub(super) fn is_free(&self, bytes: usize) -> bool {
        self.bytes + bytes <= FREE
    }

    pub(super) fn push(&mut self, queued: QueuedNotice) {
        self.bytes += queued.notice.bytes();
        self.queued.push_back(queued);
    }

    pub(super) fn pop(&mut self) -> Option<QueuedNotice> {
        let queued = self.queued.pop_front()?;
        self.bytes -= queued.notice.bytes();
        Some(queued)
    }

    /// Removes some. The caller drops them without its lock.
    pub(super) fn remove_all(&mut self, is_removed: impl Fn(&Notice) -> bool) -> Vec<QueuedNotice> {
        if !self.queued.iter().any(|queued| is_removed(&queued.notice)) {
            return Vec::new();
        }
        let (removed, kept): (Vec<_>, Vec<_>) =
            mem::take(&mut self.queued).into_iter().partition(|queued| is_removed(&queued.notice));
        self.queued = kept.into();
        self.bytes -= removed.iter().map(|queued| queued.notice.bytes()).sum::<usize>();
        removed
    }

    /// Removes the oldest that are too many. The caller drops them without its lock.
    pub(super) fn shorten(&mut self, is_read: bool) -> Vec<QueuedNotice> {
        let (count, bytes) = if is_read { (CAPACITY.0, BYTES.0) } else { (CAPACITY.1, BYTES.1) };
        let mut dropped = Vec::new();
        while self.queued.len() > count || (self.queued.len() > 1 && self.bytes > bytes) {
            tracing::debug!("a notification of an extension was dropped: its receiver is too slow");
            dropped.extend(self.pop());
        }
        if !is_read {
            self.queued.shrink_to_fit();
        }
        dropped
    }
}
