//! Tasks of providers: their ids are those of the server for its clients.
//!
//! The id of a task is the address of its provider and the id there, sealed for the caller (`task_id.rs`); servers in servers seal it again.
//! `taskIds` of a subscription is divided by the providers whose addresses the ids are (`watched_tasks.rs`), each of which sees its own ids and
//! grants some; `Call::grant` has the engine acknowledge the ids of the client. Each provider has a table of its ids and those of clients, by
//! which a notification about a task is addressed again on its way out, once for each server that it passes. So a provider can report its own
//! tasks only. `Cx::set_provider` and `Mounted` have the numbers of the providers on the way, since a detached call does not pass them on its
//! way out.

pub(crate) mod task_id;
pub(crate) mod watched_tasks;

use std::sync::Arc;

use pintle_proto::{
    TaskKind,
    server::{Body, Extension, Outcome},
};
use pintle_types::{
    RawObject, RawValue, RpcError, keys,
    method::{self, Capability, tasks_extension},
};
use serde_json::{json, value::to_raw_value};

use self::{
    task_id::{MAX_SEALED_BYTES, StartedTasks, TaskAddress, TaskCaller},
    watched_tasks::WantedTask,
};
use super::{info::ProviderInfo, registry::RegisteredProvider};
use crate::server::{
    Cx, Principal,
    core::{
        catalogue::{custom::CustomMethod, lists, source::PagePosition},
        cx::detached::{OuterTask, TaskHolder},
        driver::run::HandlerFuture,
    },
};

/// The first byte of cursors of lists of tasks that continue in a provider.
const CURSOR: u8 = b'K';

/// The number of pages of providers that one list of tasks reads.
const MAX_PAGES: usize = 32;

/// Returns whether the result of a call may be a task: if its client asked for one, or supports them.
fn may_be_task(cx: &Cx) -> bool {
    cx.method() == method::TOOLS_CALL
        && match cx.facts().tasks {
            TaskKind::Extension => cx.extension(tasks_extension::NAME).is_some(),
            TaskKind::Protocol => cx.params().get("task").is_some(),
            TaskKind::None => false,
        }
}

/// Returns the outcome of a call of a tool of a provider, with the id that the task has here if it became one.
pub(crate) fn readdressed(cx: &Cx, number: usize, info: &ProviderInfo, outcome: Outcome) -> Outcome {
    let Outcome::Complete(body) = outcome else { return outcome };
    if !may_be_task(cx) {
        return Outcome::Complete(body);
    }
    let caller = TaskCaller::of(cx);
    if info.is_whole_server {
        // Clients get the ids that it has.
        if let Some(id) = nested_task_id(&body) {
            StartedTasks::note(&caller, &id);
        }
        return Outcome::Complete(body);
    }
    let inner = nested_task_id(&body);
    let outcome = outer(&caller, number, &info.name, body);
    if let (Some(inner), Outcome::Complete(body)) = (inner, &outcome)
        && let Some(outer) = nested_task_id(body)
        && let Some(known) = cx.snapshot().providers.get(number)
    {
        // The client of the session is notified of its status, without a subscription.
        caller.watch(&known.watched_tasks, WantedTask { provider: number, inner, outer });
    }
    outcome
}

/// Returns what a task of the mounted server that handles a call, or of its provider, is for clients of the outermost one. A call that is
/// detached passes no provider on its way out.
pub(crate) fn outer_task(cx: &Cx, holder: TaskHolder) -> OuterTask {
    let caller = Arc::new(TaskCaller::of(cx));
    let of_provider = cx.provider().filter(|_| holder == TaskHolder::Provider);
    let of_provider = of_provider.map(|number| (number, &**cx.snapshot()));
    // Clients know the tasks of a server that is another one by the ids that they have there.
    let hops = of_provider.into_iter().chain(cx.mounts()).filter_map(|(number, outer)| {
        let info = &outer.providers.get(number)?.info;
        (!info.is_whole_server).then(|| (number, info.name.clone()))
    });
    let hops: Arc<[(usize, String)]> = hops.collect();
    let (known, way) = (caller.clone(), hops.clone());
    OuterTask {
        naming: Box::new(move |id| {
            way.iter().try_fold(id.to_owned(), |id, (number, backend)| {
                TaskAddress { provider: *number, backend: backend.clone(), id }.seal(&known)
            })
        }),
        readdress: Box::new(move |outcome| {
            if hops.is_empty()
                && let Outcome::Complete(body) = &outcome
                && let Some(id) = nested_task_id(body)
            {
                StartedTasks::note(&caller, &id);
            }
            hops.iter().fold(outcome, |outcome, (number, backend)| match outcome {
                Outcome::Complete(body) => outer(&caller, *number, backend, body),
                outcome => outcome,
            })
        }),
    }
}

