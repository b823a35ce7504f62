//! The state of a gateway, for balancers and for Prometheus.

mod readiness;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::{
    backend::Backend,
    logs::JsonLog,
    metrics::{Durations, Exposition, MetricsForm, RequestMetrics},
};

pub(super) use readiness::readiness;

/// The decisions that are counted.
const DECISIONS: [&str; 5] = ["allow", "confirm", "limit", "deny", "hide"];

/// The counters of a gateway.
#[derive(Debug, Default)]
pub(super) struct Counters {
    decisions: [AtomicU64; DECISIONS.len()],
    pub(super) requests: Arc<RequestMetrics>,
}

/// Values that are measured when the metrics are read.
pub(super) struct Measured<'a> {
    pub(super) is_ready: bool,
    /// Whether the store that the processes share can be used, if there is one.
    pub(super) has_store: Option<bool>,
    pub(super) sessions: usize,
    pub(super) programs: usize,
    /// Those that are not removed.
    pub(super) backends: &'a [Arc<Backend>],
    /// Whether the reader may see the names of the backends. Otherwise they are counted as one.
    pub(super) sees_names: bool,
    pub(super) logs: &'a [(&'static str, &'a JsonLog)],
    /// The lost lines of the log of the command.
    pub(super) lost_log_lines: u64,
}

impl Counters {
    pub(super) fn count(&self, decision: &str) {
        let counters = DECISIONS.iter().zip(&self.decisions);
        for (_, counter) in counters.filter(|(name, _)| **name == decision) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the metrics as text.
    pub(super) fn metrics(&self, form: MetricsForm, measured: &Measured<'_>) -> String {
        let mut to = Exposition::new(form);
        to.gauge("pintle_gateway_build", "The version of the gateway.");
        to.value(&[("version", env!("CARGO_PKG_VERSION"))], 1);
        to.gauge("pintle_gateway_ready", "Whether the gateway is ready.");
        to.value(&[], u8::from(measured.is_ready));
        if let Some(has_store) = measured.has_store {
            to.gauge("pintle_gateway_store_up", "Whether the store that the processes share can be used.");
            to.value(&[], u8::from(has_store));
        }
        self.requests.expose(&mut to);
        to.gauge("pintle_gateway_sessions", "Open sessions of clients.").value(&[], measured.sessions);
        to.gauge("pintle_gateway_programs", "Programs of targets that run.").value(&[], measured.programs);
        to.counter("pintle_gateway_decisions", "Decisions of the rules.");
        for (name, counter) in DECISIONS.iter().zip(&self.decisions) {
            to.count(&[("decision", name)], counter.load(Ordering::Relaxed));
        }
        measured.expose_backends(&mut to);
        measured.expose_logs(&mut to);
        to.finish()
    }
}

impl Measured<'_> {
    fn expose_backends(&self, to: &mut Exposition) {
        let (mut durations, mut errors) = (Durations::default(), 0);
        let traffic: Vec<_> =
            self.backends.iter().map(|backend| (backend.name(), backend.health.traffic())).collect();
        for (_, traffic) in &traffic {
            durations.merge(&traffic.durations);
            errors += traffic.errors;
        }
        let upstream = "pintle_gateway_upstream_duration_seconds";
        to.histogram(upstream, "Time that targets took for requests.");
        match self.sees_names {
            true => traffic.iter().for_each(|(name, of_backend)| {
                to.durations(&[("backend", name)], &of_backend.durations);
            }),
            false => drop(to.durations(&[], &durations)),
        }
        to.counter(
            "pintle_gateway_upstream_errors",
            "Requests that targets, or the way to them, have failed.",
        );
        match self.sees_names {
            true => traffic.iter().for_each(|(name, of_backend)| {
                to.count(&[("backend", name)], of_backend.errors);
            }),
            false => drop(to.count(&[], errors)),
        }
        if !self.sees_names {
            return;
        }
        to.gauge("pintle_gateway_backend_up", "Whether a target can be used.");
        for backend in self.backends {
            to.value(&[("backend", backend.name())], u8::from(backend.outage().is_none()));
        }
        to.gauge(
            "pintle_gateway_backend_list_cut",
            "Whether a list of a target is longer than what is offered.",
        );
        for (name, traffic) in &traffic {
            to.value(&[("backend", name)], u8::from(traffic.is_cut));
        }
        to.gauge("pintle_gateway_backend_list_age_seconds", "Time since a list of a target was read.");
        for (name, traffic) in &traffic {
            if let Some(listed) = traffic.listed {
                to.value(&[("backend", name)], listed.elapsed().as_secs());
            }
        }
    }

