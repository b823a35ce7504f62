use std::{
    collections::{HashMap, HashSet},
    sync::Mutex,
};

use pintle::{
    Connection,
    forward::OwnedPrincipal,
    server::Notice,
    types::{
        Notification,
        method::{NOTIFICATIONS_TASKS_STATUS, tasks_extension::NOTIFICATIONS_TASKS},
    },
};
use serde_json::Value;
use tokio::time::{Duration, timeout};

use crate::lock::lock;

/// The member of the filter of subscriptions that names tasks.
pub(crate) const MEMBER: &str = "taskIds";

/// The limit of tasks that are watched over one connection, and that of those of one principal.
const MAX_TASKS: usize = 256;
const MAX_TASKS_OF_PRINCIPAL: usize = 64;

/// The limit of bytes of a notification about a task. The client polls a task whose status is larger.
const MAX_NOTICE_BYTES: usize = 64 << 10;

/// The tasks that clients watch over the first connection to a server without sessions: one request names all of them.
#[derive(Default)]
pub(crate) struct SharedTaskWatches {
    wanted: Mutex<WantedTasks>,
    /// Those that the server has granted. It is locked while they are requested, so that the last request has all.
    granted: tokio::sync::Mutex<HashSet<String>>,
}

/// The tasks that clients want to be notified of, each with the number of subscriptions.
#[derive(Default)]
struct WantedTasks {
    counts: HashMap<String, usize>,
    of_principals: HashMap<OwnedPrincipal, usize>,
}

impl SharedTaskWatches {
    /// Adds tasks that a principal watches, as far as the limits allow. Returns those that were added.
    pub(crate) fn hold(&self, principal: &OwnedPrincipal, ids: Vec<String>) -> Vec<String> {
        let mut wanted = lock(&self.wanted);
        let mut held = Vec::new();
        for id in ids {
            let of_principal = wanted.of_principals.get(principal).copied().unwrap_or_default();
            let is_full = wanted.counts.len() >= MAX_TASKS && !wanted.counts.contains_key(&id);
            if is_full || of_principal >= MAX_TASKS_OF_PRINCIPAL {
                break;
            }
            *wanted.of_principals.entry(principal.clone()).or_default() += 1;
            *wanted.counts.entry(id.clone()).or_default() += 1;
            held.push(id);
        }
        held
    }

    /// Removes tasks that [`hold`](Self::hold) has added. The server goes on to report them until the next request.
    pub(crate) fn release(&self, principal: &OwnedPrincipal, ids: &[String]) {
        let mut wanted = lock(&self.wanted);
        for id in ids {
            if let Some(count) = wanted.counts.get_mut(id) {
                *count -= 1;
            }
            if let Some(count) = wanted.of_principals.get_mut(principal) {
                *count -= 1;
            }
        }
        wanted.counts.retain(|_, count| *count > 0);
        wanted.of_principals.retain(|_, count| *count > 0);
    }

    /// Has the server report these tasks, which are held. Returns those that it grants, or that it has granted before.
    pub(crate) async fn request(
        &self,
        connection: &Connection,
        ids: &[String],
        wait: Duration,
    ) -> Vec<String> {
        let mut granted = self.granted.lock().await;
        if !ids.iter().all(|id| granted.contains(id)) {
            let wanted: Vec<String> = lock(&self.wanted).counts.keys().cloned().collect();
            let answered = timeout(wait, connection.subscribe_extension(MEMBER, wanted)).await;
            match answered {
                Ok(Ok(answer)) => {
                    let answer = answer.as_array().into_iter().flatten();
                    *granted = answer.filter_map(|id| id.as_str().map(str::to_owned)).collect();
                }
                Ok(Err(error)) => tracing::debug!(%error, "the server behind a relay does not report tasks"),
                Err(_) => tracing::debug!("the server behind a relay did not answer a subscription to tasks"),
            }
        }
        ids.iter().filter(|id| granted.contains(*id)).cloned().collect()
    }

    /// Has the server report all tasks that are held, over a connection that was opened again.
    pub(crate) async fn request_again(&self, connection: &Connection, wait: Duration) {
        self.granted.lock().await.clear();
        let wanted: Vec<String> = lock(&self.wanted).counts.keys().cloned().collect();
        self.request(connection, &wanted, wait).await;
    }
}

/// Returns the notice about a task that a notification of the server behind is for the server in front.
pub(crate) fn task_notice(notification: Notification) -> Option<Notice> {
    let Notification { method, params, .. } = notification;
    if ![NOTIFICATIONS_TASKS, NOTIFICATIONS_TASKS_STATUS].contains(&&*method) {
        return None;
    }
    let params = params?;
    if params.as_str().len() > MAX_NOTICE_BYTES {
        tracing::debug!("the status of a task is too large for a notification: its client polls");
        return None;
    }
    // The id of the subscription is that of the relay.
    let params: Value = params.without(&["_meta"]).decode().ok()?;
    let id = params.get("taskId")?.as_str()?.to_owned();
    Some(Notice::new(MEMBER, method, params).about_task(id))
}

#[cfg(test)]
mod tests {
    use pintle::types::RawObject;

    use super::*;

    fn ids(of: &str, count: usize) -> Vec<String> {
        (0..count).map(|number| format!("{of}-{number}")).collect()
    }

    #[test]
    fn a_principal_cannot_take_what_others_have() {
        let watches = SharedTaskWatches::default();
        let ann = OwnedPrincipal::Named("ann".into());
        let held = watches.hold(&ann, ids("ann", 1000));
        assert_eq!(held.len(), MAX_TASKS_OF_PRINCIPAL);
        assert_eq!(watches.hold(&ann, ids("more", 1)), [""; 0]);
        let bob = OwnedPrincipal::Named("bob".into());
        assert_eq!(watches.hold(&bob, ids("bob", 1)).len(), 1);
        watches.release(&ann, &held);
        assert_eq!(watches.hold(&ann, ids("more", 1)).len(), 1);
    }

    #[test]
    fn all_of_a_connection_have_a_limit() {
        let watches = SharedTaskWatches::default();
        let principals = (0..10).map(|number| OwnedPrincipal::Named(number.to_string().into()));
        let held: Vec<_> = principals
            .map(|principal| {
                let ids = ids(&format!("{principal:?}"), MAX_TASKS_OF_PRINCIPAL);
                (watches.hold(&principal, ids), principal)
            })
            .collect();
        assert_eq!(held.iter().map(|(ids, _)| ids.len()).sum::<usize>(), MAX_TASKS);
        assert_eq!(lock(&watches.wanted).counts.len(), MAX_TASKS);
        held.iter().for_each(|(ids, principal)| watches.release(principal, ids));
        let wanted = lock(&watches.wanted);
        assert!(wanted.counts.is_empty() && wanted.of_principals.is_empty(), "nothing is left");
    }

    #[test]
    fn a_status_that_is_too_large_is_not_passed_on() {
        let notice = |method: &'static str, bytes: usize| {
            let params = serde_json::json!({"taskId": "t-1", "statusMessage": "x".repeat(bytes)});
            let params = RawObject::from_serialize(&params).ok();
            task_notice(Notification::new(method.to_owned(), params))
        };
        assert_eq!(notice(NOTIFICATIONS_TASKS, 1000).unwrap().task_id(), Some("t-1"));
        assert!(notice(NOTIFICATIONS_TASKS, MAX_NOTICE_BYTES).is_none());
        assert!(notice("notifications/other", 1000).is_none());
    }
}
