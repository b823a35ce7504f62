//! The connection to the primary that Sentinels name.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, ProtocolVersion, RedisError, RedisResult, TlsMode, Value,
    aio::MultiplexedConnection,
    sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType},
};
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
    time::{sleep, timeout},
};

use crate::{
    address::SentinelAddress,
    backend::{Commands, MAX_DELAY, MIN_DELAY, was_refused},
    options::RedisOptions,
};

/// The primary that Sentinels name. They are asked again when a connection to it breaks, when it does not respond in time, and when it
/// has become a replica.
#[derive(Clone)]
pub(crate) struct Primary {
    current: watch::Receiver<Option<PrimaryConnection>>,
    failures: Arc<Failures>,
    wait: Duration,
    _follower: Arc<FollowerTask>,
}

/// A connection to a primary, and its number among those that were opened.
#[derive(Clone)]
struct PrimaryConnection {
    number: u64,
    client: Client,
    connection: MultiplexedConnection,
}

/// The newest connection that has failed.
#[derive(Default)]
struct Failures {
    number: AtomicU64,
    added: Notify,
}

impl Failures {
    fn add(&self, number: u64) {
        self.number.fetch_max(number, Ordering::AcqRel);
        self.added.notify_one();
    }
}

/// A connection to a primary for commands that block.
pub(crate) struct BlockingPrimary {
    number: u64,
    connection: MultiplexedConnection,
    failures: Arc<Failures>,
}

impl BlockingPrimary {
    pub(crate) async fn send(&mut self, commands: Commands<'_>) -> RedisResult<Vec<Value>> {
        let sent = commands.send(&mut self.connection).await;
        if Outcome::of(&sent) != Outcome::Done {
            self.failures.add(self.number);
        }
        sent
    }
}

/// The state of a connection, as a response shows it.
#[derive(Eq, PartialEq)]
enum Outcome {
    Done,
    /// A Redis that is not the primary has refused the commands.
    Refused,
    /// The connection is broken, or slow: the Sentinels know whether it is that of the primary.
    Failed,
}

impl Outcome {
    fn of(sent: &RedisResult<Vec<Value>>) -> Self {
        let is_refusal = |value: &Value| {
            matches!(value, Value::ServerError(_))
                && value.clone().extract_error().is_err_and(|error| was_refused(&error))
        };
        match sent {
            Ok(values) if values.iter().any(is_refusal) => Self::Refused,
            Ok(_) => Self::Done,
            Err(error) if was_refused(error) => Self::Refused,
            Err(error) if error.is_io_error() => Self::Failed,
            Err(_) => Self::Done,
        }
    }
}

impl Primary {
    pub(crate) async fn open(address: SentinelAddress, options: &RedisOptions) -> RedisResult<Self> {
        let client = client(address, options)?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(options.timeout))
            .set_response_timeout(Some(options.timeout));
        let (sender, current) = watch::channel(None);
        let failures = Arc::new(Failures::default());
        let mut follower = Follower { client, config, number: 0, sender, failures: failures.clone() };
        follower.connect().await?;
        let follower = Arc::new(FollowerTask(tokio::spawn(follower.run()).abort_handle()));
        Ok(Self { current, failures, wait: options.timeout, _follower: follower })
    }

    /// Waits for a connection that has not failed.
    async fn current(&self) -> RedisResult<PrimaryConnection> {
        let mut current = self.current.clone();
        let is_usable = |found: &Option<PrimaryConnection>| {
            found.as_ref().is_some_and(|found| found.number > self.failures.number.load(Ordering::Acquire))
        };
        let found = timeout(self.wait, current.wait_for(is_usable)).await;
        found.ok().and_then(Result::ok).and_then(|found| found.clone()).ok_or_else(|| {
            let reason = "the Sentinels name no primary that can be reached";
            RedisError::from(io::Error::new(io::ErrorKind::TimedOut, reason))
        })
    }

    /// Sends commands to the primary. Those that a replica has refused are repeated at the new primary.
    pub(crate) async fn send(&self, commands: Commands<'_>) -> RedisResult<Vec<Value>> {
        let mut first = self.current().await?;
        let sent = commands.send(&mut first.connection).await;
        let outcome = Outcome::of(&sent);
        if outcome != Outcome::Done {
            self.failures.add(first.number);
        }
        match outcome {
            Outcome::Refused => commands.send(&mut self.current().await?.connection).await,
            Outcome::Done | Outcome::Failed => sent,
        }
    }

    pub(crate) async fn blocking(&self, config: &AsyncConnectionConfig) -> RedisResult<BlockingPrimary> {
        let PrimaryConnection { number, client, .. } = self.current().await?;
        let opened = client.get_multiplexed_async_connection_with_config(config).await;
        let connection = opened.inspect_err(|_| self.failures.add(number))?;
        Ok(BlockingPrimary { number, connection, failures: self.failures.clone() })
    }
}

fn client(address: SentinelAddress, options: &RedisOptions) -> RedisResult<SentinelClient> {
    let SentinelAddress { sentinels, name, login, is_tls } = address;
    let mut builder = SentinelClientBuilder::new(sentinels, name, SentinelServerType::Master)?
        .set_client_to_redis_db(login.db());
    if let Some(user) = login.username() {
        builder = builder.set_client_to_redis_username(user);
    }
    if let Some(password) = login.password() {
        builder = builder.set_client_to_redis_password(password);
    }
    if login.protocol() != ProtocolVersion::RESP2 {
        builder = builder.set_client_to_redis_protocol(login.protocol());
    }
    if is_tls {
        builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
    }
    if let Some((user, password)) = &options.sentinel_login {
        if !user.is_empty() {
            builder = builder.set_client_to_sentinel_username(user);
        }
        builder = builder.set_client_to_sentinel_password(password);
    }
    builder.build()
}

/// The task that keeps the connection to the primary. It ends when nobody needs it.
struct FollowerTask(AbortHandle);

impl Drop for FollowerTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Keeps the connection to the primary.
struct Follower {
    client: SentinelClient,
    config: AsyncConnectionConfig,
    number: u64,
    sender: watch::Sender<Option<PrimaryConnection>>,
    failures: Arc<Failures>,
}

impl Follower {
    async fn connect(&mut self) -> RedisResult<()> {
        let client = self.client.async_get_client().await?;
        let connection = client.get_multiplexed_async_connection_with_config(&self.config).await?;
        self.number += 1;
        self.sender.send_replace(Some(PrimaryConnection { number: self.number, client, connection }));
        Ok(())
    }

    async fn run(mut self) {
        let failures = self.failures.clone();
        let mut delay = MIN_DELAY;
        loop {
            if failures.number.load(Ordering::Acquire) < self.number {
                delay = MIN_DELAY;
                failures.added.notified().await;
                continue;
            }
            match self.connect().await {
                Ok(()) => tracing::info!("the Sentinels have named a primary again"),
                Err(error) => {
                    tracing::warn!(%error, "the Sentinels name no primary that can be reached: it is tried again");
                    sleep(delay).await;
                    delay = (2 * delay).min(MAX_DELAY);
                }
            }
        }
    }
}
