//! A bridge that runs, and samples of what a call costs it.

use std::io;
use std::thread;

use super::cpu::MarkedCpu;
use super::{BridgeBench, LOOK};
use crate::process::Process;
use crate::rebuild::median;

/// A bridge, or the server itself, that runs while this is kept. One over stdio is started anew for each sample.
pub(super) struct Running<'a> {
    bench: &'a BridgeBench,
    /// The URL, or the words of the command that `pintle bench` starts.
    target: Vec<String>,
    mark: String,
    is_server: bool,
    _process: Option<Process>,
}

/// The cost of the calls of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// CPU time for one call, in microseconds.
    cpu: f64,
    /// The median of the latency, in milliseconds, with one call at a time.
    latency: f64,
}

/// The figures of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    /// CPU time of the bridge for one call, in microseconds.
    pub(super) cpu: f64,
    /// The CPU time beside that of the server itself.
    pub(super) ratio: f64,
    /// The median of the latency, in milliseconds.
    pub(super) latency: f64,
    /// The latency over that of the server itself.
    pub(super) added: f64,
}

impl<'a> Running<'a> {
    pub(super) fn new(
        bench: &'a BridgeBench,
        process: Option<Process>,
        target: Vec<String>,
        mark: &str,
    ) -> Self {
        Self { bench, target, mark: mark.to_owned(), is_server: false, _process: process }
    }

    /// Counts the time of servers too.
    pub(super) fn with_server(self) -> Self {
        Self { is_server: true, ..self }
    }

    /// Makes calls that do not count.
    pub(super) fn warm_up(&self) -> io::Result<()> {
        self.bench.bench(self.bench.run.warm_up, &self.target).map(drop)
    }

    /// Makes few calls and many. The difference is what calls cost, without connecting and, over stdio, starting.
    pub(super) fn sample(&self) -> io::Result<Sample> {
        let cpu = MarkedCpu::watch(&self.mark, !self.is_server);
        thread::sleep(2 * LOOK);
        let run = self.bench.run;
        let mut spent = [0.0; 2];
        let mut latency = 0.0;
        for (calls, spent) in [run.warm_up, run.warm_up + run.calls].into_iter().zip(&mut spent) {
            let before = cpu.total();
            latency = self.bench.bench(calls, &self.target)?;
            thread::sleep(2 * LOOK);
            *spent = cpu.total() - before;
        }
        let [few, many] = spent;
        Ok(Sample { cpu: (many - few) / f64::from(run.calls) * 1e6, latency })
    }
}

impl Figures {
    /// Returns the medians of rounds, each a sample of the server itself and one of the bridge.
    pub(super) fn of(rounds: &[(Sample, Sample)]) -> Self {
        let median_of =
            |figure: fn(&(Sample, Sample)) -> f64| median(&mut rounds.iter().map(figure).collect::<Vec<_>>());
        Self {
            cpu: median_of(|(_, bridge)| bridge.cpu),
            ratio: median_of(|(direct, bridge)| bridge.cpu / direct.cpu),
            latency: median_of(|(_, bridge)| bridge.latency),
            added: median_of(|(direct, bridge)| bridge.latency - direct.latency),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_that_within_a_round() {
        let sample = |cpu| Sample { cpu, latency: cpu / 100.0 };
        let rounds = [(10.0, 30.0), (40.0, 80.0), (20.0, 50.0)];
        let figures = Figures::of(&rounds.map(|(direct, bridge)| (sample(direct), sample(bridge))));
        assert_eq!((figures.cpu, figures.ratio, figures.latency), (50.0, 2.5, 0.5));
        assert!((figures.added - 0.3).abs() < 1e-9, "{figures:?}");
    }
}
