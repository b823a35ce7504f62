use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use pintle::{Connection, types::JsonObject};

use super::histogram::Histogram;
use crate::{
    failure::{Exit, Failure},
    targets::Endpoint,
};

/// Calls of a tool: their arguments, number, time, and how many at the same time.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) tool: String,
    pub(super) arguments: JsonObject,
    pub(super) concurrency: u32,
    pub(super) count: u64,
    pub(super) duration: Duration,
}

/// The times and errors of calls.
#[derive(Debug)]
pub(super) struct Measurement {
    /// The times of calls that succeeded.
    pub(super) times: Histogram,
    /// The failed calls, by their class: the kind of the exit code.
    pub(super) errors: BTreeMap<&'static str, CallErrors>,
    pub(super) elapsed: Duration,
}

/// The failed calls of a class.
#[derive(Debug)]
pub(super) struct CallErrors {
    pub(super) exit: Exit,
    pub(super) count: u64,
    /// The message of the first.
    pub(super) example: String,
}

struct Shared {
    load: Load,
    connection: Connection,
    endpoint: Endpoint,
    started: AtomicU64,
    /// No further call can succeed.
    stopped: AtomicBool,
    results: Mutex<(Histogram, BTreeMap<&'static str, CallErrors>)>,
}

impl Load {
    /// Makes the calls. Those that have started when the time is over are waited for.
    pub(super) async fn run(
        &self,
        connection: &Connection,
        endpoint: &Endpoint,
    ) -> Result<Measurement, Failure> {
        let shared = Arc::new(Shared {
            load: self.clone(),
            connection: connection.clone(),
            endpoint: endpoint.clone(),
            started: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            results: Mutex::new((Histogram::new(), BTreeMap::new())),
        });
        let started = Instant::now();
        let workers: Vec<_> = (0..self.concurrency)
            .map(|_| tokio::spawn(shared.clone().call_until(started + self.duration)))
            .collect();
        for worker in workers {
            worker.await.map_err(|error| Failure::internal(&error))?;
        }
        let elapsed = started.elapsed();
        let mut results = shared.results.lock().unwrap_or_else(PoisonError::into_inner);
        let (times, errors) = std::mem::replace(&mut *results, (Histogram::new(), BTreeMap::new()));
        Ok(Measurement { times, errors, elapsed })
    }
}

impl Shared {
    async fn call_until(self: Arc<Self>, deadline: Instant) {
        while !self.stopped.load(Ordering::Relaxed)
            && Instant::now() < deadline
            && self.started.fetch_add(1, Ordering::Relaxed) < self.load.count
        {
            let started = Instant::now();
            let call = self.connection.call(&*self.load.tool).args(self.load.arguments.clone());
            let called = call.send().await;
            let elapsed = started.elapsed();
            match called {
                Ok(result) if result.is_error == Some(true) => {
                    self.failed(Exit::Tool, || "the tool failed".to_owned())
                }
                Ok(_) => self.results.lock().unwrap_or_else(PoisonError::into_inner).0.record(elapsed),
                Err(error) => {
                    let failure = self.endpoint.explain(&error);
                    self.failed(failure.exit, || failure.message);
                }
            }
        }
    }

    fn failed(&self, exit: Exit, message: impl FnOnce() -> String) {
        if matches!(exit, Exit::Unreachable | Exit::Authorization | Exit::Usage) {
            self.stopped.store(true, Ordering::Relaxed);
        }
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let class = results.1.entry(exit.name());
        class.or_insert_with(|| CallErrors { exit, count: 0, example: message() }).count += 1;
    }
}
