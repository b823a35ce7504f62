//! The shutdown of a service: new calls are refused, and running ones are awaited and then ended.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use super::{
    Http, ShutdownSignal,
    edge::{
        response::shut_down,
        shutdown_signal::DrainService,
        time::{ABORT_GRACE, within},
    },
};
use crate::Ended;

/// The result of [`Http::shutdown`]: what became of the calls that were running.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Drained {
    /// The number of calls that completed.
    pub finished: usize,
    /// The number of calls that still ran after the grace period and were ended with an error.
    pub cut: usize,
}

/// Shutdown, for services that are mounted elsewhere. [`HttpServing::shutdown`](super::HttpServing::shutdown) includes it.
impl Http {
    /// Refuses new calls from now on, with 503 and `Retry-After`, and closes all notification streams: see
    /// [`close_streams`](Self::close_streams).
    ///
    /// Running calls continue, and answers to their questions are accepted. A closed service cannot be opened again.
    pub fn close(&self) {
        self.0.calls.close();
        self.close_streams();
    }

    /// [Closes](Self::close) the service, waits up to `grace` for the running calls, and ends the rest with an error. Sessions
    /// end too, but stay in their [store](Self::session_store).
    ///
    /// This includes calls of sessions whose client has disconnected. The graceful shutdown of a framework waits for every open
    /// response, so call this first:
    ///
    /// ```
    /// use std::time::Duration;
    /// use axum::Router;
    /// use pintle::{Server, server::tool};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let http = Server::new("greeter", "1.0.0").tool(tool("greet", || async { "Hello!" })).http()?;
    /// let app = Router::new().route_service("/mcp", http.clone());
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # async fn signal() {}
    /// axum::serve(listener, app)
    ///     .with_graceful_shutdown(async move {
    ///         signal().await;
    ///         http.shutdown(Duration::from_secs(10)).await;
    ///     })
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub async fn shutdown(&self, grace: Duration) -> Drained {
        self.close();
        let running = self.0.calls.len();
        let cut = if within(grace, self.0.calls.idle()).await { 0 } else { self.0.calls.cut(&shut_down()) };
        within(ABORT_GRACE, self.0.calls.idle()).await;
        self.end_sessions();
        self.0.leave_fleet().await;
        Drained { finished: running.saturating_sub(cut), cut }
    }

    /// [Closes](Self::close) this service when the signal is triggered. An [`HttpServer`](super::HttpServer) with this signal
    /// also waits for the service's calls when it is shut down, and ends them after its grace period.
    pub fn close_on(&self, signal: &ShutdownSignal) {
        let service: Arc<dyn DrainService> = Arc::new(self.clone());
        signal.add(&service);
    }

    /// Ends all sessions of this process. Other processes can continue those in the store.
    pub(super) fn end_sessions(&self) {
        for session in self.0.sessions.take_all() {
            session.end(Ended::Stopped);
        }
    }
}

impl DrainService for Http {
    fn close(&self) {
        Self::close(self);
    }

    fn idle(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.0.calls.idle())
    }

    fn cut_calls(&self) -> usize {
        self.0.calls.cut(&shut_down())
    }

    fn end_sessions(&self) {
        Self::end_sessions(self);
    }

    fn leave_fleet(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.0.leave_fleet())
    }
}
