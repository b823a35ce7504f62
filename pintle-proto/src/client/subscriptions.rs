use std::collections::BTreeMap;

use pintle_types::RawObject;

use super::inbound::Ignored;
use crate::Change;

/// The `subscriptions/listen` requests that are in flight.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    /// The subscriptions by request id, ordered, so that they are opened again in the original order.
    live: BTreeMap<i64, Subscription>,
}

#[derive(Debug)]
struct Subscription {
    /// The params as the caller passed them, to subscribe again.
    params: RawObject,
    /// The notifications that the server granted; `None` before the acknowledgement.
    granted: Option<Granted>,
}

#[derive(Debug)]
struct Granted {
    tools: bool,
    prompts: bool,
    resources: bool,
    resource: bool,
}

impl Subscriptions {
    pub(super) fn add(&mut self, id: i64, params: RawObject) {
        self.live.insert(id, Subscription { params, granted: None });
    }

    /// Removes a subscription, and returns the params to subscribe again.
    pub(super) fn remove(&mut self, id: i64) -> Option<RawObject> {
        self.live.remove(&id).map(|subscription| subscription.params)
    }

    pub(super) fn contains(&self, id: i64) -> bool {
        self.live.contains_key(&id)
    }

    /// Removes all subscriptions, and returns the params to subscribe again.
    pub(super) fn drain(&mut self) -> Vec<RawObject> {
        std::mem::take(&mut self.live).into_values().map(|subscription| subscription.params).collect()
    }

    /// Records the notifications that the server grants. Returns `false` if it did so before, or if there is no such
    /// subscription.
    pub(super) fn acknowledge(&mut self, id: i64, granted: &RawObject) -> bool {
        let Some(subscription) = self.live.get_mut(&id) else { return false };
        if subscription.granted.is_some() {
            return false;
        }
        let wants = |name| granted.get(name) == Some("true");
        let uris = granted.decode_member::<Vec<Box<str>>>("resourceSubscriptions").ok().flatten();
        subscription.granted = Some(Granted {
            tools: wants("toolsListChanged"),
            prompts: wants("promptsListChanged"),
            resources: wants("resourcesListChanged"),
            resource: uris.is_some_and(|uris| !uris.is_empty()),
        });
        true
    }

    /// Checks that a message is allowed on a subscription. `change` is `None` for a message that an extension defines.
    pub(super) fn admits(&self, id: i64, change: Option<&Change>) -> Result<(), Ignored> {
        let subscription = self.live.get(&id).ok_or(Ignored::UnknownSubscription)?;
        let granted = subscription.granted.as_ref().ok_or(Ignored::NotAcknowledged(id.into()))?;
        let admitted = match change {
            Some(Change::Tools) => granted.tools,
            Some(Change::Prompts) => granted.prompts,
            Some(Change::Resources) => granted.resources,
            // The URI is not compared: it may be a sub-resource of the one that was subscribed to.
            Some(Change::Resource(_)) => granted.resource,
            None => true,
        };
        if admitted { Ok(()) } else { Err(Ignored::NotGranted(id.into())) }
    }
}
