//! Tasks: those of one session-era revision, and those of the later extension.

mod detailed;
mod task;

pub use detailed::{DetailedTask, UpdateTaskParams};
pub use task::{CreateTaskResult, ListTasksResult, Task, TaskMetadata, TaskParams, TaskStatus};
