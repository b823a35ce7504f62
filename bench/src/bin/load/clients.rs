//! The cost of a call for each client against the limit server, beside our own bare sockets and pipes.

use std::{io::Read as _, time::Duration};

use bench::wire::{Ask, Era};
use serde_json::Value;

use crate::{
    STUCK,
    figures::{Goal, Row, Section, Unit},
    http::{self, Lane},
    pipe::Pipes,
    program::{Program, own_cpu},
    tally::{Bounds, Sample, Wall},
    workload::Transport,
};

/// So many calls on one transport, so many at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calls {
    transport: Transport,
    in_flight: usize,
    goal: Option<f64>,
}

pub(crate) const CALLS: &[Calls] = &[
    Calls { transport: Transport::Http, in_flight: 1, goal: Some(2.0) },
    Calls { transport: Transport::Http, in_flight: 64, goal: Some(2.0) },
    Calls { transport: Transport::Stdio, in_flight: 1, goal: None },
    Calls { transport: Transport::Stdio, in_flight: 64, goal: None },
];

/// As many as a client makes that needs a tenth of a millisecond for each in under a second.
const COUNTED: usize = 5000;
const WARM: Bounds = Bounds { requests: 1000, time: Duration::from_secs(5) };
const MEASURED: Bounds = Bounds { requests: COUNTED, time: Duration::from_secs(5) };

impl Calls {
    pub(crate) fn row(self) -> Row {
        Row {
            section: Section::Client,
            name: format!("{} client, small call, {} in flight", self.transport.name(), self.in_flight),
            unit: Unit::Micros,
            goal: self.goal.map(Goal::Times),
        }
    }

    /// Ourselves.
    pub(crate) fn raw(self, limit: &Program) -> Result<Sample, String> {
        let (cpu, tally) = match self.transport {
            Transport::Http => {
                let (_server, address) = limit.serve_http(&[], STUCK)?;
                let mut lanes: Vec<_> = (0..self.in_flight)
                    .map(|_| Lane::open(&address, Ask::Echo, Era::Stateless))
                    .collect::<Result<_, _>>()?;
                http::run(&mut lanes, WARM)?;
                let before = own_cpu();
                let tally = http::run(&mut lanes, MEASURED)?;
                (own_cpu().saturating_sub(before), tally)
            }
            Transport::Stdio => {
                let mut server = limit.start(&["stdio"], STUCK)?;
                let mut pipes = Pipes::open(&mut server, Ask::Echo, Era::Stateless)?;
                pipes.run(self.in_flight, WARM)?;
                let before = own_cpu();
                let tally = pipes.run(self.in_flight, MEASURED)?;
                (own_cpu().saturating_sub(before), tally)
            }
        };
        Ok(tally.sample(cpu))
    }

    /// Another program, which says itself what it took.
    pub(crate) fn measure(self, client: &Program, limit: &Program) -> Result<Sample, String> {
        let (calls, in_flight) = (COUNTED.to_string(), self.in_flight.to_string());
        let output = match self.transport {
            Transport::Http => {
                let (_server, address) = limit.serve_http(&[], STUCK)?;
                output_of(client, &["http", &format!("http://{address}/mcp"), &calls, &in_flight])?
            }
            Transport::Stdio => {
                let prefix = limit.cores.map(|cores| cores.prefix().to_vec()).unwrap_or_default();
                let server = prefix.iter().chain(&limit.words).map(String::as_str).chain(["stdio"]);
                let words: Vec<_> = ["stdio", &calls, &in_flight].into_iter().chain(server).collect();
                output_of(client, &words)?
            }
        };
        read(&output).ok_or_else(|| format!("it did not print its cost: {output:?}"))
    }
}

fn output_of(client: &Program, words: &[&str]) -> Result<String, String> {
    let mut running = client.start_here(words, STUCK)?;
    let mut stdout = running.child.stdout.take().ok_or("it has no output")?;
    let mut output = String::new();
    stdout.read_to_string(&mut output).map_err(|error| error.to_string())?;
    Ok(output)
}

fn read(output: &str) -> Option<Sample> {
    let value: Value = serde_json::from_str(output.lines().last()?).ok()?;
    let number = |name: &str| value[name].as_f64();
    let (calls, cpu, wall) = (number("calls")?, number("cpu_us")?, number("wall_us")?);
    let each = wall / calls;
    Some(Sample { cost: cpu / calls, wall: Some(Wall { per_second: 1e6 / each, p50: each, p99: each }) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_says_what_it_took_in_its_last_line() {
        let sample = read("hello\n{\"calls\":100,\"cpu_us\":1500,\"wall_us\":2000}\n").unwrap();
        assert_eq!(sample.cost, 15.0);
        assert_eq!(sample.wall.unwrap().per_second, 50_000.0);
        assert_eq!(read("{}"), None);
    }
}
