//! Whether a call costs the same with more tools, more sessions and more in flight.

use bench::wire::Era;

use crate::{
    STUCK,
    figures::{Row, Section, Unit},
    program::Program,
    ready::{MEASURED, Ready},
    sessions::Spread,
    table::whole,
    tally::Bounds,
    workload::Requests,
};

/// The variable of a curve.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Along {
    Tools,
    Sessions,
    InFlight,
}

/// One point of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Point {
    pub(crate) along: Along,
    pub(crate) at: usize,
}

/// In flight besides, where something else grows.
const BESIDE: usize = 16;
const WARM: Bounds = Bounds { requests: 2000, time: MEASURED.time };

impl Along {
    pub(crate) const ALL: [Self; 3] = [Self::Tools, Self::Sessions, Self::InFlight];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Sessions => "sessions",
            Self::InFlight => "in flight",
        }
    }

    fn values(self) -> &'static [usize] {
        match self {
            Self::Tools => &[1, 10, 100, 1000],
            Self::Sessions => &[1, 10, 100, 1000, 10_000],
            Self::InFlight => &[1, 2, 4, 8, 16, 32, 64],
        }
    }
}

pub(crate) fn points() -> impl Iterator<Item = Point> {
    Along::ALL.into_iter().flat_map(|along| along.values().iter().map(move |at| Point { along, at: *at }))
}

impl Point {
    pub(crate) fn row(self) -> Row {
        let name = format!("{}, {}", self.along.name(), whole(self.at));
        Row { section: Section::Curve, name, unit: Unit::Micros, goal: None }
    }

    /// Starts a server to which a small call in a session can be made here.
    pub(crate) fn ready(self, program: &Program) -> Result<Ready, String> {
        match self.along {
            Along::Tools => Requests::small(BESIDE, Era::Session).ready(program, &[&self.at.to_string()]),
            Along::InFlight => Requests::small(self.at, Era::Session).ready(program, &[]),
            Along::Sessions => {
                let (server, address) = program.serve_http(&[], STUCK)?;
                let mut spread = Spread::open(&address, self.at, BESIDE)?;
                Ready::new(server, WARM, move |bounds| spread.run(bounds))
            }
        }
    }
}
