use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The outcome of the last question whether something answers.
#[derive(Default)]
pub(in super::super) struct LastAnswer(Mutex<Option<Failing>>);

struct Failing {
    since: Instant,
    reason: String,
}

/// Why and for how long something cannot be used.
#[derive(Debug, PartialEq)]
pub(in super::super) struct BackendOutage {
    pub(in super::super) time: Duration,
    pub(in super::super) reason: String,
}

impl BackendOutage {
    pub(in super::super) fn new(since: Instant, reason: &str) -> Self {
        Self { time: since.elapsed(), reason: reason.to_owned() }
    }
}

impl LastAnswer {
    /// Records an answer. Returns what is to be logged, if that is another state: how long there was none, or why there is none.
    pub(in super::super) fn record(&self, answered: Result<(), String>) -> Option<Result<Duration, String>> {
        let mut failing = self.lock();
        match (answered, &mut *failing) {
            (Ok(()), None) => None,
            (Ok(()), Some(_)) => failing.take().map(|before| Ok(before.since.elapsed())),
            (Err(reason), Some(known)) => {
                known.reason = reason;
                None
            }
            (Err(reason), None) => {
                *failing = Some(Failing { since: Instant::now(), reason: reason.clone() });
                Some(Err(reason))
            }
        }
    }

    /// Forgets what was recorded.
    pub(super) fn reset(&self) {
        *self.lock() = None;
    }

    /// Returns why there was no answer.
    pub(in super::super) fn outage(&self) -> Option<BackendOutage> {
        self.lock().as_ref().map(|failing| BackendOutage::new(failing.since, &failing.reason))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Failing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
