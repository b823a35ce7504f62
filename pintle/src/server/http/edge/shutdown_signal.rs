use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::watch;

/// A signal that a server shuts down, for code that holds responses open. Clones share the same signal.
///
/// [`HttpServer`](super::server::HttpServer) triggers its signal when it is shut down. If a framework owns the sockets, the
/// code that shuts the framework down triggers it.
///
/// ```
/// use pintle::server::http::ShutdownSignal;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let signal = ShutdownSignal::new();
/// let stream = tokio::spawn({
///     let signal = signal.clone();
///     async move {
///         signal.wait().await;
///         "the last event"
///     }
/// });
/// signal.trigger();
/// assert_eq!(stream.await.expect("the task completes"), "the last event");
/// # }
/// ```
#[derive(Clone)]
pub struct ShutdownSignal(Arc<ShutdownState>);

struct ShutdownState {
    triggered: watch::Sender<bool>,
    /// Callbacks to run when the signal is triggered.
    callbacks: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    /// Services to close when the signal is triggered.
    services: Mutex<Vec<Arc<dyn DrainService>>>,
}

/// A service that a server closes and drains when it shuts down.
pub(in crate::server::http) trait DrainService: Send + Sync {
    /// Refuses new calls.
    fn close(&self);

    /// Waits until no call is running.
    fn idle(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Ends all running calls with an error. Returns how many there were.
    fn cut_calls(&self) -> usize;

    /// Ends all sessions of this process.
    fn end_sessions(&self);

    /// Leaves the processes that share the sessions.
    fn leave_fleet(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

impl ShutdownSignal {
    /// Creates a signal that is not triggered yet.
    pub fn new() -> Self {
        Self(Arc::new(ShutdownState {
            triggered: watch::Sender::new(false),
            callbacks: Mutex::default(),
            services: Mutex::default(),
        }))
    }

    /// Triggers the signal. This cannot be undone.
    pub fn trigger(&self) {
        let callbacks = {
            let mut callbacks = self.0.callbacks.lock().unwrap_or_else(PoisonError::into_inner);
            self.0.triggered.send_replace(true);
            std::mem::take(&mut *callbacks)
        };
        callbacks.into_iter().for_each(|callback| callback());
        self.services().iter().for_each(|service| service.close());
    }

    /// Registers a service to be closed when the signal is triggered, or closes it now if it already was.
    pub(in crate::server::http) fn add(&self, service: &Arc<dyn DrainService>) {
        self.0.services.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(service));
        if self.is_triggered() {
            service.close();
        }
    }

    /// Returns the services whose calls a server waits for.
    pub(super) fn services(&self) -> Vec<Arc<dyn DrainService>> {
        self.0.services.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs a callback when the signal is triggered, or now if it already was.
    pub fn on_trigger(&self, callback: impl FnOnce() + Send + 'static) {
        {
            let mut callbacks = self.0.callbacks.lock().unwrap_or_else(PoisonError::into_inner);
            if !self.is_triggered() {
                return callbacks.push(Box::new(callback));
            }
        }
        callback();
    }

    /// Returns whether the signal was triggered.
    pub fn is_triggered(&self) -> bool {
        *self.0.triggered.borrow()
    }

    /// Waits until the signal is triggered.
    pub async fn wait(&self) {
        // This fails only when the sender is gone, and `self` holds it.
        let _ = self.0.triggered.subscribe().wait_for(|triggered| *triggered).await;
    }
}

impl Default for ShutdownSignal {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ShutdownSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ShutdownSignal").field(&self.is_triggered()).finish()
    }
}
