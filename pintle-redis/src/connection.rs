//! The connection to Redis.

use std::{io, sync::Arc, time::Duration};

use pintle::server::StateKeys;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError,
    aio::{ConnectionManager, ConnectionManagerConfig, MultiplexedConnection},
};

use crate::{keys::Keys, options::RedisOptions, sealing};

/// A connection that all commands share. It reconnects with a growing delay.
#[derive(Clone)]
pub(crate) struct Connection {
    client: Client,
    manager: ConnectionManager,
    pub(crate) keys: Arc<Keys>,
    pub(crate) options: Arc<RedisOptions>,
}

/// The delays between attempts to connect.
const MIN_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(2);

impl Connection {
    pub(crate) async fn open(url: &str, options: RedisOptions) -> io::Result<Self> {
        let client = Client::open(url).map_err(failed)?;
        let config = ConnectionManagerConfig::new()
            .set_min_delay(MIN_DELAY)
            .set_max_delay(MAX_DELAY)
            .set_number_of_retries(2)
            .set_response_timeout(Some(options.timeout))
            .set_connection_timeout(Some(options.timeout));
        let manager = client.get_connection_manager_with_config(config).await.map_err(failed)?;
        let keys = Arc::new(Keys::new(options.prefix.clone()));
        Ok(Self { client, manager, keys, options: Arc::new(options) })
    }

    /// Opens a connection for a command that blocks for up to `block`.
    pub(crate) async fn blocking(&self, block: Duration) -> io::Result<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.options.timeout))
            .set_response_timeout(Some(block + self.options.timeout));
        self.client.get_multiplexed_async_connection_with_config(&config).await.map_err(failed)
    }

    pub(crate) async fn run<T: FromRedisValue>(&self, command: &Cmd) -> io::Result<T> {
        self.try_run(command).await.map_err(failed)
    }

    /// Runs a command, and returns the error of Redis as it is.
    pub(crate) async fn try_run<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisError> {
        command.query_async(&mut self.manager.clone()).await
    }

    pub(crate) async fn run_all<T: FromRedisValue>(&self, commands: &Pipeline) -> io::Result<T> {
        commands.query_async(&mut self.manager.clone()).await.map_err(failed)
    }

    /// Runs a command that has the same effect if it is run twice. It is repeated if the connection was lost.
    pub(crate) async fn run_again<T: FromRedisValue>(&self, commands: &Pipeline) -> io::Result<T> {
        match commands.query_async(&mut self.manager.clone()).await {
            Err(error) if error.is_connection_dropped() || error.is_unrecoverable_error() => {
                self.run_all(commands).await
            }
            other => other.map_err(failed),
        }
    }

    /// Warns if Redis may drop keys before they expire.
    pub(crate) async fn check_eviction(&self) {
        let config: Result<Vec<String>, _> =
            self.try_run(redis::cmd("CONFIG").arg("GET").arg("maxmemory-policy")).await;
        match config.as_deref() {
            Ok([_, policy]) if policy != "noeviction" => tracing::warn!(
                policy,
                "Redis may drop sessions when it is full: set its `maxmemory-policy` to `noeviction`"
            ),
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "the `maxmemory-policy` of Redis is not known"),
        }
    }

    fn state_keys(&self) -> Option<&StateKeys> {
        self.options.keys.as_ref()
    }

    /// Encodes the value of a key.
    pub(crate) fn encode(&self, bound: &str, value: &[u8]) -> io::Result<Vec<u8>> {
        sealing::encode(self.state_keys(), bound, value)
    }

    /// Decodes the value of a key.
    pub(crate) fn decode(&self, bound: &str, bytes: &[u8]) -> io::Result<Vec<u8>> {
        sealing::decode(self.state_keys(), bound, bytes)
    }
}

/// Returns a duration in the milliseconds of an expiry, which is never zero.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    /// A century: Redis refuses an expiry that overflows.
    const MAX: u128 = 100 * 365 * 24 * 3600 * 1000;
    u64::try_from(duration.as_millis().clamp(1, MAX)).unwrap_or(u64::MAX)
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
