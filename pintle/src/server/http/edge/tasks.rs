use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use hyper::rt::Executor;
use tokio::task::JoinSet;

/// The tasks of an HTTP/2 connection, one for each request. Dropping it aborts them.
#[derive(Debug, Default)]
pub(super) struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    pub(super) fn spawner(&self) -> Spawner {
        Spawner(Arc::downgrade(&self.0))
    }
}

/// An executor that spawns into [`Tasks`]. The tasks hold clones of it, so its reference is weak.
#[derive(Clone, Debug)]
pub(super) struct Spawner(Weak<Mutex<JoinSet<()>>>);

impl<F> Executor<F> for Spawner
where
    F: Future + Send + 'static,
{
    fn execute(&self, request: F) {
        let Some(tasks) = self.0.upgrade() else { return };
        let mut tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.spawn(async { drop(request.await) });
        // Finished tasks are removed, so that only running ones are held.
        while tasks.try_join_next().is_some() {}
    }
}
