use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use hyper::rt::Executor;
use tokio::task::JoinSet;

use super::stream_progress::{NextStream, StreamTask};

/// The tasks of an HTTP/2 connection, one for each request. Dropping it aborts them.
#[derive(Debug, Default)]
pub(super) struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    /// Returns an executor whose tasks end if a client reads none of its pending output within the limit. `next` has the progress of
    /// the request that is spawned.
    pub(super) fn spawner(&self, next: NextStream, write_limit: Duration) -> Spawner {
        Spawner { tasks: Arc::downgrade(&self.0), next, write_limit }
    }
}

/// An executor that spawns into [`Tasks`]. The tasks hold clones of it, so its reference is weak.
#[derive(Clone, Debug)]
pub(super) struct Spawner {
    tasks: Weak<Mutex<JoinSet<()>>>,
    next: NextStream,
    write_limit: Duration,
}

impl<F> Executor<F> for Spawner
where
    F: Future + Send + 'static,
{
    fn execute(&self, request: F) {
        let progress = self.next.take();
        let Some(tasks) = self.tasks.upgrade() else { return };
        let mut tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.spawn(StreamTask::new(request, progress, self.write_limit));
        // Finished tasks are removed, so that only running ones are held.
        while tasks.try_join_next().is_some() {}
    }
}
