//! The connection to Redis.

use std::{io, sync::Arc, time::Duration};

use redis::{Cmd, FromRedisValue, Pipeline, RedisError};

use crate::{
    backend::{Backend, BlockingConnection, failed},
    keys::Keys,
    options::RedisOptions,
};

/// A connection that all commands share, with the names and the encoding of what is stored.
#[derive(Clone)]
pub(crate) struct Connection {
    backend: Backend,
    pub(crate) keys: Arc<Keys>,
    pub(crate) options: Arc<RedisOptions>,
}

impl Connection {
    pub(crate) async fn open(url: &str, options: RedisOptions) -> io::Result<Self> {
        if options.prefix.contains(['{', '}']) {
            let reason = format!(
                "the prefix `{}` of keys has a brace, which a cluster would take for a hash tag: leave it out",
                options.prefix
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let backend = Backend::open(url, &options).await?;
        let keys = Arc::new(Keys::new(options.prefix.clone()));
        Ok(Self { backend, keys, options: Arc::new(options) })
    }

    /// Returns the same connection, for keys with one more part in their prefix.
    pub(crate) fn with_prefix(&self, part: &str) -> Self {
        let prefix = format!("{}:{part}", self.options.prefix);
        let options = RedisOptions::clone(&self.options).prefix(&prefix);
        Self { keys: Arc::new(Keys::new(prefix)), options: Arc::new(options), ..self.clone() }
    }

    /// Opens a connection for a command that blocks for up to `block`.
    pub(crate) async fn blocking(&self, block: Duration) -> io::Result<BlockingConnection> {
        self.backend.blocking(block, self.options.timeout).await
    }

    pub(crate) async fn run<T: FromRedisValue>(&self, command: &Cmd) -> io::Result<T> {
        self.try_run(command).await.map_err(failed)
    }

    /// Runs a command, and returns the error of Redis as it is.
    pub(crate) async fn try_run<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisError> {
        command.query_async(&mut self.backend.clone()).await
    }

    pub(crate) async fn run_all<T: FromRedisValue>(&self, commands: &Pipeline) -> io::Result<T> {
        commands.query_async(&mut self.backend.clone()).await.map_err(failed)
    }

    /// Runs a command that has the same effect if it is run twice. It is repeated if the connection was lost.
    pub(crate) async fn run_again<T: FromRedisValue>(&self, commands: &Pipeline) -> io::Result<T> {
        match commands.query_async(&mut self.backend.clone()).await {
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

    /// Encodes the value of a key.
    pub(crate) fn encode(&self, bound: &str, value: &[u8]) -> io::Result<Vec<u8>> {
        self.options.seal.encode(bound, value)
    }

    /// Decodes the value of a key.
    pub(crate) fn decode(&self, bound: &str, bytes: &[u8]) -> io::Result<Vec<u8>> {
        self.options.seal.decode(bound, bytes)
    }
}

/// Returns a duration in the milliseconds of an expiry, which is never zero.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    /// A century: Redis refuses an expiry that overflows.
    const MAX: u128 = 100 * 365 * 24 * 3600 * 1000;
    u64::try_from(duration.as_millis().clamp(1, MAX)).unwrap_or(u64::MAX)
}