/// Returns a result of a provider with the id that its task has for a caller, if it is one.
fn outer(caller: &TaskCaller, number: usize, backend: &str, body: Body) -> Outcome {
    match with_outer_id(caller, number, backend, &body) {
        Ok(None) => Outcome::Complete(body),
        Ok(Some(result)) => Outcome::Complete(result.into()),
        Err(error) => Outcome::Failed(error),
    }
}

/// Returns whether a result is a task in the shape of the extension, and not within a member.
fn is_flat_task(result: &RawObject) -> bool {
    result.get("resultType") == Some("\"task\"")
}

/// Returns the task that a call in a session has become; `None` if it is not one.
fn nested_task(result: &RawObject) -> serde_json::Result<Option<RawObject>> {
    match result.get("content") {
        None if !is_flat_task(result) => result.decode_member("task"),
        _ => Ok(None),
    }
}

/// Returns the id of the task that a call in a session has become.
fn nested_task_id(result: &RawObject) -> Option<String> {
    nested_task(result).ok()??.decode_member("taskId").ok()?
}

/// Returns the result with the id that its task has here; `None` if it is not a task.
fn with_outer_id(
    caller: &TaskCaller,
    number: usize,
    backend: &str,
    result: &RawObject,
) -> Result<Option<RawObject>, RpcError> {
    let unreadable = |error: serde_json::Error| {
        RpcError::internal(format!("`{backend}` returned a task that cannot be read: {error}"))
    };
    let is_flat = is_flat_task(result);
    let nested = nested_task(result).map_err(unreadable)?;
    let Some(task) = nested.as_ref().or_else(|| is_flat.then_some(result)) else { return Ok(None) };
    let id: Option<String> = task.decode_member("taskId").map_err(unreadable)?;
    let address = TaskAddress { provider: number, backend: backend.to_owned(), id: id.unwrap_or_default() };
    let id = address.seal(caller)?;
    StartedTasks::note(caller, &id);
    let task = task.with("taskId", &to_raw_value(&id).map_err(unreadable)?);
    Ok(Some(match is_flat {
        true => task,
        false => result.with("task", &to_raw_value(&task).map_err(unreadable)?),
    }))
}

