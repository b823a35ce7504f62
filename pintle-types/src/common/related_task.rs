use serde::{Deserialize, Serialize};

use crate::JsonObject;

/// The value of [`keys::RELATED_TASK`](crate::keys::RELATED_TASK): the task to which a message belongs.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RelatedTask {
    /// The id of the task.
    pub task_id: String,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl RelatedTask {
    /// The task `task_id`.
    pub fn new(task_id: impl Into<String>) -> Self {
        Self { task_id: task_id.into(), ..Self::default() }
    }
}
