use std::collections::{HashMap, hash_map::Entry};

use pintle_types::{RequestId, RpcError};

/// The requests of one connection that are not answered yet, both eras in one table: a cancellation does not say
/// which it means.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    by_id: HashMap<RequestId, Ticket>,
    last: u64,
    subscriptions: usize,
}

/// A request in flight, for as long as it is. Tickets are never used again, so a late one hits nothing.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Ticket {
    number: u64,
    subscription: bool,
}

impl InFlight {
    /// Lets a request in, unless one of that id is already there or there are too many.
    pub(super) fn enter(&mut self, id: &RequestId, most: usize) -> Result<Ticket, RpcError> {
        let full = self.by_id.len() >= most;
        let Entry::Vacant(entry) = self.by_id.entry(id.clone()) else {
            return Err(RpcError::invalid_request(format!(
                "the id {id} is in use by a request that is not answered yet: give each request an id of its own"
            )));
        };
        if full {
            return Err(RpcError::internal(format!(
                "{most} requests wait for an answer: send more when some came"
            )));
        }
        self.last += 1;
        Ok(*entry.insert(Ticket { number: self.last, subscription: false }))
    }

    /// The same for a subscription, of which fewer are let in.
    pub(super) fn subscribe(
        &mut self,
        id: &RequestId,
        most: usize,
        subscriptions: usize,
    ) -> Result<Ticket, RpcError> {
        if self.subscriptions >= subscriptions {
            return Err(RpcError::internal(format!("{subscriptions} subscriptions are open: end one first")));
        }
        let mut ticket = self.enter(id, most)?;
        ticket.subscription = true;
        self.by_id.insert(id.clone(), ticket);
        self.subscriptions += 1;
        Ok(ticket)
    }

    /// Takes a request out because it was cancelled. Unknown and answered ones are nobody's fault.
    pub(super) fn cancel(&mut self, id: &RequestId) -> Option<Ticket> {
        let ticket = self.by_id.remove(id)?;
        self.subscriptions -= usize::from(ticket.subscription);
        Some(ticket)
    }

    /// Takes a request out because it is answered. `false` if it was cancelled before: then no answer is owed.
    pub(super) fn leave(&mut self, id: &RequestId, ticket: Ticket) -> bool {
        if self.by_id.get(id) != Some(&ticket) {
            return false;
        }
        self.cancel(id).is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_let_in_once_at_a_time() {
        let mut table = InFlight::default();
        let one = table.enter(&1.into(), 3).unwrap();
        assert!(table.enter(&1.into(), 3).unwrap_err().message.starts_with("the id 1 is in use"));
        table.enter(&"1".into(), 3).unwrap();
        assert!(table.leave(&1.into(), one));
        assert!(!table.leave(&1.into(), one), "answered twice");
        let again = table.enter(&1.into(), 3).unwrap();
        assert_ne!(again, one);
        assert!(!table.leave(&1.into(), one), "a late answer must not take the new request's place");
    }

    #[test]
    fn there_is_an_end_to_what_is_let_in() {
        let mut table = InFlight::default();
        table.subscribe(&1.into(), 2, 1).unwrap();
        assert!(
            table.subscribe(&2.into(), 2, 1).unwrap_err().message.starts_with("1 subscriptions are open")
        );
        table.enter(&2.into(), 2).unwrap();
        assert!(table.enter(&3.into(), 2).unwrap_err().message.starts_with("2 requests wait"));
        assert!(table.cancel(&1.into()).is_some());
        table.subscribe(&3.into(), 2, 1).unwrap();
        assert!(table.cancel(&9.into()).is_none());
    }
}
