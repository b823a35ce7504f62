//! States that are used once.
//!
//! A stateless client carries the state of its call (`requestState`) from one round to the next, and nothing keeps it from
//! sending the same one twice: after a lost connection, by mistake, or on purpose. A [`ReplayGuard`] sees to it that a state
//! is used once. [`MemoryReplayGuard`] does so within a process and is what every server has; a fleet that shares its
//! [state keys](crate::Server::state_keys) shares a guard too, or each process lets a state be used once.

mod claim;
pub mod kit;
mod memory;

use std::{fmt, future::Future, io, pin::Pin, sync::Arc};

use pintle_proto::server::Reply;

pub use memory::MemoryReplayGuard;

use crate::server::Server;

pub(crate) use claim::{StateClaim, enter};

/// Sees to it that a `requestState` is used once.
///
/// A state is claimed when its answers have been found to fit, and before the handler runs. Then it is completed with the
/// reply, or released if the handler was dropped before its end, as it is when a connection is lost. Whoever brings the
/// same state and the same answers meanwhile waits for that, and gets the reply; authorization has been checked by then for
/// that request too. Calls without a state do not come here.
///
/// To share one among processes, implement this trait over a store that all of them reach, and run
/// [`replay_kit::check`](crate::server::replay_kit::check) on it.
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
    /// Claims a state, so that nobody else uses it. If somebody does at this moment, with the same answers, waits for the
    /// end of that.
    ///
    /// An error is told to the client, and the handler does not run.
    fn claim<'a>(&'a self, used: &'a UsedState) -> Guarded<'a, Claimed>;

    /// Ends a claim with the reply. Whoever waits gets it, and so do those who come later for as long as it is kept; when
    /// it is not kept any more they get [`Claimed::Used`], until the state has expired.
    ///
    /// Goes on in a task of its own if the caller does not wait for it. An error is logged: the reply is sent all the same.
    fn complete<'a>(&'a self, used: &'a UsedState, claim: &'a Claim, reply: Reply) -> Guarded<'a, ()>;

    /// Ends a claim without a reply. `progress` is what was done meanwhile and must not be done again: the next one who
    /// claims the state gets it. It has to be kept until the state has expired, or the state must not be claimed again.
    ///
    /// It is said from destructors, so what takes time has to go into a task.
    fn release(&self, used: &UsedState, claim: Claim, progress: Option<Vec<u8>>);
}

/// What the methods of a [`ReplayGuard`] answer with.
pub type Guarded<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// A state that a client brought back, and with what. Everything in it can be a key in a store.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UsedState {
    /// SHA-256 of the `requestState`.
    pub state: [u8; 32],
    /// SHA-256 of the `inputResponses`, printed in one way.
    pub answers: [u8; 32],
    /// On whose behalf the call is, if somebody has checked that. The state is bound to it already: this is for limits.
    pub principal: Option<Arc<str>>,
    /// Until when the state can be used at all, in milliseconds of the Unix epoch. After that nothing need be known of it.
    pub expires: u64,
}

impl UsedState {
    /// The use of a state: for tests of a guard.
    pub fn new(state: [u8; 32], answers: [u8; 32], expires: u64) -> Self {
        Self { state, answers, principal: None, expires }
    }
}

/// What comes of a claim.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Claimed {
    /// The state is the caller's: the handler runs.
    First(Claim),
    /// It was used with the same answers, and this was the reply.
    Replied(Reply),
    /// It is used, or was, with other answers.
    OtherAnswers,
    /// It was used, and what came of it is not known any more.
    Used,
}

/// The right to use a state.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Claim {
    /// Tells this claim from earlier and later ones of the same state.
    pub fence: u64,
    /// What an earlier use has done before it was released.
    pub progress: Option<Vec<u8>>,
}

impl Claim {
    /// A claim, with what an earlier use has done.
    pub fn new(fence: u64, progress: Option<Vec<u8>>) -> Self {
        Self { fence, progress }
    }
}

impl Server {
    /// Sees with this to it that a state which a call left with its client is used once. If nothing is said, a
    /// [`MemoryReplayGuard`] does so within the process.
    #[must_use]
    pub fn replay_guard(self, guard: impl ReplayGuard) -> Self {
        self.setting(|settings| settings.replay = Arc::new(guard))
    }
}

impl<G: ReplayGuard + ?Sized> ReplayGuard for Arc<G> {
    fn claim<'a>(&'a self, used: &'a UsedState) -> Guarded<'a, Claimed> {
        (**self).claim(used)
    }

    fn complete<'a>(&'a self, used: &'a UsedState, claim: &'a Claim, reply: Reply) -> Guarded<'a, ()> {
        (**self).complete(used, claim, reply)
    }

    fn release(&self, used: &UsedState, claim: Claim, progress: Option<Vec<u8>>) {
        (**self).release(used, claim, progress);
    }
}
