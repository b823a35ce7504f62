//! Calls that are made as tasks of a server with sessions, for clients that have no such tasks.

use std::{
    convert::Infallible,
    future::{pending, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use pintle::{
    Connection, Error, Result,
    forward::{ForwardEvent, ForwardRequest},
    proto::TaskKind,
    server::Cx,
    types::{ErrorCode, RawObject, RpcError, keys, method, schema::TaskSupport},
};
use serde::Deserialize;
use serde_json::{json, value::to_raw_value};
use tokio::time::sleep;

use super::{awaited::AwaitedTask, interval, status_text};
use crate::{link_state::catalogue::LinkCatalogue, meta::without_meta};

/// Returns whether a server has tasks of the protocol.
pub(crate) fn has_tasks(connection: &Connection) -> bool {
    let tasks = connection.capabilities().tasks;
    let tools = tasks.and_then(|tasks| tasks.requests).and_then(|requests| requests.tools);
    connection.facts().tasks == TaskKind::Protocol && tools.is_some_and(|tools| tools.call.is_some())
}

/// When a call is made as a task of the server behind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TaskUse {
    /// If its tool has to be called as one. Its client waits for the result.
    IfRequired,
    /// Always. Its client follows the task.
    Followed,
}

/// A report of the task that a call was made as.
#[derive(Debug)]
pub(crate) enum TaskReport {
    /// The task was created, and is kept for this time. It is reported if the client of the call follows the task.
    Created(Duration),
    /// The status for people.
    Status(String),
}

/// A way to make a call a task of the server behind, although its client has no tasks of the session era.
pub(crate) struct SessionTaskCall {
    /// The lists that the connection of the call has read, and those that any has: one of another era has other lists.
    known: [Arc<LinkCatalogue>; 2],
    tool: String,
    used: TaskUse,
}

/// A task, as a server with sessions describes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionTask {
    task_id: String,
    /// In milliseconds; without it, the task is kept without a time limit.
    #[serde(default)]
    ttl: Option<f64>,
    #[serde(default)]
    poll_interval: Option<f64>,
    #[serde(default)]
    status_message: Option<String>,
}

impl SessionTask {
    fn lifetime(&self) -> Duration {
        let millis = |ttl| Duration::try_from_secs_f64(ttl / 1000.0).unwrap_or(Duration::MAX);
        self.ttl.map_or(Duration::MAX, millis)
    }

    fn interval(&self) -> Duration {
        #[expect(clippy::cast_possible_truncation, reason = "a number out of range becomes the nearest one")]
        interval(self.poll_interval.map(|millis| millis as i64))
    }
}

impl SessionTaskCall {
    /// Returns that of a call; `None` if its client can ask for a task itself.
    pub(crate) fn of(known: [&Arc<LinkCatalogue>; 2], cx: &Cx, method: &str, used: TaskUse) -> Option<Self> {
        if method != method::TOOLS_CALL || cx.peer().revision.has_method(method::TASKS_RESULT) {
            return None;
        }
        let tool = cx.params().decode_member("name").ok()??;
        Some(Self { known: known.map(Arc::clone), tool, used })
    }

    /// Returns whether a call has failed because its tool has to be called as a task. Servers have two codes for it.
    fn is_needed(&self, error: &RpcError) -> bool {
        matches!(error.code, ErrorCode::METHOD_NOT_FOUND | ErrorCode::INVALID_REQUEST)
            && self.known.iter().find_map(|known| known.task_support(&self.tool)).flatten()
                == Some(TaskSupport::Required)
    }

    /// Makes a call, as a task if that is to be. Returns the result of the task, or that of the call if it became none.
    pub(crate) async fn call(
        self,
        connection: &Connection,
        forward: ForwardRequest,
        notify: impl Fn(ForwardEvent) + Clone + Send + 'static,
        report: impl Fn(TaskReport),
    ) -> Result<RawObject> {
        let is_followed = self.used == TaskUse::Followed;
        if !is_followed {
            match connection.forward(forward.clone(), notify.clone()).await {
                Err(Error::Rpc(error)) if self.is_needed(&error) => {}
                result => return result,
            }
        }
        let unreadable = |error: serde_json::Error| Error::Decode(format!("the task of a call: {error}"));
        let mut as_task = forward.clone();
        as_task.params = as_task.params.with("task", &to_raw_value(&json!({})).map_err(unreadable)?);
        let created = match connection.forward(as_task, notify.clone()).await {
            // The list was another one: the tool is not called as a task any more.
            Err(Error::Rpc(error)) if is_followed && error.code == ErrorCode::METHOD_NOT_FOUND => {
                return connection.forward(forward, notify).await;
            }
            created => created?,
        };
        let state: Option<SessionTask> = match created.get("content") {
            None => created.decode_member("task").map_err(unreadable)?,
            Some(_) => None,
        };
        let Some(state) = state else { return Ok(created) };
        let mut task =
            AwaitedTask::new(connection.clone(), state.task_id.clone(), forward.capabilities.clone());
        let Some(mut request) = task.request(method::TASKS_RESULT) else { return Ok(created) };
        request.questions = forward.questions;
        request.log_level = forward.log_level;
        let result = match is_followed {
            false => connection.forward(request, notify).await,
            true => {
                report(TaskReport::Created(state.lifetime()));
                let mut result = pin!(connection.forward(request, notify));
                let mut polling = pin!(poll_status(&task, state, report));
                poll_fn(|context| match result.as_mut().poll(context) {
                    Poll::Pending => polling.as_mut().poll(context).map(|never| match never {}),
                    ready => ready,
                })
                .await
            }
        };
        task.is_over = true;
        // The client knows of no task.
        result.map(|result| without_meta(result, &[keys::RELATED_TASK]))
    }
}

/// Polls a task, and reports each status for people that it has. Its end is known otherwise.
async fn poll_status(task: &AwaitedTask, mut state: SessionTask, report: impl Fn(TaskReport)) -> Infallible {
    let mut reported = None;
    loop {
        if let Some(message) = state.status_message.take_if(|message| reported.as_ref() != Some(message)) {
            report(TaskReport::Status(status_text(&message)));
            reported = Some(message);
        }
        sleep(state.interval()).await;
        let Some(request) = task.request(method::TASKS_GET) else { return pending().await };
        if let Ok(polled) = task.connection.forward(request, |_| {}).await
            && let Ok(polled) = polled.decode()
        {
            state = polled;
        }
    }
}
