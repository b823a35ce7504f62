//! Servers and clients side by side: prints tables of what a request costs each of them.
//!
//! `load [<rounds>] [options] <name=command>… [--client <name=command>]…`
//!
//! A server's command is started with `http` behind it, and then says its address in one line, or with `stdio`. A
//! client's is started with `http <url> <calls> <in flight>` or `stdio <calls> <in flight> <server command>…`, and
//! prints `{"calls":…,"cpu_us":…,"wall_us":…}`. The first server is what the others are compared with, the second the
//! one that has goals. What is compared is the CPU time of a process, which depends least on what else the machine
//! does; every workload visits every server before the next one begins, the first two in short turns, and the order of
//! the others turns each round.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

mod clients;
mod cores;
mod curves;
mod figures;
mod http;
mod options;
mod pipe;
mod plot;
mod program;
mod question;
mod ready;
mod sessions;
mod start;
mod svg;
mod table;
mod tally;
mod workload;

use std::{
    fs,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use clients::{CALLS, Calls};
use cores::Cores;
use curves::Point;
use figures::{Figures, SETTLED, Section};
use options::Options;
use program::Program;
use ready::{MEASURED, Ready, in_turns};
use workload::{FEW, MANY, WORKLOADS, Workload};

/// After so long without a word a connection is given up.
const SILENCE: Duration = Duration::from_secs(10);
/// After so long a program is given up; one that has to be read and compiled first may take a while to start.
const STUCK: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let cores = Cores::part();
    match Options::read(std::env::args().skip(1), cores).and_then(|options| run(&options, cores.is_some())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options, pinned: bool) -> Result<(), String> {
    let (before, start) = (load_average(), Instant::now());
    let mut bench = Bench::new(options);
    let mut last = Duration::ZERO;
    for round in 0..options.rounds {
        if start.elapsed() + last > options.time {
            eprintln!("no time for round {}", round + 1);
            break;
        }
        last = bench.round(round)?;
        eprintln!("round {} of {} after {} s", round + 1, options.rounds, start.elapsed().as_secs());
    }
    let pinned = if pinned { "generator and server pinned to a core each" } else { "nothing pinned" };
    println!(
        "Median of {} rounds of at most {} requests or {} ms each, or of {SETTLED} for servers that cost over twice as much as {}; {} s in total; {pinned}; load average of the machine {before} before and {} after.\n",
        bench.servers.rounds(),
        MEASURED.requests,
        MEASURED.time.as_millis(),
        bench.servers.names.get(1).map_or("the second", String::as_str),
        start.elapsed().as_secs(),
        load_average()
    );
    bench.print();
    bench.write()?;
    let failed = [&bench.servers, &bench.clients, &bench.curves].into_iter().find_map(Figures::failed);
    failed.map_or(Ok(()), Err)
}

/// The whole benchmark.
struct Bench<'a> {
    options: &'a Options,
    workloads: Vec<Workload>,
    servers: Figures,
    calls: Vec<Calls>,
    clients: Figures,
    points: Vec<Point>,
    curves: Figures,
}

impl<'a> Bench<'a> {
    fn new(options: &'a Options) -> Self {
        let wanted = |name: &str| name.contains(&options.only);
        let names =
            |programs: &[Program]| programs.iter().map(|program| program.name.clone()).collect::<Vec<_>>();
        let thorough = |workload: &Workload| !options.quick || *workload != Workload::Idle(MANY);
        let workloads: Vec<_> = WORKLOADS
            .iter()
            .copied()
            .filter(|workload| wanted(&workload.row().name) && thorough(workload))
            .collect();
        let calls: Vec<_> = CALLS
            .iter()
            .copied()
            .filter(|calls| !options.clients.is_empty() && wanted(&calls.row().name))
            .collect();
        let points: Vec<_> =
            curves::points().filter(|point| !options.quick && wanted(&point.row().name)).collect();
        // One that has many tools is the second server only.
        let compared = options.servers.get(..2).unwrap_or(&options.servers);
        Self {
            options,
            servers: Figures::new(names(&options.servers), workloads.iter().map(|workload| workload.row())),
            workloads,
            clients: Figures::new(
                [vec!["raw".to_owned()], names(&options.clients)].concat(),
                calls.iter().map(|calls| calls.row()),
            ),
            calls,
            curves: Figures::new(names(compared), points.iter().map(|point| point.row())),
            points,
        }
    }

    /// Measures everything once; how long that took, without what is not done again.
    fn round(&mut self, round: usize) -> Result<Duration, String> {
        let start = Instant::now();
        let mut once = Duration::ZERO;
        for (row, workload) in self.workloads.iter().enumerate() {
            if round > 0 && workload.is_done_once() {
                continue;
            }
            let begun = Instant::now();
            for column in 2..self.options.servers.len() {
                if let Some(why) = too_many(&self.servers, *workload, column) {
                    self.servers.leave_out(row, column, why);
                }
            }
            beside(&mut self.servers, row, round, |column| workload.ready(self.options.servers.get(column)?));
            visit(&mut self.servers, row, round, |column| {
                workload.measure(self.options.servers.get(column).ok_or("no such server")?)
            })?;
            if workload.is_done_once() {
                once += begun.elapsed();
            }
        }
        let limit = self.options.servers.first().ok_or("there is no server")?;
        for (row, calls) in self.calls.iter().enumerate() {
            visit(&mut self.clients, row, round, |column| match column.checked_sub(1) {
                None => calls.raw(limit),
                Some(nth) => calls.measure(self.options.clients.get(nth).ok_or("no such client")?, limit),
            })?;
        }
        for (row, point) in self.points.iter().enumerate() {
            beside(&mut self.curves, row, round, |column| {
                Some(point.ready(self.options.servers.get(column)?))
            });
            visit(&mut self.curves, row, round, |column| {
                point.ready(self.options.servers.get(column).ok_or("no such server")?)?.measure()
            })?;
        }
        Ok(start.elapsed().saturating_sub(once))
    }

