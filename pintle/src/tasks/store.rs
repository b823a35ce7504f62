//! The records of tasks, and what keeps them.

use std::{collections::BTreeMap, fmt, future::Future, io, pin::Pin, sync::Arc};

use pintle_types::{
    RawObject, RawValue, RpcError,
    schema::{InputRequest, TaskStatus},
};
use serde::{Deserialize, Serialize};

/// A store of tasks.
///
/// The process that runs a task writes its record: when it is created, when it asks or has its answers, and when it ends. Status
/// messages in between are not written. A store that cannot be reached returns an error, and never `None`.
///
/// Run [`kit::check`](crate::tasks::kit::check) on a store that you wrote.
pub trait TaskStore: fmt::Debug + Send + Sync + 'static {
    /// Stores a new task. When this returns, [`get`](Self::get) finds it. Returns `false`, and stores nothing, if the account of the
    /// task has no room in `quota`.
    fn create<'a>(&'a self, record: &'a TaskRecord, quota: &'a TaskQuota) -> TaskFuture<'a, bool>;

    /// Replaces the record of a task, if its version follows that of the stored one.
    fn update<'a>(&'a self, record: &'a TaskRecord, quota: &'a TaskQuota) -> TaskFuture<'a, Updated>;

    /// Returns the task of this id, whoever owns it.
    fn get<'a>(&'a self, id: &'a str) -> TaskFuture<'a, Option<TaskRecord>>;

    /// Returns the tasks of an owner in the order of their ids, at most `limit` of those after `after`.
    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> TaskFuture<'a, Vec<TaskRecord>>;

    /// Removes the tasks that expire at `now` or before, in milliseconds of the Unix epoch. Returns when the next one expires; `None` if
    /// there are no more.
    fn remove_expired<'a>(&'a self, now: u64) -> TaskFuture<'a, Option<u64>>;
}

/// The future that the methods of a [`TaskStore`] return.
pub type TaskFuture<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// The result of an update of a [`TaskStore`].
#[expect(clippy::exhaustive_enums, reason = "the process that runs the task must handle each")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Updated {
    /// The record is stored.
    Stored,
    /// There is no such task any more, or another version was stored meanwhile.
    Outdated,
    /// The record takes more bytes than the account has left. The stored one is unchanged.
    Full,
}

/// The limits of what a store keeps.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TaskQuota {
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
    /// 128 tasks and 16 MiB for each account, 16,384 tasks and 256 MiB in all.
    fn default() -> Self {
        Self { account_tasks: 128, account_bytes: 16 << 20, tasks: 16_384, bytes: 256 << 20 }
    }
}

/// The record of a task, serialized with serde.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TaskRecord {
    /// The id, which nobody can guess.
    pub id: String,
    /// The caller that the task belongs to. Others do not find it.
    pub owner: String,
    /// The caller that the task is counted for. That of an anonymous caller is its address.
    pub account: String,
    /// The number of the last change, from 0.
    pub version: u64,
    /// The tool that was called.
    pub tool: String,
    /// The status.
    pub status: TaskStatus,
    /// The status for people.
    pub status_message: Option<String>,
    /// The time of creation, in milliseconds of the Unix epoch.
    pub created: u64,
    /// The time of the last change, in milliseconds of the Unix epoch.
    pub updated: u64,
    /// How long the task is kept after its creation, in milliseconds.
    pub ttl: u64,
    /// The questions without an answer, by key.
    pub questions: BTreeMap<String, InputRequest>,
    /// The result, once there is one.
    pub outcome: Option<TaskOutcome>,
}

/// The result of a task.
#[expect(clippy::exhaustive_enums, reason = "a call ends with one of the two")]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskOutcome {
    /// The result of the call, in canonical shapes.
    Result(RawObject),
    /// The error of the call.
    Error(RpcError),
}

impl TaskRecord {
    /// Creates the record of a task that has just started.
    pub fn new(
        id: impl Into<String>,
        owner: impl Into<String>,
        tool: impl Into<String>,
        created: u64,
    ) -> Self {
        let owner = owner.into();
        Self {
            id: id.into(),
            account: owner.clone(),
            owner,
            version: 0,
            tool: tool.into(),
            status: TaskStatus::Working,
            status_message: None,
            created,
            updated: created,
            ttl: 3_600_000,
            questions: BTreeMap::new(),
            outcome: None,
        }
    }

    /// Returns the time at which the task expires, in milliseconds of the Unix epoch.
    pub fn expires(&self) -> u64 {
        self.created.saturating_add(self.ttl)
    }

    /// Returns the number of bytes that the task is counted for.
    pub fn bytes(&self) -> usize {
        let outcome = match &self.outcome {
            None => 0,
            Some(TaskOutcome::Result(result)) => result.as_str().len(),
            Some(TaskOutcome::Error(error)) => {
                error.message.len() + error.data.as_deref().map_or(0, |data: &RawValue| data.get().len())
            }
        };
        let question = |(key, request): (&String, &InputRequest)| {
            key.len()
                + request.method.len()
                + request.params.as_deref().map_or(0, |params| params.get().len())
        };
        let texts = self.id.len() + self.owner.len() + self.account.len() + self.tool.len();
        let message = self.status_message.as_ref().map_or(0, String::len);
        256 + texts + message + outcome + self.questions.iter().map(question).sum::<usize>()
    }
}

impl<S: TaskStore + ?Sized> TaskStore for Arc<S> {
    fn create<'a>(&'a self, record: &'a TaskRecord, quota: &'a TaskQuota) -> TaskFuture<'a, bool> {
        (**self).create(record, quota)
    }

    fn update<'a>(&'a self, record: &'a TaskRecord, quota: &'a TaskQuota) -> TaskFuture<'a, Updated> {
        (**self).update(record, quota)
    }

    fn get<'a>(&'a self, id: &'a str) -> TaskFuture<'a, Option<TaskRecord>> {
        (**self).get(id)
    }

    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> TaskFuture<'a, Vec<TaskRecord>> {
        (**self).list(owner, after, limit)
    }

    fn remove_expired<'a>(&'a self, now: u64) -> TaskFuture<'a, Option<u64>> {
        (**self).remove_expired(now)
    }
}
