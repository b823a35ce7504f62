use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{backend::Backend, logs::JsonLog};

/// The decisions that are counted.
const DECISIONS: [&str; 5] = ["allow", "confirm", "limit", "deny", "hide"];

/// The counters of a gateway.
#[derive(Debug, Default)]
pub(super) struct Counters([AtomicU64; DECISIONS.len()]);

impl Counters {
    pub(super) fn count(&self, decision: &str) {
        let counters = DECISIONS.iter().zip(&self.0);
        for (_, counter) in counters.filter(|(name, _)| **name == decision) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the counters in the text format of Prometheus.
    pub(super) fn metrics<'a>(
        &self,
        backends: &[Arc<Backend>],
        logs: impl Iterator<Item = (&'static str, &'a JsonLog)>,
        lost_log_lines: u64,
    ) -> String {
        let mut text = String::from("# TYPE pintle_gateway_decisions_total counter\n");
        for (name, counter) in DECISIONS.iter().zip(&self.0) {
            let count = counter.load(Ordering::Relaxed);
            let _ = writeln!(text, "pintle_gateway_decisions_total{{decision=\"{name}\"}} {count}");
        }
        text += "# TYPE pintle_gateway_backend_up gauge\n";
        for backend in backends.iter().filter(|backend| !backend.is_removed()) {
            let up = u8::from(backend.is_up());
            let _ = writeln!(text, "pintle_gateway_backend_up{{backend=\"{}\"}} {up}", backend.name());
        }
        text += "# TYPE pintle_gateway_log_failing gauge\n# TYPE pintle_gateway_log_lost_total counter\n";
        for (name, log) in logs {
            let (failing, lost) = (u8::from(log.is_failing()), log.lost());
            let _ = writeln!(text, "pintle_gateway_log_failing{{log=\"{name}\"}} {failing}");
            let _ = writeln!(text, "pintle_gateway_log_lost_total{{log=\"{name}\"}} {lost}");
        }
        let _ = writeln!(text, "pintle_gateway_log_lost_total{{log=\"stderr\"}} {lost_log_lines}");
        text
    }
}
