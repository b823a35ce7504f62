//! Servers side by side: `load <rounds> <name=program>…` prints a table of what a request costs each of them.
//!
//! Each program is started with `http`, and then says its address in one line, or with `stdio`. The first one is what the
//! others are compared with. What is compared is the CPU time of the server's process, which depends least on what else the
//! machine does; every workload visits every server before the next one begins, and the order turns each round.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

mod http;
mod pipe;
mod server;
mod table;

use std::{process::ExitCode, time::Duration};

use bench::wire::{Ask, Era};
use server::Program;
use table::{Figures, Row};

/// What is asked of a server, and how.
#[derive(Clone, Copy)]
struct Workload {
    transport: Transport,
    ask: Ask,
    era: Era,
    in_flight: usize,
    /// As many times the first server's cost are aimed at.
    goal: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Transport {
    Http,
    Stdio,
}

const fn workload(transport: Transport, ask: Ask, era: Era, in_flight: usize, goal: f64) -> Workload {
    Workload { transport, ask, era, in_flight, goal }
}

const WORKLOADS: &[Workload] = &[
    workload(Transport::Http, Ask::Echo, Era::Session, 1, 1.25),
    workload(Transport::Http, Ask::Echo, Era::Stateless, 1, 1.25),
    workload(Transport::Http, Ask::Echo, Era::Session, 64, 1.4),
    workload(Transport::Http, Ask::Echo, Era::Stateless, 64, 1.25),
    workload(Transport::Http, Ask::List, Era::Session, 16, 1.2),
    workload(Transport::Http, Ask::List, Era::Stateless, 16, 1.2),
    workload(Transport::Stdio, Ask::Echo, Era::Session, 1, 2.0),
    workload(Transport::Stdio, Ask::Echo, Era::Stateless, 1, 2.0),
    workload(Transport::Stdio, Ask::Echo, Era::Session, 64, 4.0),
    workload(Transport::Stdio, Ask::Echo, Era::Stateless, 64, 4.0),
    workload(Transport::Stdio, Ask::List, Era::Stateless, 4, 1.5),
];

/// How much is asked at most, before it counts and while it does.
#[derive(Clone, Copy)]
struct Bounds {
    requests: usize,
    time: Duration,
}

const WARM: Bounds = Bounds { requests: 1000, time: Duration::from_millis(100) };
const MEASURED: Bounds = Bounds { requests: 20_000, time: Duration::from_millis(400) };
/// After so long a server is given up.
const STUCK: Duration = Duration::from_secs(10);

/// What some requests cost.
#[derive(Clone, Copy, Debug)]
struct Cost {
    requests: usize,
    cpu: Duration,
}

fn main() -> ExitCode {
    let pinned = server::pin_self();
    let run = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())
        .and_then(|runtime| runtime.block_on(run(pinned)));
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(pinned: bool) -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().and_then(|rounds| rounds.parse().ok()).ok_or(USAGE)?;
    let programs: Vec<Program> =
        arguments.map(|argument| Program::parse(&argument).ok_or(USAGE)).collect::<Result<_, _>>()?;
    let before = table::load_average();
    let mut figures = Figures::new(WORKLOADS.len(), programs.len());
    for round in 0..rounds {
        for (row, workload) in WORKLOADS.iter().enumerate() {
            for turn in 0..programs.len() {
                let column = (turn + round) % programs.len();
                let Some(program) = programs.get(column) else { continue };
                let cost = tokio::time::timeout(STUCK, measure(program, *workload, pinned)).await;
                let cost = cost.map_err(|_| "nothing came for 10 seconds".to_owned()).and_then(|cost| cost);
                let cost = cost.map_err(|error| format!("{}, {}: {error}", program.name, workload.name()))?;
                figures.add(row, column, cost);
            }
        }
        eprintln!("round {} of {rounds}", round + 1);
    }
    let rows: Vec<Row> =
        WORKLOADS.iter().map(|workload| Row { name: workload.name(), goal: workload.goal }).collect();
    let names: Vec<&str> = programs.iter().map(|program| program.name.as_str()).collect();
    print!("{}", table::told(rounds, pinned, (&before, &table::load_average())));
    print!("{}", figures.table(&rows, &names));
    Ok(())
}

const USAGE: &str = "usage: load <rounds> <name=program>…";

async fn measure(program: &Program, workload: Workload, pinned: bool) -> Result<Cost, String> {
    match workload.transport {
        Transport::Http => http::measure(program, workload, pinned).await,
        Transport::Stdio => pipe::measure(program, workload, pinned).await,
    }
}

impl Workload {
    fn name(self) -> String {
        let transport = match self.transport {
            Transport::Http => "HTTP",
            Transport::Stdio => "stdio",
        };
        let ask = match self.ask {
            Ask::Echo => "small call",
            Ask::List => "list of 102 tools",
        };
        format!("{transport}, {ask}, {}, {} in flight", self.era.name(), self.in_flight)
    }
}
