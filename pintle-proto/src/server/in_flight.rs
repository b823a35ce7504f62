use std::collections::HashMap;

use pintle_types::{RequestId, RpcError};

use crate::RETRY_AFTER_MS;

/// The requests in flight on one connection, of both eras in one table: a cancellation does not name an era.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// The request that arrived when there was no other. Its id is not hashed (see `bench/LEDGER.md`).
    first: Option<(RequestId, Ticket)>,
    /// The requests that arrived while it was in flight. The peer chooses their ids, so the hash is keyed.
    #[expect(clippy::box_collection, reason = "an idle session has none, and there are many idle sessions")]
    more: Option<Box<HashMap<RequestId, Ticket>>>,
    last: u64,
    subscriptions: usize,
}

/// The identity of a request in flight. Tickets are never reused, so a stale one matches nothing.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Ticket {
    number: u64,
    subscription: bool,
}

impl InFlight {
    /// Admits a request, unless its id is in use or the limit is reached.
    pub(super) fn enter(&mut self, id: &RequestId, limit: usize) -> Result<Ticket, RpcError> {
        self.add(id, limit, false)
    }

    fn add(&mut self, id: &RequestId, limit: usize, subscription: bool) -> Result<Ticket, RpcError> {
        if self.get(id).is_some() {
            return Err(RpcError::invalid_request(format!(
                "the id {id} is in use by a request in flight: give each request its own id"
            )));
        }
        if self.len() >= limit {
            let reason = format!("{limit} requests are in flight: wait for responses before sending more");
            return Err(RpcError::overloaded(reason, RETRY_AFTER_MS));
        }
        self.last += 1;
        let ticket = Ticket { number: self.last, subscription };
        match &mut self.first {
            none @ None => *none = Some((id.clone(), ticket)),
            Some(_) => drop(self.more.get_or_insert_default().insert(id.clone(), ticket)),
        }
        Ok(ticket)
    }

    fn get(&self, id: &RequestId) -> Option<Ticket> {
        match &self.first {
            Some((first, ticket)) if first == id => Some(*ticket),
            _ => self.more.as_ref()?.get(id).copied(),
        }
    }

    /// Admits a subscription, which has a lower limit.
    pub(super) fn subscribe(
        &mut self,
        id: &RequestId,
        limit: usize,
        subscriptions: usize,
    ) -> Result<Ticket, RpcError> {
        if self.subscriptions >= subscriptions {
            let reason = format!("{subscriptions} subscriptions are open: end one first");
            return Err(RpcError::overloaded(reason, RETRY_AFTER_MS));
        }
        let ticket = self.add(id, limit, true)?;
        self.subscriptions += 1;
        Ok(ticket)
    }

    /// Removes a cancelled request. Returns `None` if it is unknown or was answered.
    pub(super) fn cancel(&mut self, id: &RequestId) -> Option<Ticket> {
        let ticket = match self.first.take_if(|(first, _)| first == id) {
            Some((_, ticket)) => ticket,
            None => {
                let more = self.more.as_mut()?;
                let ticket = more.remove(id)?;
                if more.is_empty() {
                    self.more = None;
                }
                ticket
            }
        };
        self.subscriptions -= usize::from(ticket.subscription);
        Some(ticket)
    }

    /// Returns whether a request is in flight, and not cancelled.
    pub(super) fn has(&self, id: &RequestId, ticket: Ticket) -> bool {
        self.get(id) == Some(ticket)
    }

    /// Removes an answered request. Returns `false` if it was cancelled before: then no response is sent.
    pub(super) fn leave(&mut self, id: &RequestId, ticket: Ticket) -> bool {
        self.has(id, ticket) && self.cancel(id).is_some()
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.as_ref().map_or(0, |more| more.len())
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
        assert!(table.enter(&3.into(), 2).unwrap_err().message.starts_with("2 requests are in flight"));
        assert!(table.cancel(&1.into()).is_some());
        table.subscribe(&3.into(), 2, 1).unwrap();
        assert!(table.cancel(&9.into()).is_none());
    }

    #[test]
    fn those_that_came_later_are_found_when_the_first_is_gone() {
        let mut table = InFlight::default();
        let [one, two, three] = [1, 2, 3].map(|id| table.enter(&id.into(), 9).unwrap());
        assert!(table.leave(&1.into(), one));
        assert!(table.enter(&2.into(), 9).is_err());
        let four = table.enter(&4.into(), 9).unwrap();
        assert_eq!(table.len(), 3);
        for (id, ticket) in [(3, three), (4, four), (2, two)] {
            assert!(table.leave(&id.into(), ticket));
        }
        assert_eq!(table.len(), 0);
    }
}
