use std::{fmt, time::Duration};

use pintle::server::{StateKeys, store::Seal};

/// The options of a [`Redis`](crate::Redis).
#[derive(Clone)]
pub struct RedisOptions {
    pub(crate) prefix: String,
    pub(crate) seal: Seal,
    pub(crate) timeout: Duration,
    pub(crate) lease: Duration,
    pub(crate) open_stream: Duration,
    pub(crate) ended_stream: Duration,
    pub(crate) stream_events: usize,
    pub(crate) session_bytes: u64,
    /// The user, which may be empty, and the password.
    pub(crate) sentinel_login: Option<(String, String)>,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            prefix: "pintle".to_owned(),
            seal: Seal::default(),
            timeout: Duration::from_secs(2),
            lease: Duration::from_secs(15),
            open_stream: Duration::from_secs(3600),
            ended_stream: Duration::from_secs(300),
            stream_events: 1000,
            session_bytes: 32 << 20,
            sentinel_login: None,
        }
    }
}

impl RedisOptions {
    /// Sets the prefix of all keys. The default is `pintle`. Services with different prefixes share nothing.
    #[must_use]
    pub fn prefix(self, prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// Seals sessions, events, messages and replies with these keys, so that readers of Redis cannot read them, and that who writes
    /// to it cannot forge them. All processes need the same keys; they are changed in two phases, as [`StateKeys`] describes. By
    /// default nothing is sealed.
    #[must_use]
    pub fn seal(self, keys: StateKeys) -> Self {
        Self { seal: Seal::new(Some(keys)), ..self }
    }

    /// Sets the time that Redis may take for a response. The default is two seconds. After it, requests are answered with 503.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets the time after which a process that is silent is gone for the others. The default is 15 seconds. A process renews it three
    /// times as often.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease: lease.max(Duration::from_millis(300)), ..self }
    }

    /// Sets the number of events of a stream that are kept for clients that resume it, roughly. The default is 1000.
    #[must_use]
    pub fn stream_events(self, events: usize) -> Self {
        Self { stream_events: events.max(1), ..self }
    }

    /// Sets the number of bytes of events that one session may have logged in five minutes, so that it does not fill Redis for others.
    /// The default is 32 MiB. A stream above it goes on, and cannot be resumed.
    #[must_use]
    pub fn session_bytes(self, bytes: u64) -> Self {
        Self { session_bytes: bytes, ..self }
    }

    /// Sets the user and the password for Sentinels, if they need them. An empty user is the default one. Those in the address are for
    /// Redis itself.
    #[must_use]
    pub fn sentinel_login(self, user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { sentinel_login: Some((user.into(), password.into())), ..self }
    }

    /// Sets the time for which the events of a stream are kept after its last event and, if it has ended, after its end. The defaults
    /// are one hour and five minutes.
    #[must_use]
    pub fn event_age(self, open: Duration, ended: Duration) -> Self {
        Self { open_stream: open, ended_stream: ended, ..self }
    }
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("prefix", &self.prefix)
            .field("is_sealed", &self.seal.is_keyed())
            .field("timeout", &self.timeout)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}
