use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::watch;

use crate::server::http::Http;

/// The wish that a server comes to its end, for those who hold something open: clones are the same wish.
///
/// A server asks it of itself when it is shut down. Where the sockets belong to another, such as a framework, whoever
/// shuts that down asks.
///
/// ```
/// use pintle::server::http::Stopping;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let stopping = Stopping::new();
/// let stream = tokio::spawn({
///     let stopping = stopping.clone();
///     async move {
///         stopping.wait().await;
///         "the last words"
///     }
/// });
/// stopping.ask();
/// assert_eq!(stream.await.expect("it ends by itself"), "the last words");
/// # }
/// ```
#[derive(Clone)]
pub struct Stopping(Arc<Wish>);

struct Wish {
    asked: watch::Sender<bool>,
    /// What is to be done then.
    then: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    /// Services that are closed then.
    services: Mutex<Vec<Http>>,
}

impl Stopping {
    /// Nobody has asked yet.
    pub fn new() -> Self {
        Self(Arc::new(Wish {
            asked: watch::Sender::new(false),
            then: Mutex::default(),
            services: Mutex::default(),
        }))
    }

    /// Asks all who wait to come to their end. It cannot be taken back.
    pub fn ask(&self) {
        let then = {
            let mut then = self.0.then.lock().unwrap_or_else(PoisonError::into_inner);
            self.0.asked.send_replace(true);
            std::mem::take(&mut *then)
        };
        then.into_iter().for_each(|then| then());
        self.services().iter().for_each(Http::close);
    }

    /// Has a service closed when somebody asks; at once if somebody has.
    pub(in crate::server::http) fn add(&self, service: &Http) {
        self.0.services.lock().unwrap_or_else(PoisonError::into_inner).push(service.clone());
        if self.asked() {
            service.close();
        }
    }

    /// The services whose calls a server waits for.
    pub(in crate::server::http) fn services(&self) -> Vec<Http> {
        self.0.services.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Does this when somebody asks; at once if somebody has.
    pub fn then(&self, act: impl FnOnce() + Send + 'static) {
        {
            let mut then = self.0.then.lock().unwrap_or_else(PoisonError::into_inner);
            if !self.asked() {
                return then.push(Box::new(act));
            }
        }
        act();
    }

    /// Whether somebody asked.
    pub fn asked(&self) -> bool {
        *self.0.asked.borrow()
    }

    /// Waits until somebody asks.
    pub async fn wait(&self) {
        // It only fails when nobody is left who could ask, and we are.
        let _ = self.0.asked.subscribe().wait_for(|asked| *asked).await;
    }
}

impl Default for Stopping {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Stopping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stopping").field(&self.asked()).finish()
    }
}