    fn print(&self) {
        for (figures, section) in self.sections() {
            println!("{}", table::costs(figures, section));
        }
        if !self.points.is_empty() {
            println!("{}", table::costs(&self.curves, Section::Curve));
        }
        println!("{}", table::not_met(&[&self.servers, &self.clients]));
        for (figures, section) in self.sections() {
            println!("{}", table::walls(figures, section));
        }
        print!("{}", table::missing(&[&self.servers, &self.clients, &self.curves]));
    }

    /// Those that have figures.
    fn sections(&self) -> impl Iterator<Item = (&Figures, Section)> {
        let all = [
            (&self.servers, Section::Http),
            (&self.servers, Section::Stdio),
            (&self.servers, Section::Process),
            (&self.clients, Section::Client),
        ];
        all.into_iter().filter(|(figures, section)| figures.of(*section).next().is_some())
    }

    fn write(&self) -> Result<(), String> {
        if let Some(file) = &self.options.data {
            let data = [self.servers.data(), self.clients.data(), self.curves.data()].concat();
            write(file, &data)?;
        }
        let Some(folder) = &self.options.plots else { return Ok(()) };
        let plots = [
            ("http", plot::bars(&self.servers, Section::Http, "HTTP: CPU time per request, × the limit")),
            ("stdio", plot::bars(&self.servers, Section::Stdio, "stdio: CPU time per request, × the limit")),
            ("process", plot::bars(&self.servers, Section::Process, "Memory and start, × the limit")),
            ("clients", plot::bars(&self.clients, Section::Client, "Clients: CPU time per call, × raw")),
            ("curves", plot::curves(&self.curves, &self.points)),
        ];
        let mut drawn = plots.into_iter().filter_map(|(name, svg)| Some((name, svg?)));
        drawn.try_for_each(|(name, svg)| write(&format!("{folder}/{name}.svg"), &svg))
    }
}

/// Writes a file, in a folder that may have to be made.
fn write(file: &str, text: &str) -> Result<(), String> {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(file, text))
        .map_err(|error| format!("`{file}`: {error}"))
}

/// Measures the first two columns of a row in turns, where that can be done: their ratio is what has a goal. If one does not
/// work, nothing is known of either, and who it was comes out when each is measured by itself.
fn beside(
    figures: &mut Figures,
    row: usize,
    round: usize,
    ready: impl Fn(usize) -> Option<Result<Ready, String>>,
) {
    if figures.names.len() < 2 || !(figures.may_work(row, 0) && figures.may_work(row, 1)) {
        return;
    }
    if let Some((Ok(one), Ok(other))) = ready(0).zip(ready(1))
        && let Ok(samples) = in_turns(one, other)
    {
        for (column, sample) in samples.into_iter().enumerate() {
            figures.add(row, column, round, Ok(sample));
        }
    }
}

/// Measures every other column of a row, in an order that turns. What others are compared with has to work.
fn visit(
    figures: &mut Figures,
    row: usize,
    round: usize,
    measure: impl Fn(usize) -> Result<tally::Sample, String>,
) -> Result<(), String> {
    let columns = figures.names.len();
    for turn in 0..columns {
        let column = (turn + round) % columns;
        if figures.is_settled(row, column) || figures.has(row, column, round) {
            continue;
        }
        while figures.may_work(row, column) {
            let sample = measure(column);
            let fault = sample.as_ref().err().cloned();
            figures.add(row, column, round, sample);
            let Some(fault) = fault else { break };
            let message = figures.describe(row, column, &fault);
            if column == 0 && !figures.may_work(row, column) {
                return Err(message);
            }
            eprintln!("{message}");
        }
    }
    Ok(())
}

/// Returns why a server is not measured with ten times as many sessions: it would use too much memory or time.
fn too_many(figures: &Figures, workload: Workload, column: usize) -> Option<String> {
    if workload != Workload::Idle(MANY) {
        return None;
    }
    let few = Workload::Idle(FEW).row().name;
    let (row, _) = figures.rows().find(|(_, row)| row.name == few)?;
    let gibibytes = figures.cost(row, column)? * MANY as f64 / (1_u64 << 30) as f64;
    let seconds = MANY as f64 / figures.wall(row, column)?.per_second;
    if gibibytes > 1.0 {
        return Some(format!("skipped, would use {gibibytes:.1} GiB"));
    }
    (seconds > 20.0).then(|| format!("skipped, would take {seconds:.0} s"))
}

/// Of the last minute.
fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().filter(|word| !word.is_empty()).unwrap_or("unknown").to_owned()
}
