use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use super::load::{Load, Measurement};
use crate::output::{Text, Tone};

/// The version of the file's layout. Others are not read.
const VERSION: u32 = 1;
/// The widest bar of the histogram.
const BAR: usize = 40;

/// The result of a benchmark, as it is saved. Times are milliseconds.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct BenchReport {
    version: u32,
    target: String,
    tool: String,
    concurrency: u32,
    runs: Vec<EraRun>,
}

/// The calls in one era.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct EraRun {
    era: String,
    revision: String,
    /// The calls that succeeded.
    calls: u64,
    seconds: f64,
    /// Successful calls in a second.
    rate: f64,
    latency: Latency,
    errors: BTreeMap<String, ErrorCount>,
    histogram: Vec<HistogramRow>,
    /// The change since a saved run, as a share of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<BTreeMap<String, f64>>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Latency {
    min: f64,
    mean: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct ErrorCount {
    count: u64,
    example: String,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct HistogramRow {
    below: f64,
    count: u64,
}

impl Latency {
    fn rows(&self) -> [(&'static str, f64); 7] {
        let Self { min, mean, p50, p90, p99, p999, max } = *self;
        [
            ("min", min),
            ("mean", mean),
            ("p50", p50),
            ("p90", p90),
            ("p99", p99),
            ("p99.9", p999),
            ("max", max),
        ]
    }
}

impl BenchReport {
    pub(super) fn new(target: String, load: &Load) -> Self {
        let Load { tool, concurrency, .. } = load;
        Self { version: VERSION, target, tool: tool.clone(), concurrency: *concurrency, runs: Vec::new() }
    }

    /// Reads a saved report.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let report: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        match report.version {
            VERSION => Ok(report),
            version => Err(format!("its format has version {version}, and this program reads {VERSION}")),
        }
    }

    pub(super) fn add(&mut self, revision: pintle::proto::Revision, measured: &Measurement) {
        let times = &measured.times;
        let seconds = measured.elapsed.as_secs_f64();
        let errors = measured.errors.iter().map(|(class, errors)| {
            ((*class).to_owned(), ErrorCount { count: errors.count, example: errors.example.clone() })
        });
        let ends: Vec<_> = row_ends().collect();
        let counts = times.below(&ends);
        let first = counts.iter().position(|count| *count > 0).unwrap_or(0);
        let last = counts.iter().rposition(|count| *count > 0).map_or(0, |at| at + 1);
        let rows = ends.iter().zip(&counts).take(last).skip(first);
        self.runs.push(EraRun {
            era: if revision.facts().keeps_session { "session" } else { "stateless" }.to_owned(),
            revision: revision.as_str().to_owned(),
            calls: times.count(),
            seconds: rounded(seconds),
            rate: rounded(if seconds > 0.0 { times.count() as f64 / seconds } else { 0.0 }),
            latency: Latency {
                min: milliseconds(times.min()),
                mean: milliseconds(times.mean()),
                p50: milliseconds(times.quantile(0.5)),
                p90: milliseconds(times.quantile(0.9)),
                p99: milliseconds(times.quantile(0.99)),
                p999: milliseconds(times.quantile(0.999)),
                max: milliseconds(times.max()),
            },
            errors: errors.collect(),
            histogram: rows
                .map(|(end, count)| HistogramRow { below: milliseconds(*end), count: *count })
                .collect(),
            change: None,
        });
    }

    /// Adds the change since a saved report, to the eras that both have.
    pub(super) fn compare(&mut self, before: &Self) {
        for run in &mut self.runs {
            let Some(before) = before.runs.iter().find(|before| before.era == run.era) else { continue };
            let rows = run.latency.rows().into_iter().zip(before.latency.rows());
            let mut change: BTreeMap<_, _> = rows
                .filter_map(|((name, now), (_, before))| Some((name.to_owned(), share(before, now)?)))
                .collect();
            change.extend(share(before.rate, run.rate).map(|share| ("rate".to_owned(), share)));
            run.change = Some(change);
        }
    }

    pub(super) fn print(&self, width: usize, text: &mut Text) {
        for run in &self.runs {
            run.print(self.concurrency, width, text);
        }
    }
}