/// Returns the handler of a request for a task of a provider, or for a list with such tasks; `None` if the request has nothing to do
/// with providers. `own` is the handler that the server itself has for the method.
pub(crate) fn handler(cx: &Cx, own: Option<&CustomMethod>) -> Option<HandlerFuture> {
    let (method, snapshot) = (cx.method(), cx.snapshot());
    if !method.starts_with("tasks/") || snapshot.providers.iter().next().is_none() {
        return None;
    }
    let is_whole = snapshot.providers.is_whole_server();
    let may_have = |known: &RegisteredProvider| known.info.handles_any_method || known.has_method(method);
    if method == method::TASKS_LIST {
        // The only user of a process may see all that a server behind it lists. Of others, that server may know one client only.
        let is_only_user = is_whole && matches!(cx.identity(), Principal::Local);
        if is_only_user {
            return None;
        }
        if snapshot.providers.iter().any(lists_tasks) {
            return Some(Box::pin(list(cx.clone(), own.cloned())));
        }
        // A provider that has not declared a list could return the tasks of others.
        let undeclared = own.is_none() && snapshot.providers.iter().any(may_have);
        return undeclared.then(|| failed(RpcError::method_not_found(method)));
    }
    if is_whole {
        return None;
    }
    // A method that no revision and no extension of ours has may be about no task.
    if cx.params().get("taskId").is_none() && !is_request(method) {
        return None;
    }
    let outer: Option<String> = cx.params().decode_member("taskId").ok().flatten();
    let is_of_provider = own.is_none() && snapshot.providers.iter().any(may_have);
    if is_of_provider
        && cx.facts().tasks == TaskKind::Extension
        && cx.extension(tasks_extension::NAME).is_none()
    {
        return Some(failed(Extension::undeclared(tasks_extension::NAME)));
    }
    let opened = outer.and_then(|outer| Some((TaskAddress::open(cx, &outer)?, outer)));
    let Some((address, outer)) = opened else {
        // What nobody has sealed for the caller is not sent to any provider, whatever it is.
        let sent = cx.params().get("taskId").unwrap_or_default();
        return is_of_provider.then(|| unknown(sent.trim_matches('"')));
    };
    let Some(known) = address.provider(&snapshot.providers) else { return Some(unknown(&outer)) };
    let provider = known.provider.clone();
    let inner = to_raw_value(&address.id).ok()?;
    let inner = cx.clone().rewritten(|_, params| Some(params.with("taskId", &inner)));
    Some(Box::pin(async move {
        match provider.handle(inner).await {
            Outcome::Complete(body) => Outcome::Complete(with_requested_id(body, &outer)),
            // Its text may have the other id.
            Outcome::Failed(mut error) => {
                if error.message.contains(&*address.id) {
                    error.message = error.message.replace(&*address.id, &outer).into();
                }
                Outcome::Failed(error)
            }
            outcome => outcome,
        }
    }))
}

/// Refuses a request for a task of a server whose ids clients know, if what it names can be no id: nobody here knows the others.
pub(crate) fn check_id(cx: &Cx) -> Result<(), Outcome> {
    let (method, params) = (cx.method(), cx.params());
    let invalid = |reason: String| Err(Outcome::Failed(RpcError::invalid_params(reason)));
    if !method.starts_with("tasks/") || method == method::TASKS_LIST {
        return Ok(());
    }
    if params.get("taskId").is_none() {
        return match is_request(method) {
            true => invalid(format!("`{method}` needs `taskId`: send it in `params`")),
            false => Ok(()),
        };
    }
    match params.decode_member::<String>("taskId") {
        Ok(Some(id)) if !id.is_empty() && id.len() <= MAX_SEALED_BYTES => Ok(()),
        Ok(Some(id)) => Err(Outcome::Failed(unknown_task(&id))),
        _ => invalid(format!("`taskId` of `{method}` is not a string")),
    }
}

/// Returns whether this is a request for one task, of the protocol or of its extension.
fn is_request(name: &str) -> bool {
    tasks_extension::REQUESTS.iter().any(|row| row.name == name)
        || method::find(name).is_some_and(|row| row.capability == Some(Capability::Tasks))
}

fn unknown(id: &str) -> HandlerFuture {
    failed(unknown_task(id))
}

fn unknown_task(id: &str) -> RpcError {
    let shown: String = id.chars().take(128).collect();
    RpcError::invalid_params(format!("no such task: `{shown}`; it may have expired"))
}

fn failed(error: RpcError) -> HandlerFuture {
    Box::pin(std::future::ready(Outcome::Failed(error)))
}

/// Returns the answer to a request for a task, with the id that the client has sent.
fn with_requested_id(result: Body, outer: &str) -> Body {
    let Ok(id) = to_raw_value(outer) else { return result };
    let mut changed = None;
    if result.get("taskId").is_some() {
        changed = Some(result.with("taskId", &id));
    }
    let meta: Option<RawObject> = result.decode_member("_meta").ok().flatten();
    if let Some(meta) = meta.filter(|meta| meta.get(keys::RELATED_TASK).is_some())
        && let Ok(related) = to_raw_value(&json!({ "taskId": outer }))
        && let Ok(meta) = to_raw_value(&meta.with(keys::RELATED_TASK, &related))
    {
        changed = Some(changed.as_ref().unwrap_or(&result).with("_meta", &meta));
    }
    changed.map_or(result, Into::into)
}

