//! Subscriptions to tasks of providers: clients name them by the ids that they know, and providers by their own.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use pintle_proto::server::{Extension, Outcome};
use pintle_types::{RawObject, RpcError, method, method::tasks_extension};
use serde_json::{Value, value::to_raw_value};

use super::task_id::TaskAddress;
use crate::server::{
    Cx, Notice, Principal,
    core::provider::{registry::RegisteredProvider, subscription::ProviderSubscription},
};

/// The member of the filter of subscriptions that names tasks.
pub(crate) const MEMBER: &str = "taskIds";

/// The tasks of one provider that clients of the server are notified of: its ids, and those that the clients know. Listeners pay for their
/// ids.
#[derive(Debug, Default)]
pub(crate) struct WatchedTasks(Mutex<HashMap<Box<str>, KnownIds>>);

/// The ids that clients know a task by, each with the number of subscriptions.
type KnownIds = Vec<(Box<str>, usize)>;

impl WatchedTasks {
    /// Watches a task, until the returned value is dropped.
    pub(super) fn watch(self: &Arc<Self>, task: WantedTask) -> TaskWatch {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = watched.entry(task.inner.as_str().into()).or_default();
        match known.iter_mut().find(|(outer, _)| **outer == task.outer) {
            Some((_, count)) => *count += 1,
            None => known.push((task.outer.as_str().into(), 1)),
        }
        drop(watched);
        TaskWatch { watched: self.clone(), task }
    }

    /// Calls `publish` with a notice about a task, once for each id that clients know the task by.
    pub(crate) fn readdressed(&self, task: &str, notice: &Notice, publish: impl Fn(Notice)) {
        let outer: Vec<Box<str>> = {
            let watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            watched.get(task).into_iter().flatten().map(|(outer, _)| outer.clone()).collect()
        };
        outer.into_iter().for_each(|outer| publish(notice.clone().about_task(outer)));
    }
}

/// A task of a provider that a subscription or a session watches, until this is dropped.
pub(super) struct TaskWatch {
    watched: Arc<WatchedTasks>,
    pub(super) task: WantedTask,
}

impl Drop for TaskWatch {
    fn drop(&mut self) {
        let mut watched = self.watched.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = watched.get_mut(&*self.task.inner) else { return };
        if let Some((_, count)) = known.iter_mut().find(|(outer, _)| **outer == self.task.outer) {
            *count -= 1;
        }
        known.retain(|(_, count)| *count > 0);
        if known.is_empty() {
            watched.remove(&*self.task.inner);
        }
    }
}

/// A task of a provider that a subscription names.
#[derive(Clone, Debug)]
pub(crate) struct WantedTask {
    /// The number of the provider.
    pub(crate) provider: usize,
    /// The id that the provider has for it.
    pub(crate) inner: String,
    /// The id that the client has for it.
    pub(crate) outer: String,
}

impl WantedTask {
    /// Returns the bytes that it takes to watch the task.
    pub(super) fn bytes(&self) -> usize {
        // Both ids are in the table as well.
        2 * (self.inner.len() + self.outer.len()) + 128
    }
}

/// Returns the ids of tasks that a subscription names.
fn named(cx: &Cx) -> Vec<String> {
    if cx.method() != method::SUBSCRIPTIONS_LISTEN {
        return Vec::new();
    }
    let filter: Option<RawObject> = cx.params().decode_member("notifications").ok().flatten();
    let ids = filter.and_then(|filter| filter.decode_member::<Vec<Value>>(MEMBER).ok().flatten());
    let limit = cx.snapshot().service.bounds().watched;
    ids.into_iter().flatten().take(limit).filter_map(|id| id.as_str().map(str::to_owned)).collect()
}

/// Returns the tasks of providers of the server that a subscription names. There are none for an anonymous caller: nothing tells it from
/// others who know the ids.
pub(crate) fn wanted(cx: &Cx) -> Vec<WantedTask> {
    let snapshot = cx.snapshot();
    if cx.extension(tasks_extension::NAME).is_none() || matches!(cx.identity(), Principal::Anonymous) {
        return Vec::new();
    }
    let is_whole = snapshot.providers.is_whole_server();
    let of_provider = |outer: String| {
        if is_whole {
            let provider = snapshot.providers.iter().position(|known| known.info.is_whole_server)?;
            return Some(WantedTask { provider, inner: outer.clone(), outer });
        }
        let address = TaskAddress::open(cx, &outer)?;
        address.provider(&snapshot.providers)?;
        Some(WantedTask { provider: address.provider, inner: address.id, outer })
    };
    named(cx).into_iter().filter_map(of_provider).collect()
}

