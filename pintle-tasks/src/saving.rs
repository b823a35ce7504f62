//! The changes of a task that this process runs: they take effect once they are stored.
//!
//! The loop that runs a task is the only writer of its record in its process: requests are queued for it, and an answer or a cancellation takes
//! effect once it is stored. Other processes change the record by compare-and-swap and mark it as unread.

use std::{collections::HashMap, io, sync::atomic::Ordering, time::Duration};

use pintle::{
    server::{Checkpoint, Cx},
    types::{RpcError, schema::TaskStatus},
};
use tokio::time::sleep;

use super::{
    host::{TaskHost, too_large, unreachable_store},
    record::{TaskOutcome, TaskRecord},
    running::{RunningTask, TaskRequest},
    store::Updated,
};

/// The number of attempts to store a record that other processes change at the same time.
const ATTEMPTS: usize = 16;
/// The time between two attempts to store a result if the store cannot be reached.
const RETRY: Duration = Duration::from_secs(1);

/// The result of storing a record.
#[derive(Debug)]
pub(super) enum Saved {
    Stored,
    /// The task was removed, or another process runs it: this one has to stop.
    Gone,
    /// The record has too many bytes.
    Full(usize),
    Failed(io::Error),
}

impl TaskHost {
    /// Stores the record of a task with a change.
    async fn commit(&self, cx: &Cx, task: &RunningTask, change: impl Fn(&mut TaskRecord)) -> Saved {
        for _ in 0..ATTEMPTS {
            let mut record = task.next_version(cx);
            change(&mut record);
            let stored = match record.seal(cx.server(), false) {
                Ok(stored) => stored,
                Err(error) => return Saved::Failed(error),
            };
            match self.store.update(&stored, &self.quota).await {
                Ok(Updated::Stored) => {
                    task.set_record(record);
                    task.deliver(HashMap::new(), self.now());
                    return Saved::Stored;
                }
                Ok(Updated::Full) => return Saved::Full(stored.bytes()),
                Ok(Updated::Outdated) => {
                    let merged = self.merge(cx, task).await;
                    if !matches!(merged, Saved::Stored) || task.read(TaskRecord::is_ended) {
                        return merged;
                    }
                }
                Err(error) => return Saved::Failed(error),
            }
        }
        Saved::Failed(io::Error::other("the task is changed all the time"))
    }

    /// Reads what another process has made of the task.
    async fn merge(&self, cx: &Cx, task: &RunningTask) -> Saved {
        let stored = match self.store.get(&task.read(|record| record.id.clone())).await {
            Ok(Some(stored)) => stored,
            Ok(None) => return Saved::Gone,
            Err(error) => return Saved::Failed(error),
        };
        let theirs = match TaskRecord::open(cx.server(), stored) {
            Ok(theirs) => theirs,
            Err(error) => return Saved::Failed(error),
        };
        if theirs.is_ended() {
            self.release(cx, &theirs).await;
            task.set_record(theirs);
            return Saved::Stored;
        }
        if theirs.holder.as_ref() != Some(&self.holder) {
            return Saved::Gone;
        }
        let mut record = task.record();
        record.version = theirs.version;
        // A question that they know and do not have any more was answered.
        let answered =
            |key: &String| theirs.body.keys.contains(key) && !theirs.body.questions.contains_key(key);
        let body = &mut record.body;
        body.questions.retain(|key, question| {
            let is_answered = answered(key);
            if let Some(answer) = theirs.body.answers.get(&question.key).filter(|_| is_answered) {
                body.answers.insert(question.key.clone(), answer.clone());
            } else if let Some(error) = theirs.body.refused.get(&question.key).filter(|_| is_answered) {
                body.refused.insert(question.key.clone(), error.clone());
            }
            !is_answered
        });
        record.settle_status(self.now());
        task.set_record(record);
        // What they have answered is stored, whatever becomes of the next change of this process.
        task.deliver(HashMap::new(), self.now());
        Saved::Stored
    }

    /// Stores that nobody runs a task any more that another process has ended.
    async fn release(&self, cx: &Cx, ended: &TaskRecord) {
        let mut record = ended.clone();
        record.version += 1;
        record.holder = None;
        if let Ok(stored) = record.seal(cx.server(), false)
            && let Err(error) = self.store.update(&stored, &self.quota).await
        {
            tracing::debug!(%error, "a task that was ended could not be released");
        }
    }

    /// Stores the record. If it is too large, the task fails.
    pub(super) async fn save_or_fail(&self, cx: &Cx, task: &RunningTask) -> Saved {
        match self.commit(cx, task, |_| {}).await {
            Saved::Full(bytes) => {
                let error = RpcError::internal(too_large(bytes, "its questions"));
                self.commit(cx, task, |record| {
                    record.fail(error.clone(), self.now());
                })
                .await
            }
            Saved::Failed(error) => {
                // The question is asked nevertheless: this process knows it. Others do once it is stored.
                tracing::error!(%error, "the question of a task could not be stored");
                task.is_unsaved.store(true, Ordering::Release);
                Saved::Stored
            }
            saved => saved,
        }
    }

