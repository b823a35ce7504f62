#![cfg_attr(
    not(feature = "http-client"),
    allow(dead_code, reason = "some of it is used by the HTTP client only")
)]

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Whether messages that belong to no request can arrive, and since when without a gap.
///
/// Over a pipe they always can. Over HTTP they need a stream of their own, which may be missing or break; messages sent in
/// the meantime are lost. A client that received no notification of a change only knows that there was none if it could
/// have received one.
///
/// Clones share one state.
#[derive(Clone, Debug)]
pub(crate) struct PushState(Option<Arc<AtomicU64>>);

impl PushState {
    /// Everything that the peer sends arrives, as over a pipe.
    pub(crate) fn always() -> Self {
        Self(None)
    }

    /// Nothing arrives until [`open`](Self::open).
    pub(crate) fn closed() -> Self {
        Self(Some(Arc::default()))
    }

    /// Everything arrives from now on.
    pub(crate) fn open(&self) {
        self.set(true);
    }

    /// Messages may be missed from now on.
    pub(crate) fn close(&self) {
        self.set(false);
    }

    /// The number of the current period without a gap; `None` while nothing arrives.
    pub(crate) fn period(&self) -> Option<u64> {
        match &self.0 {
            None => Some(0),
            Some(changes) => Some(changes.load(Ordering::SeqCst)).filter(|changes| is_open(*changes)),
        }
    }

    fn set(&self, open: bool) {
        if let Some(changes) = &self.0 {
            // An error means that the state is the requested one already.
            let _ = changes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |changes| {
                (is_open(changes) != open).then_some(changes + 1)
            });
        }
    }
}

/// Opening and closing each count as one change.
fn is_open(changes: u64) -> bool {
    changes % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_starts_another_period() {
        let state = PushState::closed();
        assert_eq!(state.period(), None);
        state.open();
        let first = state.period();
        assert!(first.is_some());
        state.open();
        assert_eq!(state.period(), first);
        state.close();
        assert_eq!(state.period(), None);
        state.open();
        assert_ne!(state.period(), first, "something may have been missed in between");
    }
}
