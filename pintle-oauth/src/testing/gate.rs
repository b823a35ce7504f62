use std::{fmt, sync::Arc};

use tokio::sync::watch;

use super::endpoint::Endpoint;

/// Holds the requests to one [`Endpoint`] until it is opened or dropped:
/// [`AuthorizationServer::hold`](super::AuthorizationServer::hold).
///
/// It stands for a slow authorization server without depending on time.
///
/// ```
/// use pintle_oauth::testing::{AuthorizationServer, Endpoint};
///
/// # async fn calls(_: AuthorizationServer) {}
/// # async fn test() {
/// let login = AuthorizationServer::new("https://login.test");
/// let gate = login.hold(Endpoint::Token);
/// let calls = tokio::spawn(calls(login.clone()));
/// // The first call is waiting for a token, and so are the others.
/// gate.reached(1).await;
/// gate.open();
/// calls.await.unwrap();
/// # }
/// ```
#[must_use = "dropping the gate opens it"]
pub struct Gate {
    held: Arc<GateState>,
}

/// The state that the gate shares with held requests.
#[derive(Debug)]
pub(super) struct GateState {
    endpoint: Endpoint,
    is_open: watch::Sender<bool>,
    waiting: watch::Sender<usize>,
}

impl Gate {
    pub(super) fn new(endpoint: Endpoint) -> (Self, Arc<GateState>) {
        let held =
            Arc::new(GateState { endpoint, is_open: watch::channel(false).0, waiting: watch::channel(0).0 });
        (Self { held: held.clone() }, held)
    }

    /// Waits until this many requests are held.
    pub async fn reached(&self, requests: usize) {
        let mut waiting = self.held.waiting.subscribe();
        // The sender is held here, so this does not fail.
        let _ = waiting.wait_for(|waiting| *waiting >= requests).await;
    }

    /// Releases all held requests, and holds no more.
    pub fn open(self) {
        drop(self);
    }
}

impl GateState {
    /// Whether requests to this endpoint are held.
    pub(super) fn holds(&self, endpoint: Endpoint) -> bool {
        self.endpoint == endpoint && !self.is_open()
    }

    pub(super) fn is_open(&self) -> bool {
        *self.is_open.borrow()
    }

    pub(super) async fn pass(self: Arc<Self>) {
        let mut is_open = self.is_open.subscribe();
        self.waiting.send_modify(|waiting| *waiting += 1);
        // The sender is held here, so this does not fail.
        let _ = is_open.wait_for(|is_open| *is_open).await;
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.held.is_open.send_replace(true);
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("endpoint", &self.held.endpoint).finish_non_exhaustive()
    }
}
