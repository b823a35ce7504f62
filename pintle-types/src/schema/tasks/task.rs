use crate::JsonObject;
use crate::common::{
    object,
    wire::{self, words},
};

object! {
    /// A request's wish to be run as a task.
    #[derive(Debug, Default)]
    TaskMetadata {
        /// How long to keep the task, in milliseconds.
        #[serde(default, deserialize_with = "wire::optional_integer")]
        ttl?: i64,
        ..
    }
    /// Creates metadata without a time limit: the receiver decides.
    new()
}

object! {
    /// A request that runs on its own, in the session-era revision that has tasks.
    ///
    /// The later extension has another shape: [`DetailedTask`](super::DetailedTask).
    #[derive(Debug)]
    Task {
        /// The id of the task.
        task_id: String,
        /// The status.
        status: TaskStatus,
        /// The status for people.
        status_message?: String,
        /// The time of creation, in ISO 8601.
        created_at: String,
        /// The time of the last change, in ISO 8601.
        last_updated_at: String,
        /// How long the task is kept after its creation, in milliseconds. `None`, printed as `null`, means without a time
        /// limit.
        #[serde(deserialize_with = "wire::optional_integer")]
        ttl: Option<i64>,
        /// The recommended interval between polls, in milliseconds.
        #[serde(default, deserialize_with = "wire::optional_integer")]
        poll_interval?: i64,
        ..meta
    }
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

object! {
    /// The result of a request that asked for a task.
    #[derive(Debug)]
    CreateTaskResult {
        /// The task.
        task: Task,
        ..meta
    }
    /// Creates the result of a task that has started.
    new(task: Task)
}

object! {
    /// The params of `tasks/get`, `tasks/result` and `tasks/cancel`.
    #[derive(Debug, Default)]
    TaskParams {
        /// The id of the task.
        task_id: String,
        ..meta
    }
    /// The task `task_id`.
    new(task_id: impl Into<String>)
}

object! {
    /// The result of `tasks/list`: one page.
    #[derive(Debug, Default)]
    ListTasksResult {
        /// The tasks.
        tasks: Vec<Task>,
        /// The cursor of the next page. Absent on the last page; an empty string is a cursor.
        next_cursor?: String,
        ..meta
    }
    /// Creates a result with a single page.
    new(tasks: Vec<Task>)
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
