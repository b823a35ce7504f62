#![cfg_attr(
    not(feature = "http-client"),
    allow(dead_code, reason = "some of it is used by the HTTP client only")
)]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// A counter of periods in which deadlines do not run, such as while a user logs in.
///
/// Clones share one counter.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeadlinePauses(Arc<Counts>);

/// A pause of deadlines, until it is dropped.
#[must_use = "the pause ends when it is dropped"]
#[derive(Debug)]
pub(crate) struct DeadlinePause(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl DeadlinePauses {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Starts a pause.
    pub(crate) fn pause(&self) -> DeadlinePause {
        self.0.begun.fetch_add(1, Ordering::SeqCst);
        DeadlinePause(self.0.clone())
    }

    /// The number of pauses that have ended, for [`any_since`](Self::any_since).
    pub(crate) fn ended(&self) -> usize {
        self.0.ended.load(Ordering::SeqCst)
    }

    /// Whether a pause is active, or has ended since `ended` was read.
    pub(crate) fn any_since(&self, ended: usize) -> bool {
        self.0.begun.load(Ordering::SeqCst) != ended
    }
}

impl Drop for DeadlinePause {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_that_has_ended_counts_for_deadlines_that_were_running() {
        let pauses = DeadlinePauses::new();
        let before = pauses.ended();
        assert!(!pauses.any_since(before));
        let pause = pauses.clone().pause();
        assert!(pauses.any_since(before));
        drop(pause);
        assert!(pauses.any_since(before));
        assert!(!pauses.any_since(pauses.ended()));
    }
}
