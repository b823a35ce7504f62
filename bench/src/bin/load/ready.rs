//! Servers that run and have warmed up, asked alone or in turns.

use std::{fmt, time::Duration};

use crate::{
    program::Running,
    tally::{Bounds, Sample, Tally},
};

/// How much is asked in a round.
pub(crate) const MEASURED: Bounds = Bounds { requests: 20_000, time: Duration::from_millis(200) };
/// Two servers that are compared have so many turns each in a round.
const TURNS: u32 = 10;
const TURN: Bounds = Bounds { requests: 2000, time: Duration::from_millis(20) };
/// With less CPU time than this a figure is not to be trusted, so more is asked, but for no longer than that.
const ENOUGH: Duration = Duration::from_millis(60);
const MAX_WALL: Duration = Duration::from_secs(1);

/// A server, and how it is asked.
pub(crate) struct Ready {
    server: Running,
    ask: Box<dyn FnMut(Bounds) -> Result<Tally, String>>,
}

impl Ready {
    /// Has a server warm up.
    pub(crate) fn new(
        server: Running,
        warm: Bounds,
        mut ask: impl FnMut(Bounds) -> Result<Tally, String> + 'static,
    ) -> Result<Self, String> {
        ask(warm)?;
        Ok(Self { server, ask: Box::new(ask) })
    }

    /// Returns the cost of the responses.
    pub(crate) fn measure(mut self) -> Result<Sample, String> {
        let mut spent = self.turn(MEASURED)?;
        while !spent.is_enough() {
            spent = spent.and(self.turn(MEASURED)?);
        }
        Ok(spent.sample())
    }

    fn turn(&mut self, bounds: Bounds) -> Result<Spent, String> {
        let before = self.server.cpu()?;
        let tally = (self.ask)(bounds)?;
        Ok(Spent { tally, cpu: self.server.cpu()?.saturating_sub(before) })
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ready").field("server", &self.server).finish_non_exhaustive()
    }
}

/// Measures two of them, in turns so short that a machine which is slower for a while is so for both.
pub(crate) fn in_turns(one: Ready, other: Ready) -> Result<[Sample; 2], String> {
    let mut both = [one, other];
    let [one, other] = &mut both;
    let mut spent = [one.turn(TURN)?, other.turn(TURN)?];
    let mut turns = 1;
    while turns < TURNS || !spent.iter().all(Spent::is_enough) {
        let [one, other] = &mut both;
        let [first, second] = spent;
        spent = [first.and(one.turn(TURN)?), second.and(other.turn(TURN)?)];
        turns += 1;
    }
    Ok(spent.map(Spent::sample))
}

/// The requests and their cost.
#[derive(Debug)]
struct Spent {
    tally: Tally,
    cpu: Duration,
}

impl Spent {
    fn is_enough(&self) -> bool {
        self.cpu >= ENOUGH || self.tally.wall() >= MAX_WALL
    }

    fn and(self, more: Self) -> Self {
        Self { tally: more.tally.after(self.tally), cpu: self.cpu + more.cpu }
    }

    fn sample(self) -> Sample {
        self.tally.sample(self.cpu)
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc, time::Instant};

    use super::*;
    use crate::program::Program;

    #[test]
    fn two_have_their_turns_one_after_the_other() {
        let order = Rc::new(RefCell::new(String::new()));
        let ready = |name: char| {
            let order = order.clone();
            let sleepy = Program::parse("sleepy=sleep 600", None).unwrap();
            let server = sleepy.start_here(&[], Duration::from_secs(60)).unwrap();
            Ready::new(server, TURN, move |bounds| {
                order.borrow_mut().push(name);
                let mut tally = Tally::begin(bounds);
                // It sleeps, and takes so long that it is enough in the end.
                tally.answered(Instant::now());
                Ok(tally.after(Tally::lasting(MAX_WALL / TURNS)))
            })
            .unwrap()
        };
        let (one, other) = (ready('a'), ready('b'));
        let samples = in_turns(one, other).unwrap();
        assert_eq!(*order.borrow(), "ab".repeat(1 + TURNS as usize));
        assert!(samples.iter().all(|sample| sample.wall.is_some_and(|wall| wall.per_second < 11.0)));
    }
}
