//! Protection against the replay of a `requestState`.
//!
//! A stateless client carries the state of its call (`requestState`) from one round to the next, and may send the same state
//! twice: after a lost connection, by mistake, or on purpose. The guard ensures that a state is used once, by a record in a
//! [`Store`](super::store::Store): every server has a [`MemoryStore`](super::store::MemoryStore) for it, which covers one process. Processes
//! that share their [state keys](crate::Server::state_keys) have to share a store, or each of them accepts a state once.
//!
//! A state is claimed after its answers were validated and before the handler runs. The claim is completed with the reply, or
//! released if the handler is dropped before it completes, for example because the connection is lost. If its process ends, the next
//! claim takes it over, with the progress that was saved: the handler runs again, and an action of which only the start is known is not
//! run again. A concurrent request with the same state and the same answers waits for that and gets the reply; it has been authorized
//! itself. Calls without a state do not use the guard.

mod active;
mod claim;
mod guard;
mod record;
#[cfg(test)]
mod tests;

pub(crate) use claim::{Acquired, StateClaim};
pub(crate) use guard::ReplayGuard;
