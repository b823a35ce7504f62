use std::{
    fmt,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
    time::Duration,
};

use tokio::sync::watch;

use crate::{Ended, Error, Result};

/// A connection being served.
///
/// Dropping it lets the connection go on by itself, as with a `tokio` task; [`close`](Self::close) ends it.
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
#[must_use = "dropping it does not end the connection: wait for its end, close it, or drop it explicitly"]
pub struct Serving {
    end: watch::Receiver<Option<Arc<ConnectionEnd>>>,
    handle: ServingHandle,
}

/// How a connection ended.
enum ConnectionEnd {
    Ended(Ended),
    /// The error goes to the first who waits for it.
    Failed(Mutex<Option<Error>>),
}

impl Serving {
    pub(crate) fn spawn(
        connection: impl Future<Output = Result<Ended>> + Send + 'static,
        stop: Arc<Stop>,
    ) -> Self {
        let (tell, end) = watch::channel(None);
        tokio::spawn(async move {
            let end = match connection.await {
                Ok(ended) => ConnectionEnd::Ended(ended),
                Err(error) => ConnectionEnd::Failed(Mutex::new(Some(error))),
            };
            tell.send_replace(Some(Arc::new(end)));
        });
        Self { end, handle: ServingHandle(stop) }
    }

    /// Waits until the connection ends, and says why. It may be waited for by several, and again; an error is told once.
    pub async fn wait(&self) -> Result<Ended> {
        let mut end = self.end.clone();
        let end = end.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
        match end.as_deref() {
            Some(ConnectionEnd::Ended(ended)) => Ok(ended.clone()),
            Some(ConnectionEnd::Failed(error)) => {
                let error = error.lock().unwrap_or_else(PoisonError::into_inner).take();
                Err(error.unwrap_or(Error::Closed(Ended::Stopped)))
            }
            // A task that was ended by its runtime has nobody to report to.
            None => Err(Error::Closed(Ended::Stopped)),
        }
    }

    /// Reads no more, lets running calls come to their end for as long as `grace`, and ends the connection.
    pub async fn close(self, grace: Duration) -> Result<Ended> {
        self.handle.close(grace);
        self.wait().await
    }

    /// A way to close it from elsewhere, while this is waited for.
    pub fn handle(&self) -> ServingHandle {
        self.handle.clone()
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Serving")
    }
}

/// A way to close what is being served, for others than the one who waits for it. Cheap to clone.
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
    #[cfg(feature = "http-server")]
    pub(crate) fn new(stop: Arc<Stop>) -> Self {
        Self(stop)
    }

    /// Takes nothing more, lets what runs come to its end for as long as `grace`, and ends the rest. Returns at once; whoever
    /// waits learns when it is over. Once more with less grace ends it sooner.
    pub fn close(&self, grace: Duration) {
        self.0.ask(grace);
    }
}

/// The wish that a connection ends.
#[derive(Debug, Default)]
pub(crate) struct Stop(Mutex<Wish>);

#[derive(Debug, Default)]
struct Wish {
    grace: Option<Duration>,
    waker: Option<Waker>,
}

impl Stop {
    pub(crate) fn ask(&self, grace: Duration) {
        let mut wish = self.lock();
        wish.grace = Some(grace);
        let waker = wish.waker.take();
        drop(wish);
        waker.into_iter().for_each(Waker::wake);
    }

    /// The grace, once: when somebody wishes so for the first time. Until then the task will be woken.
    pub(crate) fn asked(&self, cx: &mut Context<'_>) -> Option<Duration> {
        let mut wish = self.lock();
        match &mut wish.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        wish.grace.take()
    }

    fn lock(&self) -> MutexGuard<'_, Wish> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
