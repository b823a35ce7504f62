//! The store of tasks.

use std::{
    fmt,
    future::{Future, ready},
    io,
    pin::Pin,
    sync::Arc,
};

/// A store of tasks.
///
/// The body of a task is sealed, so a store knows only what it has to: whose the task is, when it expires and which process runs it.
/// Every change is a compare-and-swap of the version, by whichever process makes it. A store that cannot be reached returns an error, and
/// never `None`.
///
/// Run `kits::tasks::check` of the crate `pintle-testing` on a store that you wrote.
pub trait TaskStore: fmt::Debug + Send + Sync + 'static {
    /// Stores a new task. When this returns, it is durable, and [`get`](Self::get) finds it. Returns `false`, and stores nothing, if there
    /// is a task of this id, or the account of the task has no room in `quota`.
    fn create<'a>(&'a self, task: &'a StoredTask, quota: &'a TaskQuota) -> TaskFuture<'a, bool>;

    /// Replaces a task, if its version follows that of the stored one. When this returns, it is durable.
    fn update<'a>(&'a self, task: &'a StoredTask, quota: &'a TaskQuota) -> TaskFuture<'a, Updated>;

    /// Returns the task of this id, of any owner.
    fn get<'a>(&'a self, id: &'a str) -> TaskFuture<'a, Option<StoredTask>>;

    /// Returns the tasks of an owner in the order of their ids, at most `limit` of those after `after`.
    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> TaskFuture<'a, Vec<StoredTask>>;

    /// Removes the tasks that expire at `now` or before, in milliseconds of the Unix epoch. Returns when the next one expires; `None` if
    /// there are no more.
    fn remove_expired(&self, now: u64) -> TaskFuture<'_, Option<u64>>;

    /// Extends the lease of a process, by the name that it has as [`StoredTask::holder`], until this time. One without a lease is taken
    /// for dead.
    fn renew<'a>(&'a self, holder: &'a str, until: u64) -> TaskFuture<'a, ()>;

    /// Returns at most `limit` tasks whose holder has no lease at `now`.
    fn orphans(&self, now: u64, limit: usize) -> TaskFuture<'_, Vec<StoredTask>>;

    /// Returns the ids of at most `limit` tasks of this holder that are [unread](StoredTask::unread).
    fn unread<'a>(&'a self, holder: &'a str, limit: usize) -> TaskFuture<'a, Vec<String>>;

    /// Returns the time of the store, in milliseconds of the Unix epoch. The times of the other methods are on this clock, so that
    /// processes whose own clocks differ agree about leases and expiries. `None`, the default, is the clock of the process.
    fn now(&self) -> TaskFuture<'_, Option<u64>> {
        Box::pin(ready(Ok(None)))
    }

    /// Returns whether tasks outlive the process, or are shared with others. A server with such a store needs keys that do so too
    /// ([`Server::state_keys`](pintle::Server::state_keys)), and looks for tasks whose process has ended.
    fn is_durable(&self) -> bool {
        true
    }
}

/// The future that the methods of a [`TaskStore`] return.
pub type TaskFuture<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// The result of an update of a [`TaskStore`].
#[expect(clippy::exhaustive_enums, reason = "the process that runs the task must handle each")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Updated {
    /// The task is stored.
    Stored,
    /// There is no such task any more, or another version was stored meanwhile.
    Outdated,
    /// The task takes more bytes than the account has left. The stored one is unchanged.
    Full,
}

/// The limits of what a store keeps.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TaskQuota {
    /// Bytes of one task: its call, its answers and its result.
    pub task_bytes: usize,
    /// Tasks of one account.
    pub account_tasks: usize,
    /// Bytes of the tasks of one account.
    pub account_bytes: usize,
    /// Tasks of all accounts.
    pub tasks: usize,
    /// Bytes of the tasks of all accounts.
    pub bytes: usize,
}

impl Default for TaskQuota {
    /// 8 MiB for each task, 128 tasks and 16 MiB for each account, 16,384 tasks and 256 MiB in all.
    fn default() -> Self {
        Self {
            task_bytes: 8 << 20,
            account_tasks: 128,
            account_bytes: 16 << 20,
            tasks: 16_384,
            bytes: 256 << 20,
        }
    }
}

/// A task as a [`TaskStore`] keeps it.
#[non_exhaustive]
#[derive(Clone, Eq, PartialEq)]
pub struct StoredTask {
    /// The id, which nobody can guess.
    pub id: String,
    /// The caller that the task belongs to. Others do not find it.
    pub owner: String,
    /// The caller that the task is counted for. That of an anonymous caller is its address.
    pub account: String,
    /// The number of the last change, from 0.
    pub version: u64,
    /// The time at which the task expires, in milliseconds of the Unix epoch.
    pub expires: u64,
    /// The process that runs the task. `None` if the task has ended.
    pub holder: Option<String>,
    /// Whether another process than the holder has made the last change, so that the holder has to read it.
    pub unread: bool,
    /// Everything else, sealed.
    pub body: Vec<u8>,
}

impl StoredTask {
    /// Creates a task that has ended, with its first version.
    pub fn new(id: impl Into<String>, owner: impl Into<String>, expires: u64, body: Vec<u8>) -> Self {
        let owner = owner.into();
        Self {
            id: id.into(),
            account: owner.clone(),
            owner,
            version: 0,
            expires,
            holder: None,
            unread: false,
            body,
        }
    }

    /// Returns the number of bytes that the task is counted for.
    pub fn bytes(&self) -> usize {
        let holder = self.holder.as_ref().map_or(0, String::len);
        256 + self.id.len() + self.owner.len() + self.account.len() + holder + self.body.len()
    }
}

/// The id is a secret of some callers, so it is not printed.
impl fmt::Debug for StoredTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredTask")
            .field("owner", &self.owner)
            .field("version", &self.version)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

impl<S: TaskStore + ?Sized> TaskStore for Arc<S> {
    fn create<'a>(&'a self, task: &'a StoredTask, quota: &'a TaskQuota) -> TaskFuture<'a, bool> {
        (**self).create(task, quota)
    }

    fn update<'a>(&'a self, task: &'a StoredTask, quota: &'a TaskQuota) -> TaskFuture<'a, Updated> {
        (**self).update(task, quota)
    }

    fn get<'a>(&'a self, id: &'a str) -> TaskFuture<'a, Option<StoredTask>> {
        (**self).get(id)
    }

    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> TaskFuture<'a, Vec<StoredTask>> {
        (**self).list(owner, after, limit)
    }

    fn remove_expired(&self, now: u64) -> TaskFuture<'_, Option<u64>> {
        (**self).remove_expired(now)
    }

    fn renew<'a>(&'a self, holder: &'a str, until: u64) -> TaskFuture<'a, ()> {
        (**self).renew(holder, until)
    }

    fn orphans(&self, now: u64, limit: usize) -> TaskFuture<'_, Vec<StoredTask>> {
        (**self).orphans(now, limit)
    }

    fn unread<'a>(&'a self, holder: &'a str, limit: usize) -> TaskFuture<'a, Vec<String>> {
        (**self).unread(holder, limit)
    }

    fn now(&self) -> TaskFuture<'_, Option<u64>> {
        (**self).now()
    }

    fn is_durable(&self) -> bool {
        (**self).is_durable()
    }
}
