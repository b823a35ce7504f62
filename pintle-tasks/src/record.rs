//! The record of a task, and its sealed form.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    ops::RangeInclusive,
};

use pintle::{
    server::{CallRecord, Server},
    types::{
        RawObject, RpcError,
        schema::{InputRequest, TaskStatus},
    },
};
use serde::{Deserialize, Serialize};

use super::store::StoredTask;

/// The record of a task.
#[derive(Clone, Debug)]
pub(super) struct TaskRecord {
    pub(super) id: String,
    pub(super) owner: String,
    pub(super) account: String,
    pub(super) version: u64,
    /// The process that runs the task.
    pub(super) holder: Option<String>,
    pub(super) body: TaskBody,
}

/// The part of a record that is sealed.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct TaskBody {
    /// The format of this text: see [`FORMAT`].
    #[serde(rename = "f")]
    format: u32,
    pub(super) tool: String,
    pub(super) status: TaskStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    /// The time of creation, in milliseconds of the Unix epoch.
    pub(super) created: u64,
    /// The time of the last change, in milliseconds of the Unix epoch.
    pub(super) updated: u64,
    /// How long the task is kept after its creation, in milliseconds.
    pub(super) ttl: u64,
    /// The questions without an answer, by the key that the client knows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) questions: BTreeMap<String, TaskQuestion>,
    /// The keys that the client knows. None is used twice.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) keys: BTreeSet<String>,
    /// The answers that the call does not have yet, by the key of the handler.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) answers: BTreeMap<String, RawObject>,
    /// The errors of questions that the handler does not have yet, by the key of the handler.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) refused: BTreeMap<String, RpcError>,
    /// The record of the call, to run it again, if its tool is resumable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) call: Option<Box<CallRecord>>,
    /// The result, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) outcome: Option<TaskOutcome>,
}

/// A question of a task.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct TaskQuestion {
    /// The key that the handler gave the question.
    pub(super) key: String,
    pub(super) request: InputRequest,
}

/// The result of a task.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum TaskOutcome {
    /// The result of the call, in canonical shapes.
    Result(RawObject),
    /// The error of the call.
    Error(RpcError),
}

/// The current format of bodies, and the oldest that is read. Increase the current one with every change that an older reader would
/// misread; the oldest is the one before, so that processes of two versions can share a store. A task keeps the format that it was
/// created with, so that the process that runs it can read what a newer one changes.
const FORMAT: u32 = 1;
const OLDEST: u32 = 1;

impl TaskRecord {
    /// Creates the record of a task that has just started.
    pub(super) fn new(id: String, owner: String, tool: String, created: u64) -> Self {
        let body = TaskBody {
            format: FORMAT,
            tool,
            status: TaskStatus::Working,
            message: None,
            created,
            updated: created,
            ttl: 0,
            questions: BTreeMap::new(),
            keys: BTreeSet::new(),
            answers: BTreeMap::new(),
            refused: BTreeMap::new(),
            call: None,
            outcome: None,
        };
        Self { id, account: owner.clone(), owner, version: 0, holder: None, body }
    }

    /// Returns the time at which the task expires, in milliseconds of the Unix epoch.
    pub(super) fn expires(&self) -> u64 {
        self.body.created.saturating_add(self.body.ttl)
    }

    pub(super) fn is_ended(&self) -> bool {
        self.body.status.is_terminal()
    }

    /// Sets the status of a task that has not ended: it waits for input, or works.
    pub(super) fn settle_status(&mut self, now: u64) {
        if !self.is_ended() {
            let waits = !self.body.questions.is_empty();
            self.body.status = if waits { TaskStatus::InputRequired } else { TaskStatus::Working };
            self.body.updated = now;
        }
    }

    /// Removes a question and keeps its answer. Returns `false` if there is no such question.
    pub(super) fn answer(&mut self, key: &str, answer: RawObject, now: u64) -> bool {
        let Some(question) = self.body.questions.remove(key) else { return false };
        self.body.answers.insert(question.key, answer);
        self.settle_status(now);
        true
    }

    /// Removes a question that has no answer and keeps its error. Returns `false` if there is no such question.
    pub(super) fn refuse(&mut self, key: &str, error: RpcError, now: u64) -> bool {
        let Some(question) = self.body.questions.remove(key) else { return false };
        self.body.refused.insert(question.key, error);
        self.settle_status(now);
        true
    }

    /// Ends the task, unless it has ended. Returns whether it had not.
    pub(super) fn end(
        &mut self,
        status: TaskStatus,
        outcome: Option<TaskOutcome>,
        message: Option<String>,
        now: u64,
    ) -> bool {
        if self.is_ended() {
            return false;
        }
        let body = &mut self.body;
        (body.status, body.outcome, body.updated) = (status, outcome, now);
        body.message = message.or(body.message.take());
        // None of it is needed any more.
        (body.questions, body.answers, body.call) = (BTreeMap::new(), BTreeMap::new(), None);
        (body.keys, body.refused) = (BTreeSet::new(), BTreeMap::new());
        self.holder = None;
        true
    }

    /// Ends the task with an error.
    pub(super) fn fail(&mut self, error: RpcError, now: u64) -> bool {
        let message = Some(error.message.to_string());
        self.end(TaskStatus::Failed, Some(TaskOutcome::Error(error)), message, now)
    }

