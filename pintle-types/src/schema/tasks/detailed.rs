use super::TaskStatus;
use crate::common::{object, wire};
use crate::schema::base::{InputRequests, InputResponses, ResultType};
use crate::{JsonObject, RpcError};

object! {
    /// A task of the tasks extension: its status, and what belongs to that status.
    ///
    /// The result of a call that became a task, of `tasks/get`, and the params of `notifications/tasks`.
    #[derive(Debug)]
    DetailedTask {
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
        ttl_ms: Option<i64>,
        /// The recommended interval between polls, in milliseconds.
        #[serde(default, deserialize_with = "wire::optional_integer")]
        poll_interval_ms?: i64,
        /// The input that the task waits for, if the status is [`TaskStatus::InputRequired`].
        input_requests?: InputRequests,
        /// The result, if the status is [`TaskStatus::Completed`].
        result?: JsonObject,
        /// The error, if the status is [`TaskStatus::Failed`].
        error?: RpcError,
        /// The type of the result. Absent means [`ResultType::Complete`].
        result_type?: ResultType,
        ..meta
    }
}

impl DetailedTask {
    /// Creates a task that has just started and is kept without a time limit.
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

object! {
    /// The params of `tasks/update`: responses that a task waits for.
    #[derive(Debug, Default)]
    UpdateTaskParams {
        /// The task.
        task_id: String,
        /// The responses. Not all are needed at once.
        input_responses: InputResponses,
        ..meta
    }
    /// Creates params with the responses for the task `task_id`.
    new(task_id: impl Into<String>, input_responses: InputResponses)
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
