use std::{fmt, sync::Arc};

use tokio::sync::watch;

use super::endpoint::Endpoint;

/// Holds the requests to one [`Endpoint`] until it is released or dropped:
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
/// let hold = login.hold(Endpoint::Token);
/// let calls = tokio::spawn(calls(login.clone()));
/// // The first call is waiting for a token, and so are the others.
/// hold.reached(1).await;
/// hold.release();
/// calls.await.unwrap();
/// # }
/// ```
#[must_use = "dropping it releases the requests"]
pub struct Hold {
    held: Arc<HoldState>,
}

/// The state that a hold shares with held requests.
#[derive(Debug)]
pub(super) struct HoldState {
    endpoint: Endpoint,
    is_released: watch::Sender<bool>,
    waiting: watch::Sender<usize>,
}

impl Hold {
    pub(super) fn new(endpoint: Endpoint) -> (Self, Arc<HoldState>) {
        let held = Arc::new(HoldState {
            endpoint,
            is_released: watch::channel(false).0,
            waiting: watch::channel(0).0,
        });
        (Self { held: held.clone() }, held)
    }

    /// Waits until this many requests are held.
    pub async fn reached(&self, requests: usize) {
        let mut waiting = self.held.waiting.subscribe();
        // The sender is held here, so this does not fail.
        let _ = waiting.wait_for(|waiting| *waiting >= requests).await;
    }

    /// Releases all held requests, and holds no more.
    pub fn release(self) {
        drop(self);
    }
}

impl HoldState {
    /// Whether requests to this endpoint are held.
    pub(super) fn holds(&self, endpoint: Endpoint) -> bool {
        self.endpoint == endpoint && !self.is_released()
    }

    pub(super) fn is_released(&self) -> bool {
        *self.is_released.borrow()
    }

    pub(super) async fn pass(self: Arc<Self>) {
        let mut is_released = self.is_released.subscribe();
        self.waiting.send_modify(|waiting| *waiting += 1);
        // The sender is held here, so this does not fail.
        let _ = is_released.wait_for(|is_released| *is_released).await;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.held.is_released.send_replace(true);
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold").field("endpoint", &self.held.endpoint).finish_non_exhaustive()
    }
}
