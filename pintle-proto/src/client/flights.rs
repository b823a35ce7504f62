use std::{borrow::Cow, collections::BTreeMap};

use pintle_types::{RawObject, RequestId};

use super::capabilities::Capabilities;

/// The client's requests in flight.
///
/// Ids count up from one and are never reused, so an id below the counter that is not in the table belongs to a request
/// that has ended: nothing has to be kept for it.
#[derive(Debug)]
pub(super) struct Flights {
    flights: BTreeMap<i64, Flight>,
    next: i64,
    /// The number of requests that asked for log messages.
    logging: usize,
}

#[derive(Debug)]
pub(super) struct Flight {
    pub(super) method: Cow<'static, str>,
    pub(super) progress: Progress,
    pub(super) log: bool,
    /// The capabilities that were declared for this request alone.
    pub(super) can: Option<Capabilities>,
}

/// The progress of a request.
#[derive(Debug)]
pub(super) enum Progress {
    Unasked,
    Asked,
    At(f64),
}

/// The state of a request, by its id.
#[derive(Debug, PartialEq)]
pub(super) enum FlightState {
    Flying(i64),
    Over,
    Never,
}

impl Flights {
    pub(super) fn new() -> Self {
        Self { flights: BTreeMap::new(), next: 1, logging: 0 }
    }

    /// Returns the id of the next request.
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

    pub(super) fn get(&self, id: i64) -> Option<&Flight> {
        self.flights.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: i64) -> Option<&mut Flight> {
        self.flights.get_mut(&id)
    }

    pub(super) fn state(&self, id: &RequestId) -> FlightState {
        // Some servers respond to request `7` as `"7"`.
        match id.as_number() {
            Some(id) if self.flights.contains_key(&id) => FlightState::Flying(id),
            Some(id) if (1..self.next).contains(&id) => FlightState::Over,
            _ => FlightState::Never,
        }
    }

    /// Returns the only request in flight, if there is exactly one.
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

    /// Removes all requests, and returns their ids in order.
    pub(super) fn drain(&mut self) -> Vec<RequestId> {
        self.logging = 0;
        std::mem::take(&mut self.flights).into_keys().map(RequestId::Number).collect()
    }
}

/// Reads an id of this client that a server repeats. Some print it as a text, or as a float: `"7"` or `7.0`.
pub(super) fn repeated_id(object: &RawObject, name: &str) -> Option<RequestId> {
    let id = object.decode_member::<RequestId>(name).ok().flatten().or_else(|| {
        let float = object.decode_member::<f64>(name).ok()??;
        // A whole one is printed without a fraction.
        float.to_string().parse().ok().map(RequestId::Number)
    })?;
    Some(id.as_number().map_or(id, RequestId::Number))
}
