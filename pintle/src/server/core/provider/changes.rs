use std::{borrow::Cow, fmt, sync::Arc};

use pintle_proto::server::Change;
use serde_json::{Value, value::to_raw_value};

use super::prefix::Prefix;
use crate::server::{
    ListKind, Notice,
    changes::{Audience, ChangeLink},
};

/// A handle with which a [`Provider`](crate::server::Provider) reports its changes to the server it was added to. Clients are
/// notified as of changes of the server itself; several changes are merged into one notification.
///
/// Cheap to clone. It does not keep the server alive.
#[derive(Clone)]
pub struct ProviderChanges {
    server: Arc<dyn ChangeLink>,
    /// The prefixes between the provider and the server, the innermost last.
    prefixes: Vec<Prefix>,
}

impl ProviderChanges {
    pub(crate) fn new(server: Arc<dyn ChangeLink>) -> Self {
        Self { server, prefixes: Vec::new() }
    }

    /// Returns the handle of a provider inside a mount with this prefix.
    pub(crate) fn within(&self, prefix: &Prefix) -> Self {
        let mut within = self.clone();
        within.prefixes.push(prefix.clone());
        within
    }

    /// Returns a change of the provider with the names of the server.
    fn outer<'a>(&self, change: &'a Change) -> Cow<'a, Change> {
        match change {
            Change::Resource(uri) if !self.prefixes.is_empty() => {
                let prefixes = self.prefixes.iter().rev();
                let uri = prefixes.fold(uri.to_string(), |uri, prefix| prefix.add(ListKind::Resources, &uri));
                Cow::Owned(Change::Resource(uri.into()))
            }
            change => Cow::Borrowed(change),
        }
    }

    /// Notifies the clients that a change concerns.
    pub fn publish(&self, change: &Change) {
        self.server.publish(&self.outer(change));
    }

    /// Notifies the selected clients that a change concerns, of those that are connected to this process.
    pub fn publish_to(&self, change: &Change, audience: &Audience<'_>) {
        self.server.publish_to(&self.outer(change), audience);
    }

    /// Sends clients a notification of an extension that has the names of the server of their connection already.
    pub fn tell_outermost(&self, notice: &Arc<Notice>) {
        ChangeLink::publish_notice(self, notice);
    }

    /// Notifies clients that the list of tools has changed.
    pub fn tools_changed(&self) {
        self.publish(&Change::Tools);
    }

    /// Notifies clients that the list of prompts has changed.
    pub fn prompts_changed(&self) {
        self.publish(&Change::Prompts);
    }

    /// Notifies clients that the list of resources or that of templates has changed.
    pub fn resources_changed(&self) {
        self.publish(&Change::Resources);
    }

    /// Notifies subscribers that a resource was updated.
    pub fn resource_updated(&self, uri: &str) {
        self.publish(&Change::Resource(uri.into()));
    }

    /// Sends clients a notification of an extension. One [about a task](Notice::about_task) of the provider goes to the subscriptions that
    /// were [granted](crate::server::ProviderSubscription::grant_task) that task, with the id that their clients know.
    pub fn tell(&self, notice: Notice) {
        self.publish_notice(&Arc::new(notice.of_provider()));
    }

    /// Has the server read the capabilities and instructions again.
    pub fn capabilities_changed(&self) {
        self.refresh();
    }

    /// Returns whether both are handles of one server, with the same prefixes in between.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.server, &other.server) && self.prefixes == other.prefixes
    }

    /// Returns whether the server is still there.
    pub fn is_connected(&self) -> bool {
        self.server.is_alive()
    }
}

impl ChangeLink for ProviderChanges {
    fn is_alive(&self) -> bool {
        self.is_connected()
    }

    fn publish(&self, change: &Change) {
        Self::publish(self, change);
    }

    fn publish_to(&self, change: &Change, audience: &Audience<'_>) {
        Self::publish_to(self, change, audience);
    }

    fn publish_notice(&self, notice: &Arc<Notice>) {
        if !notice.is_provided || !self.prefixes.iter().any(Prefix::changes_uris) {
            return self.server.publish_notice(notice);
        }
        // The result of a task that has ended may have resources. That of a task of a mounted server has passed its mounts.
        let Ok(Some(mut result)) = notice.params.decode_member::<Value>("result") else {
            return self.server.publish_notice(notice);
        };
        if let Some(content) = result.get_mut("content") {
            self.prefixes.iter().rev().for_each(|prefix| prefix.add_to_content(content));
        }
        let mut notice = Notice::clone(notice);
        notice.params = notice.params.with("result", &to_raw_value(&result).expect("a value prints"));
        self.server.publish_notice(&Arc::new(notice));
    }

    fn refresh(&self) {
        self.server.refresh();
    }
}

impl fmt::Debug for ProviderChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderChanges").field("is_connected", &self.is_connected()).finish()
    }
}
