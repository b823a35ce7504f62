use std::{sync::Arc, time::Duration};

use http::request::Parts;
use pintle_proto::http::Guard;

use super::{
    BodyLimits, Http,
    choice::Choice,
    edge::body::Budget,
    origin::TrustedProxies,
    session::{
        log::{EventLog, MemoryLog},
        registry::Quota,
        store::Sessions,
        two_endpoints::TwoEndpoints,
    },
};
use crate::{Result, server::Server};

/// What the author chose.
#[derive(Clone)]
pub(super) struct HttpSettings {
    pub(super) choice: Choice,
    /// Whether the application looks at the heads of requests.
    pub(super) looks: bool,
    /// The only path that is served, if it matters.
    pub(super) path: Option<Box<str>>,
    /// Whether no other process has the keys that seal states.
    pub(super) seals_alone: bool,
    pub(super) guard: Guard,
    pub(super) principal: Option<Arc<PrincipalOf>>,
    pub(super) body_limits: BodyLimits,
    /// Whether the author said how large a body may be; else each server does.
    pub(super) limited: bool,
    /// Of all anonymous callers.
    pub(super) anonymous_subscriptions: usize,
    pub(super) json_only: bool,
    pub(super) sessions: bool,
    pub(super) sessionless: bool,
    /// After so long a silence a stream is opened, and kept alive.
    pub(super) keep_alive: Duration,
    /// Room for bodies that are still coming.
    pub(super) bodies: Arc<Budget>,
    /// When a client that was sent away, or lost its stream, is to come back.
    pub(super) retry: Duration,
    /// For the next request of a session.
    pub(super) idle_session: Duration,
    /// For a call whose client has hung up.
    pub(super) detached_call: Duration,
    /// For the first message after the handshake.
    pub(super) uninitialized_session: Duration,
    pub(super) quota: Quota,
    pub(super) proxies: TrustedProxies,
    pub(super) log: Arc<dyn EventLog>,
    pub(super) store: Option<Arc<dyn Sessions>>,
    pub(super) two_endpoints: Option<TwoEndpoints>,
}

type PrincipalOf = dyn Fn(&Parts) -> Option<String> + Send + Sync;

impl HttpSettings {
    pub(super) fn new(server: &Server) -> Self {
        let snapshot = server.snapshot();
        Self {
            choice: Choice::One(server.clone()),
            looks: false,
            path: None,
            seals_alone: snapshot.settings.seals_alone,
            guard: Guard::loopback(),
            principal: None,
            body_limits: BodyLimits::default(),
            limited: false,
            anonymous_subscriptions: 16_384,
            json_only: false,
            sessions: true,
            sessionless: false,
            keep_alive: Duration::from_secs(15),
            bodies: Arc::new(Budget::new(256 << 20)),
            retry: Duration::from_secs(1),
            idle_session: snapshot.settings.idle_session,
            detached_call: snapshot.settings.detached_call,
            uninitialized_session: snapshot.settings.uninitialized_session,
            quota: Quota { total: 100_000, principal: 1000, address: 10_000 },
            proxies: TrustedProxies::default(),
            log: Arc::new(MemoryLog::default()),
            store: None,
            two_endpoints: None,
        }
    }
}

/// Settings. They apply to every clone, from the next request on.
impl Http {
    /// Which `Host` and `Origin` are served. Those of this machine if nothing is said.
    #[must_use]
    pub fn guard(self, guard: Guard) -> Self {
        self.set(|settings| settings.guard = guard)
    }

    /// Serves this path only; every other one is 404. Whatever the path is, it is served if nothing is said: a framework
    /// has chosen by it already.
    #[must_use]
    pub fn at(self, path: impl Into<String>) -> Self {
        let path = path.into();
        self.set(|settings| settings.path = Some(path.into()))
    }

    /// On whose behalf a request comes: what an authentication layer has found out, taken from the request's extensions.
    /// What an [`Authenticated`](crate::server::Authenticated) there says if nothing is said here. A session belongs to the one who opened it; for everybody else it does not exist.
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

    /// Answers with JSON only, never with a stream of events: for clients, proxies and platforms that have none.
    ///
    /// Progress and log messages of a call are left out. In a session, questions to the client go to its GET stream.
    #[must_use]
    pub fn json_only(self) -> Self {
        self.set(|settings| settings.json_only = true)
    }

