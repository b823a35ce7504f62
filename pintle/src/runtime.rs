//! Tasks whose types are erased: what a runtime compiles for each type of future is larger than many of them.

use std::pin::Pin;

use tokio::{runtime::Handle, task::JoinHandle};

/// Spawns a task on the current runtime.
pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    spawn_erased(Box::pin(future))
}

/// Spawns a task on a runtime.
pub(crate) fn spawn_on(
    runtime: &Handle,
    future: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    spawn_erased_on(runtime, Box::pin(future))
}

type ErasedFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

fn spawn_erased(future: ErasedFuture) -> JoinHandle<()> {
    tokio::spawn(future)
}

fn spawn_erased_on(runtime: &Handle, future: ErasedFuture) -> JoinHandle<()> {
    runtime.spawn(future)
}
