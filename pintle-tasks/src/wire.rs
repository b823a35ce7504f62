//! A task in the shapes of its client: those of the extension, and those of the revision that has tasks of its own.
//!
//! One record has two projections, of which a task that runs keeps the last one until the record is changed (`printed_record.rs`).

use std::{
    collections::BTreeMap,
    time::{Duration, UNIX_EPOCH},
};

use pintle::{
    message_log::timestamp::iso8601_micros,
    proto::{Part, TaskKind},
    server::{Cx, Outcome},
    types::{
        RawObject, RpcError, keys, method,
        schema::{CreateTaskResult, InputRequest, RelatedTask, Task, TaskStatus},
    },
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    RESULT_TYPE,
    record::{TaskOutcome, TaskRecord},
};

/// A task of the extension.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DetailedView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'a str>,
    task_id: &'a str,
    status: &'a TaskStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_message: Option<&'a str>,
    created_at: String,
    last_updated_at: String,
    ttl_ms: u64,
    poll_interval_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_requests: Option<BTreeMap<&'a str, &'a InputRequest>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RpcError>,
}

impl<'a> DetailedView<'a> {
    /// Returns a task with all that belongs to its status.
    pub(super) fn of(record: &'a TaskRecord, poll: Duration) -> Self {
        let body = &record.body;
        let (result, error) = match &body.outcome {
            Some(TaskOutcome::Result(result)) => (Some(result), None),
            Some(TaskOutcome::Error(error)) => (None, Some(error)),
            None => (None, None),
        };
        Self {
            input_requests: (body.status == TaskStatus::InputRequired)
                .then(|| body.questions.iter().map(|(key, asked)| (&**key, &asked.request)).collect()),
            result,
            error,
            ..Self::created(record, poll)
        }
    }

    /// Returns a task that was just created.
    fn created(record: &'a TaskRecord, poll: Duration) -> Self {
        Self {
            result_type: None,
            task_id: &record.id,
            status: &record.body.status,
            status_message: record.body.message.as_deref(),
            created_at: iso8601(record.body.created),
            last_updated_at: iso8601(record.body.updated),
            ttl_ms: record.body.ttl,
            poll_interval_ms: millis(poll),
            input_requests: None,
            result: None,
            error: None,
        }
    }
}

/// Returns the task of an older revision. There a result that reports an error is a failure.
pub(super) fn session_task(record: &TaskRecord, poll: Duration) -> Task {
    let mut task = Task::new(&record.id, iso8601(record.body.created));
    task.status = match &record.body.outcome {
        Some(TaskOutcome::Result(result)) if result.get("isError") == Some("true") => TaskStatus::Failed,
        _ => record.body.status.clone(),
    };
    task.status_message.clone_from(&record.body.message);
    task.last_updated_at = iso8601(record.body.updated);
    task.ttl = Some(i64::try_from(record.body.ttl).unwrap_or(i64::MAX));
    task.poll_interval = Some(i64::try_from(poll.as_millis()).unwrap_or(i64::MAX));
    task
}

/// Prints a task: in the shape of the extension, or in that of the revision that has tasks of its own.
pub(super) fn printed(record: &TaskRecord, kind: TaskKind, poll: Duration) -> Result<RawObject, RpcError> {
    let printed = match kind {
        TaskKind::Extension => RawObject::from_serialize(&DetailedView::of(record, poll)),
        _ => RawObject::from_serialize(&session_task(record, poll)),
    };
    printed.map_err(|error| RpcError::internal(error.to_string()))
}

/// Returns the outcome of a request that became a task.
pub(super) fn created(cx: &Cx, record: &TaskRecord, poll: Duration) -> Outcome {
    let result = if cx.facts().tasks == TaskKind::Extension {
        let view = DetailedView { result_type: Some(RESULT_TYPE), ..DetailedView::created(record, poll) };
        RawObject::from_serialize(&view)
    } else {
        RawObject::from_serialize(&CreateTaskResult::new(session_task(record, poll)))
    };
    match result {
        Ok(result) => Outcome::Complete(result.into()),
        Err(error) => Outcome::Failed(RpcError::internal(error.to_string())),
    }
}

/// Returns the result of a call as `tasks/result` has it: in the shapes of the client's revision, and with the task that it
/// belongs to.
pub(super) fn session_result(cx: &Cx, id: &str, result: &RawObject) -> Result<Value, RpcError> {
    let mut value: Value = result.decode().map_err(|error| RpcError::internal(error.to_string()))?;
    cx.peer()
        .revision
        .lower(Part::Result(method::TOOLS_CALL), &mut value)
        .map_err(|unsayable| RpcError::internal(unsayable.to_string()))?;
    add_related_task(&mut value, id);
    Ok(value)
}

/// Adds the task that a message belongs to.
pub(super) fn add_related_task(value: &mut Value, id: &str) {
    let Some(members) = value.as_object_mut() else { return };
    let meta = members.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        let related = serde_json::to_value(RelatedTask::new(id)).unwrap_or_default();
        meta.insert(keys::RELATED_TASK.to_owned(), related);
    }
}

fn iso8601(time: u64) -> String {
    iso8601_micros(UNIX_EPOCH + Duration::from_millis(time))
        .unwrap_or_else(|| "9999-12-31T23:59:59Z".to_owned())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
