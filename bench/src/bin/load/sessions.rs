//! Sessions that nobody uses: how much memory each holds, and whether calls cost more beside them.

use std::time::{Duration, Instant};

use bench::wire::{Ask, Asking, Era};

use crate::{
    http::{self, Lane, Wire},
    program::Program,
    tally::{Bounds, Sample, Tally, Wall},
};

/// So many are opened before the memory is looked at: buffers and tables have their size then.
const BEFORE: usize = 100;
/// How many are used once more in the end.
const USED: usize = 5;
/// No more requests are sent with one text: two may be on their way in the same session.
const IDS: u64 = 100_000;

/// Opens sessions, one after the other, on one connection; bytes for each.
pub(crate) fn idle(program: &Program, sessions: usize, timeout: Duration) -> Result<Sample, String> {
    let (server, address) = program.serve_http(&[], timeout)?;
    let mut wire = Wire::connect(&address)?;
    open(&mut wire, BEFORE)?;
    let (before, start) = (server.resident()?, Instant::now());
    let ids = open(&mut wire, sessions)?;
    let took = start.elapsed().as_secs_f64();
    let grown = server.resident()?.saturating_sub(before);
    for id in ids.iter().step_by((sessions / USED).max(1)) {
        let asking = Asking::post(Ask::Echo, Era::Session, &address, Some(id));
        http::run(&mut [Lane::with(Wire::connect(&address)?, asking)], once())
            .map_err(|error| format!("a session was not kept: {error}"))?;
    }
    let each = took * 1e6 / sessions as f64;
    let wall = Wall { per_second: sessions as f64 / took, p50: each, p99: each };
    Ok(Sample { cost: grown as f64 / sessions as f64, wall: Some(wall) })
}

fn once() -> Bounds {
    Bounds { requests: 1, time: Duration::from_secs(1) }
}

fn open(wire: &mut Wire, sessions: usize) -> Result<Vec<String>, String> {
    (0..sessions).map(|_| wire.open_session()).collect()
}

/// Calls that go through so many sessions in turn, on so many connections.
#[derive(Debug)]
pub(crate) struct Spread {
    lanes: Vec<Lane>,
    askings: Vec<Asking>,
    next: usize,
}

impl Spread {
    pub(crate) fn open(address: &str, sessions: usize, in_flight: usize) -> Result<Self, String> {
        let ids = open(&mut Wire::connect(address)?, sessions)?;
        let mut askings = ids
            .iter()
            .cycle()
            .enumerate()
            .map(|(n, id)| Asking::post(Ask::Echo, Era::Session, address, Some(id)).skip(IDS * n as u64));
        let lanes =
            askings.by_ref().take(in_flight).map(|asking| Ok(Lane::with(Wire::connect(address)?, asking)));
        let lanes = lanes.collect::<Result<_, String>>()?;
        Ok(Self { lanes, askings: askings.take(sessions).collect(), next: 0 })
    }

    /// Asks until as much is asked as may be.
    pub(crate) fn run(&mut self, bounds: Bounds) -> Result<Tally, String> {
        let Self { lanes, askings, next } = self;
        http::run_with(lanes, bounds, |asking| {
            if let Some(other) = askings.get_mut(*next) {
                std::mem::swap(asking, other);
            }
            *next = (*next + 1) % askings.len().max(1);
        })
    }
}
