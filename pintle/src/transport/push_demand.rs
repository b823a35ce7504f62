#![cfg_attr(
    not(all(feature = "http-client", feature = "http-server")),
    allow(dead_code, reason = "relays use it, between an HTTP server and an HTTP client")
)]

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::Notify;

/// The demand for messages of a server that belong to no request.
///
/// Over HTTP they need a stream of their own, which takes a connection on both sides: it is opened when they are wanted. Over a pipe they
/// arrive in any case. Clones share one state, which changes once.
#[derive(Clone, Debug)]
pub struct PushDemand(Option<Arc<Demand>>);

#[derive(Debug, Default)]
struct Demand {
    is_wanted: AtomicBool,
    wanted: Notify,
}

impl PushDemand {
    /// They are wanted from the beginning.
    pub fn always() -> Self {
        Self(None)
    }

    /// They are not wanted until [`want`](Self::want).
    pub fn later() -> Self {
        Self(Some(Arc::default()))
    }

    /// They are wanted from now on.
    pub fn want(&self) {
        if let Some(demand) = &self.0
            && !demand.is_wanted.swap(true, Ordering::SeqCst)
        {
            demand.wanted.notify_waiters();
        }
    }

    /// Returns whether they are wanted.
    pub fn is_wanted(&self) -> bool {
        self.0.as_ref().is_none_or(|demand| demand.is_wanted.load(Ordering::SeqCst))
    }

    /// Waits until they are wanted.
    pub async fn wanted(&self) {
        let Some(demand) = &self.0 else { return };
        let notified = demand.wanted.notified();
        // It is notified from its creation on, so what happens in between is not missed.
        if !self.is_wanted() {
            notified.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_is_notified_once_they_are_wanted() {
        PushDemand::always().wanted().await;
        let demand = PushDemand::later();
        assert!(!demand.is_wanted());
        let waiting = tokio::spawn({
            let demand = demand.clone();
            async move { demand.wanted().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        demand.want();
        waiting.await.unwrap();
        demand.wanted().await;
    }
}
