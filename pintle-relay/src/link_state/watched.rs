use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use indexmap::IndexSet;
use pintle::types::RpcError;
use tokio::sync::Notify;

/// The resources that clients watch, and the subscriptions to them at the server behind.
///
/// One task at a time sends requests to that server, and takes what to do next from here. A resource that is watched and no longer
/// watched before its turn needs no request.
#[derive(Debug, Default)]
pub(crate) struct WatchedResources {
    table: Mutex<WatchTable>,
    /// Notified when a request was answered.
    answered: Notify,
}

#[derive(Debug, Default)]
struct WatchTable {
    states: HashMap<Box<str>, WatchState>,
    /// The resources that need a request.
    pending: IndexSet<Box<str>>,
    /// The resource whose request is being sent.
    current: Option<Box<str>>,
    has_task: bool,
}

#[derive(Debug, Default)]
struct WatchState {
    is_watched: bool,
    /// The number of subscriptions that are not acknowledged yet, or that want it besides.
    holds: usize,
    is_subscribed: bool,
    /// Why the last request was refused.
    refused: Option<RpcError>,
}

impl WatchState {
    fn is_wanted(&self) -> bool {
        self.is_watched || self.holds > 0
    }
}

/// A request to be sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct WatchRequest {
    pub(crate) uri: Box<str>,
    pub(crate) subscribes: bool,
}

/// Whether a task has to be started, which sends the requests.
#[must_use]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WatchTask {
    Needed,
    NotNeeded,
}

impl WatchedResources {
    /// Adds a resource that a client watches.
    pub(crate) fn insert(&self, uri: &str) {
        let mut table = self.lock();
        let state = table.states.entry(uri.into()).or_default();
        state.is_watched = true;
        table.queue(uri);
    }

    /// Adds a resource until the hold is dropped. Whoever drops it has the requests sent that are needed then.
    pub(crate) fn hold(&self, uri: &str) {
        let mut table = self.lock();
        let state = table.states.entry(uri.into()).or_default();
        state.holds += 1;
        // It is requested again.
        state.refused = None;
        table.queue(uri);
    }

    /// Ends a [hold](Self::hold).
    pub(crate) fn release(&self, uri: &str) {
        let mut table = self.lock();
        if let Some(state) = table.states.get_mut(uri) {
            state.holds = state.holds.saturating_sub(1);
        }
        table.queue(uri);
    }

    /// Whether no resource is wanted.
    pub(crate) fn is_empty(&self) -> bool {
        !self.lock().states.values().any(WatchState::is_wanted)
    }

    /// Returns the resources that are watched.
    pub(crate) fn all(&self) -> Vec<Box<str>> {
        let table = self.lock();
        table.states.iter().filter(|(_, state)| state.is_wanted()).map(|(uri, _)| uri.clone()).collect()
    }

    /// Waits until the server behind has answered the request for a resource.
    ///
    /// # Errors
    ///
    /// It refused the subscription.
    pub(crate) async fn settled(&self, uri: &str) -> Result<(), RpcError> {
        loop {
            let answered = self.answered.notified();
            tokio::pin!(answered);
            answered.as_mut().enable();
            match self.lock().states.get(uri) {
                Some(state) if state.is_subscribed => return Ok(()),
                Some(WatchState { refused: Some(error), .. }) => return Err(error.clone()),
                Some(_) => {}
                None => return Ok(()),
            }
            answered.await;
        }
    }

    /// Removes a resource that no client watches any more.
    pub(crate) fn remove(&self, uri: &str) {
        let mut table = self.lock();
        if let Some(state) = table.states.get_mut(uri) {
            state.is_watched = false;
        }
        table.queue(uri);
    }

    /// Forgets all subscriptions, because their connection has ended.
    pub(crate) fn reset(&self) {
        let mut table = self.lock();
        table.states.retain(|_, state| {
            (state.is_subscribed, state.refused) = (false, None);
            state.is_wanted()
        });
        table.pending = table.states.keys().cloned().collect();
    }

    /// Takes over what is wanted of the connection before this one.
    pub(crate) fn inherit(&self, before: &Self) {
        let wanted: Vec<_> = {
            let table = before.lock();
            let wanted = table.states.iter().filter(|(_, state)| state.is_wanted());
            wanted.map(|(uri, state)| (uri.clone(), state.is_watched, state.holds)).collect()
        };
        let mut table = self.lock();
        for (uri, is_watched, holds) in wanted {
            let state = table.states.entry(uri.clone()).or_default();
            state.is_watched |= is_watched;
            state.holds += holds;
            table.queue(&uri);
        }
    }

