use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Times that are not the peer's: while one lasts, as while a user logs in, nobody is too slow to answer.
///
/// A clone counts the same ones.
#[derive(Clone, Debug, Default)]
pub struct Holdups(Arc<Counts>);

/// One of them, until it is dropped.
#[must_use = "it lasts until it is dropped"]
#[derive(Debug)]
pub struct Holdup(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl Holdups {
    /// None so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins one.
    pub fn hold(&self) -> Holdup {
        self.0.begun.fetch_add(1, Ordering::SeqCst);
        Holdup(self.0.clone())
    }

    /// How many have ended, for [`since`](Self::since).
    pub fn ended(&self) -> usize {
        self.0.ended.load(Ordering::SeqCst)
    }

    /// Whether one lasts, or has ended since so many had.
    pub fn since(&self, ended: usize) -> bool {
        self.0.begun.load(Ordering::SeqCst) != ended
    }
}

impl Drop for Holdup {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_over_still_counts_for_whom_it_held_up() {
        let holdups = Holdups::new();
        let before = holdups.ended();
        assert!(!holdups.since(before));
        let holdup = holdups.clone().hold();
        assert!(holdups.since(before));
        drop(holdup);
        assert!(holdups.since(before));
        assert!(!holdups.since(holdups.ended()));
    }
}
