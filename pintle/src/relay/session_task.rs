//! Tools of a server with sessions that have to be called as tasks, for clients that have no such tasks.

use std::sync::{Arc, Weak};

use pintle_types::{ErrorCode, RawObject, RpcError, keys, method, schema::TaskSupport};
use serde_json::{json, value::to_raw_value};

use super::{Inner, Relay, awaited_task::AwaitedTask, meta::without_meta};
use crate::{
    Connection, Error, Result,
    client::{CallNotification, Forward},
    server::Cx,
};

/// Returns whether a server has tasks of the session era.
pub(super) fn has_tasks(connection: &Connection) -> bool {
    let tasks = connection.capabilities().tasks;
    let tools = tasks.and_then(|tasks| tasks.requests).and_then(|requests| requests.tools);
    !connection.revision().is_stateless() && tools.is_some_and(|tools| tools.call.is_some())
}

/// A way to make a call a task whose tool has to be called as one, although its client has no tasks of the session era.
pub(super) struct TaskFallback {
    /// A call that waits for its client is kept by the relay.
    relay: Weak<Inner>,
    tool: String,
}

impl TaskFallback {
    /// Returns that of a call; `None` if its client can ask for a task itself.
    pub(super) fn of(relay: &Relay, cx: &Cx, method: &str) -> Option<Self> {
        if method != method::TOOLS_CALL || cx.peer().revision.has_method(method::TASKS_RESULT) {
            return None;
        }
        let tool = cx.params().decode_member("name").ok()??;
        Some(Self { relay: Arc::downgrade(&relay.inner), tool })
    }

    /// Returns whether a call has failed because its tool has to be called as a task. Servers have two codes for it.
    fn is_needed(&self, error: &RpcError) -> bool {
        let requires = || {
            let tool = self.relay.upgrade()?.known.tool(&self.tool)?;
            Some(tool.execution?.task_support? == TaskSupport::Required)
        };
        matches!(error.code, ErrorCode::METHOD_NOT_FOUND | ErrorCode::INVALID_REQUEST)
            && requires().unwrap_or(false)
    }

    /// Makes a call. If its tool has to be called as a task, it is, and the result of the task is returned.
    pub(super) async fn call(
        self,
        connection: &Connection,
        mut forward: Forward,
        notify: impl Fn(CallNotification) + Clone + Send + 'static,
    ) -> Result<RawObject> {
        match connection.forward(forward.clone(), notify.clone()).await {
            Err(Error::Rpc(error)) if self.is_needed(&error) => {}
            result => return result,
        }
        let unreadable = |error: serde_json::Error| Error::Decode(format!("the task of a call: {error}"));
        forward.params = forward.params.with("task", &to_raw_value(&json!({})).map_err(unreadable)?);
        let created = connection.forward(forward.clone(), notify.clone()).await?;
        let task: Option<RawObject> = match created.get("content") {
            None => created.decode_member("task").map_err(unreadable)?,
            Some(_) => None,
        };
        let id = task.map(|task| task.decode_member::<String>("taskId")).transpose().map_err(unreadable)?;
        let Some(id) = id.flatten() else { return Ok(created) };
        let mut task = AwaitedTask::new(connection.clone(), id, forward.capabilities.clone());
        let Some(request) = task.request(method::TASKS_RESULT) else { return Ok(created) };
        let request = Forward { questions: forward.questions, log_level: forward.log_level, ..request };
        let result = connection.forward(request, notify).await;
        task.is_over = true;
        // The client knows of no task.
        result.map(|result| without_meta(result, &[keys::RELATED_TASK]))
    }
}
