use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::Instant;

use crate::lock::lock;

/// The time by which a connection that is always in use outlives its lifetime.
const OVERTIME: Duration = Duration::from_secs(600);
/// The interval at which one is looked at that has outlived it.
const LOOK: Duration = Duration::from_secs(1);

/// How long a connection to the server behind is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkLimits {
    /// For this long without a call.
    pub(crate) idle: Option<Duration>,
    /// For this long in total. Calls are not interrupted, unless there is always one.
    pub(crate) lifetime: Option<Duration>,
}

impl LinkLimits {
    pub(crate) fn is_unlimited(self) -> bool {
        self.idle.is_none() && self.lifetime.is_none()
    }

    /// Returns the time until it has to be checked again; `None` if the connection is to be closed now, and not used any more.
    pub(crate) fn remaining(self, usage: &LinkUsage) -> Option<Duration> {
        let mut uses = lock(&usage.uses);
        let remaining = self.remaining_for(usage.opened, &uses);
        uses.over |= remaining.is_none();
        remaining
    }

    fn remaining_for(self, opened: Instant, uses: &Uses) -> Option<Duration> {
        let Uses { open, last, .. } = *uses;
        let (age, unused) = (opened.elapsed(), last.elapsed());
        let is_unused = open == 0;
        let of_idle = match self.idle {
            Some(idle) if is_unused && unused >= idle => return None,
            Some(idle) if is_unused => Some(idle - unused),
            idle => idle,
        };
        let of_lifetime = match self.lifetime {
            Some(lifetime) if age >= lifetime && (is_unused || age >= lifetime + OVERTIME) => return None,
            Some(lifetime) if age >= lifetime => Some(LOOK),
            Some(lifetime) => Some(lifetime - age),
            None => None,
        };
        of_idle.into_iter().chain(of_lifetime).min()
    }
}

/// When a connection was opened, and the calls that use it.
#[derive(Debug)]
pub(crate) struct LinkUsage {
    opened: Instant,
    uses: Mutex<Uses>,
}

#[derive(Debug)]
struct Uses {
    open: usize,
    /// Whether there was one.
    any: bool,
    /// When the last one ended.
    last: Instant,
    /// Whether the connection is being closed.
    over: bool,
}

impl LinkUsage {
    pub(crate) fn new() -> Arc<Self> {
        let opened = Instant::now();
        Arc::new(Self { opened, uses: Mutex::new(Uses { open: 0, any: false, last: opened, over: false }) })
    }

    /// Whether the connection is being closed.
    pub(crate) fn is_over(&self) -> bool {
        lock(&self.uses).over
    }

    /// Whether there is a use.
    pub(crate) fn is_used(&self) -> bool {
        lock(&self.uses).open > 0
    }

    /// Whether there was a use.
    pub(crate) fn was_used(&self) -> bool {
        lock(&self.uses).any
    }

    /// Marks a connection that is not used as over. Returns whether it was.
    pub(crate) fn retire(&self) -> bool {
        let mut uses = lock(&self.uses);
        let is_retired = uses.open == 0 && !uses.over;
        uses.over |= is_retired;
        is_retired
    }

    /// Counts a use, until the value is dropped. The connection may be [over](Self::is_over) already.
    pub(crate) fn begin(self: &Arc<Self>) -> LinkUse {
        let mut uses = lock(&self.uses);
        (uses.open, uses.any) = (uses.open + 1, true);
        drop(uses);
        LinkUse(self.clone())
    }
}

/// A use of a connection.
#[derive(Debug)]
pub(crate) struct LinkUse(Arc<LinkUsage>);

impl Drop for LinkUse {
    fn drop(&mut self) {
        let mut uses = lock(&self.0.uses);
        uses.open -= 1;
        uses.last = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn an_unused_one_is_closed_after_a_while() {
        let limits = LinkLimits { idle: Some(10 * SECOND), lifetime: None };
        let usage = LinkUsage::new();
        advance(4 * SECOND).await;
        assert_eq!(limits.remaining(&usage), Some(6 * SECOND));
        let (one, other) = (usage.begin(), usage.begin());
        advance(60 * SECOND).await;
        assert_eq!(limits.remaining(&usage), Some(10 * SECOND), "a call may take long");
        drop(one);
        advance(60 * SECOND).await;
        assert_eq!(limits.remaining(&usage), Some(10 * SECOND));
        drop(other);
        advance(9 * SECOND).await;
        assert_eq!(limits.remaining(&usage), Some(SECOND));
        advance(SECOND).await;
        assert_eq!(limits.remaining(&usage), None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_one_is_closed_between_two_calls_or_in_the_end() {
        let limits = LinkLimits { idle: Some(50 * SECOND), lifetime: Some(100 * SECOND) };
        let usage = LinkUsage::new();
        let call = usage.begin();
        advance(70 * SECOND).await;
        assert_eq!(limits.remaining(&usage), Some(30 * SECOND));
        advance(40 * SECOND).await;
        assert_eq!(limits.remaining(&usage), Some(LOOK), "a call is open");
        drop(call);
        assert_eq!(limits.remaining(&usage), None);
        // One that is never unused.
        let _call = usage.begin();
        advance(OVERTIME - 11 * SECOND).await;
        assert_eq!(limits.remaining(&usage), Some(LOOK));
        advance(SECOND).await;
        assert_eq!(limits.remaining(&usage), None);
    }
}
