use std::fmt::{Display, Write as _};

use super::Durations;

/// A form of metrics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::verbs::gateway) enum MetricsForm {
    /// The text format of Prometheus, 0.0.4.
    Prometheus,
    /// OpenMetrics, 1.0.0.
    OpenMetrics,
}

impl MetricsForm {
    /// Returns the form for the `Accept` header of a request.
    pub(in crate::verbs::gateway) fn accepted(accept: Option<&str>) -> Self {
        let is_wanted = |accept: &str| accept.contains("application/openmetrics-text");
        if accept.is_some_and(is_wanted) { Self::OpenMetrics } else { Self::Prometheus }
    }

    pub(in crate::verbs::gateway) fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Metrics as text. Each family begins with its type and its help, followed by its samples.
#[derive(Debug)]
pub(in crate::verbs::gateway) struct Exposition {
    form: MetricsForm,
    text: String,
    name: &'static str,
}

/// The labels of a sample, with their values.
pub(in crate::verbs::gateway) type Labels<'a> = &'a [(&'static str, &'a str)];

impl Exposition {
    pub(in crate::verbs::gateway) fn new(form: MetricsForm) -> Self {
        Self { form, text: String::new(), name: "" }
    }

    /// Begins a counter, whose samples end in `_total`.
    pub(in crate::verbs::gateway) fn counter(&mut self, name: &'static str, help: &str) -> &mut Self {
        let suffix = if self.form == MetricsForm::Prometheus { "_total" } else { "" };
        self.begin(name, suffix, "counter", help)
    }

    pub(in crate::verbs::gateway) fn gauge(&mut self, name: &'static str, help: &str) -> &mut Self {
        self.begin(name, "", "gauge", help)
    }

    pub(in crate::verbs::gateway) fn histogram(&mut self, name: &'static str, help: &str) -> &mut Self {
        self.begin(name, "", "histogram", help)
    }

    // Writing to a string does not fail.
    fn begin(&mut self, name: &'static str, suffix: &str, kind: &str, help: &str) -> &mut Self {
        self.name = name;
        let _ = writeln!(self.text, "# HELP {name}{suffix} {help}");
        let _ = writeln!(self.text, "# TYPE {name}{suffix} {kind}");
        if self.form == MetricsForm::OpenMetrics && name.ends_with("_seconds") {
            let _ = writeln!(self.text, "# UNIT {name} seconds");
        }
        self
    }

    /// Adds a sample of a counter.
    pub(in crate::verbs::gateway) fn count(&mut self, labels: Labels<'_>, count: u64) -> &mut Self {
        self.sample("_total", labels, None, count)
    }

    /// Adds a sample of a gauge.
    pub(in crate::verbs::gateway) fn value(&mut self, labels: Labels<'_>, value: impl Display) -> &mut Self {
        self.sample("", labels, None, value)
    }

    /// Adds the samples of a histogram.
    pub(in crate::verbs::gateway) fn durations(
        &mut self,
        labels: Labels<'_>,
        durations: &Durations,
    ) -> &mut Self {
        for (bound, count) in durations.buckets() {
            let bound = bound.map_or("+Inf".to_owned(), |bound| format!("{bound:?}"));
            self.sample("_bucket", labels, Some(&bound), count);
        }
        self.sample("_sum", labels, None, durations.sum().as_secs_f64());
        self.sample("_count", labels, None, durations.count())
    }

    fn sample(
        &mut self,
        suffix: &str,
        labels: Labels<'_>,
        bound: Option<&str>,
        value: impl Display,
    ) -> &mut Self {
        let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let all = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        let all: Vec<_> = all.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let all = if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) };
        let _ = writeln!(self.text, "{}{suffix}{all} {value}", self.name);
        self
    }

    /// Returns the text.
    pub(in crate::verbs::gateway) fn finish(mut self) -> String {
        if self.form == MetricsForm::OpenMetrics {
            self.text += "# EOF\n";
        }
        self.text
    }
}