/// Returns the call of a subscription as a provider sees it, which has these tasks of it.
pub(crate) fn of_provider(cx: Cx, tasks: &[&WantedTask]) -> Cx {
    if cx.method() != method::SUBSCRIPTIONS_LISTEN {
        return cx;
    }
    cx.rewritten(|_, params| {
        let filter: RawObject = params.decode_member("notifications").ok()??;
        let filter = match tasks {
            [] => filter.get(MEMBER).map(|_| filter.without(&[MEMBER]))?,
            tasks => {
                let ids: Vec<&str> = tasks.iter().map(|task| &*task.inner).collect();
                filter.with(MEMBER, &to_raw_value(&ids).ok()?)
            }
        };
        Some(params.with("notifications", &to_raw_value(&filter).ok()?))
    })
}

/// Adds the tasks that a provider has granted to a subscription, as those that the client knows.
pub(crate) fn join(
    all: &mut ProviderSubscription,
    known: &RegisteredProvider,
    number: usize,
    granted: &[String],
    wanted: &[WantedTask],
) {
    let is_granted = |task: &&WantedTask| task.provider == number && granted.contains(&task.inner);
    for task in wanted.iter().filter(is_granted) {
        all.grant_task(task.outer.as_str());
        all.hold(known.watched_tasks.watch(task.clone()));
    }
}

/// Adds the tasks of a mounted server itself that its extension grants to a subscription.
pub(crate) fn grant_own(cx: &Cx, subscription: &mut ProviderSubscription) {
    let mut extensions = cx.snapshot().service.extensions().iter();
    let Some(own) = extensions.find(|known| known.listens.iter().any(|member| member == MEMBER)) else {
        return;
    };
    let ids = named(cx);
    if ids.is_empty() || !own.is_declared(cx.peer()) {
        return;
    }
    let wanted = Value::from(ids);
    let granted = match &own.grant {
        // The principal of the connection, which is the one that notices are shown to.
        Some(grant) => grant.grant(MEMBER, &wanted, cx.call().principal()),
        None => Some(wanted),
    };
    for id in granted.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        subscription.grant_task(id);
    }
}

/// Decides about the tasks that a subscription of the server's client names, when its providers have done so. Returns the params with those
/// that the server itself decides about.
///
/// # Errors
///
/// The client has not declared the extension that they belong to, or names too many.
pub(crate) fn settle(
    cx: &Cx,
    params: RawObject,
    held: &mut ProviderSubscription,
) -> Result<RawObject, Outcome> {
    let failed = |error: RpcError| Err(Outcome::Failed(error));
    let (snapshot, granted) = (cx.snapshot(), held.take_granted_tasks());
    let Ok(Some(filter)) = params.decode_member::<RawObject>("notifications") else { return Ok(params) };
    let Ok(Some(Value::Array(named))) = filter.decode_member::<Value>(MEMBER) else { return Ok(params) };
    let mut extensions = snapshot.service.extensions().iter();
    let is_own = extensions.any(|known| known.listens.iter().any(|member| member == MEMBER));
    let is_provided =
        snapshot.providers.iter().any(|known| known.extensions().any(|name| name == tasks_extension::NAME));
    if !is_own && is_provided {
        if cx.extension(tasks_extension::NAME).is_none() {
            return failed(Extension::undeclared(tasks_extension::NAME));
        }
        let limit = snapshot.service.bounds().watched;
        if named.len() > limit {
            return failed(RpcError::invalid_params(format!(
                "`{MEMBER}` has more than {limit} entries: open several subscriptions"
            )));
        }
    }
    if is_provided {
        cx.call().grant([(MEMBER.to_owned(), Value::from(granted))].into_iter().collect());
    }
    let provided = wanted(cx);
    let own: Vec<Value> =
        named.into_iter().filter(|id| !provided.iter().any(|task| *id == task.outer)).collect();
    let filter = to_raw_value(&own).map(|own| filter.with(MEMBER, &own));
    match filter.and_then(|filter| to_raw_value(&filter)) {
        Ok(filter) => Ok(params.with("notifications", &filter)),
        Err(error) => failed(RpcError::internal(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_watched_until_the_last_subscription_ends() {
        let watched = Arc::<WatchedTasks>::default();
        let task = |outer: &str| WantedTask { provider: 0, inner: "t".into(), outer: outer.into() };
        let received = |id: &str| {
            let received = Mutex::new(Vec::new());
            let notice = Notice::new(MEMBER, "notifications/tasks", Value::Null).about_task(id);
            watched.readdressed(id, &notice, |notice| received.lock().unwrap().extend(notice.task));
            received.into_inner().unwrap()
        };
        let [first, second, other] = ["a", "a", "b"].map(|outer| watched.watch(task(outer)));
        assert_eq!(received("t"), ["a", "b"]);
        assert_eq!(received("a"), [""; 0], "an id of a client is not one of the provider");
        drop(first);
        assert_eq!(received("t"), ["a", "b"]);
        drop((second, other));
        assert!(watched.0.lock().unwrap().is_empty(), "nothing is left");
    }
}
