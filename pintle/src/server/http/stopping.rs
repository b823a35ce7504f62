use std::{fmt, sync::Arc};

use tokio::sync::watch;

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
pub struct Stopping(Arc<watch::Sender<bool>>);

impl Stopping {
    /// Nobody has asked yet.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Asks all who wait to come to their end. It cannot be taken back.
    pub fn ask(&self) {
        self.0.send_replace(true);
    }

    /// Whether somebody asked.
    pub fn asked(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until somebody asks.
    pub async fn wait(&self) {
        // It only fails when nobody is left who could ask, and we are.
        let _ = self.0.subscribe().wait_for(|asked| *asked).await;
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
