//! Tasks whose types are erased: what a runtime compiles for each type of future is larger than many of them.

use std::pin::Pin;

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
