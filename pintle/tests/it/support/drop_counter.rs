use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Counts how often it is dropped: for a handler that must be.
#[derive(Clone, Debug, Default)]
pub(crate) struct DropCounter(Arc<AtomicUsize>);

/// A value whose drop is counted.
pub(crate) struct CountedDrop(Arc<AtomicUsize>);

impl DropCounter {
    pub(crate) fn guard(&self) -> CountedDrop {
        CountedDrop(self.0.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for CountedDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
