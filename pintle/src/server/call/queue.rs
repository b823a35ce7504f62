use std::collections::{BTreeMap, HashMap};

use pintle_proto::server::{Call, Ticket};

/// Calls that wait for their turn, in the order they came. Taking one out of the middle costs little.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    calls: BTreeMap<u64, Call>,
    places: HashMap<Ticket, u64>,
    last: u64,
    bytes: usize,
}

impl Queue {
    pub(crate) fn push(&mut self, call: Call) {
        self.last += 1;
        self.bytes += call.params().as_str().len();
        if let Some(ticket) = call.ticket() {
            self.places.insert(ticket, self.last);
        }
        self.calls.insert(self.last, call);
    }

    pub(crate) fn pop(&mut self) -> Option<Call> {
        let place = *self.calls.first_key_value()?.0;
        self.take(place)
    }

    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<Call> {
        let place = *self.places.get(&ticket)?;
        self.take(place)
    }

    fn take(&mut self, place: u64) -> Option<Call> {
        let call = self.calls.remove(&place)?;
        self.bytes -= call.params().as_str().len();
        if let Some(ticket) = call.ticket() {
            self.places.remove(&ticket);
        }
        Some(call)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// How much the calls hold.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
