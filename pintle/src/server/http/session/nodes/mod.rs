//! Messages between the processes that serve the same sessions.
//!
//! With a [session store](crate::server::http::Http::session_store) any process can serve any request, but a call runs in one process. The answer to its
//! question, its cancellation and the end of its session may reach another one, and so does a client that resumes its stream.
//! [`Nodes`] carries these messages from process to process, and the changes of lists and resources. [`MemoryFleet`] connects
//! services of one process, for tests. `pintle-redis` connects processes; for another message broker, implement the trait, and run
//! `pintle_testing::kits::nodes::check` on it.

mod memory;
pub(in crate::server::http) mod message;

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use bytes::Bytes;

pub use memory::{MemoryFleet, MemoryNodes};

use super::log::EventLog;
use crate::server::{
    random,
    store::{Store, Stored},
};

/// The connection of one process to the others.
///
/// A message that was sent is received once, and the messages of one sender in their order, unless [`NodeEvent::Gap`] reports that some
/// were lost. A change is received by all processes, unless [`NodeEvent::MissedChanges`] or a gap reports that some were lost; and every
/// process is notified once of one that is [`Gone`](NodeEvent::Gone). All methods may be called concurrently, but one task receives.
pub trait Nodes: fmt::Debug + Send + Sync + 'static {
    /// Returns the id of this process. It is not used again after a restart.
    fn id(&self) -> NodeId;

    /// Notes that this process has a session, until it [leaves](Self::leave) it or `life` has passed. That is longer than an unused session is
    /// kept; while the session is used, this is called again in time.
    fn join<'a>(&'a self, session: &'a str, life: Duration) -> Stored<'a, ()>;

    /// Notes that this process no longer has a session.
    fn leave<'a>(&'a self, session: &'a str) -> Stored<'a, ()>;

    /// Sends a message to all other processes that have a session. Returns their number. Processes that are gone are not counted.
    fn send<'a>(&'a self, session: &'a str, message: Bytes) -> Stored<'a, usize>;

    /// Sends a message to one process. Returns `false` if it is gone.
    fn send_to<'a>(&'a self, node: NodeId, message: Bytes) -> Stored<'a, bool>;

    /// Sends a change to all other processes.
    fn publish<'a>(&'a self, change: Bytes) -> Stored<'a, ()>;

    /// Leaves the fleet, because the process stops and has published all that it had to. The others are not notified that it is
    /// [gone](NodeEvent::Gone). The default does nothing.
    fn close(&self) -> Stored<'_, ()> {
        Stored::now(())
    }

    /// Waits for the next message or change. If it is dropped before it completes, nothing is lost.
    fn receive(&self) -> Stored<'_, NodeEvent>;
}

/// An event of the connection to the other processes.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NodeEvent {
    /// A message to this process.
    Message(Bytes),
    /// A change, which goes to all processes.
    Change(Bytes),
    /// A process is gone, or was taken to be: changes that it had not published are lost.
    Gone(NodeId),
    /// Changes may have been lost, and no messages.
    MissedChanges,
    /// Messages and changes may have been lost.
    Gap,
}

/// The id of a process in a fleet, random.
///
/// ```
/// use pintle::server::http::nodes::NodeId;
///
/// let id = NodeId::new(0xa1);
/// assert_eq!(id.to_string(), "00000000000000a1");
/// assert_eq!(id.to_string().parse(), Ok(id));
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeId(u64);

impl NodeId {
    /// Creates an id from a number.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    pub(in crate::server::http) fn number(self) -> u64 {
        self.0
    }

    /// Creates a random id. Returns `None` if the system's random number generator failed.
    pub fn random() -> Option<Self> {
        random::bytes().ok().map(|bytes| Self(u64::from_ne_bytes(bytes)))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for NodeId {
    type Err = ParseNodeIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_id = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        u64::from_str_radix(text, 16).ok().filter(|_| is_id).map(Self).ok_or(ParseNodeIdError(()))
    }
}

/// The error for a text that is not a [`NodeId`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ParseNodeIdError(());

impl fmt::Display for ParseNodeIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the id of a node is 16 hexadecimal digits")
    }
}

impl std::error::Error for ParseNodeIdError {}

/// All that the processes of a fleet share: see [`Http::shared`](crate::server::http::Http::shared).
///
/// A value of this type is one process of the fleet. Services that run side by side in one process have one each.
pub trait SharedStore {
    /// Returns the store of sessions and of the uses of call states.
    fn store(&self) -> Arc<dyn Store>;

    /// Returns the log of events.
    fn event_log(&self) -> Arc<dyn EventLog>;

    /// Returns the connection to the other processes.
    fn nodes(&self) -> Arc<dyn Nodes>;
}
