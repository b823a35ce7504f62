//! A task that this process runs.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pintle_proto::inputs::AskError;
use pintle_types::{
    RawObject,
    schema::{InputRequest, TaskStatus},
};
use tokio::sync::{Notify, watch};

use super::store::{TaskOutcome, TaskRecord};
use crate::server::{DetachedQuestion, SessionHandle};

/// A task that this process runs.
#[derive(Debug)]
pub(super) struct RunningTask {
    state: Mutex<RunningState>,
    /// Notified when the task was cancelled.
    pub(super) stop: Notify,
    /// The number of changes.
    changes: watch::Sender<u64>,
    /// The session that the task was created in.
    pub(super) session: Option<SessionHandle>,
}

#[derive(Debug)]
struct RunningState {
    record: TaskRecord,
    questions: HashMap<String, UnansweredQuestion>,
    /// The keys that were used: a key is never used twice.
    keys: HashSet<String>,
}

#[derive(Debug)]
struct UnansweredQuestion {
    question: DetachedQuestion,
    /// Whether a request of the client waits for the answer.
    is_sent: bool,
}

impl RunningTask {
    pub(super) fn new(record: TaskRecord, session: Option<SessionHandle>) -> Self {
        let state = RunningState { record, questions: HashMap::new(), keys: HashSet::new() };
        Self { state: Mutex::new(state), stop: Notify::new(), changes: watch::Sender::new(0), session }
    }

    /// Returns the record as it is now.
    pub(super) fn record(&self) -> TaskRecord {
        self.lock().record.clone()
    }

    /// Reads the record.
    pub(super) fn read<T>(&self, read: impl FnOnce(&TaskRecord) -> T) -> T {
        read(&self.lock().record)
    }

    /// Returns a receiver of the number of changes.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Adds a question. Its key is unique in the life of the task.
    pub(super) fn open(&self, question: DetachedQuestion, now: u64) {
        let mut state = self.lock();
        let mut key = question.key().to_owned();
        let mut number = 2;
        while state.keys.contains(&key) {
            key = format!("{}#{number}", question.key());
            number += 1;
        }
        state.keys.insert(key.clone());
        state.record.questions.insert(key.clone(), question.request().clone());
        state.questions.insert(key, UnansweredQuestion { question, is_sent: false });
        state.settle_status(now);
        self.changed(state);
    }

    /// Removes the questions that the handler no longer waits for.
    pub(super) fn remove_abandoned(&self, now: u64) {
        let mut state = self.lock();
        let RunningState { record, questions, .. } = &mut *state;
        questions.retain(|_, open| !open.question.is_abandoned());
        record.questions.retain(|key, _| questions.contains_key(key));
        state.settle_status(now);
        self.changed(state);
    }

    /// Answers a question. Returns `false` if it is unknown or was answered before.
    pub(super) fn answer(&self, key: &str, answer: Result<RawObject, AskError>, now: u64) -> bool {
        let mut state = self.lock();
        let Some(open) = state.questions.remove(key) else { return false };
        state.record.questions.remove(key);
        state.settle_status(now);
        self.changed(state);
        match answer {
            Ok(answer) => open.question.answer(answer),
            Err(error) => open.question.fail(error),
        }
        true
    }

    /// Takes the questions that no request of the client waits for, to send them.
    pub(super) fn take_unsent(self: &Arc<Self>) -> Vec<SentQuestion> {
        let mut state = self.lock();
        let unsent = state.questions.iter_mut().filter(|(_, open)| !open.is_sent);
        unsent
            .map(|(key, open)| {
                open.is_sent = true;
                let request = open.question.request().clone();
                SentQuestion { task: self.clone(), key: key.clone(), request }
            })
            .collect()
    }

    /// Sets the status message.
    pub(super) fn report(&self, message: String, now: u64) {
        let mut state = self.lock();
        if !state.record.status.is_terminal() {
            state.record.status_message = Some(message);
            state.record.updated = now;
            self.changed(state);
        }
    }

    /// Ends the task, unless it has ended. Returns whether it had not.
    pub(super) fn end(
        &self,
        status: TaskStatus,
        outcome: Option<TaskOutcome>,
        message: Option<String>,
        now: u64,
    ) -> bool {
        let mut state = self.lock();
        if state.record.status.is_terminal() {
            return false;
        }
        let questions = std::mem::take(&mut state.questions);
        let record = &mut state.record;
        record.questions = BTreeMap::new();
        (record.status, record.outcome, record.updated) = (status, outcome, now);
        record.status_message = message.or(record.status_message.take());
        self.changed(state);
        drop(questions);
        true
    }

    /// Replaces the outcome of a task that has ended.
    pub(super) fn replace_outcome(&self, status: TaskStatus, outcome: TaskOutcome) {
        let mut state = self.lock();
        (state.record.status, state.record.outcome) = (status, Some(outcome));
        self.changed(state);
    }

    /// Returns the record for the store, with the next version.
    pub(super) fn next_version(&self) -> TaskRecord {
        let mut state = self.lock();
        state.record.version += 1;
        state.record.clone()
    }

    /// Takes back a version that was not stored.
    pub(super) fn undo_version(&self) {
        self.lock().record.version -= 1;
    }

    fn changed(&self, state: MutexGuard<'_, RunningState>) {
        drop(state);
        self.changes.send_modify(|number| *number += 1);
    }

    fn lock(&self) -> MutexGuard<'_, RunningState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningState {
    /// Sets the status of a task that runs: it waits for input, or works.
    fn settle_status(&mut self, now: u64) {
        if !self.record.status.is_terminal() {
            let waits = !self.record.questions.is_empty();
            self.record.status = if waits { TaskStatus::InputRequired } else { TaskStatus::Working };
            self.record.updated = now;
        }
    }
}

/// A question that a request of the client carries. If it is dropped without an answer, another request may carry it.
#[derive(Debug)]
pub(super) struct SentQuestion {
    task: Arc<RunningTask>,
    pub(super) key: String,
    pub(super) request: InputRequest,
}

impl SentQuestion {
    pub(super) fn answer(&self, answer: Result<RawObject, AskError>, now: u64) {
        self.task.answer(&self.key, answer, now);
    }
}

impl Drop for SentQuestion {
    fn drop(&mut self) {
        let mut state = self.task.lock();
        if let Some(open) = state.questions.get_mut(&self.key) {
            open.is_sent = false;
            self.task.changed(state);
        }
    }
}
