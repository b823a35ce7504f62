use std::{sync::Arc, time::Duration};

use http::request::Parts;
use pintle_proto::http::Guard;

use super::{
    BodyLimits, Http,
    choice::Choice,
    origin::TrustedProxies,
    session::{
        log::{EventLog, MemoryLog},
        nodes::{Nodes, SharedStore},
        registry::Quota,
        store::SessionStore,
        two_endpoints::TwoEndpoints,
    },
};
use crate::{
    Result,
    server::{Server, store::Store},
};

/// The settings of an [`Http`].
#[derive(Clone)]
pub(super) struct HttpSettings {
    pub(super) choice: Choice,
    /// Whether a function of the application reads the heads of requests.
    pub(super) looks: bool,
    /// The path that is served; `None` for every path.
    pub(super) path: Option<Box<str>>,
    /// Whether the keys that seal states are random, and so known to this process only.
    pub(super) seals_alone: bool,
    pub(super) guard: Guard,
    pub(super) principal: Option<Arc<PrincipalOf>>,
    pub(super) body_limits: BodyLimits,
    /// Whether `body_limits.limit` was set. Otherwise the limit of the server applies.
    pub(super) limited: bool,
    /// The limit of subscriptions of all anonymous callers.
    pub(super) anonymous_subscriptions: usize,
    pub(super) json_only: bool,
    pub(super) sessions: bool,
    pub(super) sessionless: bool,
    /// The interval of keep-alive comments, and the time after which a silent call becomes a stream.
    pub(super) keep_alive: Duration,
    /// The limit of memory for bodies that are being read, if it was set.
    pub(super) bodies: Option<usize>,
    /// The time after which a client reconnects to a stream.
    pub(super) retry: Duration,
    /// The time after which an idle session ends.
    pub(super) idle_session: Duration,
    /// The silence after which a client with an open GET stream is pinged.
    pub(super) keepalive: Option<Duration>,
    /// The time that a call may run after its client has disconnected.
    pub(super) detached_call: Duration,
    /// The time after which a session ends whose client sends nothing after the handshake.
    pub(super) uninitialized_session: Duration,
    pub(super) quota: Quota,
    pub(super) proxies: TrustedProxies,
    pub(super) log: Arc<dyn EventLog>,
    pub(super) store: Option<SessionStore>,
    /// The connection to the other processes.
    pub(super) nodes: Option<Arc<dyn Nodes>>,
    pub(super) two_endpoints: Option<TwoEndpoints>,
    /// The first 32 bits of session ids.
    pub(super) session_prefix: Option<u32>,
}

/// A function that returns the principal of a request.
type PrincipalOf = dyn Fn(&Parts) -> Option<String> + Send + Sync;

impl HttpSettings {
    pub(super) fn new(server: &Server) -> Self {
        let snapshot = server.snapshot();
        Self {
            choice: Choice::One(server.clone()),
            looks: false,
            path: None,
            seals_alone: snapshot.settings.keys.is_random(),
            guard: Guard::loopback(),
            principal: None,
            body_limits: BodyLimits::default(),
            limited: false,
            anonymous_subscriptions: 16_384,
            json_only: false,
            sessions: true,
            sessionless: false,
            keep_alive: Duration::from_secs(15),
            bodies: None,
            retry: Duration::from_secs(1),
            idle_session: snapshot.settings.timeouts.idle_session,
            keepalive: snapshot.settings.timeouts.keepalive,
            detached_call: snapshot.settings.timeouts.detached_call,
            uninitialized_session: snapshot.settings.timeouts.uninitialized_session,
            quota: Quota { total: 100_000, principal: 1000, address: 10_000 },
            proxies: TrustedProxies::default(),
            log: Arc::new(MemoryLog::default()),
            store: None,
            nodes: None,
            two_endpoints: None,
            session_prefix: None,
        }
    }
}

/// Settings. They apply to all clones, from the next request on.
impl Http {
    /// Sets the allowed values of `Host` and `Origin`. By default only those of this machine are allowed.
    #[must_use]
    pub fn guard(self, guard: Guard) -> Self {
        self.set(|settings| settings.guard = guard)
    }

    /// Serves this path only, and answers 404 at others. By default every path is served, since a framework usually routes by
    /// path.
    #[must_use]
    pub fn at(self, path: impl Into<String>) -> Self {
        let path = path.into();
        self.set(|settings| settings.path = Some(path.into()))
    }

