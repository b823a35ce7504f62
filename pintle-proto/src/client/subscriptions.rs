use std::collections::BTreeMap;

use pintle_types::RawObject;

use super::inbound::Ignored;
use crate::Change;

/// The `subscriptions/listen` requests that are in flight.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    /// By the id of the request. Ordered, so that listening again happens in the order of the first time.
    live: BTreeMap<i64, Subscription>,
}

#[derive(Debug)]
struct Subscription {
    /// The params as they were before dressing, to listen again.
    params: RawObject,
    /// What the server said it would tell of; nothing before it has said so.
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

    /// Takes one out, with the params to listen again.
    pub(super) fn remove(&mut self, id: i64) -> Option<RawObject> {
        self.live.remove(&id).map(|subscription| subscription.params)
    }

    pub(super) fn contains(&self, id: i64) -> bool {
        self.live.contains_key(&id)
    }

    /// Takes all out, with the params to listen again.
    pub(super) fn drain(&mut self) -> Vec<RawObject> {
        std::mem::take(&mut self.live).into_values().map(|subscription| subscription.params).collect()
    }

    /// Notes what the server grants. `false` if it has done so before, or if there is no such subscription.
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

    /// Whether a message may come on a subscription now. `change` is `None` for what an extension defines.
    pub(super) fn admits(&self, id: i64, change: Option<&Change>) -> Result<(), Ignored> {
        let subscription = self.live.get(&id).ok_or(Ignored::UnknownSubscription)?;
        let granted = subscription.granted.as_ref().ok_or(Ignored::NotAcknowledged(id.into()))?;
        let admitted = match change {
            Some(Change::Tools) => granted.tools,
            Some(Change::Prompts) => granted.prompts,
            Some(Change::Resources) => granted.resources,
            // Which resource is not looked at: it may be a part of the one that was asked for.
            Some(Change::Resource(_)) => granted.resource,
            None => true,
        };
        if admitted { Ok(()) } else { Err(Ignored::NotGranted(id.into())) }
    }
}
