//! Tasks of a server without sessions, for clients with a session: the relay polls them to their end.

use std::{collections::HashSet, sync::Arc};

use pintle::types::{
    ErrorCode, RawObject, RpcError,
    method::{self, tasks_extension},
    schema::{ClientCapabilities, DetailedTask, MissingCapabilityData, TaskStatus},
};
use serde_json::{Map, json};
use tokio::time::sleep;

use crate::{
    calls::questions::ask_all,
    declared::DeclaredCapabilities,
    relay::Relay,
    request::RelayedRequest,
    tasks::{awaited::AwaitedTask, interval, status_text},
    upstream::failure::Failure,
};

/// Returns whether a call failed because its tool runs as a task only.
pub(super) fn is_needed(error: &RpcError, declared: &ClientCapabilities) -> bool {
    let has_tasks = |can: &ClientCapabilities| {
        can.extensions.as_ref().is_some_and(|names| names.contains_key(tasks_extension::NAME))
    };
    error.code == ErrorCode::MISSING_CLIENT_CAPABILITY
        && !has_tasks(declared)
        && error
            .data_as::<MissingCapabilityData>()
            .is_some_and(|missing| has_tasks(&missing.required_capabilities))
}

/// Declares that tasks are supported too.
pub(super) fn declare(capabilities: &ClientCapabilities) -> Arc<DeclaredCapabilities> {
    let mut capabilities = capabilities.clone();
    capabilities.extensions.get_or_insert_default().insert(tasks_extension::NAME.to_owned(), json!({}));
    DeclaredCapabilities::new(capabilities)
}

/// Polls a task to its end, and returns the result of the call. Its questions are asked.
pub(super) async fn result(
    request: RelayedRequest<'_>,
    capabilities: &ClientCapabilities,
    created: &RawObject,
) -> Result<RawObject, Failure> {
    let RelayedRequest { relay, cx } = request;
    let unreadable = |error: serde_json::Error| {
        RpcError::internal(format!("a task of `{}` cannot be read: {error}", relay.backend()))
    };
    let declared = declare(capabilities);
    let mut printed = created.clone();
    let mut state: DetailedTask = printed.decode().map_err(unreadable)?;
    let connection = relay.inner.upstream.live_primary().await?.connection.clone();
    let mut task = AwaitedTask::new(connection, state.task_id.clone(), declared.printed.clone());
    let params = |id: &str| RawObject::from_serialize(&json!({ "taskId": id }));
    let (mut answered, mut reported) = (HashSet::new(), None);
    loop {
        if state.status_message.is_some() && state.status_message != reported {
            reported.clone_from(&state.status_message);
            request.downstream().status(status_text(reported.as_deref().unwrap_or_default()));
        }
        if state.status.is_terminal() {
            task.is_over = true;
            return Ok(ended(relay, &printed, state)?);
        }
        let mut asked = request.read_questions(&printed)?;
        asked.requests.retain(|question| answered.insert(question.key.clone()));
        if asked.requests.is_empty() {
            sleep(interval(state.poll_interval_ms)).await;
        } else {
            let answers: Map<_, _> = ask_all(cx, &asked)
                .await?
                .into_iter()
                .map(|(key, answer)| Ok((key.into(), answer.decode()?)))
                .collect::<Result<_, serde_json::Error>>()
                .map_err(unreadable)?;
            let update = RawObject::from_serialize(&json!({ "taskId": task.id, "inputResponses": answers }));
            let update = update.map_err(unreadable)?;
            request.call_as((tasks_extension::TASKS_UPDATE, &update), &declared).await?;
        }
        let get = params(&task.id).map_err(unreadable)?;
        printed = request.call_as((method::TASKS_GET, &get), &declared).await?;
        state = printed.decode().map_err(unreadable)?;
    }
}

/// Returns the outcome of a task that has ended.
fn ended(relay: &Relay, printed: &RawObject, state: DetailedTask) -> Result<RawObject, RpcError> {
    let missing = || {
        RpcError::internal(format!(
            "a task of `{}` is `{}`, but has no outcome",
            relay.backend(),
            state.status
        ))
    };
    match (&state.status, state.error) {
        (TaskStatus::Cancelled, _) => {
            Err(RpcError::internal(format!("the task was cancelled by `{}`", relay.backend())))
        }
        (_, Some(error)) => Err(error),
        (_, None) => printed.decode_member("result").ok().flatten().ok_or_else(missing),
    }
}
