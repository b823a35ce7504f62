//! The workloads.

use std::time::Duration;

use bench::wire::{Ask, Era, TOOLS};

use crate::{
    STUCK,
    figures::{Goal, Row, Section, Unit},
    http::{self, Lane},
    pipe::Pipes,
    program::Program,
    question::Asked,
    ready::Ready,
    sessions, start,
    tally::{Bounds, Sample},
};

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Workload {
    Requests(Requests),
    /// So many sessions are opened and left alone.
    Idle(usize),
    /// The program is started and answers a first call.
    Start(Transport),
}

/// Requests of one kind, so many at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Requests {
    pub(crate) transport: Transport,
    pub(crate) ask: Ask,
    pub(crate) era: Era,
    pub(crate) in_flight: usize,
    /// As many times the first server's cost are aimed at.
    goal: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Transport {
    Http,
    Stdio,
}

use Transport::{Http, Stdio};

const fn requests(transport: Transport, ask: Ask, era: Era, in_flight: usize, goal: Option<f64>) -> Workload {
    Workload::Requests(Requests { transport, ask, era, in_flight, goal })
}

const KIB64: Ask = Ask::Large(64 << 10);
const MIB: Ask = Ask::Large(1 << 20);
pub(crate) const FEW: usize = 10_000;
pub(crate) const MANY: usize = 100_000;

/// On a pipe only small requests come several at a time: a server that blocks on its answer reads no other.
pub(crate) const WORKLOADS: &[Workload] = &[
    requests(Http, Ask::Echo, Era::Session, 1, Some(1.25)),
    requests(Http, Ask::Echo, Era::Stateless, 1, Some(1.25)),
    requests(Http, Ask::Echo, Era::Session, 64, Some(1.4)),
    requests(Http, Ask::Echo, Era::Stateless, 64, Some(1.25)),
    requests(Http, KIB64, Era::Session, 8, Some(0.9)),
    requests(Http, KIB64, Era::Stateless, 8, Some(0.9)),
    requests(Http, MIB, Era::Session, 4, Some(0.7)),
    requests(Http, MIB, Era::Stateless, 4, Some(0.7)),
    requests(Http, Ask::List, Era::Session, 16, Some(1.2)),
    requests(Http, Ask::List, Era::Stateless, 16, Some(1.2)),
    requests(Http, Ask::Progress, Era::Session, 16, None),
    requests(Http, Ask::Progress, Era::Stateless, 16, None),
    requests(Http, Ask::Confirm, Era::Session, 1, None),
    requests(Http, Ask::Confirm, Era::Stateless, 1, None),
    requests(Stdio, Ask::Echo, Era::Session, 1, Some(2.0)),
    requests(Stdio, Ask::Echo, Era::Stateless, 1, Some(2.0)),
    requests(Stdio, Ask::Echo, Era::Session, 64, Some(4.0)),
    requests(Stdio, Ask::Echo, Era::Stateless, 64, Some(4.0)),
    requests(Stdio, KIB64, Era::Stateless, 1, None),
    requests(Stdio, MIB, Era::Stateless, 1, None),
    requests(Stdio, Ask::List, Era::Stateless, 4, Some(1.5)),
    Workload::Idle(FEW),
    Workload::Idle(MANY),
    Workload::Start(Http),
    Workload::Start(Stdio),
];

const WARM: Bounds = Bounds { requests: 1000, time: Duration::from_millis(60) };
/// One session takes a slow server four milliseconds.
const SLOWLY: Duration = Duration::from_secs(120);

impl Workload {
    pub(crate) fn row(self) -> Row {
        let row = |section, name: String, unit, goal| Row { section, name, unit, goal };
        match self {
            Self::Requests(requests) => {
                let goal = requests.goal.map(Goal::Times);
                row(requests.transport.section(), requests.name(), Unit::Micros, goal)
            }
            Self::Idle(sessions) => {
                let name = format!(
                    "{} idle sessions, bytes each",
                    if sessions == FEW { "10,000" } else { "100,000" }
                );
                row(Section::Process, name, Unit::Bytes, Some(Goal::Max(1024.0)))
            }
            Self::Start(transport) => {
                let name = format!("{}, start to first answer", transport.name());
                row(Section::Process, name, Unit::Micros, Some(Goal::Times(1.2)))
            }
        }
    }

    /// Whether once is enough: memory is the same each time.
    pub(crate) fn is_done_once(self) -> bool {
        matches!(self, Self::Idle(_))
    }

    /// Starts a server and has it warm up, if it is asked for a while.
    pub(crate) fn ready(self, program: &Program) -> Option<Result<Ready, String>> {
        match self {
            Self::Requests(requests) => Some(requests.ready(program, &[])),
            Self::Idle(_) | Self::Start(_) => None,
        }
    }

    pub(crate) fn measure(self, program: &Program) -> Result<Sample, String> {
        match self {
            Self::Requests(requests) => requests.ready(program, &[])?.measure(),
            Self::Idle(sessions) => sessions::idle(program, sessions, SLOWLY),
            Self::Start(transport) => start::measure(program, transport),
        }
    }
}

impl Requests {
    /// The small call in a session, with so many in flight.
    pub(crate) fn small(in_flight: usize, era: Era) -> Self {
        Self { transport: Http, ask: Ask::Echo, era, in_flight, goal: None }
    }

    fn name(self) -> String {
        let ask = match self.ask {
            Ask::Echo => "small call".to_owned(),
            Ask::Large(bytes) if bytes < 1 << 20 => format!("{} KiB", bytes >> 10),
            Ask::Large(bytes) => format!("{} MiB", bytes >> 20),
            Ask::List => format!("list of {TOOLS} tools"),
            Ask::Progress => "ten reports".to_owned(),
            Ask::Confirm => "one question".to_owned(),
        };
        format!("{}, {ask}, {}, {} in flight", self.transport.name(), self.era.name(), self.in_flight)
    }

    /// Starts a server with these arguments besides, and has it warm up.
    pub(crate) fn ready(self, program: &Program, more: &[&str]) -> Result<Ready, String> {
        let Self { ask, era, in_flight, .. } = self;
        match (self.transport, ask) {
            (Http, Ask::Confirm) => {
                let (server, address) = program.serve_http(more, STUCK)?;
                let mut asked = Asked::open(&address, era)?;
                Ready::new(server, WARM, move |bounds| asked.run(bounds))
            }
            (Http, _) => {
                let (server, address) = program.serve_http(more, STUCK)?;
                let mut lanes: Vec<_> =
                    (0..in_flight).map(|_| Lane::open(&address, ask, era)).collect::<Result<_, _>>()?;
                Ready::new(server, WARM, move |bounds| http::run(&mut lanes, bounds))
            }
            (Stdio, _) => {
                let mut server = program.start(&[&["stdio"], more].concat(), STUCK)?;
                let mut pipes = Pipes::open(&mut server, ask, era)?;
                Ready::new(server, WARM, move |bounds| pipes.run(in_flight, bounds))
            }
        }
    }
}

impl Transport {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Http => "HTTP",
            Stdio => "stdio",
        }
    }

    fn section(self) -> Section {
        match self {
            Http => Section::Http,
            Stdio => Section::Stdio,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_rows_have_the_same_name() {
        let names: HashSet<_> = WORKLOADS.iter().map(|workload| workload.row().name).collect();
        assert_eq!(names.len(), WORKLOADS.len());
        assert!(names.contains("HTTP, 64 KiB, stateless, 8 in flight"), "{names:?}");
    }
}
