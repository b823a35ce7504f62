//! From starting a program to its first answer.

use std::time::{Duration, Instant};

use bench::wire::{Ask, Era};

use crate::{
    STUCK,
    http::{self, Lane},
    pipe::Pipes,
    program::Program,
    tally::{Bounds, Sample, Wall, micros},
    workload::Transport,
};

/// So often in each round.
const STARTS: usize = 3;
const ONE: Bounds = Bounds { requests: 1, time: Duration::from_secs(1) };

pub(crate) fn measure(program: &Program, transport: Transport) -> Result<Sample, String> {
    // A server that does not know the newest era is asked in the one before.
    let era = if once(program, transport, Era::Stateless).is_ok() { Era::Stateless } else { Era::Session };
    let mut starts = (0..STARTS)
        .map(|_| once(program, transport, era))
        .collect::<Result<Vec<(Duration, Duration)>, _>>()?;
    starts.sort_unstable();
    let (cpu, _) = starts.get(STARTS / 2).copied().unwrap_or_default();
    let mut waits: Vec<_> = starts.iter().map(|(_, wall)| *wall).collect();
    waits.sort_unstable();
    let middle = micros(waits.get(STARTS / 2).copied().unwrap_or_default());
    let max = micros(waits.last().copied().unwrap_or_default());
    Ok(Sample { cost: micros(cpu), wall: Some(Wall { per_second: 1e6 / middle, p50: middle, p99: max }) })
}

/// CPU time, and time on the wall.
fn once(program: &Program, transport: Transport, era: Era) -> Result<(Duration, Duration), String> {
    let start = Instant::now();
    let server = match transport {
        Transport::Http => {
            let (server, address) = program.serve_http(&[], STUCK)?;
            http::run(&mut [Lane::open(&address, Ask::Echo, era)?], ONE)?;
            server
        }
        Transport::Stdio => {
            let mut server = program.start(&["stdio"], STUCK)?;
            Pipes::open(&mut server, Ask::Echo, era)?.run(1, ONE)?;
            server
        }
    };
    let wall = start.elapsed();
    Ok((server.cpu()?, wall))
}
