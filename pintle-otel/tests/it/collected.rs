//! Telemetry that is kept in memory.

use opentelemetry::trace::{SpanId, SpanKind, TraceId};
use opentelemetry_sdk::{
    metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider},
    trace::{InMemorySpanExporter, SdkTracerProvider, SpanData},
};
use pintle_otel::Telemetry;

/// The telemetry of a test, and what it has recorded.
pub(crate) struct Collected {
    pub(crate) tracers: SdkTracerProvider,
    pub(crate) meters: SdkMeterProvider,
    pub(crate) spans: InMemorySpanExporter,
    pub(crate) metrics: InMemoryMetricExporter,
}

impl Collected {
    pub(crate) fn new() -> Self {
        let (spans, metrics) = (InMemorySpanExporter::default(), InMemoryMetricExporter::default());
        Self {
            tracers: SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build(),
            meters: SdkMeterProvider::builder()
                .with_reader(PeriodicReader::builder(metrics.clone()).build())
                .build(),
            spans,
            metrics,
        }
    }

    pub(crate) fn telemetry(&self) -> Telemetry {
        Telemetry::new(&self.tracers, &self.meters)
    }

    /// Returns the spans of a kind and name that have ended.
    pub(crate) fn all(&self, kind: &SpanKind, name: &str) -> Vec<SpanData> {
        let spans = self.spans.get_finished_spans().unwrap();
        spans.into_iter().filter(|span| span.span_kind == *kind && span.name == name).collect()
    }

    /// Returns the only span of a kind and name.
    pub(crate) fn only(&self, kind: &SpanKind, name: &str) -> SpanData {
        let mut found = self.all(kind, name);
        assert_eq!(found.len(), 1, "{kind:?} {name}: {:?}", self.names());
        found.remove(0)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let spans = self.spans.get_finished_spans().unwrap();
        spans.iter().map(|span| format!("{:?} {}", span.span_kind, span.name)).collect()
    }
}

/// Returns the trace and the id of a span.
pub(crate) fn ids(span: &SpanData) -> (TraceId, SpanId) {
    (span.span_context.trace_id(), span.span_context.span_id())
}

/// Returns the trace and the parent of a span.
pub(crate) fn parent(span: &SpanData) -> (TraceId, SpanId) {
    (span.span_context.trace_id(), span.parent_span_id)
}

/// Returns an attribute of a span as text.
pub(crate) fn attribute(span: &SpanData, name: &str) -> Option<String> {
    span.attributes.iter().find(|pair| pair.key.as_str() == name).map(|pair| pair.value.to_string())
}
