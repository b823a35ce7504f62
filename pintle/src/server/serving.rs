use std::{
    fmt,
    future::Future,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
    time::Duration,
};

use tokio::sync::watch;

use crate::{Ended, Error, Result};

/// A connection being served, or a server that listens for connections.
///
/// Dropping it detaches the server, as with a `tokio` task; [`close`](Self::close) ends it.
///
/// ```
/// use std::time::Duration;
/// use pintle::{Ended, Server, transport::memory};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let (ours, _theirs) = memory();
/// let serving = Server::new("demo", "1.0.0").serve(ours)?;
/// # async fn signal() {}
/// let ended = tokio::select! {
///     ended = serving.wait() => ended?,
///     // Calls that run have five seconds to end.
///     () = signal() => serving.close(Duration::from_secs(5)).await?,
/// };
/// assert_eq!(ended, Ended::Stopped);
/// # Ok(()) }
/// ```
#[must_use = "dropping it does not stop the server: wait for its end, close it, or drop it explicitly"]
pub struct Serving {
    end: watch::Receiver<Option<Arc<ConnectionEnd>>>,
    handle: ServingHandle,
    /// `None` for a single connection.
    bound: Option<Box<Bound>>,
}

/// Where a server listens.
struct Bound {
    url: String,
    address: Option<SocketAddr>,
}

/// How a connection ended.
enum ConnectionEnd {
    Ended(Ended),
    /// The error is returned by the first `wait`.
    Failed(Mutex<Option<Error>>),
}

impl Serving {
    pub(crate) fn spawn(
        connection: impl Future<Output = Result<Ended>> + Send + 'static,
        handle: ServingHandle,
    ) -> Self {
        let (sender, end) = watch::channel(None);
        crate::runtime::spawn(async move {
            let end = match connection.await {
                Ok(ended) => ConnectionEnd::Ended(ended),
                Err(error) => ConnectionEnd::Failed(Mutex::new(Some(error))),
            };
            sender.send_replace(Some(Arc::new(end)));
        });
        Self { end, handle, bound: None }
    }

    #[cfg(any(feature = "http-server", feature = "net"))]
    pub(crate) fn at(mut self, url: String, address: Option<SocketAddr>) -> Self {
        self.bound = Some(Box::new(Bound { url, address }));
        self
    }

    /// Returns the URL that the server listens at, such as `http://127.0.0.1:8000/mcp`, `tcp://127.0.0.1:8000` or
    /// `unix:/run/server.sock`, with the actual port if port 0 was requested. `None` for a single connection, such as the
    /// standard streams.
    pub fn url(&self) -> Option<&str> {
        self.bound.as_ref().map(|bound| &*bound.url)
    }

    /// Returns the address that the server listens on. `None` for a single connection and for a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        self.bound.as_ref().and_then(|bound| bound.address)
    }

    /// Waits until the server ends, and returns the reason. A server that listens ends when it is closed. It may be called concurrently and repeatedly; an error is returned
    /// once, and [`Error::Closed`] after that.
    pub async fn wait(&self) -> Result<Ended> {
        let mut end = self.end.clone();
        let end = end.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
        match end.as_deref() {
            Some(ConnectionEnd::Ended(ended)) => Ok(ended.clone()),
            Some(ConnectionEnd::Failed(error)) => {
                let error = error.lock().unwrap_or_else(PoisonError::into_inner).take();
                Err(error.unwrap_or(Error::Closed(Ended::Stopped)))
            }
            // The runtime was shut down.
            None => Err(Error::Closed(Ended::Stopped)),
        }
    }

    /// Stops accepting connections and reading, waits up to `grace` for running calls, and ends all connections.
    pub async fn close(self, grace: Duration) -> Result<Ended> {
        self.handle.close(grace);
        self.wait().await
    }

    /// Returns a handle to close the server while another task waits for its end.
    pub fn handle(&self) -> ServingHandle {
        self.handle.clone()
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// A handle to close a connection or an HTTP server that another task waits for. Cheap to clone.
///
/// ```
/// use std::time::Duration;
/// use pintle::{Ended, Server, transport::memory};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let (ours, _theirs) = memory();
/// let serving = Server::new("demo", "1.0.0").serve(ours)?;
/// let handle = serving.handle();
/// tokio::spawn(async move { handle.close(Duration::from_secs(5)) });
/// assert_eq!(serving.wait().await?, Ended::Stopped);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ServingHandle(Arc<Stop>);

impl ServingHandle {
    pub(crate) fn new(stop: Arc<Stop>) -> Self {
        Self(stop)
    }

    /// Stops reading, gives running calls up to `grace`, and then ends them. Returns at once. A second call with a shorter `grace`
    /// shortens the time.
    pub fn close(&self, grace: Duration) {
        self.0.ask(grace);
    }
}

/// A request to close a connection.
#[derive(Debug, Default)]
pub(crate) struct Stop(Mutex<StopRequest>);

#[derive(Debug, Default)]
struct StopRequest {
    grace: Option<Duration>,
    waker: Option<Waker>,
}

impl Stop {
    pub(crate) fn ask(&self, grace: Duration) {
        let mut request = self.lock();
        request.grace = Some(grace);
        let waker = request.waker.take();
        drop(request);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Returns the grace period once after each request. The task is woken by the next request.
    pub(crate) fn asked(&self, cx: &mut Context<'_>) -> Option<Duration> {
        let mut request = self.lock();
        match &mut request.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        request.grace.take()
    }

    fn lock(&self) -> MutexGuard<'_, StopRequest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
