//! The holders of the connections of a pool, and the limits that they reach.

use pintle::forward::OwnedPrincipal;

/// The principals of connections or of calls, one for each of them. Their number is limited.
#[derive(Debug, Default)]
pub(crate) struct Holders(Vec<OwnedPrincipal>);

impl Holders {
    pub(crate) fn add(&mut self, principal: OwnedPrincipal) {
        self.0.push(principal);
    }

    pub(crate) fn remove(&mut self, principal: &OwnedPrincipal) {
        if let Some(at) = self.0.iter().position(|holder| holder == principal) {
            self.0.swap_remove(at);
        }
    }

    /// Returns the number of all.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of those of a principal.
    pub(crate) fn of(&self, principal: &OwnedPrincipal) -> usize {
        self.0.iter().filter(|holder| *holder == principal).count()
    }
}

/// The limit because of which there is no connection for a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Exhausted {
    /// That of its principal.
    Principal,
    /// That of all.
    Pool,
    /// One connection for each client: another call is opening it.
    Opening,
}
