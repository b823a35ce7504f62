use std::{any::Any, fmt};

use pintle_types::RpcError;

/// The subscription of a client, as far as a [`Provider`](crate::server::Provider) takes part in it: see
/// [`Watch::subscribe`](crate::server::Watch::subscribe).
#[derive(Default)]
pub struct ProviderSubscription {
    held: Vec<Box<dyn Any + Send>>,
    refused: Vec<(String, RpcError)>,
    granted_tasks: Vec<String>,
}

impl ProviderSubscription {
    /// Creates a subscription that needs nothing to be kept.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps a value until the subscription of a client without a session ends. In a session it is dropped when the subscription
    /// was acknowledged: [`Watch::unsubscribe`](crate::server::Watch::unsubscribe) ends it.
    pub fn hold(&mut self, value: impl Any + Send) {
        self.held.push(Box::new(value));
    }

    /// Refuses one of the resources: it cannot be watched.
    pub fn refuse(&mut self, uri: impl Into<String>, error: impl Into<RpcError>) {
        self.refused.push((uri.into(), error.into()));
    }

    /// Returns the resources that were refused, and why.
    pub fn refused(&self) -> impl Iterator<Item = (&str, &RpcError)> {
        self.refused.iter().map(|(uri, error)| (&**uri, error))
    }

    /// Grants one of the tasks that the subscription names: those in `taskIds` of the filter, in the params of the call, are tasks of
    /// this provider, with its ids. The client is sent the [notices](crate::server::Notice::about_task) about it, with the id that the
    /// client knows. A task that is not granted is left out of the acknowledgement, and the client polls it.
    pub fn grant_task(&mut self, id: impl Into<String>) {
        self.granted_tasks.push(id.into());
    }

    /// Returns the tasks that were granted.
    pub fn granted_tasks(&self) -> impl Iterator<Item = &str> {
        self.granted_tasks.iter().map(String::as_str)
    }

    /// Takes the tasks that were granted, to give them other ids.
    pub(crate) fn take_granted_tasks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.granted_tasks)
    }

    /// Renames the resources that were refused.
    pub(crate) fn renamed(mut self, rename: impl Fn(&str) -> String) -> Self {
        self.refused.iter_mut().for_each(|(uri, _)| *uri = rename(uri));
        self
    }

    /// Takes over what another provider keeps. What it refused and granted is up to the caller.
    pub(crate) fn join(&mut self, other: Self) -> Vec<(String, RpcError)> {
        self.held.extend(other.held);
        other.refused
    }
}

impl fmt::Debug for ProviderSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderSubscription")
            .field("refused", &self.refused)
            .field("granted_tasks", &self.granted_tasks)
            .finish_non_exhaustive()
    }
}
