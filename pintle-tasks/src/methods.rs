//! The methods of tasks.

use std::{borrow::Cow, collections::HashSet, io, sync::Arc};

use pintle::{
    proto::TaskKind,
    server::{AskError, Cx, Outcome},
    types::{
        ErrorCode, JsonObject, RawObject, RawValue, RpcError, plain_error,
        schema::{InputRequest, ListParams, ListTasksResult, TaskParams, UpdateTaskParams},
    },
};
use serde_json::{Value, value::to_raw_value};
use tokio::{task::JoinSet, time::sleep};

use super::{
    host::{TaskHost, unreachable_store},
    keeper::TaskPlace,
    owner::{is_one_caller, owner},
    record::{TaskOutcome, TaskRecord},
    running::RunningTask,
    wire,
};

/// Prints a task in the shapes of the caller.
fn shown(host: &TaskHost, cx: &Cx, record: &TaskRecord) -> Result<RawObject, RpcError> {
    wire::printed(record, cx.facts().tasks, host.poll)
}

/// Returns the state of a task. Most polls are of a task that this process runs.
pub(super) async fn get(host: Arc<TaskHost>, cx: Cx) -> Outcome {
    host.keep(cx.server());
    let id = match requested_id(&cx) {
        Ok(id) => id,
        Err(error) => return Outcome::Failed(error),
    };
    if !host.store.is_durable()
        && let Some(task) = host.find_running(&cx, &id)
    {
        return running(&host, &cx, &task);
    }
    let id = id.into_owned();
    // Boxed, because its future is large and few polls need it.
    Box::pin(get_stored(host, cx, id)).await
}

/// Returns a task as this process knows it.
fn running(host: &TaskHost, cx: &Cx, task: &RunningTask) -> Outcome {
    match task.printed(cx.peer().revision, host.poll) {
        Ok(printed) => Outcome::Complete(printed),
        Err(error) => Outcome::Failed(error),
    }
}

/// Returns the id of the task that a request is about.
fn requested_id(cx: &Cx) -> Result<Cow<'_, str>, RpcError> {
    let refuse = |reason: String| RpcError::invalid_params(format!("`{}`: {reason}", cx.method()));
    let raw = cx.params().get("taskId").ok_or_else(|| refuse("missing field `taskId`".to_owned()))?;
    match raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).filter(|id| !id.contains('\\')) {
        Some(id) => Ok(id.into()),
        None => serde_json::from_str(raw).map(Cow::Owned).map_err(|error| refuse(plain_error(&error))),
    }
}

/// Returns a task that another process may have changed, or that has ended.
async fn get_stored(host: Arc<TaskHost>, cx: Cx, id: String) -> Outcome {
    let found = match host.find_running(&cx, &id) {
        Some(task) => match host.changed_elsewhere(&cx, &task).await {
            Ok(Some(record)) => Ok(record),
            Ok(None) => return running(&host, &cx, &task),
            Err(error) => Err(error),
        },
        None => host.find(&cx, &id).await,
    };
    match found.and_then(|record| shown(&host, &cx, &record)) {
        Ok(printed) => Outcome::Complete(printed.into()),
        Err(error) => Outcome::Failed(error),
    }
}

/// Returns where a task of the caller runs.
async fn place(host: &Arc<TaskHost>, cx: &Cx, id: &str) -> Result<TaskPlace, RpcError> {
    host.keep(cx.server());
    match host.find_running(cx, id) {
        Some(task) => Ok(TaskPlace::Here(task)),
        None => host.find(cx, id).await.map(|record| TaskPlace::Elsewhere(Box::new(record))),
    }
}

/// Answers questions of a task.
pub(super) async fn update(
    host: Arc<TaskHost>,
    cx: Cx,
    params: UpdateTaskParams,
) -> Result<JsonObject, RpcError> {
    let task = place(&host, &cx, &params.task_id).await?;
    let is_open = |key: &str| match &task {
        TaskPlace::Here(task) => task.read(|record| record.body.questions.contains_key(key)),
        TaskPlace::Elsewhere(record) => record.body.questions.contains_key(key),
    };
    let mut answers = Vec::with_capacity(params.input_responses.len());
    for (key, answer) in params.input_responses {
        match RawObject::from_serialize(&answer) {
            // Answers to unknown questions are ignored.
            _ if !is_open(&key) => {}
            Ok(answer) => answers.push((key, Ok(answer))),
            Err(_) => {
                return Err(RpcError::invalid_params(format!(
                    "the answer to `{key}` is not an object: send one"
                )));
            }
        }
    }
    if !answers.is_empty() {
        host.answer(cx.server(), task, answers).await?;
    }
    Ok(JsonObject::new())
}

/// Cancels a task.
pub(super) async fn cancel(host: Arc<TaskHost>, cx: Cx, params: TaskParams) -> Result<RawObject, RpcError> {
    let task = place(&host, &cx, &params.task_id).await?;
    let (record, is_cancelled) = host.cancel(cx.server(), task).await?;
    match cx.facts().tasks {
        TaskKind::Extension => Ok(RawObject::empty()),
        _ if is_cancelled => shown(&host, &cx, &record),
        _ => Err(RpcError::invalid_params("the task has ended: it cannot be cancelled")),
    }
}

