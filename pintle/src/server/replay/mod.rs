//! Protection against the replay of a `requestState`.
//!
//! A stateless client carries the state of its call (`requestState`) from one round to the next, and may send the same state
//! twice: after a lost connection, by mistake, or on purpose. A [`ReplayGuard`] ensures that a state is used once. Every server
//! has a [`MemoryReplayGuard`], which covers one process. Processes that share their
//! [state keys](crate::Server::state_keys) have to share a guard, or each of them accepts a state once.

mod claim;
mod memory;

use std::{fmt, future::Future, io, pin::Pin, sync::Arc};

use pintle_proto::server::Reply;

pub use memory::MemoryReplayGuard;

pub(crate) use claim::{Acquired, StateClaim};

/// Ensures that a `requestState` is used once.
///
/// A state is claimed after its answers were validated and before the handler runs. The claim is completed with the reply, or
/// released if the handler is dropped before it completes, for example because the connection is lost. If its process ends, the next
/// claim takes it over, with the progress that was [saved](Self::save): the handler runs again, and an action of which only the start
/// is known is not run again. A concurrent request
/// with the same state and the same answers waits for that and gets the reply; it has been authorized itself. Calls without a
/// state do not use the guard.
///
/// To share a guard among processes, implement this trait over a store that all of them reach, and run
/// `pintle_testing::kits::replay::check` on it.
///
/// ```
/// use std::sync::Arc;
/// use pintle::{Server, server::{MemoryReplayGuard, StateKeys}};
///
/// // Two servers of one process that serve the same calls.
/// let guard = Arc::new(MemoryReplayGuard::new());
/// let one = Server::new("shop", "1.0.0").state_keys(StateKeys::from([7; 32])).replay_guard(guard.clone());
/// let other = Server::new("shop", "1.0.0").state_keys(StateKeys::from([7; 32])).replay_guard(guard);
/// ```
pub trait ReplayGuard: fmt::Debug + Send + Sync + 'static {
    /// Claims a state. If it is claimed already with the same answers, waits for the end of that claim.
    ///
    /// On an error the handler does not run, and the client gets an error.
    fn claim<'a>(&'a self, used: &'a UsedState) -> Guarded<'a, Claimed>;

    /// Records the progress of a claim, in case its process ends: before each action of [`Cx::once`](crate::server::Cx::once), with the
    /// action as one that was started, and after it, with its value. The next claim of the state then returns it.
    ///
    /// On an error the action is not started. It has to be an error if the claim is over, because another process has taken over the
    /// state. The default does nothing: a guard of one process ends with it.
    fn save<'a>(&'a self, used: &'a UsedState, claim: &'a Claim, progress: Vec<u8>) -> Guarded<'a, ()> {
        let _ = (used, claim, progress);
        Box::pin(async { Ok(()) })
    }

    /// Ends a claim with the reply. Waiting and later claims of the state get the reply for as long as it is kept, and
    /// [`Claimed::Used`] after that until the state expires.
    ///
    /// It is run to completion in a task if the call is dropped. An error is logged, and the reply is sent.
    fn complete<'a>(&'a self, used: &'a UsedState, claim: &'a Claim, reply: Reply) -> Guarded<'a, ()>;

    /// Ends a claim without a reply. `progress` records the actions that were completed and must not run again: the next claim
    /// of the state returns it. It has to be kept until the state expires, or the state must not be claimed again.
    ///
    /// It is called from destructors: move slow work to a task.
    fn release(&self, used: &UsedState, claim: Claim, progress: Option<Vec<u8>>);
}

/// The future that the methods of a [`ReplayGuard`] return.
pub type Guarded<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// The use of a state by a client: the keys of a store.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UsedState {
    /// SHA-256 of the `requestState`.
    pub state: [u8; 32],
    /// SHA-256 of the canonical form of the `inputResponses`.
    pub answers: [u8; 32],
    /// The authenticated principal, if there is one, for limits. The state is already bound to it.
    pub principal: Option<Arc<str>>,
    /// The expiry of the state, in milliseconds since the Unix epoch. After that the state can be forgotten.
    pub expires: u64,
}

impl UsedState {
    /// Creates the use of a state, for tests of a guard.
    pub fn new(state: [u8; 32], answers: [u8; 32], expires: u64) -> Self {
        Self { state, answers, principal: None, expires }
    }
}

/// The result of a claim.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Claimed {
    /// The state is claimed: the handler runs.
    First(Claim),
    /// The state was used with the same answers. This was the reply.
    Replied(Reply),
    /// The state is or was used with other answers.
    OtherAnswers,
    /// The state was used, and its reply is no longer kept.
    Used,
}

/// The right to use a state.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Claim {
    /// A number that differs between the claims of one state.
    pub fence: u64,
    /// The progress of an earlier claim that was released, or whose process is gone.
    pub progress: Option<Vec<u8>>,
}

impl Claim {
    /// Creates a claim, with the progress of an earlier one.
    pub fn new(fence: u64, progress: Option<Vec<u8>>) -> Self {
        Self { fence, progress }
    }
}

impl<G: ReplayGuard + ?Sized> ReplayGuard for Arc<G> {
    fn claim<'a>(&'a self, used: &'a UsedState) -> Guarded<'a, Claimed> {
        (**self).claim(used)
    }

    fn save<'a>(&'a self, used: &'a UsedState, claim: &'a Claim, progress: Vec<u8>) -> Guarded<'a, ()> {
        (**self).save(used, claim, progress)
    }

    fn complete<'a>(&'a self, used: &'a UsedState, claim: &'a Claim, reply: Reply) -> Guarded<'a, ()> {
        (**self).complete(used, claim, reply)
    }

    fn release(&self, used: &UsedState, claim: Claim, progress: Option<Vec<u8>>) {
        (**self).release(used, claim, progress);
    }
}
