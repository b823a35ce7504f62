use serde::{Deserialize, Serialize};

use super::TaskStatus;
use crate::schema::{
    base::{InputRequests, InputResponses, ResultType},
    common::wire,
};
use crate::{JsonObject, Meta, RpcError};

/// A task of the tasks extension: how it stands, and what goes with that.
///
/// The result of a call that became a task, of `tasks/get`, and the params of `notifications/tasks`.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DetailedTask {
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
    pub ttl_ms: Option<i64>,
    /// How many milliseconds to wait between questions.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<i64>,
    /// What it waits for, when the status is [`TaskStatus::InputRequired`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// What it came to, when the status is [`TaskStatus::Completed`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<JsonObject>,
    /// How it failed, when the status is [`TaskStatus::Failed`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RpcError>,
    /// What kind of result it is; absent means [`ResultType::Complete`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl DetailedTask {
    /// A task that has just begun and is kept without end.
    pub fn new(task_id: impl Into<String>, created_at: impl Into<String>) -> Self {
        let created_at = created_at.into();
        Self {
            task_id: task_id.into(),
            status: TaskStatus::Working,
            status_message: None,
            last_updated_at: created_at.clone(),
            created_at,
            ttl_ms: None,
            poll_interval_ms: None,
            input_requests: None,
            result: None,
            error: None,
            result_type: None,
            meta: None,
            extra: JsonObject::new(),
        }
    }
}

/// Answers to what a task waits for.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateTaskParams {
    /// The task.
    pub task_id: String,
    /// The answers; not all need to come at once.
    pub input_responses: InputResponses,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl UpdateTaskParams {
    /// Answers to `task_id`.
    pub fn new(task_id: impl Into<String>, input_responses: InputResponses) -> Self {
        Self { task_id: task_id.into(), input_responses, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_comes_back_in_every_state() {
        for rest in [
            r#""status":"working","createdAt":"a","lastUpdatedAt":"b","ttlMs":null,"pollIntervalMs":5,"resultType":"task""#,
            r#""status":"input_required","createdAt":"a","lastUpdatedAt":"b","ttlMs":1,"inputRequests":{"k":{"method":"roots/list"}}"#,
            r#""status":"completed","createdAt":"a","lastUpdatedAt":"b","ttlMs":1,"result":{"content":[]}"#,
            r#""status":"failed","createdAt":"a","lastUpdatedAt":"b","ttlMs":1,"error":{"code":-32603,"message":"no","data":{"z":1,"a":2}}"#,
            r#""status":"paused","createdAt":"a","lastUpdatedAt":"b","ttlMs":1,"novel":true"#,
        ] {
            let text = format!(r#"{{"taskId":"t",{rest}}}"#);
            let task: DetailedTask = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&task).unwrap(), text);
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            let again: DetailedTask = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&again).unwrap(), value);
        }
    }
}
