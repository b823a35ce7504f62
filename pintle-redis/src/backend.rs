//! The backends that commands are sent to: one Redis, a cluster, or the primary that Sentinels name.

use std::{io, sync::Arc, time::Duration};

use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, IntoConnectionInfo, Pipeline, RedisError,
    RedisFuture, RedisResult, ServerErrorKind, Value,
    aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig, MultiplexedConnection},
    cluster::{ClusterClient, ClusterConfig},
    cluster_async::ClusterConnection,
};
use tokio::time::{sleep, timeout};

use crate::{
    address::Address,
    node_resolver::NodeResolver,
    options::RedisOptions,
    sentinel::{BlockingPrimary, Primary},
};

/// The bounds of the delay between attempts to connect.
pub(crate) const MIN_DELAY: Duration = Duration::from_millis(100);
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(2);

/// The delay after which a command is repeated that a cluster has refused because its slots move.
const REFUSED_DELAY: Duration = Duration::from_millis(25);

/// The connection that all commands share.
#[derive(Clone)]
pub(crate) enum Backend {
    /// One Redis. The connection is opened again with a growing delay.
    Single { client: Arc<Client>, manager: ConnectionManager },
    /// A cluster, whose slots are followed.
    Cluster { client: Arc<ClusterClient>, connection: ClusterConnection, wait: Duration },
    /// The primary that Sentinels name.
    Sentinel(Primary),
}

/// A connection for commands that block.
pub(crate) enum BlockingConnection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
    Sentinel(BlockingPrimary),
}

impl Backend {
    pub(crate) async fn open(url: &str, options: &RedisOptions) -> io::Result<Self> {
        match Address::parse(url)? {
            Address::Single(url) => Self::open_single(&url, options).await,
            Address::Cluster(nodes) => Self::open_cluster(nodes, options).await,
            Address::Sentinel(address) => Primary::open(address, options).await.map(Self::Sentinel),
        }
        .map_err(failed)
    }

    async fn open_single(url: &str, options: &RedisOptions) -> RedisResult<Self> {
        let client = Client::open(url)?;
        let config = ConnectionManagerConfig::new()
            .set_min_delay(MIN_DELAY)
            .set_max_delay(MAX_DELAY)
            .set_number_of_retries(2)
            .set_response_timeout(Some(options.timeout))
            .set_connection_timeout(Some(options.timeout));
        let manager = client.get_connection_manager_with_config(config).await?;
        Ok(Self::Single { client: Arc::new(client), manager })
    }

    async fn open_cluster(nodes: Vec<String>, options: &RedisOptions) -> RedisResult<Self> {
        let nodes = nodes
            .into_iter()
            .map(IntoConnectionInfo::into_connection_info)
            .collect::<RedisResult<Vec<_>>>()?;
        let in_clear_text = nodes.iter().filter_map(|node| match node.addr() {
            ConnectionAddr::Tcp(host, port) => Some((host.clone(), *port)),
            _ => None,
        });
        let in_clear_text: Vec<_> = in_clear_text.collect();
        // Without retries: the library repeats also what may have been carried out, and an event or a session would be there already.
        let mut builder = ClusterClient::builder(nodes)
            .retries(0)
            .connection_timeout(options.timeout)
            .response_timeout(options.timeout)
            .overall_response_timeout(None);
        if !in_clear_text.is_empty() {
            builder = builder.async_dns_resolver(NodeResolver::of_named(in_clear_text).await);
        }
        let client = builder.build()?;
        let connection = client.get_async_connection().await?;
        Ok(Self::Cluster { client: Arc::new(client), connection, wait: options.timeout })
    }

    /// Opens a connection for commands that block for up to `block`.
    pub(crate) async fn blocking(&self, block: Duration, limit: Duration) -> io::Result<BlockingConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(limit))
            .set_response_timeout(Some(block + limit));
        let opened = match self {
            Self::Single { client, .. } => client
                .get_multiplexed_async_connection_with_config(&config)
                .await
                .map(BlockingConnection::Single),
            Self::Cluster { client, .. } => {
                let config =
                    ClusterConfig::new().set_connection_timeout(limit).set_response_timeout(block + limit);
                client.get_async_connection_with_config(config).await.map(BlockingConnection::Cluster)
            }
            Self::Sentinel(primary) => primary.blocking(&config).await.map(BlockingConnection::Sentinel),
        };
        opened.map_err(failed)
    }
}