impl EraRun {
    fn print(&self, concurrency: u32, width: usize, text: &mut Text) {
        let Self { era, revision, calls, seconds, rate, .. } = self;
        text.tone(Tone::Title, era).add(" ").tone(Tone::Faint, revision).add(" ");
        text.add(format_args!("{calls} calls in {seconds:.2} s, {concurrency} at a time: {rate:.0} calls/s"));
        self.print_change("rate", text);
        text.end();
        for (name, time) in self.latency.rows() {
            text.add("  ")
                .tone(Tone::Faint, format_args!("{name:<6}"))
                .add(format_args!("{:>10}", shown(time)));
            self.print_change(name, text);
            text.end();
        }
        for (class, ErrorCount { count, example }) in &self.errors {
            text.add("  ").tone(Tone::Error, format_args!("{count} failed ({class}): ")).line(example);
        }
        let largest = self.histogram.iter().map(|row| row.count).max().unwrap_or(1).max(1);
        let widest = BAR.min(width.saturating_sub(24)).max(1);
        for HistogramRow { below, count } in &self.histogram {
            let filled = (*count as f64 / largest as f64 * widest as f64).ceil() as usize;
            text.add("  ")
                .tone(Tone::Faint, format_args!("{:>9}", format_args!("< {}", shown(*below)).to_string()));
            text.add(" ").tone(Tone::Out, "█".repeat(filled)).add(" ").line(count);
        }
    }

    fn print_change(&self, name: &str, text: &mut Text) {
        if let Some(share) = self.change.as_ref().and_then(|change| change.get(name)) {
            text.add(" ").tone(Tone::Code, format_args!("({:+.1} %)", share * 100.0));
        }
    }
}

/// Returns the ends of the rows of a histogram: 1, 2, 5, 10, … microseconds, up to hours.
fn row_ends() -> impl Iterator<Item = Duration> {
    let powers = (0..11).map(|power| 10u64.pow(power));
    powers.flat_map(|power| [1, 2, 5].map(|step| Duration::from_micros(step * power)))
}

/// Returns the change as a share of the value before.
fn share(before: f64, now: f64) -> Option<f64> {
    (before > 0.0).then(|| rounded((now - before) / before))
}

fn milliseconds(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1e3)
}

fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

/// Formats milliseconds: `12µs`, `1.25ms`, `3.1s`.
fn shown(milliseconds: f64) -> String {
    match milliseconds {
        time if time < 1.0 => format!("{:.0}µs", time * 1e3),
        time if time < 10.0 => format!("{}ms", (time * 100.0).round() / 100.0),
        time if time < 1e3 => format!("{}ms", (time * 10.0).round() / 10.0),
        time => format!("{}s", (time / 10.0).round() / 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::histogram::Histogram, *};
    use crate::{failure::Exit, verbs::traffic::bench::load::CallErrors};

    fn report(millis: u64) -> BenchReport {
        let load = Load {
            tool: "tide".into(),
            arguments: Default::default(),
            concurrency: 4,
            count: 10,
            duration: Duration::from_secs(1),
        };
        let mut times = Histogram::new();
        (0..8).for_each(|_| times.record(Duration::from_millis(millis)));
        times.record(Duration::from_millis(millis * 10));
        let failed = CallErrors { exit: Exit::Server, count: 1, example: "no \u{1b}".into() };
        let errors = [("server", failed)].into();
        let mut report = BenchReport::new("demo".into(), &load);
        report.add(
            pintle::proto::Revision::LATEST,
            &Measurement { times, errors, elapsed: Duration::from_secs(3) },
        );
        report
    }

    #[test]
    fn a_report_has_percentiles_errors_a_histogram_and_the_change() {
        let mut now = report(3);
        let saved = serde_json::to_vec(&report(2)).unwrap();
        now.compare(&BenchReport::parse(&saved).unwrap());
        let mut text = Text::new();
        now.print(80, &mut text);
        let shown = text.rendered_plain();
        let (head, rows) = shown.split_once('\n').unwrap();
        assert!(
            head.starts_with("stateless ")
                && head.ends_with("9 calls in 3.00 s, 4 at a time: 3 calls/s (+0.0 %)"),
            "{head}"
        );
        let expected = [
            "  min          3ms (+50.0 %)",
            "  mean         6ms (+50.0 %)",
            "  p50       3.02ms (+49.6 %)",
            "  p90         30ms (+50.0 %)",
            "  p99         30ms (+50.0 %)",
            "  p99.9       30ms (+50.0 %)",
            "  max         30ms (+50.0 %)",
            "  1 failed (server): no \\u{1b}",
            &format!("      < 5ms {} 8", "█".repeat(40)),
            "     < 10ms  0",
            "     < 20ms  0",
            "     < 50ms █████ 1",
        ];
        assert_eq!(rows.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn only_reports_are_compared_with() {
        assert!(BenchReport::parse(b"{}").is_err());
        let other = serde_json::to_string(&report(2)).unwrap().replace("\"version\":1", "\"version\":2");
        assert!(BenchReport::parse(other.as_bytes()).unwrap_err().contains("version 2"));
    }
}
