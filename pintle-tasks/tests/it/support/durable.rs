use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use pintle_tasks::{MemoryTaskStore, StoredTask, TaskFuture, TaskQuota, TaskStore, Updated};

/// A store that outlives its processes, of which one may have lost its way to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durable {
    pub(crate) tasks: Arc<MemoryTaskStore>,
    /// Whether signs of life are lost.
    pub(crate) is_mute: Arc<AtomicBool>,
    /// Whether nothing can be read or written.
    pub(crate) is_down: Arc<AtomicBool>,
    /// Whether changes are stored, and their replies lost.
    pub(crate) is_unheard: Arc<AtomicBool>,
    /// The time at which it was opened, on a clock of its own.
    pub(crate) opened: Option<(u64, tokio::time::Instant)>,
}

impl Durable {
    /// The same tasks, on another way.
    pub(crate) fn another(&self) -> Self {
        Self { tasks: self.tasks.clone(), ..Self::default() }
    }

    fn reach<'a, T: Send + 'a>(&self, found: TaskFuture<'a, T>) -> TaskFuture<'a, T> {
        match self.is_down.load(Ordering::SeqCst) {
            true => Box::pin(async { Err(io::Error::other("the store is down")) }),
            false => found,
        }
    }
}

impl TaskStore for Durable {
    fn create<'a>(&'a self, task: &'a StoredTask, quota: &'a TaskQuota) -> TaskFuture<'a, bool> {
        self.reach(self.tasks.create(task, quota))
    }

    fn update<'a>(&'a self, task: &'a StoredTask, quota: &'a TaskQuota) -> TaskFuture<'a, Updated> {
        if self.is_down.load(Ordering::SeqCst) {
            return Box::pin(async { Err(io::Error::other("the store is down")) });
        }
        let is_unheard = self.is_unheard.load(Ordering::SeqCst);
        Box::pin(async move {
            let updated = self.tasks.update(task, quota).await?;
            if is_unheard { Err(io::Error::other("the reply is lost")) } else { Ok(updated) }
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> TaskFuture<'a, Option<StoredTask>> {
        self.reach(self.tasks.get(id))
    }

    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> TaskFuture<'a, Vec<StoredTask>> {
        self.reach(self.tasks.list(owner, after, limit))
    }

    fn remove_expired(&self, now: u64) -> TaskFuture<'_, Option<u64>> {
        self.reach(self.tasks.remove_expired(now))
    }

    fn renew<'a>(&'a self, holder: &'a str, until: u64) -> TaskFuture<'a, ()> {
        match self.is_mute.load(Ordering::SeqCst) {
            true => Box::pin(async { Ok(()) }),
            false => self.reach(self.tasks.renew(holder, until)),
        }
    }

    fn orphans(&self, now: u64, limit: usize) -> TaskFuture<'_, Vec<StoredTask>> {
        match self.is_mute.load(Ordering::SeqCst) {
            true => Box::pin(async { Ok(Vec::new()) }),
            false => self.reach(self.tasks.orphans(now, limit)),
        }
    }

    fn unread<'a>(&'a self, holder: &'a str, limit: usize) -> TaskFuture<'a, Vec<String>> {
        match self.is_mute.load(Ordering::SeqCst) {
            true => Box::pin(async { Ok(Vec::new()) }),
            false => self.reach(self.tasks.unread(holder, limit)),
        }
    }

    fn now(&self) -> TaskFuture<'_, Option<u64>> {
        let millis = |opened: tokio::time::Instant| u64::try_from(opened.elapsed().as_millis()).unwrap();
        let now = self.opened.map(|(start, opened)| start + millis(opened));
        self.reach(Box::pin(async move { Ok(now) }))
    }
}
