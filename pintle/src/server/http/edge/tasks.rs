use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use hyper::rt::Executor;
use tokio::task::JoinSet;

/// The requests of an HTTP/2 connection: dropping it ends them.
#[derive(Debug, Default)]
pub(super) struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    pub(super) fn spawner(&self) -> Spawner {
        Spawner(Arc::downgrade(&self.0))
    }
}

/// Starts requests. They hold one themselves, so it must not keep them.
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
        // So that no more are held than run.
        while tasks.try_join_next().is_some() {}
    }
}
