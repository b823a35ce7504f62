use std::{borrow::Cow, collections::HashMap};

use pintle_types::RequestId;

use super::own_ids::OwnIds;

/// Our requests that are not answered yet.
///
/// Ids count up from one and are never used again, so an id below the counter that is not in the table is of a request
/// that is over: nothing has to be remembered of it.
#[derive(Debug)]
pub(super) struct Flights {
    flights: HashMap<i64, Flight, OwnIds>,
    next: i64,
    /// How many of them asked for log messages.
    logging: usize,
}

#[derive(Debug)]
pub(super) struct Flight {
    pub(super) method: Cow<'static, str>,
    pub(super) progress: Progress,
    pub(super) log: bool,
}

/// How far a request is.
#[derive(Debug)]
pub(super) enum Progress {
    Unasked,
    Asked,
    At(f64),
}

/// Where an id stands.
#[derive(Debug, PartialEq)]
pub(super) enum FlightState {
    Flying(i64),
    Over,
    Never,
}

impl Flights {
    pub(super) fn new() -> Self {
        Self { flights: HashMap::default(), next: 1, logging: 0 }
    }

    /// The id that the next request will have.
    pub(super) fn next_id(&self) -> i64 {
        self.next
    }

    pub(super) fn add(&mut self, flight: Flight) -> i64 {
        let id = self.next;
        self.next += 1;
        self.logging += usize::from(flight.log);
        self.flights.insert(id, flight);
        id
    }

    pub(super) fn remove(&mut self, id: i64) -> Option<Flight> {
        let flight = self.flights.remove(&id)?;
        self.logging -= usize::from(flight.log);
        Some(flight)
    }

    pub(super) fn get_mut(&mut self, id: i64) -> Option<&mut Flight> {
        self.flights.get_mut(&id)
    }

    pub(super) fn state(&self, id: &RequestId) -> FlightState {
        // Some answer request `7` as `"7"`.
        match id.as_number() {
            Some(id) if self.flights.contains_key(&id) => FlightState::Flying(id),
            Some(id) if (1..self.next).contains(&id) => FlightState::Over,
            _ => FlightState::Never,
        }
    }

    /// The only one in flight, if there is just one.
    pub(super) fn only(&self) -> Option<i64> {
        let mut ids = self.flights.keys();
        ids.next().filter(|_| ids.next().is_none()).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.flights.len()
    }

    pub(super) fn wants_log(&self) -> bool {
        self.logging > 0
    }

    /// Empties the table.
    pub(super) fn drain(&mut self) -> Vec<RequestId> {
        self.logging = 0;
        let mut ids: Vec<_> = self.flights.drain().map(|(id, _)| RequestId::Number(id)).collect();
        ids.sort_unstable();
        ids
    }
}