/// One command, or a pipeline with the responses that are wanted.
#[derive(Clone, Copy)]
pub(crate) enum Commands<'a> {
    One(&'a Cmd),
    Pipeline { commands: &'a Pipeline, offset: usize, count: usize },
}

impl Commands<'_> {
    /// Returns the responses. Those that are errors may be among them.
    pub(crate) async fn send(self, to: &mut (impl ConnectionLike + Send)) -> RedisResult<Vec<Value>> {
        match self {
            Self::One(command) => to.req_packed_command(command).await.map(|value| vec![value]),
            Self::Pipeline { commands, offset, count } => {
                to.req_packed_commands(commands, offset, count).await
            }
        }
    }
}

impl Backend {
    async fn send(&mut self, commands: Commands<'_>) -> RedisResult<Vec<Value>> {
        match self {
            Self::Single { manager, .. } => commands.send(manager).await,
            Self::Cluster { connection, wait, .. } => {
                let refused = io::Error::new(io::ErrorKind::TimedOut, "the cluster refuses a command");
                let sent = timeout(*wait, repeat_refused(connection, commands)).await;
                sent.unwrap_or_else(|_| Err(refused.into()))
            }
            Self::Sentinel(primary) => primary.send(commands).await,
        }
    }
}

impl ConnectionLike for Backend {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Single { manager, .. } => manager.req_packed_command(command),
            other => Box::pin(async move { one(other.send(Commands::One(command)).await) }),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Single { manager, .. } => manager.req_packed_commands(commands, offset, count),
            other => {
                Box::pin(async move { other.send(Commands::Pipeline { commands, offset, count }).await })
            }
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Single { manager, .. } => manager.get_db(),
            Self::Cluster { .. } | Self::Sentinel(_) => 0,
        }
    }
}

impl BlockingConnection {
    async fn send(&mut self, commands: Commands<'_>) -> RedisResult<Vec<Value>> {
        match self {
            Self::Single(connection) => commands.send(connection).await,
            Self::Cluster(connection) => commands.send(connection).await,
            Self::Sentinel(primary) => primary.send(commands).await,
        }
    }
}

impl ConnectionLike for BlockingConnection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move { one(self.send(Commands::One(command)).await) })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move { self.send(Commands::Pipeline { commands, offset, count }).await })
    }

    fn get_db(&self) -> i64 {
        0
    }
}

fn one(values: RedisResult<Vec<Value>>) -> RedisResult<Value> {
    values.map(|mut values| values.pop().unwrap_or(Value::Nil))
}

/// Sends commands to a cluster, again as long as it refuses them because slots move or a primary has failed. What may have been carried
/// out is not repeated.
async fn repeat_refused(
    connection: &mut ClusterConnection,
    commands: Commands<'_>,
) -> RedisResult<Vec<Value>> {
    loop {
        match commands.send(connection).await {
            Err(error) if was_refused(&error) => {
                tracing::debug!(%error, "the cluster has refused a command: it is repeated");
                sleep(REFUSED_DELAY).await;
            }
            other => return other,
        }
    }
}

/// Returns whether commands were refused by a Redis that does not have the keys, or does not write them now.
pub(crate) fn was_refused(error: &RedisError) -> bool {
    use ServerErrorKind::{Ask, BusyLoading, ClusterDown, MasterDown, Moved, ReadOnly, TryAgain};
    matches!(
        error.kind(),
        ErrorKind::ClusterConnectionNotFound
            | ErrorKind::Server(Ask | BusyLoading | ClusterDown | MasterDown | Moved | ReadOnly | TryAgain)
    )
}

#[expect(clippy::needless_pass_by_value, reason = "it stands where an error is given away")]
pub(crate) fn failed(error: RedisError) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::AuthenticationFailed => io::ErrorKind::PermissionDenied,
        _ if error.is_timeout() => io::ErrorKind::TimedOut,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, format!("Redis failed: {error}"))
}
