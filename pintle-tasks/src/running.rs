//! A task that this process runs.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use pintle::{
    proto::{Body, Revision},
    server::{AskError, Cx, DetachedQuestion, SessionHandle},
    types::{RawObject, RpcError, schema::InputRequest},
};
use tokio::sync::{Notify, oneshot, watch};

use super::{
    printed_record::PrintedRecord,
    record::{TaskQuestion, TaskRecord},
};

/// The limit of requests of clients that wait for one task.
const MAX_REQUESTS: usize = 64;

/// A task that this process runs. Only the loop that runs it writes its record; others request that.
#[derive(Debug)]
pub(super) struct RunningTask {
    state: Mutex<RunningState>,
    /// Notified when there are requests.
    requested: Notify,
    /// The number of changes.
    changes: watch::Sender<u64>,
    /// Whether the record could not be stored when it had changed.
    pub(super) is_unsaved: AtomicBool,
    /// Whether a subscription was granted the task.
    pub(super) is_watched: AtomicBool,
    /// The session that the task was created in, and the id that its client has.
    pub(super) session: Option<(SessionHandle, String)>,
}

#[derive(Debug)]
struct RunningState {
    record: PrintedRecord,
    /// The questions that the handler waits for, by the key that the client knows.
    questions: HashMap<String, UnansweredQuestion>,
    /// The keys of the handler whose answers it has received.
    delivered: HashSet<String>,
    requests: VecDeque<TaskRequest>,
    /// Whether nobody carries out requests any more.
    is_closed: bool,
}

#[derive(Debug)]
struct UnansweredQuestion {
    question: DetachedQuestion,
    /// Whether a request of the client carries the question.
    is_sent: bool,
}

/// A request to change a task.
#[derive(Debug)]
pub(super) enum TaskRequest {
    Answer(Vec<(String, Result<RawObject, AskError>)>, oneshot::Sender<Result<(), RpcError>>),
    /// Cancels the task. The reply is whether it had not ended.
    Cancel(oneshot::Sender<Result<bool, RpcError>>),
    /// Another process has changed the record.
    Read,
}

impl RunningTask {
    pub(super) fn new(record: TaskRecord, session: Option<(SessionHandle, String)>) -> Self {
        let state = RunningState {
            record: record.into(),
            questions: HashMap::new(),
            delivered: HashSet::new(),
            requests: VecDeque::new(),
            is_closed: false,
        };
        Self {
            state: Mutex::new(state),
            requested: Notify::new(),
            changes: watch::Sender::new(0),
            is_unsaved: AtomicBool::new(false),
            is_watched: AtomicBool::new(false),
            session,
        }
    }

    /// Returns the record as it is now.
    pub(super) fn record(&self) -> TaskRecord {
        TaskRecord::clone(&self.lock().record)
    }

    /// Reads the record.
    pub(super) fn read<T>(&self, read: impl FnOnce(&TaskRecord) -> T) -> T {
        read(&self.lock().record)
    }

    /// Returns the task in the shapes of a revision.
    pub(super) fn printed(&self, revision: Revision, poll: Duration) -> Result<Body, RpcError> {
        self.lock().record.printed(revision, poll)
    }

    /// Returns a receiver of the number of changes.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Requests a change. Returns `false` if too many wait. A request of a task that is over is dropped.
    pub(super) fn request(&self, request: TaskRequest) -> bool {
        let mut state = self.lock();
        let has_room = state.requests.len() < MAX_REQUESTS;
        if has_room && !state.is_closed {
            state.requests.push_back(request);
        }
        drop(state);
        self.requested.notify_one();
        has_room
    }

    /// Waits for the next request.
    pub(super) async fn next_request(&self) -> TaskRequest {
        loop {
            if let Some(request) = self.lock().requests.pop_front() {
                return request;
            }
            self.requested.notified().await;
        }
    }

