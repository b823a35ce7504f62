//! The end of a service: new calls are refused, those that run are waited for, and then cut.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use super::{
    Http, ShutdownSignal,
    edge::{
        response::shutting_down,
        shutdown_signal::DrainService,
        time::{ABORT_GRACE, within},
    },
};
use crate::Ended;

/// What [`Http::shutdown`] did with the calls that were running.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Drained {
    /// Calls that came to their end by themselves.
    pub finished: usize,
    /// Calls that still ran after the grace, and were ended with an error.
    pub cut: usize,
}

/// For whoever owns the sockets: [`HttpServing::shutdown`](super::HttpServing::shutdown) does this by itself.
impl Http {
    /// Refuses new calls from here on, with 503 and `Retry-After`, and ends the streams that only wait for changes:
    /// subscriptions with their result, the others without a word.
    ///
    /// Calls that run go on, and answers to their questions are let in. It cannot be taken back.
    pub fn close(&self) {
        self.0.calls.close();
        self.close_streams();
    }

    /// [Closes](Self::close) the service, lets the calls that run come to their end for as long as `grace`, and ends the
    /// rest with an error that says why. Sessions end too, but stay in their [store](Self::session_store).
    ///
    /// This includes calls of sessions whose client has hung up. A framework's own shutdown waits for every open answer,
    /// so do this first:
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
        let cut =
            if within(grace, self.0.calls.idle()).await { 0 } else { self.0.calls.cut(&shutting_down()) };
        within(ABORT_GRACE, self.0.calls.idle()).await;
        self.end_sessions();
        Drained { finished: running.saturating_sub(cut), cut }
    }

    /// [Closes](Self::close) this service when the signal is triggered. An [`HttpServer`](super::HttpServer) with this signal
    /// also waits for the service's calls when it is shut down, and ends them after its grace period.
    pub fn close_on(&self, signal: &ShutdownSignal) {
        let service: Arc<dyn DrainService> = Arc::new(self.clone());
        signal.add(&service);
    }

    /// Ends all sessions of this process. Another one may go on with those that are written down.
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
        self.0.calls.cut(&shutting_down())
    }

    fn end_sessions(&self) {
        Self::end_sessions(self);
    }
}
