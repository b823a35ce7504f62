//! Sessions, streams and call states of [`pintle`] servers in Redis or Valkey, so that several processes serve their clients as one.
//!
//! ```no_run
//! use pintle::{Server, server::StateKeys};
//! use pintle_redis::Redis;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::new("notes", "1.0.0").state_keys(StateKeys::from([7; 32]));
//! let http = server.http()?.shared(Redis::connect("redis://127.0.0.1/").await?);
//! # Ok(()) }
//! ```
//!
//! Each request of a client may then reach another process: the balancer needs no affinity. The page `docs/scale.md` of the
//! repository says what holds when processes or the store fail.
//!
//! Redis 6.2 or newer is needed, without modules. Its `maxmemory-policy` has to be `noeviction`. Every key expires. A cluster is not
//! supported: the inbox of a process and the log of changes are read with one command.

mod connection;
mod event_log;
#[cfg(doctest)]
mod guide;
mod keys;
mod node;
mod options;
mod replay_guard;
mod sealing;
mod sessions;

use std::{fmt, io, sync::Arc};

use pintle::server::{
    ReplayGuard,
    http::{
        log::EventLog,
        nodes::{Nodes, SharedStore},
        store::Sessions,
    },
};

pub use options::RedisOptions;

use self::{connection::Connection, node::Node, replay_guard::PendingReleases};

/// A process of a fleet whose shared state is in Redis.
///
/// It has a task that receives the messages of other processes and one that keeps its inbox alive. They end when it is dropped; the
/// other processes then find that it is gone after [`RedisOptions::lease`].
#[derive(Clone)]
pub struct Redis(Arc<Shared>);

struct Shared {
    connection: Connection,
    node: Node,
    releases: PendingReleases,
}

impl Redis {
    /// Connects to Redis with the default options.
    ///
    /// # Errors
    ///
    /// Returns an error if the address is invalid, or Redis cannot be reached.
    pub async fn connect(url: &str) -> io::Result<Self> {
        Self::connect_with(url, RedisOptions::default()).await
    }

    /// Connects to Redis.
    ///
    /// ```no_run
    /// use pintle::server::StateKeys;
    /// use pintle_redis::{Redis, RedisOptions};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
    /// let options = RedisOptions::default().prefix("notes").seal(StateKeys::from([7; 32]));
    /// let redis = Redis::connect_with("redis://127.0.0.1/", options).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the address is invalid, or Redis cannot be reached.
    pub async fn connect_with(url: &str, options: RedisOptions) -> io::Result<Self> {
        let connection = Connection::open(url, options).await?;
        connection.check_eviction().await;
        let node = Node::start(&connection).await?;
        Ok(Self(Arc::new(Shared { connection, node, releases: PendingReleases::default() })))
    }
}

impl SharedStore for Redis {
    fn sessions(&self) -> Arc<dyn Sessions> {
        Arc::new(self.clone())
    }

    fn event_log(&self) -> Arc<dyn EventLog> {
        Arc::new(self.clone())
    }

    fn nodes(&self) -> Arc<dyn Nodes> {
        Arc::new(self.clone())
    }

    fn replay_guard(&self) -> Arc<dyn ReplayGuard> {
        Arc::new(self.clone())
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("node", &self.0.node.id()).finish_non_exhaustive()
    }
}