    /// Keeps no sessions: each request of an older client is served on its own, as for the newest. Such a client can
    /// not be asked anything, and hears of no changes.
    #[must_use]
    pub fn sessionless(self) -> Self {
        self.set(|settings| (settings.sessions, settings.sessionless) = (false, true))
    }

    /// How large a request's body may be, and how slowly it may come. As large as the server's
    /// [`Limits::message_bytes`](pintle_proto::Limits) if nothing is said.
    #[must_use]
    pub fn body_limits(self, body_limits: BodyLimits) -> Self {
        self.set(|settings| (settings.body_limits, settings.limited) = (body_limits, true))
    }

    /// How many bytes of bodies that are still coming are held at the same time, of all requests. Who sends more is told to
    /// come back later. 256 MiB if nothing is said; a body that comes in one piece is not counted.
    #[must_use]
    pub fn max_bytes_in_transit(self, bytes: usize) -> Self {
        self.set(|settings| settings.bodies = Arc::new(Budget::new(bytes)))
    }

    /// How many subscriptions anonymous callers may hold open, all together. 16,384 if nothing is said. Those of one
    /// connection, or of one principal, are bounded by [`Limits::subscriptions`](pintle_proto::Limits).
    #[must_use]
    pub fn max_anonymous_subscriptions(self, limit: usize) -> Self {
        self.set(|settings| settings.anonymous_subscriptions = limit)
    }

    /// After so long a silence a stream says that it is still there, and a call that has said nothing yet opens one.
    /// 15 seconds if nothing is said.
    #[must_use]
    pub fn keep_alive(self, every: Duration) -> Self {
        self.set(|settings| settings.keep_alive = every)
    }

    /// Keeps at most so many sessions. 100,000 if nothing is said. How long an idle one is kept is one of the server's
    /// [timeouts](Server::timeouts).
    ///
    /// If there are as many, room for one more is made first among sessions whose client has sent nothing since its
    /// handshake, the oldest first, and then among unused ones of the same [principal](Self::max_sessions_per_principal) or
    /// [address](Self::max_sessions_per_address). If there is none either, the client is told to come back later: nobody can
    /// throw out what others use.
    #[must_use]
    pub fn max_sessions(self, limit: usize) -> Self {
        self.set(|settings| settings.quota.total = limit)
    }

    /// Keeps at most so many sessions of one principal. 1,000 if nothing is said. One more takes the place of the one that
    /// was unused for longest; if all are in use, it is refused with 429.
    #[must_use]
    pub fn max_sessions_per_principal(self, limit: usize) -> Self {
        self.set(|settings| settings.quota.principal = limit)
    }

    /// Keeps at most so many sessions of one address, of those that have no principal. 10,000 if nothing is said. One more
    /// takes the place of the one that was unused for longest; if all are in use, it is refused with 429.
    ///
    /// All addresses of an IPv6 network of 64 bits count as one. Behind a proxy say which addresses are
    /// [its own](Self::trusted_proxies), or all its clients count as one too. Where the service is mounted in a framework,
    /// leave a [`PeerAddress`](super::PeerAddress) in the extensions of each request: without an address there is no such
    /// limit.
    #[must_use]
    pub fn max_sessions_per_address(self, limit: usize) -> Self {
        self.set(|settings| settings.quota.address = limit)
    }

    /// The proxies whose `Forwarded` or `X-Forwarded-For` says where a request came from: addresses, or networks. None if
    /// nothing is said. Sessions are counted by what they say, from the end up to the first address that is not one of
    /// these; if both headers are there and say different things, neither counts.
    ///
    /// # Errors
    ///
    /// One of them is neither an address nor a network.
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

    /// When a client that lost its stream is to come back, if it asks. After a second if nothing is said.
    #[must_use]
    pub fn retry(self, after: Duration) -> Self {
        self.set(|settings| settings.retry = after)
    }

    /// Where events are kept for clients that lost their stream: in this process if nothing is said.
    #[must_use]
    pub fn event_log(self, log: impl EventLog) -> Self {
        self.set(|settings| settings.log = Arc::new(log))
    }

    /// Writes sessions down, so that another process can go on with them. They live in this process only if nothing is
    /// said.
    #[must_use]
    pub fn session_store(self, store: impl Sessions) -> Self {
        self.set(|settings| settings.store = Some(Arc::new(store)))
    }

    /// Serves clients of the oldest revision too, which has two endpoints: one that streams events, and one that takes
    /// messages. Give both as the client sees them.
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
