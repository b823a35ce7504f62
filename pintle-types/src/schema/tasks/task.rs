use serde::{Deserialize, Serialize};

use crate::common::wire::{self, words};
use crate::{JsonObject, Meta};

/// A request's wish to be run as a task.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct TaskMetadata {
    /// How long to keep the task, in milliseconds.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub ttl: Option<i64>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl TaskMetadata {
    /// Creates metadata without a time limit: the receiver decides.
    pub fn new() -> Self {
        Self::default()
    }
}

/// A request that runs on its own, in the session-era revision that has tasks.
///
/// The later extension has another shape: [`DetailedTask`](super::DetailedTask).
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// The id of the task.
    pub task_id: String,
    /// The status.
    pub status: TaskStatus,
    /// The status for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// The time of creation, in ISO 8601.
    pub created_at: String,
    /// The time of the last change, in ISO 8601.
    pub last_updated_at: String,
    /// How long the task is kept after its creation, in milliseconds. `None`, printed as `null`, means without a time
    /// limit.
    #[serde(deserialize_with = "wire::optional_integer")]
    pub ttl: Option<i64>,
    /// The recommended interval between polls, in milliseconds.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub poll_interval: Option<i64>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl Task {
    /// Creates a task that has just started and is kept without a time limit.
    pub fn new(task_id: impl Into<String>, created_at: impl Into<String>) -> Self {
        let created_at = created_at.into();
        Self {
            task_id: task_id.into(),
            status: TaskStatus::Working,
            status_message: None,
            last_updated_at: created_at.clone(),
            created_at,
            ttl: None,
            poll_interval: None,
            meta: None,
            extra: JsonObject::new(),
        }
    }
}

words! {
    /// The status of a task.
    TaskStatus {
        /// The task is running.
        Working = "working",
        /// The task waits for input from the requester.
        InputRequired = "input_required",
        /// The task has completed with a result.
        Completed = "completed",
        /// The task has failed.
        Failed = "failed",
        /// The task was cancelled.
        Cancelled = "cancelled",
    }
}

impl TaskStatus {
    /// Whether the status is final.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// The result of a request that asked for a task.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CreateTaskResult {
    /// The task.
    pub task: Task,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl CreateTaskResult {
    /// Creates the result of a task that has started.
    pub fn new(task: Task) -> Self {
        Self { task, meta: None, extra: JsonObject::new() }
    }
}

/// The params of `tasks/get`, `tasks/result` and `tasks/cancel`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskParams {
    /// The id of the task.
    pub task_id: String,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl TaskParams {
    /// The task `task_id`.
    pub fn new(task_id: impl Into<String>) -> Self {
        Self { task_id: task_id.into(), ..Self::default() }
    }
}

/// The result of `tasks/list`: one page.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTasksResult {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// The cursor of the next page. Absent on the last page; an empty string is a cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ListTasksResult {
    /// Creates a result with a single page.
    pub fn new(tasks: Vec<Task>) -> Self {
        Self { tasks, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: &str =
        r#"{"taskId":"t","status":"working","createdAt":"now","lastUpdatedAt":"now","ttl":null}"#;

    #[test]
    fn a_task_kept_for_ever_says_null() {
        let task: Task = serde_json::from_str(TASK).unwrap();
        assert_eq!(task, Task::new("t", "now"));
        assert_eq!(serde_json::to_string(&task).unwrap(), TASK);
    }

    #[test]
    fn a_missing_ttl_is_no_null() {
        let error =
            serde_json::from_str::<Task>(&TASK.replace(r#","ttl":null"#, "")).unwrap_err().to_string();
        assert!(error.starts_with("missing field `ttl`"), "{error}");
    }
}