fn lists_tasks(known: &RegisteredProvider) -> bool {
    known.info.capabilities.tasks.as_ref().is_some_and(|tasks| tasks.list.is_some())
}

/// Lists the tasks of the server, and those of its providers that the session has started.
async fn list(cx: Cx, own: Option<CustomMethod>) -> Outcome {
    let cursor = match lists::cursor_text(&cx) {
        Ok(cursor) => cursor,
        Err(error) => return Outcome::Failed(error),
    };
    let position = cursor.as_deref().and_then(|cursor| PagePosition::read(&cx, CURSOR, cursor));
    let mut tasks: Vec<Box<RawValue>> = Vec::new();
    let position = match (position, own) {
        (Some(position), _) => position,
        (None, Some(own)) => match own.run(cx.clone()).await {
            Outcome::Complete(body) if body.get("nextCursor").is_none() => {
                tasks = body.decode_member("tasks").ok().flatten().unwrap_or_default();
                PagePosition::default()
            }
            outcome => return outcome,
        },
        (None, None) if cursor.is_some() => {
            let message = "the `cursor` is not one of this list: start again without it";
            return Outcome::Failed(RpcError::invalid_params(message));
        }
        (None, None) => PagePosition::default(),
    };
    let next = fill(&cx, &mut tasks, position).await;
    let next = next.map(|position| position.print(&cx, CURSOR));
    let mut result = json!({ "tasks": tasks });
    if let (Some(next), Some(members)) = (next, result.as_object_mut()) {
        members.insert("nextCursor".to_owned(), next.into());
    }
    match RawObject::from_serialize(&result) {
        Ok(result) => Outcome::Complete(result.into()),
        Err(error) => Outcome::Failed(RpcError::internal(error.to_string())),
    }
}

/// Adds tasks of providers. Returns where the next page begins. A page of a provider is one of the list; one that fails is left out.
async fn fill(cx: &Cx, tasks: &mut Vec<Box<RawValue>>, mut position: PagePosition) -> Option<PagePosition> {
    let mut pages = 0;
    while let Some(known) = cx.snapshot().providers.get(position.source) {
        let after = PagePosition { source: position.source + 1, ..PagePosition::default() };
        if !lists_tasks(known) {
            position = after;
            continue;
        }
        if pages == MAX_PAGES {
            return Some(position);
        }
        pages += 1;
        let (number, cursor) = (position.source, position.cursor.take());
        position = match page(cx, known, number, cursor, tasks).await {
            None => after,
            Some(cursor) => PagePosition { source: number, cursor: Some(cursor), ..PagePosition::default() },
        };
        if position.cursor.is_some() && !tasks.is_empty() {
            return Some(position);
        }
    }
    None
}

/// Adds a page of tasks of a provider. Returns the cursor of its next one.
async fn page(
    cx: &Cx,
    known: &RegisteredProvider,
    number: usize,
    cursor: Option<String>,
    tasks: &mut Vec<Box<RawValue>>,
) -> Option<String> {
    let params = cx.params().without(&["cursor"]);
    let params = match cursor {
        None => params,
        Some(cursor) => params.with("cursor", &to_raw_value(&cursor).ok()?),
    };
    let backend = &known.info.name;
    let Outcome::Complete(body) = known.provider.clone().handle(cx.clone().with_params(params)).await else {
        tracing::debug!(%backend, "a provider did not list its tasks");
        return None;
    };
    let caller = TaskCaller::of(cx);
    let listed: Vec<RawObject> = body.decode_member("tasks").ok().flatten().unwrap_or_default();
    for task in listed {
        let Ok(Some(id)) = task.decode_member::<String>("taskId") else { continue };
        let address = TaskAddress { provider: number, backend: backend.clone(), id };
        let id = match known.info.is_whole_server {
            true => Ok(address.id),
            false => address.seal(&caller),
        };
        let Ok(id) = id else { continue };
        if StartedTasks::has(&caller, &id)
            && let Ok(id) = to_raw_value(&id)
            && let Ok(task) = to_raw_value(&task.with("taskId", &id))
        {
            tasks.push(task);
        }
    }
    body.decode_member("nextCursor").ok().flatten()
}
