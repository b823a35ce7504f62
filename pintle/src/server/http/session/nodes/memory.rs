use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::sync::Notify;

use super::{NodeEvent, NodeId, Nodes, SharedStore};
use crate::server::{
    http::session::log::{EventLog, MemoryLog},
    store::{MemoryStore, Store, Stored},
};

/// A fleet in the memory of one process: for tests, and for services of one process that share their sessions.
///
/// ```
/// use pintle::{Server, server::http::nodes::MemoryFleet};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::new("notes", "1.0.0");
/// let fleet = MemoryFleet::new();
/// // A session that is opened at one of them can be used at both.
/// let one = server.http()?.shared(fleet.node()?);
/// let other = server.http()?.shared(fleet.node()?);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryFleet(Arc<FleetStores>);

#[derive(Debug, Default)]
struct FleetStores {
    store: Arc<MemoryStore>,
    log: Arc<MemoryLog>,
    network: Mutex<NodeTable>,
}

#[derive(Default)]
struct NodeTable {
    inboxes: HashMap<NodeId, Arc<NodeInbox>>,
    holders: HashMap<Box<str>, HashSet<NodeId>>,
}

#[derive(Default)]
struct NodeInbox {
    queue: Mutex<VecDeque<NodeEvent>>,
    added: Notify,
}

/// The capacity of an inbox. Above it, the messages are replaced by a gap.
const CAPACITY: usize = 10_000;

impl NodeInbox {
    fn push(&self, received: NodeEvent) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.len() >= CAPACITY {
            queue.clear();
            queue.push_back(NodeEvent::Gap);
        }
        queue.push_back(received);
        drop(queue);
        self.added.notify_one();
    }
}

impl MemoryFleet {
    /// Creates a fleet without processes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a process. It leaves the fleet when it is dropped.
    ///
    /// # Errors
    ///
    /// Returns an error if the system's random number generator failed.
    pub fn node(&self) -> io::Result<MemoryNodes> {
        let id = NodeId::random()
            .ok_or_else(|| io::Error::other("the system's random number generator failed"))?;
        let inbox = Arc::new(NodeInbox::default());
        self.network().inboxes.insert(id, inbox.clone());
        Ok(MemoryNodes(Arc::new(MemoryNode { id, inbox, fleet: self.clone() })))
    }

    fn network(&self) -> MutexGuard<'_, NodeTable> {
        self.0.network.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A process of a [`MemoryFleet`].
#[derive(Clone, Debug)]
pub struct MemoryNodes(Arc<MemoryNode>);

struct MemoryNode {
    id: NodeId,
    inbox: Arc<NodeInbox>,
    fleet: MemoryFleet,
}

impl MemoryNodes {
    /// Removes the process from its fleet, as a crash does: nothing that is sent to it arrives.
    pub fn disconnect(&self) {
        self.0.disconnect();
    }
}

impl Drop for MemoryNode {
    fn drop(&mut self) {
        self.disconnect();
    }
}

impl MemoryNode {
    fn disconnect(&self) {
        if let Some(others) = self.leave() {
            others.iter().for_each(|inbox| inbox.push(NodeEvent::Gone(self.id)));
        }
    }

    /// Leaves the fleet. Returns the inboxes of the others, unless it has left already.
    fn leave(&self) -> Option<Vec<Arc<NodeInbox>>> {
        let mut network = self.fleet.network();
        network.inboxes.remove(&self.id)?;
        network.holders.retain(|_, holders| {
            holders.remove(&self.id);
            !holders.is_empty()
        });
        Some(network.inboxes.values().cloned().collect())
    }
}

impl SharedStore for MemoryNodes {
    fn store(&self) -> Arc<dyn Store> {
        self.0.fleet.0.store.clone()
    }

    fn event_log(&self) -> Arc<dyn EventLog> {
        self.0.fleet.0.log.clone()
    }

    fn nodes(&self) -> Arc<dyn Nodes> {
        Arc::new(self.clone())
    }
}

impl Nodes for MemoryNodes {
    fn id(&self) -> NodeId {
        self.0.id
    }

    fn join<'a>(&'a self, session: &'a str, _: Duration) -> Stored<'a, ()> {
        self.0.fleet.network().holders.entry(session.into()).or_default().insert(self.0.id);
        Stored::now(())
    }

    fn leave<'a>(&'a self, session: &'a str) -> Stored<'a, ()> {
        let mut network = self.0.fleet.network();
        if let Some(holders) = network.holders.get_mut(session) {
            holders.remove(&self.0.id);
            if holders.is_empty() {
                network.holders.remove(session);
            }
        }
        Stored::now(())
    }

    fn send<'a>(&'a self, session: &'a str, message: Bytes) -> Stored<'a, usize> {
        let network = self.0.fleet.network();
        let holders = network.holders.get(session).into_iter().flatten().filter(|id| **id != self.0.id);
        let inboxes = holders.filter_map(|id| network.inboxes.get(id));
        Stored::now(inboxes.map(|inbox| inbox.push(NodeEvent::Message(message.clone()))).count())
    }

    fn send_to<'a>(&'a self, node: NodeId, message: Bytes) -> Stored<'a, bool> {
        let inbox = self.0.fleet.network().inboxes.get(&node).cloned();
        Stored::now(inbox.map(|inbox| inbox.push(NodeEvent::Message(message))).is_some())
    }

    fn publish<'a>(&'a self, change: Bytes) -> Stored<'a, ()> {
        let network = self.0.fleet.network();
        let others = network.inboxes.iter().filter(|(id, _)| **id != self.0.id);
        others.for_each(|(_, inbox)| inbox.push(NodeEvent::Change(change.clone())));
        Stored::now(())
    }

    fn close(&self) -> Stored<'_, ()> {
        self.0.leave();
        Stored::now(())
    }

    fn receive(&self) -> Stored<'_, NodeEvent> {
        Stored::later(async move {
            let inbox = &self.0.inbox;
            loop {
                // Created before looking, or a notification in between would be missed.
                let added = inbox.added.notified();
                let received = inbox.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                if let Some(received) = received {
                    return Ok(received);
                }
                added.await;
            }
        })
    }
}

impl fmt::Debug for MemoryNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryNode").field("id", &self.id).finish_non_exhaustive()
    }
}

impl fmt::Debug for NodeTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeTable").field("nodes", &self.inboxes.len()).finish_non_exhaustive()
    }
}
