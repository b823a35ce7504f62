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
//! repository lists what holds when processes or the store fail.
//!
//! Redis 6.2 or newer is needed, without modules. Its `maxmemory-policy` has to be `noeviction`. Every key expires.
//!
//! The address selects the kind of Redis:
//!
//! | address | what |
//! |---|---|
//! | `redis://user:password@host:6379/0` | one Redis |
//! | `redis+cluster://user:password@host:7000,host:7001` | a cluster, with some of its nodes |
//! | `redis+sentinel://user:password@host:26379,host:26379/NAME/0` | the primary that Sentinels have under `NAME` |
//!
//! With `rediss` instead of `redis`, all connections have TLS (feature `tls`).

mod address;
mod backend;
mod connection;
mod event_log;
#[cfg(doctest)]
mod guide;
mod keys;
mod lease;
mod message_queue;
mod node;
mod node_resolver;
mod options;
mod reader;
mod sentinel;
mod store;
mod task_scripts;
mod task_store;

use std::{fmt, io, sync::Arc};

use pintle::server::{
    http::{
        log::EventLog,
        nodes::{Nodes, SharedStore},
    },
    store::Store,
};

pub use options::RedisOptions;
pub use task_store::RedisTaskStore;

use self::{connection::Connection, node::Node};

/// A process of a fleet whose shared state is in Redis.
///
/// It has a task that receives the messages of other processes and one that keeps its inbox alive. They end when it is dropped; the
/// other processes then find that it is gone after [`RedisOptions::lease`].
#[derive(Clone)]
pub struct Redis(Arc<Shared>);

struct Shared {
    connection: Connection,
    node: Node,
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
        Ok(Self(Arc::new(Shared { connection, node })))
    }

    /// Returns the store of another service of this process, such as one at another path. It uses the same connection, and shares nothing
    /// else: its keys have the name in their prefix.
    ///
    /// ```no_run
    /// use pintle::{Server, server::StateKeys};
    /// use pintle_redis::Redis;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let redis = Redis::connect("redis://127.0.0.1/").await?;
    /// for name in ["notes", "files"] {
    ///     let server = Server::new(name, "1.0.0").state_keys(StateKeys::from([7; 32]));
    ///     let http = server.http()?.at(&format!("/{name}")).shared(redis.service(name).await?);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if Redis cannot be reached.
    pub async fn service(&self, name: &str) -> io::Result<Self> {
        let connection = self.0.connection.with_prefix(&keys::escaped(name));
        let node = Node::start(&connection).await?;
        Ok(Self(Arc::new(Shared { connection, node })))
    }

    /// Asks Redis whether it answers.
    ///
    /// # Errors
    ///
    /// Redis cannot be reached, or does not answer within [`RedisOptions::timeout`].
    pub async fn ping(&self) -> io::Result<()> {
        self.0.connection.run::<String>(&redis::cmd("PING")).await.map(drop)
    }

    /// Returns the store of tasks, so that any process can be asked for the tasks of all.
    ///
    /// ```no_run
    /// use pintle::{Server, server::StateKeys};
    /// use pintle_tasks::Tasks;
    /// use pintle_redis::Redis;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let redis = Redis::connect("redis://127.0.0.1/").await?;
    /// let server = Server::new("notes", "1.0.0")
    ///     .state_keys(StateKeys::from([7; 32]))
    ///     .with(Tasks::new().store(redis.tasks()));
    /// let http = server.http()?.shared(redis);
    /// # Ok(()) }
    /// ```
    pub fn tasks(&self) -> RedisTaskStore {
        RedisTaskStore::new(self.0.connection.clone())
    }
}

impl SharedStore for Redis {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn event_log(&self) -> Arc<dyn EventLog> {
        Arc::new(self.clone())
    }

    fn nodes(&self) -> Arc<dyn Nodes> {
        Arc::new(self.clone())
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("node", &self.0.node.id()).finish_non_exhaustive()
    }
}
