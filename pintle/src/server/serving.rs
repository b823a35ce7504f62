use std::{
    fmt,
    sync::Arc,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
    time::Duration,
};

use tokio::task::JoinHandle;

use crate::{Ended, Error, Result};

/// A connection being served.
///
/// Dropping it lets the connection go on by itself; [`close`](Self::close) ends it.
///
/// ```
/// use std::time::Duration;
/// use pintle::{Ended, Server, transport::memory};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let (ours, _theirs) = memory();
/// let serving = Server::new("demo", "1.0.0").serve(ours)?;
/// // Calls that run have five seconds to end.
/// assert_eq!(serving.close(Duration::from_secs(5)).await?, Ended::Stopped);
/// # Ok(()) }
/// ```
pub struct Serving {
    task: JoinHandle<Result<Ended>>,
    stop: Arc<Stop>,
}

impl Serving {
    pub(crate) fn new(task: JoinHandle<Result<Ended>>, stop: Arc<Stop>) -> Self {
        Self { task, stop }
    }

    /// Waits until the connection ends, and says why.
    pub async fn wait(self) -> Result<Ended> {
        // A task that was ended by its runtime has nobody to report to.
        self.task.await.unwrap_or(Err(Error::Closed(Ended::Stopped)))
    }

    /// Reads no more, lets running calls come to their end for as long as `grace`, and ends the connection.
    pub async fn close(self, grace: Duration) -> Result<Ended> {
        self.stop.ask(grace);
        self.wait().await
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Serving")
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
    fn ask(&self, grace: Duration) {
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
