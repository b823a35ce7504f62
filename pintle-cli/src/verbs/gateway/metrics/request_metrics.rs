use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::StatusCode;
use pintle::types::method;

use super::{Durations, Exposition};

/// The method of requests that the protocol does not define: clients choose its name.
const OTHER: &str = "_OTHER";

/// The requests of a gateway. Methods are those of the protocol, and statuses those of HTTP, so that the number of series is bounded.
#[derive(Debug, Default)]
pub(in crate::verbs::gateway) struct RequestMetrics(Mutex<Requests>);

#[derive(Debug, Default)]
struct Requests {
    methods: BTreeMap<&'static str, MethodRequests>,
    /// Requests that were refused before their message was read, by status.
    refused: BTreeMap<u16, u64>,
    running: u64,
}

#[derive(Debug, Default)]
struct MethodRequests {
    /// By outcome.
    counts: BTreeMap<&'static str, u64>,
    durations: Durations,
}

impl RequestMetrics {
    /// Counts a request that begins. It is [completed](Self::completed) once.
    pub(in crate::verbs::gateway) fn begun(&self) {
        self.lock().running += 1;
    }

    pub(in crate::verbs::gateway) fn completed(&self, method: &str, outcome: &'static str, time: Duration) {
        let method = method::find(method).map_or(OTHER, |method| method.name);
        let mut requests = self.lock();
        requests.running = requests.running.saturating_sub(1);
        let of_method = requests.methods.entry(method).or_default();
        *of_method.counts.entry(outcome).or_default() += 1;
        of_method.durations.add(time);
    }

    /// Counts a request that was refused before its message was read.
    pub(in crate::verbs::gateway) fn refused(&self, status: StatusCode) {
        *self.lock().refused.entry(status.as_u16()).or_default() += 1;
    }

    pub(in crate::verbs::gateway) fn expose(&self, to: &mut Exposition) {
        let requests = self.lock();
        to.counter("pintle_gateway_requests", "Requests, by method and outcome.");
        for (method, of_method) in &requests.methods {
            for (outcome, count) in &of_method.counts {
                to.count(&[("method", method), ("outcome", outcome)], *count);
            }
        }
        to.histogram(
            "pintle_gateway_request_duration_seconds",
            "Time of requests, with that of their targets.",
        );
        for (method, of_method) in &requests.methods {
            to.durations(&[("method", method)], &of_method.durations);
        }
        to.counter("pintle_gateway_requests_refused", "Requests that were refused before they were read.");
        for (status, count) in &requests.refused {
            to.count(&[("status", &status.to_string())], *count);
        }
        to.gauge("pintle_gateway_requests_running", "Requests that wait for their outcome.");
        to.value(&[], requests.running);
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
