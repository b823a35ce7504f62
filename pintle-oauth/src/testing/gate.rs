use std::{fmt, sync::Arc};

use tokio::sync::watch;

use super::endpoint::Endpoint;

/// Holds up the requests to one [`Endpoint`] until it is opened or dropped:
/// [`AuthorizationServer::hold`](super::AuthorizationServer::hold).
///
/// A slow authorization server, without a clock: the test says when.
///
/// ```
/// use pintle_oauth::testing::{AuthorizationServer, Endpoint};
///
/// # async fn calls(_: AuthorizationServer) {}
/// # async fn test() {
/// let login = AuthorizationServer::new("https://login.test");
/// let gate = login.hold(Endpoint::Token);
/// let calls = tokio::spawn(calls(login.clone()));
/// // The first of them has got as far as that: whatever the others do meanwhile, they do without a token.
/// gate.reached(1).await;
/// gate.open();
/// calls.await.unwrap();
/// # }
/// ```
#[must_use = "dropping it lets everyone through"]
pub struct Gate {
    held: Arc<Held>,
}

/// What those who wait and the one who holds them up share.
#[derive(Debug)]
pub(super) struct Held {
    endpoint: Endpoint,
    is_open: watch::Sender<bool>,
    waiting: watch::Sender<usize>,
}

impl Gate {
    pub(super) fn new(endpoint: Endpoint) -> (Self, Arc<Held>) {
        let held =
            Arc::new(Held { endpoint, is_open: watch::channel(false).0, waiting: watch::channel(0).0 });
        (Self { held: held.clone() }, held)
    }

    /// Waits until this many requests are held up here.
    pub async fn reached(&self, requests: usize) {
        let mut waiting = self.held.waiting.subscribe();
        // We hold what tells, so it is there to tell.
        let _ = waiting.wait_for(|waiting| *waiting >= requests).await;
    }

    /// Lets everyone through, now and from now on.
    pub fn open(self) {
        drop(self);
    }
}

impl Held {
    /// Whether requests to this endpoint are held up here.
    pub(super) fn holds(&self, endpoint: Endpoint) -> bool {
        self.endpoint == endpoint && !self.is_open()
    }

    pub(super) fn is_open(&self) -> bool {
        *self.is_open.borrow()
    }

    pub(super) async fn pass(self: Arc<Self>) {
        let mut is_open = self.is_open.subscribe();
        self.waiting.send_modify(|waiting| *waiting += 1);
        // The same: what tells is held here.
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
