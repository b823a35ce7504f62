//! Whether the targets of a gateway answer.

mod last_answer;

use std::{
    convert::Infallible,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pintle::{server::Outcome, types::ErrorCode};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};

use super::metrics::Durations;
use crate::output::{Output, SERVICE};

pub(super) use last_answer::{BackendOutage, LastAnswer};

/// The time between two probes of a target.
const INTERVAL: Duration = Duration::from_secs(15);
/// The time that a target has to answer one.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// The time between a probe and one because of a call that has failed.
const MIN_WAIT: Duration = Duration::from_secs(1);

/// The state of a connected target, as its probes and calls have found it.
#[derive(Default)]
pub(super) struct Health {
    last_answer: LastAnswer,
    /// Notified when a call has failed for a reason that may be the target.
    doubt: Notify,
    /// Notified when the target is replaced.
    replaced: Notify,
    /// Whether the gateway can be ready without the target.
    is_optional: AtomicBool,
    traffic: Mutex<BackendTraffic>,
}

/// Counts of what a backend has done since the start, whatever its target was.
#[derive(Clone, Debug, Default)]
pub(super) struct BackendTraffic {
    pub(super) durations: Durations,
    /// The requests without an outcome of the target.
    pub(super) errors: u64,
    /// When a list was read last.
    pub(super) listed: Option<Instant>,
    /// Whether a list of the target was longer than what is offered of it.
    pub(super) is_cut: bool,
}

impl Health {
    /// Forgets what was found of the target before.
    pub(super) fn reset(&self) {
        self.last_answer.reset();
        self.lock_traffic().is_cut = false;
        self.replaced.notify_waiters();
    }

    /// Handles a request, and measures it.
    pub(super) async fn measured(&self, handling: impl Future<Output = Outcome>) -> Outcome {
        let start = Instant::now();
        let outcome = handling.await;
        self.note(&outcome, start.elapsed());
        outcome
    }

    fn note(&self, outcome: &Outcome, time: Duration) {
        let has_failed = matches!(outcome, Outcome::Failed(error) if error.code == ErrorCode::INTERNAL_ERROR);
        if has_failed {
            self.doubt.notify_one();
        }
        let mut traffic = self.lock_traffic();
        traffic.durations.add(time);
        traffic.errors += u64::from(has_failed);
    }

    /// Takes notice of a list that was read.
    pub(super) fn listed<T>(&self, list: T) -> T {
        self.lock_traffic().listed = Some(Instant::now());
        list
    }

    /// Takes notice of a list of the target of this name that was cut, and logs the first.
    pub(super) fn cut(&self, name: &str) {
        let was_cut = std::mem::replace(&mut self.lock_traffic().is_cut, true);
        if !was_cut {
            tracing::warn!(target: SERVICE, "a list of `{name}` is longer than what is offered of it: choose with `only`");
        }
    }

    fn lock_traffic(&self) -> MutexGuard<'_, BackendTraffic> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns why the target does not answer.
    pub(super) fn outage(&self) -> Option<BackendOutage> {
        self.last_answer.outage()
    }

    /// Returns what was done since the start.
    pub(super) fn traffic(&self) -> BackendTraffic {
        self.lock_traffic().clone()
    }

    /// Sets whether the gateway is not ready without the target.
    pub(super) fn require(&self, is_required: bool) {
        self.is_optional.store(!is_required, Ordering::Release);
    }

    pub(super) fn is_required(&self) -> bool {
        !self.is_optional.load(Ordering::Acquire)
    }

    /// Probes the target of this name now and then, and when a call has failed, until it is replaced.
    pub(super) async fn watch<F>(
        &self,
        name: &str,
        is_current: impl Fn() -> bool,
        probe: impl Fn() -> F,
        output: &Output,
    ) where
        F: Future<Output = Result<(), String>>,
    {
        let replaced = self.replaced.notified();
        if is_current() {
            tokio::select! {
                // Nothing is recorded after it was replaced.
                biased;
                () = replaced => {}
                never = self.probe_again(name, probe, output) => match never {},
            }
        }
    }

    async fn probe_again<F>(&self, name: &str, probe: impl Fn() -> F, output: &Output) -> Infallible
    where
        F: Future<Output = Result<(), String>>,
    {
        loop {
            tokio::select! {
                () = sleep(INTERVAL) => {}
                () = self.doubt.notified() => {}
            }
            let late = || Err(format!("it has not answered within {} s", PROBE_TIMEOUT.as_secs()));
            let answered = timeout(PROBE_TIMEOUT, probe()).await.unwrap_or_else(|_| late());
            match self.last_answer.record(answered) {
                Some(Err(reason)) => output.warning(format!("`{name}` does not answer: {reason}")),
                Some(Ok(time)) => output.note(format!("`{name}` answers again, after {} s", time.as_secs())),
                None => {}
            }
            sleep(MIN_WAIT).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::{Cell, RefCell},
        rc::Rc,
    };

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_target_that_does_not_answer_is_down_until_it_does_and_each_is_logged_once() {
        let one = Health::default();
        let (output, printed) = Output::kept();
        let answer = RefCell::new(Ok::<(), String>(()));
        let probe = || async {
            let answer = answer.borrow().clone();
            match answer {
                Err(reason) if reason == "hangs" => std::future::pending().await,
                answer => answer,
            }
        };
        let steps = async {
            sleep(2 * INTERVAL).await;
            assert_eq!(one.outage(), None);
            *answer.borrow_mut() = Err("the port is closed".to_owned());
            // A call that fails is reason to look at once.
            one.note(&Outcome::Failed(pintle::types::RpcError::internal("no answer")), MIN_WAIT);
            sleep(2 * MIN_WAIT).await;
            assert_eq!(one.outage().unwrap().reason, "the port is closed");
            *answer.borrow_mut() = Err("hangs".to_owned());
            sleep(3 * INTERVAL + PROBE_TIMEOUT).await;
            let outage = one.outage().unwrap();
            assert_eq!(outage.reason, "it has not answered within 10 s");
            assert!(outage.time > 3 * INTERVAL, "{outage:?}");
            *answer.borrow_mut() = Ok(());
            sleep(2 * INTERVAL + PROBE_TIMEOUT).await;
            assert_eq!(one.outage(), None);
        };
        tokio::select! {
            () = one.watch("one", || true, probe, &output) => panic!("it was not replaced"),
            () = steps => {}
        }
        let printed = printed();
        for line in ["`one` does not answer: the port is closed", "`one` answers again, after"] {
            assert_eq!(printed.matches(line).count(), 1, "{printed}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_target_that_is_replaced_is_not_probed_any_more() {
        let (one, is_current) = (Health::default(), Cell::new(true));
        let (output, _) = Output::kept();
        let kept = Rc::new(());
        let held = kept.clone();
        let hangs = move || {
            let held = held.clone();
            async move {
                let _held = held;
                std::future::pending().await
            }
        };
        let replace = async {
            sleep(INTERVAL + MIN_WAIT).await;
            is_current.set(false);
            one.reset();
        };
        tokio::join!(one.watch("one", || is_current.get(), hangs, &output), replace);
        let fails = || async { Err("of the one before".to_owned()) };
        one.watch("one", || is_current.get(), fails, &output).await;
        assert_eq!((one.outage(), Rc::strong_count(&kept)), (None, 1));
    }
}