    /// Returns the answers that the call does not have yet, as an object.
    pub(super) fn offered(&self) -> Option<RawObject> {
        (!self.body.answers.is_empty()).then(|| RawObject::from_serialize(&self.body.answers).ok()).flatten()
    }

    /// Returns the task as it is stored, sealed with the keys of the server.
    pub(super) fn seal(&self, server: &Server, unread: bool) -> io::Result<StoredTask> {
        let plain = serde_json::to_vec(&self.body)?;
        let mut stored = StoredTask::new(&self.id, &self.owner, self.expires(), Vec::new());
        stored.body = server.seal_value(&bound(&stored), &plain)?;
        stored.account.clone_from(&self.account);
        stored.holder.clone_from(&self.holder);
        (stored.version, stored.unread) = (self.version, unread);
        Ok(stored)
    }

    /// Opens a task that was stored.
    pub(super) fn open(server: &Server, stored: StoredTask) -> io::Result<Self> {
        Self::open_as(server, stored, OLDEST..=FORMAT)
    }

    /// Opens a task that was stored in one of these formats.
    fn open_as(server: &Server, stored: StoredTask, formats: RangeInclusive<u32>) -> io::Result<Self> {
        #[derive(Deserialize)]
        struct Written {
            #[serde(rename = "f", default)]
            format: u32,
        }
        let unreadable = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
        let plain = server.open_value(&bound(&stored), &stored.body).ok_or_else(|| {
            unreadable(
                "a task was sealed with a key that the server does not have, or was changed".to_owned(),
            )
        })?;
        let Written { format } = serde_json::from_slice(&plain)?;
        if !formats.contains(&format) {
            let (oldest, newest) = formats.into_inner();
            return Err(unreadable(format!(
                "a task has format {format}, and this server reads {oldest} to {newest}: update the older of the two"
            )));
        }
        Ok(Self {
            body: serde_json::from_slice(&plain)?,
            id: stored.id,
            owner: stored.owner,
            account: stored.account,
            version: stored.version,
            holder: stored.holder,
        })
    }
}

/// Returns what a body is bound to: it cannot become that of another task, or of another owner.
fn bound(task: &StoredTask) -> String {
    format!("task\0{}\0{}\0{}", task.id, task.owner, task.expires)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle::server::StateKeys;

    fn server(key: u8) -> Server {
        Server::new("s", "0").state_keys(StateKeys::from([key; 32]))
    }

    fn record() -> TaskRecord {
        let mut record = TaskRecord::new("id".into(), "name:ann".into(), "tool".into(), 1_000);
        record.body.ttl = 500;
        record.body.answers.insert("key".into(), r#"{"secret":"sesame"}"#.parse().unwrap());
        record
    }

    #[test]
    fn a_record_is_sealed_and_belongs_to_its_task_and_owner() {
        let stored = record().seal(&server(1), false).unwrap();
        assert_eq!((&*stored.owner, stored.expires), ("name:ann", 1_500));
        for text in ["sesame", "tool", "secret"] {
            assert!(!String::from_utf8_lossy(&stored.body).contains(text), "{text}");
        }
        let opened = TaskRecord::open(&server(1), stored.clone()).unwrap();
        assert_eq!(opened.body.answers, record().body.answers);
        let refused = |server: &Server, stored: StoredTask| TaskRecord::open(server, stored).unwrap_err();
        refused(&server(2), stored.clone());
        refused(&server(1), StoredTask { owner: "name:bob".into(), ..stored.clone() });
        refused(&server(1), StoredTask { id: "other".into(), ..stored.clone() });
        refused(&server(1), StoredTask { expires: 9_999, ..stored });
    }

    /// A body as the first version writes it, and a member of a later one.
    const FIRST: &str = r#"{"f":1,"tool":"order","status":"input_required","message":"half way","created":1000,"updated":1200,"ttl":500,
        "questions":{"1":{"key":"where","request":{"method":"roots/list","params":{}}}},"keys":["1"],
        "answers":{"what":{"action":"decline"}},"outcome":null,"later":[1]}"#;

    #[test]
    fn the_next_version_reads_this_format_and_leaves_it_readable_for_this_one() {
        let server = server(1);
        let mut stored = StoredTask::new("id", "name:ann", 1_500, Vec::new());
        stored.body = server.seal_value(&bound(&stored), FIRST.as_bytes()).unwrap();
        let mut record = TaskRecord::open_as(&server, stored, FORMAT..=FORMAT + 1).unwrap();
        assert_eq!((&*record.body.tool, record.expires()), ("order", 1_500));
        assert_eq!(
            (&record.body.status, &*record.body.questions["1"].key),
            (&TaskStatus::InputRequired, "where")
        );
        assert!(record.answer("1", RawObject::empty(), 1_300));
        let read = TaskRecord::open(&server, record.seal(&server, true).unwrap()).unwrap();
        assert_eq!((read.body.format, &read.body.status), (1, &TaskStatus::Working));
        assert_eq!(read.body.answers.keys().collect::<Vec<_>>(), ["what", "where"]);
    }

    #[test]
    fn another_format_is_refused_by_its_number() {
        for format in [OLDEST - 1, FORMAT + 1] {
            let mut record = record();
            record.body.format = format;
            let error = TaskRecord::open(&server(1), record.seal(&server(1), false).unwrap()).unwrap_err();
            assert!(error.to_string().starts_with(&format!("a task has format {format}")), "{error}");
        }
    }
}
