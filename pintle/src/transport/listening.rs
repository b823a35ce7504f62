use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Whether messages that belong to no request can arrive, and since when without a gap.
///
/// A pipe always listens. Over HTTP such messages need a stream of their own, which may be missing or break; what was said
/// meanwhile is lost. A client that was told of no change only knows that there was none if it could have been told.
///
/// A clone is another handle to the same one.
///
/// ```
/// use pintle::transport::Listening;
///
/// let listening = Listening::closed();
/// assert_eq!(listening.period(), None);
/// listening.open();
/// let first = listening.period();
/// assert!(first.is_some());
/// listening.close();
/// listening.open();
/// assert_ne!(listening.period(), first, "something may have been missed in between");
/// ```
#[derive(Clone, Debug)]
pub struct Listening(Option<Arc<AtomicU64>>);

impl Listening {
    /// Everything that the peer sends arrives, as over a pipe.
    pub fn always() -> Self {
        Self(None)
    }

    /// Nothing arrives yet.
    pub fn closed() -> Self {
        Self(Some(Arc::default()))
    }

    /// From now on everything arrives.
    pub fn open(&self) {
        self.turn(true);
    }

    /// From now on something may be missed.
    pub fn close(&self) {
        self.turn(false);
    }

    /// The period without a gap that it is now; `None` while nothing arrives.
    pub fn period(&self) -> Option<u64> {
        match &self.0 {
            None => Some(0),
            Some(turns) => Some(turns.load(Ordering::SeqCst)).filter(|turns| is_open(*turns)),
        }
    }

    fn turn(&self, open: bool) {
        if let Some(turns) = &self.0 {
            // Refused where it is as it should be already.
            let _ = turns.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |turns| {
                (is_open(turns) != open).then_some(turns + 1)
            });
        }
    }
}

/// Each opening and each closing is one turn.
fn is_open(turns: u64) -> bool {
    turns % 2 == 1
}