    /// Drops the requests that nobody has carried out, without a reply. There are no more after this.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let left = std::mem::take(&mut state.requests);
        drop(state);
        drop(left);
    }

    /// Returns the record with the next version, as it is to be stored.
    pub(super) fn next_version(&self, cx: &Cx) -> TaskRecord {
        let state = self.lock();
        let mut record = TaskRecord::clone(&state.record);
        record.version += 1;
        if let Some(recorded) = &mut record.body.call {
            **recorded = cx.record();
        }
        let is_resumable = record.body.call.is_some();
        let is_needed =
            |key: &String| !state.delivered.contains(key) || (is_resumable && !cx.is_answered(key));
        record.body.answers.retain(|key, _| is_needed(key));
        record
    }

    /// Replaces the record by one that was stored.
    pub(super) fn set_record(&self, mut record: TaskRecord) {
        let mut state = self.lock();
        if record.body.message.is_none() {
            record.body.message = state.record.body.message.take();
        }
        *state.record = record;
        if state.record.is_ended() {
            // Their handler is dropped.
            state.questions.clear();
        }
        self.changed(state);
    }

    /// Adds a question of the handler. Its key is unique in the life of the task, unless a handler that runs again repeats it.
    pub(super) fn open(&self, question: DetachedQuestion, now: u64) {
        let mut state = self.lock();
        let RunningState { record, questions, delivered, .. } = &mut *state;
        let asked = TaskQuestion { key: question.key().to_owned(), request: question.request().clone() };
        // It may have been answered before the handler that runs again has come here.
        if !delivered.contains(&asked.key)
            && let Some(answer) = record.body.answers.get(&asked.key)
        {
            delivered.insert(asked.key);
            return question.answer(answer.clone());
        }
        if let Some(error) = record.body.refused.remove(&asked.key) {
            return question.fail(AskError::Refused(error));
        }
        let known = record
            .body
            .questions
            .iter()
            .find(|(key, other)| **other == asked && !questions.contains_key(*key));
        let key = known.map_or_else(|| unused_key(record, &asked.key), |(key, _)| key.clone());
        record.body.keys.insert(key.clone());
        record.body.questions.insert(key.clone(), asked);
        questions.insert(key, UnansweredQuestion { question, is_sent: false });
        record.settle_status(now);
        self.changed(state);
    }

    /// Removes the questions that the handler no longer waits for.
    pub(super) fn remove_abandoned(&self, now: u64) {
        let mut state = self.lock();
        let RunningState { record, questions, .. } = &mut *state;
        questions.retain(|key, open| {
            let is_open = !open.question.is_abandoned();
            if !is_open {
                record.body.questions.remove(key);
            }
            is_open
        });
        record.settle_status(now);
        self.changed(state);
    }

    /// Passes the answers that the record has to the handler, and the errors of questions that have none.
    pub(super) fn deliver(&self, mut errors: HashMap<String, AskError>, now: u64) {
        let mut state = self.lock();
        let RunningState { record, questions, delivered, .. } = &mut *state;
        let answered: Vec<String> = questions
            .keys()
            .filter(|key| !record.body.questions.contains_key(*key) || errors.contains_key(*key))
            .cloned()
            .collect();
        for key in answered {
            let Some(UnansweredQuestion { question, .. }) = questions.remove(&key) else { continue };
            record.body.questions.remove(&key);
            match (record.body.answers.get(question.key()), errors.remove(&key)) {
                (_, Some(error)) => question.fail(error),
                (Some(answer), None) => {
                    delivered.insert(question.key().to_owned());
                    question.answer(answer.clone());
                }
                (None, None) => {
                    let refused = record.body.refused.remove(question.key());
                    question.fail(refused.map_or(AskError::CallOver, AskError::Refused));
                }
            }
        }
        record.settle_status(now);
        self.changed(state);
    }

    /// Takes the questions that no request of the client carries, to send them.
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
        if !state.record.is_ended() {
            state.record.body.message = Some(message);
            state.record.body.updated = now;
            self.changed(state);
        }
    }

    fn changed(&self, state: MutexGuard<'_, RunningState>) {
        drop(state);
        self.changes.send_modify(|number| *number += 1);
    }

    fn lock(&self) -> MutexGuard<'_, RunningState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a key for a question that the client has not seen.
fn unused_key(record: &TaskRecord, wanted: &str) -> String {
    let mut key = wanted.to_owned();
    let mut number = 2;
    while record.body.keys.contains(&key) {
        key = format!("{wanted}#{number}");
        number += 1;
    }
    key
}

/// A question that a request of the client carries. If it is dropped without an answer, another request may carry it.
#[derive(Debug)]
pub(super) struct SentQuestion {
    task: Arc<RunningTask>,
    pub(super) key: String,
    pub(super) request: InputRequest,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn so_many_requests_wait_for_a_task() {
        let record = TaskRecord::new("t".to_owned(), "local".to_owned(), "tool".to_owned(), 0);
        let task = RunningTask::new(record, None);
        for _ in 0..MAX_REQUESTS {
            assert!(task.request(TaskRequest::Read));
        }
        assert!(!task.request(TaskRequest::Read), "one more");
        task.next_request().await;
        assert!(task.request(TaskRequest::Read), "there is room again");
        // What waits for a task that is over is dropped, and so is what comes later: whoever waits for a reply knows.
        let (reply, replied) = oneshot::channel();
        task.next_request().await;
        assert!(task.request(TaskRequest::Cancel(reply)));
        task.close();
        assert!(replied.await.is_err());
        let (reply, replied) = oneshot::channel();
        assert!(task.request(TaskRequest::Cancel(reply)));
        assert!(replied.await.is_err());
        assert!(task.lock().requests.is_empty());
    }
}
