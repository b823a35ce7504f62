//! Tasks whose types are erased: what a runtime compiles for each type of future is larger than many of them.

use std::pin::Pin;
#[cfg(feature = "server")]
use std::{future::poll_fn, task::Poll};

use tokio::task::JoinHandle;

type ErasedFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Spawns a task on the current runtime.
pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    let future: ErasedFuture = Box::pin(future);
    tokio::spawn(future)
}

/// Spawns a task on a runtime.
#[cfg(feature = "server")]
pub(crate) fn spawn_on(
    runtime: &tokio::runtime::Handle,
    future: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    let future: ErasedFuture = Box::pin(future);
    runtime.spawn(future)
}

/// Runs futures concurrently, and returns their results in order.
#[cfg(feature = "server")]
pub(crate) async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    poll_fn(|task| {
        for (future, output) in running.iter_mut().filter(|(_, output)| output.is_none()) {
            if let Poll::Ready(ready) = future.as_mut().poll(task) {
                *output = Some(ready);
            }
        }
        if running.iter().any(|(_, output)| output.is_none()) { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    running.into_iter().filter_map(|(_, output)| output).collect()
}
