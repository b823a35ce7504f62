use serde::{Deserialize, Serialize};

use crate::schema::common::wire::{self, words};
use crate::{JsonObject, Meta};

/// Asks that a request be run as a task.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct TaskMetadata {
    /// For how many milliseconds to keep the task.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub ttl: Option<i64>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl TaskMetadata {
    /// Kept as long as the receiver likes.
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
    /// Its name.
    pub task_id: String,
    /// How it stands.
    pub status: TaskStatus,
    /// The same for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When it began, in ISO 8601.
    pub created_at: String,
    /// When it last changed, in ISO 8601.
    pub last_updated_at: String,
    /// For how many milliseconds from its creation it is kept; `None`, printed as `null`, means without end.
    #[serde(deserialize_with = "wire::optional_integer")]
    pub ttl: Option<i64>,
    /// How many milliseconds to wait between questions.
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
    /// A task that has just begun and is kept without end.
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
    /// How a task stands.
    TaskStatus {
        /// It runs.
        Working = "working",
        /// It waits for an answer from whoever asked for it.
        InputRequired = "input_required",
        /// It has its result.
        Completed = "completed",
        /// It failed.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

impl TaskStatus {
    /// Whether it stays so.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// The answer to a request that asked for a task.
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
    /// It has begun.
    pub fn new(task: Task) -> Self {
        Self { task, meta: None, extra: JsonObject::new() }
    }
}

/// Which task is meant: `tasks/get`, `tasks/result` and `tasks/cancel`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskParams {
    /// Its name.
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

/// One page of `tasks/list`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTasksResult {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// What to ask the next page with. Absent means that this is the last; an empty string is a cursor.
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
    /// The only page.
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