    /// Returns whether a task is needed. If so, the caller starts one.
    pub(crate) fn begin(&self) -> WatchTask {
        let mut table = self.lock();
        if table.has_task || table.pending.is_empty() {
            return WatchTask::NotNeeded;
        }
        table.has_task = true;
        WatchTask::Needed
    }

    /// Returns the next request. If there is none, the task has ended.
    pub(crate) fn next(&self) -> Option<WatchRequest> {
        let mut table = self.lock();
        table.current = None;
        let uri = table.pending.swap_remove_index(0);
        table.current.clone_from(&uri);
        table.has_task = uri.is_some();
        let uri = uri?;
        let subscribes = table.states.get(&uri).is_some_and(WatchState::is_wanted);
        Some(WatchRequest { uri, subscribes })
    }

    /// Records that a request was answered. One that was refused is not repeated.
    pub(crate) fn answered(&self, request: &WatchRequest, refused: Option<RpcError>) {
        let mut table = self.lock();
        table.current = None;
        if let Some(state) = table.states.get_mut(&request.uri) {
            state.is_subscribed = request.subscribes && refused.is_none();
            state.refused = refused.filter(|_| request.subscribes);
            let is_wanted = state.is_wanted();
            // If it is wanted still, it was refused.
            if is_wanted != request.subscribes {
                table.queue(&request.uri);
            } else if !is_wanted {
                table.states.remove(&request.uri);
            }
        }
        drop(table);
        self.answered.notify_waiters();
    }

    /// Ends the task. The requests that are left are sent by the next one.
    pub(crate) fn end(&self) {
        self.lock().has_task = false;
    }

    fn lock(&self) -> MutexGuard<'_, WatchTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchTable {
    /// Queues the request that a resource needs, if any.
    fn queue(&mut self, uri: &str) {
        let Some(state) = self.states.get(uri) else { return };
        // The request that is being sent decides what comes next.
        if self.current.as_deref() == Some(uri) {
            return;
        }
        let is_wanted = state.is_wanted();
        if is_wanted && state.refused.is_some() {
            return;
        }
        if is_wanted != state.is_subscribed {
            self.pending.insert(uri.into());
            return;
        }
        self.pending.swap_remove(uri);
        if !is_wanted {
            self.states.remove(uri);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str, subscribes: bool) -> WatchRequest {
        WatchRequest { uri: uri.into(), subscribes }
    }

    #[test]
    fn a_resource_that_is_not_watched_any_more_needs_no_request() {
        let watched = WatchedResources::default();
        assert_eq!(watched.begin(), WatchTask::NotNeeded);
        for at in 0..100 {
            let uri = format!("note://{at}");
            watched.insert(&uri);
            watched.remove(&uri);
        }
        assert_eq!(watched.begin(), WatchTask::NotNeeded);
        assert!(watched.lock().states.is_empty());
    }

    #[test]
    fn the_answer_decides_about_the_next_request() {
        let watched = WatchedResources::default();
        watched.insert("note://1");
        assert_eq!(watched.begin(), WatchTask::Needed);
        watched.insert("note://1");
        assert_eq!(watched.begin(), WatchTask::NotNeeded, "there is one");
        assert_eq!(watched.next(), Some(request("note://1", true)));
        watched.remove("note://1");
        watched.answered(&request("note://1", true), None);
        assert_eq!(watched.next(), Some(request("note://1", false)));
        watched.answered(&request("note://1", false), None);
        assert_eq!(watched.next(), None);
        assert!(watched.lock().states.is_empty());
        assert_eq!(watched.begin(), WatchTask::NotNeeded);
    }

    #[test]
    fn a_refused_subscription_is_requested_again_on_a_new_connection_only() {
        let watched = WatchedResources::default();
        watched.insert("note://1");
        assert_eq!(watched.begin(), WatchTask::Needed);
        assert_eq!(watched.next(), Some(request("note://1", true)));
        watched.answered(&request("note://1", true), Some(RpcError::internal("no")));
        assert_eq!(watched.next(), None);
        assert!(!watched.is_empty());
        watched.reset();
        assert_eq!(watched.begin(), WatchTask::Needed);
        assert_eq!(watched.next(), Some(request("note://1", true)));
    }
}