    fn expose_logs(&self, to: &mut Exposition) {
        to.gauge("pintle_gateway_log_failing", "Whether a log cannot be written.");
        for (name, log) in self.logs {
            to.value(&[("log", name)], u8::from(log.is_failing()));
        }
        to.counter("pintle_gateway_log_lost", "Lines of a log that are lost.");
        for (name, log) in self.logs {
            to.count(&[("log", name)], log.lost());
        }
        to.count(&[("log", "stderr")], self.lost_log_lines);
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use super::*;

    /// Reads metrics as a scraper does, and returns the samples.
    fn samples(text: &str, form: MetricsForm) -> Vec<(String, f64)> {
        let (mut families, mut seen, mut samples) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        let (mut family, mut kind) = (String::new(), String::new());
        let text = match form {
            MetricsForm::OpenMetrics => text.strip_suffix("# EOF\n").unwrap(),
            MetricsForm::Prometheus => text,
        };
        for line in text.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                let [word, name, rest] = comment.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
                match word {
                    "HELP" => assert!(families.insert(name.to_owned()), "{name} is declared twice"),
                    "TYPE" => (family, kind) = (name.to_owned(), rest.to_owned()),
                    "UNIT" => {
                        assert!(form == MetricsForm::OpenMetrics && name.ends_with(&format!("_{rest}")))
                    }
                    other => panic!("{other}"),
                }
                assert!(families.contains(name), "{line}");
                continue;
            }
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let suffix = name.strip_prefix(&family).unwrap_or_else(|| panic!("{line} is not of {family}"));
            let expected: &[&str] = match (&*kind, form) {
                ("counter", MetricsForm::OpenMetrics) => &["_total"],
                ("histogram", _) => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            assert!(expected.contains(&suffix) && (kind != "counter" || name.ends_with("_total")), "{line}");
            assert!(seen.insert(series.to_owned()), "{series} is there twice");
            samples.push((series.to_owned(), value.parse().unwrap()));
        }
        samples
    }

    #[test]
    fn metrics_are_read_in_both_forms_and_the_names_of_targets_by_those_who_may() {
        let counters = Counters::default();
        counters.count("deny");
        for (method, outcome) in [("tools/call", "ok"), ("tools/call", "error"), ("evil\n{method}", "error")]
        {
            counters.requests.begun();
            counters.requests.completed(method, outcome, Duration::from_millis(30));
        }
        counters.requests.begun();
        counters.requests.refused(http::StatusCode::UNAUTHORIZED);
        let backends = [Backend::unconnected("one"), Backend::unconnected("two")];
        for form in [MetricsForm::Prometheus, MetricsForm::OpenMetrics] {
            for sees_names in [true, false] {
                let measured = Measured {
                    is_ready: false,
                    has_store: Some(true),
                    sessions: 3,
                    programs: 2,
                    backends: &backends,
                    sees_names,
                    logs: &[],
                    lost_log_lines: 7,
                };
                let text = counters.metrics(form, &measured);
                assert_eq!(text.contains("\"one\""), sees_names, "{text}");
                assert!(!text.contains("evil"), "{text}");
                let samples = samples(&text, form);
                let value = |series: &str| {
                    let found = samples.iter().find(|(known, _)| known == series);
                    found.unwrap_or_else(|| panic!("there is no {series}: {text}")).1
                };
                for (series, expected) in [
                    ("requests_total{method=\"tools/call\",outcome=\"ok\"}", 1.0),
                    ("requests_total{method=\"_OTHER\",outcome=\"error\"}", 1.0),
                    ("request_duration_seconds_bucket{method=\"tools/call\",le=\"0.02\"}", 0.0),
                    ("request_duration_seconds_bucket{method=\"tools/call\",le=\"0.05\"}", 2.0),
                    ("request_duration_seconds_bucket{method=\"tools/call\",le=\"+Inf\"}", 2.0),
                    ("request_duration_seconds_count{method=\"tools/call\"}", 2.0),
                    ("request_duration_seconds_sum{method=\"tools/call\"}", 0.06),
                    ("requests_refused_total{status=\"401\"}", 1.0),
                    ("requests_running", 1.0),
                    ("decisions_total{decision=\"deny\"}", 1.0),
                    ("ready", 0.0),
                    ("store_up", 1.0),
                    ("sessions", 3.0),
                    ("programs", 2.0),
                    ("log_lost_total{log=\"stderr\"}", 7.0),
                ] {
                    assert_eq!(value(&format!("pintle_gateway_{series}")), expected, "{series}");
                }
                if sees_names {
                    assert_eq!(value("pintle_gateway_backend_up{backend=\"two\"}"), 0.0);
                    assert_eq!(value("pintle_gateway_upstream_errors_total{backend=\"one\"}"), 0.0);
                } else {
                    assert_eq!(value("pintle_gateway_upstream_errors_total"), 0.0);
                }
            }
        }
    }

    #[test]
    fn the_form_is_the_one_that_is_asked_for() {
        let of_prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        assert_eq!(MetricsForm::accepted(Some(of_prometheus)), MetricsForm::OpenMetrics);
        for other in [None, Some("text/plain"), Some("*/*")] {
            assert_eq!(MetricsForm::accepted(other), MetricsForm::Prometheus);
        }
    }
}
