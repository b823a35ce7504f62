use serde::{Deserialize, Serialize};

use crate::JsonObject;

/// The value under [`keys::RELATED_TASK`](crate::keys::RELATED_TASK): which task a message belongs to.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RelatedTask {
    /// Its name.
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
