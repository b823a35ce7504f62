//! A store that reports its changes, so that tests need not poll.

use pintle_sqlite::SqliteTaskStore;
use pintle_tasks::{StoredTask, TaskFuture, TaskQuota, TaskStore, Updated};

/// The line on standard error that reports a change.
pub(crate) const CHANGED: &str = "a task was changed";

/// A store in a file. Each change is reported on standard error when it is stored.
#[derive(Debug)]
pub(crate) struct ReportingStore(pub(crate) SqliteTaskStore);

impl TaskStore for ReportingStore {
    fn create<'a>(&'a self, task: &'a StoredTask, quota: &'a TaskQuota) -> TaskFuture<'a, bool> {
        Box::pin(async {
            let created = self.0.create(task, quota).await;
            eprintln!("{CHANGED}");
            created
        })
    }

    fn update<'a>(&'a self, task: &'a StoredTask, quota: &'a TaskQuota) -> TaskFuture<'a, Updated> {
        Box::pin(async {
            let updated = self.0.update(task, quota).await;
            eprintln!("{CHANGED}");
            updated
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> TaskFuture<'a, Option<StoredTask>> {
        self.0.get(id)
    }

    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> TaskFuture<'a, Vec<StoredTask>> {
        self.0.list(owner, after, limit)
    }

    fn remove_expired(&self, now: u64) -> TaskFuture<'_, Option<u64>> {
        self.0.remove_expired(now)
    }

    fn renew<'a>(&'a self, holder: &'a str, until: u64) -> TaskFuture<'a, ()> {
        self.0.renew(holder, until)
    }

    fn orphans(&self, now: u64, limit: usize) -> TaskFuture<'_, Vec<StoredTask>> {
        self.0.orphans(now, limit)
    }

    fn unread<'a>(&'a self, holder: &'a str, limit: usize) -> TaskFuture<'a, Vec<String>> {
        self.0.unread(holder, limit)
    }
    fn now(&self) -> TaskFuture<'_, Option<u64>> {
        self.0.now()
    }
}
