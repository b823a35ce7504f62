use std::{
    fmt::Write as _,
    fs::{File, OpenOptions},
    io::Write as _,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use pintle::server::AuditRecord;

use super::backend::Backend;
use crate::failure::Failure;

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
    pub(super) fn metrics(&self, backends: &[Arc<Backend>]) -> String {
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
        text
    }
}

/// A file of audit records, one a line.
#[derive(Debug)]
pub(super) struct AuditLog(Mutex<File>);

impl AuditLog {
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(|error| {
            let message = format!("the audit log `{}` cannot be written: {error}", path.display());
            Failure::usage(message, format!("touch {}", path.display()))
        })?;
        Ok(Self(Mutex::new(file)))
    }

    pub(super) fn write(&self, record: &AuditRecord<'_>) {
        let Ok(mut line) = serde_json::to_vec(record) else { return };
        line.push(b'\n');
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be written must not fail calls: `/metrics` still counts them.
        let _ = file.write_all(&line);
    }
}
