use std::collections::{BTreeMap, HashMap};

use pintle_proto::server::Ticket;

/// A FIFO queue of the calls that the concurrency limit of a connection or session holds back, each with a value. Removing a
/// call from the middle is cheap.
#[derive(Debug)]
pub(crate) struct WaitQueue<T> {
    waiting: BTreeMap<u64, (Option<Ticket>, T)>,
    positions: HashMap<Ticket, u64>,
    last: u64,
}

impl<T> Default for WaitQueue<T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), positions: HashMap::new(), last: 0 }
    }
}

impl<T> WaitQueue<T> {
    pub(crate) fn push(&mut self, ticket: Option<Ticket>, value: T) {
        self.last += 1;
        if let Some(ticket) = ticket {
            self.positions.insert(ticket, self.last);
        }
        self.waiting.insert(self.last, (ticket, value));
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let (_, (ticket, value)) = self.waiting.pop_first()?;
        ticket.and_then(|ticket| self.positions.remove(&ticket));
        Some(value)
    }

    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<T> {
        let position = self.positions.remove(&ticket)?;
        self.waiting.remove(&position).map(|(_, value)| value)
    }

    #[cfg(feature = "http-server")]
    pub(crate) fn get_mut(&mut self, ticket: Ticket) -> Option<&mut T> {
        let position = self.positions.get(&ticket)?;
        self.waiting.get_mut(position).map(|(_, value)| value)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