/// Lists the tasks of the caller.
pub(super) async fn list(
    host: Arc<TaskHost>,
    cx: Cx,
    params: ListParams,
) -> Result<ListTasksResult, RpcError> {
    const PAGE: usize = 100;
    let owner = owner(&cx);
    let after = params.cursor.map(|cursor| {
        let id = cx.open_cursor(&cursor).and_then(|id| String::from_utf8(id).ok());
        id.ok_or_else(|| RpcError::invalid_params("the cursor is not one of this list; begin without one"))
    });
    let after = after.transpose()?;
    let unreachable = |error: io::Error| unreachable_store(&error);
    host.read_clock().await?;
    let mut found = match is_one_caller(&owner) {
        true => host.store.list(&owner, after.as_deref(), PAGE + 1).await.map_err(unreachable)?,
        // Only their ids tell the tasks of anonymous callers apart.
        false => Vec::new(),
    };
    let is_last = found.len() <= PAGE;
    found.truncate(PAGE);
    let now = host.now();
    let next = found.last().filter(|_| !is_last).map(|record| cx.seal_cursor(record.id.as_bytes()));
    let mut tasks = Vec::with_capacity(found.len());
    for stored in found.into_iter().filter(|stored| stored.expires > now) {
        let record = match host.find_running(&cx, &stored.id) {
            Some(task) => host.if_newer(&cx, &task, stored)?.unwrap_or_else(|| task.record()),
            None => match TaskRecord::open(cx.server(), stored) {
                // The provider is one of several servers, and the task one of another.
                Err(_) if host.is_of_provider() => continue,
                record => record.map_err(unreachable)?,
            },
        };
        tasks.push(wire::session_task(&record, host.poll));
    }
    let mut result = ListTasksResult::new(tasks);
    result.next_cursor = next;
    Ok(result)
}

/// Waits for the result of a task. Meanwhile its questions are sent to the client, with this request.
pub(super) async fn result(host: Arc<TaskHost>, cx: Cx, params: TaskParams) -> Result<Value, RpcError> {
    host.keep(cx.server());
    let id = params.task_id;
    let mut asking = JoinSet::new();
    // The questions that this request carries.
    let (mut sent, mut held) = (HashSet::new(), Vec::new());
    loop {
        let Some(task) = host.find_running(&cx, &id) else {
            let record = host.find(&cx, &id).await?;
            if record.is_ended() {
                return ended(&cx, &id, &record);
            }
            for (key, asked) in &record.body.questions {
                if sent.insert(key.clone()) {
                    let (cx, host, id) = (cx.clone(), host.clone(), id.clone());
                    asking.spawn(ask(cx, host, id, key.clone(), asked.request.clone()));
                }
            }
            sleep(host.poll).await;
            continue;
        };
        let mut changes = task.changes();
        loop {
            changes.mark_unchanged();
            if task.read(TaskRecord::is_ended) {
                return ended(&cx, &id, &task.record());
            }
            for question in task.take_unsent() {
                if !sent.insert(question.key.clone()) {
                    // It was sent when the task ran elsewhere.
                    held.push(question);
                    continue;
                }
                let (cx, host, id) = (cx.clone(), host.clone(), id.clone());
                asking.spawn(async move {
                    ask(cx, host, id, question.key.clone(), question.request.clone()).await;
                    // Until here no other request carries it.
                    drop(question);
                });
            }
            if changes.changed().await.is_err() || host.find_running(&cx, &id).is_none() {
                break;
            }
        }
        if task.read(TaskRecord::is_ended) {
            return ended(&cx, &id, &task.record());
        }
    }
}

/// Sends a question of a task to the client, and passes the answer on.
async fn ask(cx: Cx, host: Arc<TaskHost>, id: String, key: String, request: InputRequest) {
    let answer = match related(&request, &id) {
        Ok(request) => loop {
            match cx.ask_for_another(request.clone()).await {
                // The task waits for it nevertheless, so the client is asked again.
                Err(AskError::AnswerLost) => {}
                answer => break answer,
            }
        },
        Err(error) => Err(AskError::Unprintable { reason: error.to_string() }),
    };
    // If this request is over, the next one carries the question.
    if matches!(answer, Err(AskError::CallOver)) {
        return;
    }
    let mut answer = answer;
    loop {
        let stored = match place(&host, &cx, &id).await {
            Ok(task) => host.answer(cx.server(), task, vec![(key.clone(), answer.clone())]).await,
            Err(error) => Err(error),
        };
        match stored {
            Ok(()) => return,
            // The client has answered, and is not asked again: the answer is kept until it can be stored.
            Err(error) if error.code == ErrorCode::OVERLOADED => sleep(host.poll).await,
            Err(error) if error.code == ErrorCode::INVALID_PARAMS && answer.is_ok() => {
                answer = Err(AskError::BadAnswer { key: key.clone(), reason: error.message.into_owned() });
            }
            Err(error) => {
                tracing::debug!(
                    reason = &*error.message,
                    "the answer to a question of a task was not stored"
                );
                return;
            }
        }
    }
}

/// Adds the task that a question belongs to.
fn related(request: &InputRequest, id: &str) -> serde_json::Result<InputRequest> {
    let params = request.params.as_deref().map_or("{}", RawValue::get);
    let mut params: Value = serde_json::from_str(params)?;
    wire::add_related_task(&mut params, id);
    let mut request = request.clone();
    request.params = Some(to_raw_value(&params)?);
    Ok(request)
}

/// Returns what the call of a task would have returned.
fn ended(cx: &Cx, id: &str, record: &TaskRecord) -> Result<Value, RpcError> {
    match &record.body.outcome {
        Some(TaskOutcome::Result(result)) => wire::session_result(cx, id, result),
        Some(TaskOutcome::Error(error)) => Err(error.clone()),
        None => Err(RpcError::invalid_params("the task was cancelled: it has no result")),
    }
}
