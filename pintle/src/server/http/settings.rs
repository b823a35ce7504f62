use std::{sync::Arc, time::Duration};

use http::request::Parts;
use pintle_proto::http::Guard;

use super::{Http, Patience};
use crate::server::Server;

/// What the author chose.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) choose: Arc<Choose>,
    pub(super) guard: Guard,
    pub(super) principal: Option<Arc<Principal>>,
    pub(super) patience: Patience,
    pub(super) json_only: bool,
    pub(super) sessions: bool,
    pub(super) sessionless: bool,
    /// After so long a silence a stream is opened, and kept alive.
    pub(super) keep_alive: Duration,
}

type Choose = dyn Fn(&Parts) -> Server + Send + Sync;
type Principal = dyn Fn(&Parts) -> Option<String> + Send + Sync;

impl Settings {
    pub(super) fn new(server: &Server) -> Self {
        let state = server.state();
        let mut patience = Patience::default();
        patience.limit = state.service.bounds().message_bytes;
        let server = server.clone();
        Self {
            choose: Arc::new(move |_| server.clone()),
            guard: Guard::loopback(),
            principal: None,
            patience,
            json_only: false,
            sessions: true,
            sessionless: false,
            keep_alive: Duration::from_secs(15),
        }
    }
}

/// How it is served. Say it before the first request: clones made earlier go on as they were.
impl Http {
    /// Which `Host` and `Origin` are served. Those of this machine if nothing is said.
    #[must_use]
    pub fn guard(self, guard: Guard) -> Self {
        self.set(|settings| settings.guard = guard)
    }

    /// On whose behalf a request comes: what an authentication layer has found out, taken from the request's extensions.
    /// A session belongs to the one who opened it; for everybody else it does not exist.
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
        self.set(|settings| settings.principal = Some(Arc::new(of)))
    }

    /// Chooses the server by the head of the request: one for each tenant, or for each path. A session stays with the
    /// server that it was opened with.
    #[must_use]
    pub fn choose(self, server: impl Fn(&Parts) -> Server + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.choose = Arc::new(server))
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

    /// How large a request's body may be, and how slowly it may come.
    #[must_use]
    pub fn patience(self, patience: Patience) -> Self {
        self.set(|settings| settings.patience = patience)
    }

    /// After so long a silence a stream says that it is still there, and a call that has said nothing yet opens one.
    /// 15 seconds if nothing is said.
    #[must_use]
    pub fn keep_alive(self, every: Duration) -> Self {
        self.set(|settings| settings.keep_alive = every)
    }
}