    /// Sets the function that returns the principal of a request, as an authentication layer has left it in the extensions. By
    /// default it is the principal of [`Authenticated`](crate::server::Authenticated). A session belongs to the principal that
    /// opened it; for all others it does not exist.
    ///
    /// ```
    /// use pintle::Server;
    ///
    /// #[derive(Clone)]
    /// struct User(String);
    ///
    /// # fn main() -> pintle::Result<()> {
    /// let http = Server::new("notes", "1.0.0")
    ///     .http()?
    ///     .principal(|head| head.extensions.get::<User>().map(|user| user.0.clone()));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn principal(self, of: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> Self {
        self.set(|settings| {
            settings.principal = Some(Arc::new(of));
            settings.looks = true;
        })
    }

    /// Answers with JSON only, for clients, proxies and platforms without event streams.
    ///
    /// Progress and log messages of calls are not sent. In a session, questions to the client are sent on its GET stream.
    #[must_use]
    pub fn json_only(self) -> Self {
        self.set(|settings| settings.json_only = true)
    }

    /// Disables sessions: each request of a session-era client is served on its own. Such a client cannot be asked questions
    /// and receives no change notifications.
    #[must_use]
    pub fn sessionless(self) -> Self {
        self.set(|settings| (settings.sessions, settings.sessionless) = (false, true))
    }

    /// Sets the size limit of a request body and the time it may take to arrive. The default size limit is that of the server,
    /// [`Limits::message_bytes`](pintle_proto::Limits).
    #[must_use]
    pub fn body_limits(self, body_limits: BodyLimits) -> Self {
        self.set(|settings| (settings.body_limits, settings.limited) = (body_limits, true))
    }

    /// Sets the limit of memory for the bodies that are being read, of all requests together. Requests above it are refused
    /// with a retry time. The default is half of [`Limits::held_bytes`](pintle_proto::Limits), 256 MiB. The first 4 KiB of each
    /// are not counted, nor is a body that arrives in one piece. One client has a quarter of it at most (`docs/limits.md`).
    #[must_use]
    pub fn max_bytes_in_transit(self, bytes: usize) -> Self {
        self.set(|settings| settings.bodies = Some(bytes))
    }

    /// Sets the limit of open subscriptions of all anonymous callers together. The default is 16,384. Those of one connection,
    /// or of one principal, are limited by [`Limits::subscriptions`](pintle_proto::Limits), and the anonymous ones of one
    /// address, as for [`max_sessions_per_address`](Self::max_sessions_per_address), by an eighth of this limit. At this limit, the
    /// newest subscription of the network that has most ends for one of a network that has fewer.
    #[must_use]
    pub fn max_anonymous_subscriptions(self, limit: usize) -> Self {
        self.set(|settings| settings.anonymous_subscriptions = limit)
    }

    /// Sets the interval of keep-alive comments on a silent stream. A call that has sent nothing for that long becomes a stream.
    /// The default is 15 seconds.
    #[must_use]
    pub fn keep_alive(self, every: Duration) -> Self {
        self.set(|settings| settings.keep_alive = every)
    }

    /// Sets the limit of sessions. The default is 100,000. The lifetime of an idle session is one of the server's
    /// [timeouts](Server::timeouts).
    ///
    /// At the limit, a new session replaces one of the [principal](Self::max_sessions_per_principal) or network that has most: the
    /// oldest one whose client has sent nothing since its handshake, or else the least recently used. If the newcomer itself has
    /// most, it replaces an unused one of its own, or is refused with a retry time. Clients without a principal have three quarters
    /// of all sessions at most, and do not replace those of principals.
    #[must_use]
    pub fn max_sessions(self, limit: usize) -> Self {
        self.set(|settings| settings.quota.total = limit)
    }

    /// Sets the limit of sessions per principal. The default is 1,000. At the limit, a new session replaces the least recently
    /// used one; if all are in use, it is refused with 429.
    #[must_use]
    pub fn max_sessions_per_principal(self, limit: usize) -> Self {
        self.set(|settings| settings.quota.principal = limit)
    }

    /// Sets the limit of sessions per address, for sessions without a principal. The default is 10,000. At the limit, a new
    /// session replaces one that was not initialized, or else the least recently used one; if all are in use, it is refused with 429.
    /// An IPv4 network of 24 bits, or an IPv6 network of 48 bits, has twice as many.
    ///
    /// All addresses of an IPv6 network of 64 bits count as one. Behind a proxy, set its addresses with
    /// [`trusted_proxies`](Self::trusted_proxies), or all its clients count as one address. If the service is mounted in a
    /// framework, insert a [`PeerAddress`](crate::server::PeerAddress) into the extensions of each request: all clients whose
    /// addresses are not known count as one address.
    #[must_use]
    pub fn max_sessions_per_address(self, limit: usize) -> Self {
        self.set(|settings| settings.quota.address = limit)
    }

    /// Sets the addresses or networks of proxies whose `Forwarded` or `X-Forwarded-For` header determines the address of a
    /// client. By default there are none. The header is read from its end up to the first address that is not a proxy of this
    /// list. If both headers are present and disagree, neither is used.
    ///
    /// # Errors
    ///
    /// Returns an error if an element is neither an address nor a network.
    ///
    /// ```
    /// use pintle::Server;
    ///
    /// let http = Server::new("notes", "1.0.0").http()?.trusted_proxies(["127.0.0.1", "10.0.0.0/8", "fd00::/8"])?;
    /// # Ok::<(), pintle::Error>(())
    /// ```
    pub fn trusted_proxies<T: AsRef<str>>(self, proxies: impl IntoIterator<Item = T>) -> Result<Self> {
        let proxies = TrustedProxies::parse(proxies)?;
        Ok(self.set(|settings| settings.proxies = proxies))
    }

    /// Sets the time after which a client that lost its stream should reconnect. The default is one second.
    #[must_use]
    pub fn retry(self, after: Duration) -> Self {
        self.set(|settings| settings.retry = after)
    }

    /// Sets the log of events for clients that resume a stream. The default is a log in memory.
    #[must_use]
    pub fn event_log(self, log: impl EventLog) -> Self {
        self.set(|settings| settings.log = Arc::new(log))
    }

    /// Sets a store of sessions, so that other processes can continue them. By default sessions exist in this process only.
    ///
    /// A process continues a session only at a server of the name that the session was opened with, and its hooks run as for
    /// a new session: one that refuses it is answered with 403.
    #[must_use]
    pub fn session_store(self, store: impl Store) -> Self {
        self.set(|settings| settings.store = Some(SessionStore(Arc::new(store))))
    }

    /// Shares the sessions, streams and call states with the other processes of a fleet, so that each request of a client may reach
    /// another process: the balancer needs no affinity.
    ///
    /// It sets the [session store](Self::session_store), the [event log](Self::event_log) and the server's
    /// [replay store](Server::replay_store), and connects the service to the other processes: answers, cancellations and the end of a
    /// session reach the process that runs a call, streams are resumed anywhere, and changes of lists and resources are announced by
    /// all. Give all processes the same [state keys](Server::state_keys) too. Servers that are [chosen](Self::choose) for each request
    /// need a replay store each, and their changes stay in their process.
    ///
    /// ```
    /// use pintle::{Server, server::{StateKeys, http::nodes::MemoryFleet}};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // In production: `pintle_redis::Redis::connect(url).await?`.
    /// let fleet = MemoryFleet::new();
    /// let server = Server::new("notes", "1.0.0").state_keys(StateKeys::from([7; 32]));
    /// let http = server.http()?.shared(fleet.node()?);
    /// # Ok(()) }
    /// ```
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "a process of a fleet is one service")]
    pub fn shared(self, store: impl SharedStore) -> Self {
        if let Choice::One(server) = &self.settings().choice {
            drop(server.clone().replay_store(store.store()));
        }
        let http = self.set(|settings| {
            settings.store = Some(SessionStore(store.store()));
            settings.log = store.event_log();
            settings.nodes = Some(store.nodes());
        });
        http.0.link_changes();
        http.0.connect();
        http
    }

    /// Sets the first eight hexadecimal digits of the ids of new sessions, so that a proxy can find the process that has a
    /// session. By default they are random too.
    ///
    /// The other 24 digits are always random: an id is a credential.
    ///
    /// ```
    /// # fn main() -> pintle::Result<()> {
    /// // `Mcp-Session-Id: 00000003…`
    /// let http = pintle::Server::new("notes", "1.0.0").http()?.session_prefix(3);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn session_prefix(self, prefix: u32) -> Self {
        self.set(|settings| settings.session_prefix = Some(prefix))
    }

    /// Also serves clients of the oldest revision, which has two endpoints: one for the event stream and one for messages. Both
    /// are given as paths that the client sees.
    ///
    /// ```
    /// let http = pintle::Server::new("notes", "1.0.0").http()?.two_endpoints("/sse", "/messages");
    /// # Ok::<(), pintle::Error>(())
    /// ```
    #[must_use]
    pub fn two_endpoints(self, stream: impl Into<String>, messages: impl Into<String>) -> Self {
        let (stream, messages) = (stream.into(), messages.into());
        self.set(|settings| settings.two_endpoints = Some(TwoEndpoints { stream, messages }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_of_a_clone_is_one_of_the_service() {
        let http = Server::new("s", "0").http().unwrap();
        let clone = http.clone().json_only().at("/mcp");
        assert!(http.settings().json_only);
        assert_eq!(http.settings().path.as_deref(), Some("/mcp"));
        // Neither has lost the sessions of the other.
        assert!(Arc::ptr_eq(&http.0, &clone.0));
    }
}