    /// Stores the record for a handler that waits for it.
    pub(super) async fn checkpoint(&self, cx: &Cx, task: &RunningTask, checkpoint: Checkpoint) -> Saved {
        if task.read(|record| record.body.call.is_none()) {
            checkpoint.stored();
            return Saved::Stored;
        }
        let saved = self.commit(cx, task, |_| {}).await;
        match &saved {
            Saved::Stored if !task.read(TaskRecord::is_ended) => checkpoint.stored(),
            Saved::Stored => checkpoint.refuse("the task was cancelled"),
            Saved::Gone => checkpoint.refuse("another process runs the task"),
            Saved::Full(bytes) => checkpoint.refuse(too_large(*bytes, "its actions")),
            Saved::Failed(error) => checkpoint.refuse(error.to_string()),
        }
        saved
    }

    /// Stores the outcome of a task. If the store cannot be reached, this waits for it as long as the task lives.
    pub(super) async fn finish(
        &self,
        cx: &Cx,
        task: &RunningTask,
        status: TaskStatus,
        outcome: TaskOutcome,
    ) -> Saved {
        let message = match &outcome {
            TaskOutcome::Error(error) => Some(error.message.to_string()),
            TaskOutcome::Result(_) => None,
        };
        let mut end = (status, outcome, message);
        loop {
            let (status, outcome, message) = &end;
            let ended = |record: &mut TaskRecord| {
                record.end(status.clone(), Some(outcome.clone()), message.clone(), self.now());
            };
            match self.commit(cx, task, ended).await {
                Saved::Full(bytes) if matches!(outcome, TaskOutcome::Result(_)) => {
                    let error = RpcError::internal(too_large(bytes, "its result"));
                    let message = Some(error.message.to_string());
                    end = (TaskStatus::Failed, TaskOutcome::Error(error), message);
                }
                saved @ (Saved::Stored | Saved::Gone) => return saved,
                failed => {
                    if let Saved::Failed(error) = failed {
                        tracing::error!(%error, "the result of a task could not be stored");
                    }
                    if task.read(TaskRecord::expires) <= self.now() {
                        return Saved::Gone;
                    }
                    sleep(RETRY).await;
                }
            }
        }
    }

    /// Carries out the request of a client, or of another process.
    pub(super) async fn obey(&self, cx: &Cx, task: &RunningTask, request: TaskRequest) -> Saved {
        let now = self.now();
        match request {
            TaskRequest::Read => {
                let saved = match self.merge(cx, task).await {
                    Saved::Stored if !task.read(TaskRecord::is_ended) => self.commit(cx, task, |_| {}).await,
                    merged => merged,
                };
                if matches!(saved, Saved::Failed(_)) {
                    task.is_unsaved.store(true, Ordering::Release);
                }
                saved
            }
            TaskRequest::Cancel(reply) => {
                let message = || Some("cancelled".to_owned());
                let saved = self
                    .commit(cx, task, |record| {
                        record.end(TaskStatus::Cancelled, None, message(), now);
                    })
                    .await;
                if let Some(acknowledged) = acknowledged(&saved) {
                    let is_cancelled = || task.read(|record| record.body.status == TaskStatus::Cancelled);
                    let _ = reply.send(acknowledged.map(|()| is_cancelled()));
                }
                saved
            }
            TaskRequest::Answer(answers, reply) => {
                let is_open = |key: &str| task.read(|record| record.body.questions.contains_key(key));
                let (mut given, mut errors) = (Vec::new(), HashMap::new());
                // Answers to unknown questions are ignored.
                for (key, answer) in answers.into_iter().filter(|(key, _)| is_open(key)) {
                    match answer {
                        Ok(answer) => given.push((key, answer)),
                        Err(error) => drop(errors.insert(key, error)),
                    }
                }
                let saved = match given.is_empty() {
                    true => Saved::Stored,
                    false => {
                        self.commit(cx, task, |record| {
                            for (key, answer) in &given {
                                record.answer(key, answer.clone(), now);
                            }
                        })
                        .await
                    }
                };
                if matches!(saved, Saved::Stored) && !errors.is_empty() {
                    task.deliver(errors, now);
                }
                if let Some(acknowledged) = acknowledged(&saved) {
                    let _ = reply.send(acknowledged);
                }
                saved
            }
        }
    }
}

/// Returns the reply to a request whose change was to be stored. A request without a reply is one for the process that runs the task now.
fn acknowledged(saved: &Saved) -> Option<Result<(), RpcError>> {
    match saved {
        Saved::Stored => Some(Ok(())),
        Saved::Gone => None,
        Saved::Full(bytes) => Some(Err(RpcError::invalid_params(too_large(*bytes, "these answers")))),
        Saved::Failed(error) => Some(Err(unreachable_store(error))),
    }
}
