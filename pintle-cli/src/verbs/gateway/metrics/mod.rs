//! Metrics, and their forms.

mod durations;
mod exposition;
mod request_metrics;

pub(super) use durations::Durations;
pub(super) use exposition::{Exposition, MetricsForm};
pub(super) use request_metrics::RequestMetrics;
