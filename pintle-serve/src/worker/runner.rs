use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep_until},
};

use super::{pool::Order, process::Process, settings::WorkerSettings};

/// The delay before the second start without an answer between them, and the longest one.
const DELAY: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(10)];

/// The task that keeps a process: it starts one with a call, and another one after that has ended.
pub(super) struct Runner {
    settings: Arc<WorkerSettings>,
    orders: mpsc::Receiver<Order>,
    /// Notified when somebody does not wait for a call any more, it has written too much without one, or the pool is dropped.
    left: Arc<Notify>,
    /// Whether the process takes no calls until those that it has are over.
    is_stuck: Arc<AtomicBool>,
    /// The number of processes that ended since the last answer.
    failures: u32,
    not_before: Instant,
}

impl Runner {
    pub(super) fn new(
        settings: Arc<WorkerSettings>,
        orders: mpsc::Receiver<Order>,
        left: Arc<Notify>,
        is_stuck: Arc<AtomicBool>,
    ) -> Self {
        Self { settings, orders, left, is_stuck, failures: 0, not_before: Instant::now() }
    }

    /// Runs until the pool is dropped.
    pub(super) async fn run(mut self) {
        while let Some(order) = self.orders.recv().await {
            sleep_until(self.not_before).await;
            if order.events.is_closed() {
                continue;
            }
            match self.settings.start(&self.left) {
                Ok((child, idle, redaction)) => {
                    let mut process = Process::new(self.settings.clone(), child, idle, redaction);
                    process.begin(order);
                    self.keep(&mut process).await;
                    self.is_stuck.store(false, Ordering::Relaxed);
                    self.failures = if process.has_answered { 1 } else { self.failures.saturating_add(1) };
                    self.not_before = Instant::now() + delay(self.failures);
                }
                Err(reason) => {
                    let reason = format!("worker `{}` cannot be started: {reason}", self.settings.name);
                    // There is room: nothing was sent before.
                    let _ = order.events.try_send(Err(reason));
                }
            }
        }
    }

    /// Keeps a process until it is over, or the pool is dropped.
    async fn keep(&mut self, process: &mut Process) {
        loop {
            let wake = process.wake();
            self.is_stuck.store(process.is_stuck, Ordering::Relaxed);
            // Whichever comes first: each of them leaves the others for the next round.
            let over = tokio::select! {
                activity = process.activity() => process.take(activity),
                order = self.orders.recv(), if process.takes_orders() => match order {
                    Some(order) => {
                        process.begin(order);
                        None
                    }
                    None => return,
                },
                () = self.left.notified() => {
                    // Orders are not awaited while the process does not read.
                    if self.orders.is_closed() {
                        return;
                    }
                    process.cancel_left();
                    process.flood()
                }
                () = until(wake) => process.expire(Instant::now()),
            };
            if let Some(reason) = over {
                return process.fail_all(&reason);
            }
            // One that writes without an end leaves time to other tasks.
            tokio::task::coop::consume_budget().await;
        }
    }
}

async fn until(wake: Option<Instant>) {
    match wake {
        Some(wake) => sleep_until(wake).await,
        None => pending().await,
    }
}

/// Returns the delay after so many processes that ended without an answer.
fn delay(failures: u32) -> Duration {
    let [first, max] = DELAY;
    match failures.checked_sub(2) {
        None => Duration::ZERO,
        Some(doubled) => first.saturating_mul(2_u32.saturating_pow(doubled)).min(max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_never_answers_is_started_less_and_less_often() {
        let delays: Vec<_> = [0, 1, 2, 3, 4, 8, 9, 40, u32::MAX].into_iter().map(delay).collect();
        let millis = [0, 0, 100, 200, 400, 6_400, 10_000, 10_000, 10_000].map(Duration::from_millis);
        assert_eq!(delays, millis);
    }
}
