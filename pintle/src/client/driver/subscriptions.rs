use std::{collections::BTreeSet, time::Duration};

use pintle_proto::client::{End, Extras, RequestOutcome, SendError};
use pintle_types::{
    ErrorCode, JsonObject, RawObject, RequestId, method,
    schema::{ServerCapabilities, SubscribeParams, SubscriptionFilter, SubscriptionsListenParams},
};
use tokio::time::Instant;

use super::{CallFailure, Driver, Waiter, command::Watch};
use crate::{Ended, client::state::CallSender, transport::Failed};

/// The subscriptions of a connection, and their state.
///
/// In the session era, list changes need no subscription, and each resource has its own. In the stateless era there is one
/// `subscriptions/listen` request; when the subscriptions change, its successor is opened before it is cancelled.
#[derive(Debug)]
pub(super) struct Subscriptions {
    lists: bool,
    uris: BTreeSet<String>,
    /// Members of the filter that belong to extensions.
    extensions: JsonObject,
    /// The acknowledged request.
    live: Option<RequestId>,
    /// The request that the server has not acknowledged yet.
    opening: Option<RequestId>,
    /// Callers that wait for the acknowledgement, with their resource.
    waiters: Vec<(SubscriptionTarget, CallSender)>,
    failures: u32,
    /// Whether the last request ended, so that changes may have been missed.
    broke: bool,
    /// The time of the next attempt.
    pub(super) retry: Option<Instant>,
}

/// The target of a subscription that a caller waits for.
#[derive(Debug)]
enum SubscriptionTarget {
    Lists,
    Resource(String),
    Extension(String),
}

impl SubscriptionTarget {
    fn uri(&self) -> Option<&str> {
        match self {
            Self::Resource(uri) => Some(uri),
            Self::Lists | Self::Extension(_) => None,
        }
    }
}

impl Subscriptions {
    /// Removes a subscription that failed.
    fn forget(&mut self, target: &SubscriptionTarget) {
        match target {
            SubscriptionTarget::Lists => {}
            SubscriptionTarget::Resource(uri) => drop(self.uris.remove(uri)),
            SubscriptionTarget::Extension(name) => drop(self.extensions.remove(name)),
        }
    }

    pub(super) fn new(lists: bool) -> Self {
        Self {
            lists,
            uris: BTreeSet::new(),
            extensions: JsonObject::new(),
            live: None,
            opening: None,
            waiters: Vec::new(),
            failures: 0,
            broke: false,
            retry: None,
        }
    }

    /// Resets the state after a loss of the connection. The subscriptions stay.
    pub(super) fn lose(&mut self, ended: &Ended) {
        self.live = None;
        self.opening = None;
        self.retry = None;
        for (_, post) in self.waiters.drain(..) {
            post.end(Err(CallFailure::Closed(ended.clone())), 0);
        }
    }

    fn filter(&self, can: Option<&ServerCapabilities>) -> SubscriptionFilter {
        let offered =
            |change: Option<bool>| (self.lists && (can.is_none() || change == Some(true))).then_some(true);
        let mut filter = SubscriptionFilter::new();
        filter.tools_list_changed =
            offered(can.and_then(|can| can.tools.as_ref()).and_then(|tools| tools.list_changed));
        filter.prompts_list_changed =
            offered(can.and_then(|can| can.prompts.as_ref()).and_then(|prompts| prompts.list_changed));
        filter.resources_list_changed =
            offered(can.and_then(|can| can.resources.as_ref()).and_then(|resources| resources.list_changed));
        filter.extra = self.extensions.clone();
        filter.resource_subscriptions = (!self.uris.is_empty()).then(|| self.uris.iter().cloned().collect());
        filter
    }
}

impl Driver {
    pub(super) fn change_watch(&mut self, watch: Watch, post: CallSender) {
        let limit = self.shared.settings.limits.watched;
        self.watching.waiters.retain(|(_, post)| !post.is_abandoned());
        let target = match watch {
            Watch::Lists if self.watching.lists => return done(post),
            Watch::Lists => {
                self.watching.lists = true;
                SubscriptionTarget::Lists
            }
            Watch::Resource(uri) => {
                if self.watching.uris.len() >= limit && !self.watching.uris.contains(&uri) {
                    let message = format!("{limit} resources are watched already: raise the limit `watched`");
                    return post.end(Err(CallFailure::Refused(message)), 0);
                }
                self.watching.uris.insert(uri.clone());
                SubscriptionTarget::Resource(uri)
            }
            Watch::Extension(name, value) => {
                let known = self.watching.extensions.contains_key(&name);
                if self.watching.extensions.len() >= limit && !known {
                    let message =
                        format!("{limit} extensions are subscribed to already: raise the limit `watched`");
                    return post.end(Err(CallFailure::Refused(message)), 0);
                }
                self.watching.extensions.insert(name.clone(), value);
                SubscriptionTarget::Extension(name)
            }
            Watch::NotResource(uri) => {
                self.watching.uris.remove(&uri);
                return self.unwatch(uri, post);
            }
        };
        match self.listen() {
            Ok(true) => self.watching.waiters.push((target, post)),
            Ok(false) => done(post),
            Err(SendError::Unavailable { .. }) => {
                self.subscribe(method::RESOURCES_SUBSCRIBE, target.uri().map(Into::into), post);
            }
            Err(error) => post.end(Err(CallFailure::Unsent(error)), 0),
        }
    }

    fn unwatch(&mut self, uri: String, post: CallSender) {
        if self.watching.live.is_none() && self.watching.opening.is_none() {
            return self.subscribe(method::RESOURCES_UNSUBSCRIBE, Some(uri), post);
        }
        match self.listen() {
            Ok(true) => self.watching.waiters.push((SubscriptionTarget::Lists, post)),
            Ok(false) => {
                self.stop_listening();
                done(post);
            }
            Err(error) => post.end(Err(CallFailure::Unsent(error)), 0),
        }
    }

    /// Subscribes or unsubscribes by a request for each resource, as in the session era.
    fn subscribe(&mut self, method: &'static str, uri: Option<String>, post: CallSender) {
        let Some(uri) = uri else { return done(post) };
        let params = RawObject::from_serialize(&SubscribeParams::new(uri.as_str())).unwrap_or_default();
        match self.engine.request(method, &params, &Extras::default()) {
            Ok(request) => self.send_request(request, Waiter::Subscriber(post, uri)),
            Err(error) => {
                self.forget(&uri);
                post.end(Err(CallFailure::Unsent(error)), 0);
            }
        }
    }

    /// Removes a subscription that failed.
    pub(super) fn forget(&mut self, uri: &str) {
        self.watching.uris.remove(uri);
    }

    /// Restores all subscriptions after the connection was opened.
    pub(super) fn watch_again(&mut self) {
        if self.listen().is_err() {
            for uri in self.watching.uris.clone() {
                let params = RawObject::from_serialize(&SubscribeParams::new(uri)).unwrap_or_default();
                // It was possible before.
                let _ = self.send_quietly(method::RESOURCES_SUBSCRIBE, &params);
            }
        }
    }

    /// Sends the pending `subscriptions/listen` again.
    pub(super) fn watch(&mut self) {
        // It was possible before.
        let _ = self.listen();
    }

    /// Sends one request for all subscriptions. Returns whether there is an acknowledgement to wait for.
    fn listen(&mut self) -> Result<bool, SendError> {
        let facts = self.shared.facts();
        let filter = self.watching.filter(facts.capabilities.as_ref());
        if filter == SubscriptionFilter::new() {
            return Ok(false);
        }
        let params = SubscriptionsListenParams::new(filter);
        let params = RawObject::from_serialize(&params).unwrap_or_default();
        let request = self.engine.request(method::SUBSCRIPTIONS_LISTEN, &params, &Extras::default())?;
        self.watching.retry = None;
        if let Some(overtaken) = self.watching.opening.replace(request.id.clone()) {
            self.stop(&overtaken);
        }
        self.send(&pintle_types::Message::Request(request));
        Ok(true)
    }

    fn stop_listening(&mut self) {
        for id in [self.watching.live.take(), self.watching.opening.take()].into_iter().flatten() {
            self.stop(&id);
        }
        self.shared.tools_unsubscribed();
        // Nobody will acknowledge what they wait for.
        for (target, post) in std::mem::take(&mut self.watching.waiters) {
            match target.uri() {
                Some(uri) => {
                    let reason = format!("`{uri}` was unsubscribed from before the server had answered");
                    post.end(Err(CallFailure::Refused(reason)), 0);
                }
                None => done(post),
            }
        }
    }

    fn stop(&mut self, id: &RequestId) {
        self.cancel(id, "no longer wanted");
    }

    pub(super) fn acknowledged(&mut self, subscription: &RequestId, granted: &RawObject) {
        if self.watching.opening.as_ref() != Some(subscription) {
            return;
        }
        self.watching.failures = 0;
        self.watching.opening = None;
        if std::mem::take(&mut self.watching.broke) {
            self.shared.reopened();
        }
        if granted.get("toolsListChanged") == Some("true") {
            self.shared.tools_subscribed();
        } else {
            self.shared.tools_unsubscribed();
        }
        if let Some(last) = self.watching.live.replace(subscription.clone()) {
            self.stop(&last);
        }
        let uris: Vec<String> =
            granted.decode_member("resourceSubscriptions").ok().flatten().unwrap_or_default();
        for (target, post) in std::mem::take(&mut self.watching.waiters) {
            let refused = match &target {
                SubscriptionTarget::Resource(uri) if !uris.contains(uri) => {
                    format!("the server does not tell of changes of `{uri}`")
                }
                SubscriptionTarget::Extension(name) if granted.get(name).is_none() => {
                    format!("the server does not support subscriptions to `{name}`")
                }
                _ => {
                    done(post);
                    continue;
                }
            };
            self.watching.forget(&target);
            post.end(Err(CallFailure::Refused(refused)), 0);
        }
    }

    pub(super) fn listening_ended(&mut self, subscription: &RequestId, end: End) {
        let opening = self.watching.opening.as_ref() == Some(subscription);
        if !opening && self.watching.live.as_ref() != Some(subscription) {
            return;
        }
        if opening {
            self.watching.opening = None;
        } else {
            self.missed();
        }
        let refused = match end {
            End::Error(error) => Some(error),
            _ => None,
        };
        if opening {
            for (target, post) in std::mem::take(&mut self.watching.waiters) {
                self.watching.forget(&target);
                post.end(
                    match &refused {
                        Some(error) => Ok(RequestOutcome::Error(error.clone())),
                        None => Err(CallFailure::Refused("the server ended the subscription at once".into())),
                    },
                    0,
                );
            }
        }
        // A server that has no such method, or cannot read the wish, will not have changed its mind in a minute.
        let hopeless = refused.is_some_and(|error| {
            [ErrorCode::METHOD_NOT_FOUND, ErrorCode::INVALID_PARAMS].contains(&error.code)
        });
        if !hopeless && (self.watching.live.is_none() || !opening) {
            self.listen_later();
        }
    }

    /// Handles a subscription whose stream broke, or could not be opened.
    pub(super) fn listening_broke(&mut self, subscription: &RequestId, failed: &Failed) {
        if self.watching.opening.as_ref() == Some(subscription) {
            self.watching.opening = None;
            for (target, post) in std::mem::take(&mut self.watching.waiters) {
                self.watching.forget(&target);
                post.end(Err(CallFailure::Failed(Box::new(failed.clone()))), 0);
            }
            if self.watching.live.is_some() {
                return;
            }
        } else if self.watching.live.as_ref() == Some(subscription) {
            self.missed();
        } else {
            return;
        }
        self.listen_later();
    }

    /// Records the end of a subscription: changes may be missed from now on.
    fn missed(&mut self) {
        self.watching.live = None;
        self.watching.broke = true;
        self.shared.tools_unsubscribed();
    }

    fn listen_later(&mut self) {
        const MAX_WAIT: Duration = Duration::from_secs(60);
        if self.watching.opening.is_some() {
            return;
        }
        let wait = Duration::from_secs(1) * 2u32.saturating_pow(self.watching.failures.min(6));
        self.watching.failures += 1;
        self.watching.retry = Some(Instant::now() + wait.min(MAX_WAIT));
    }
}

fn done(post: CallSender) {
    post.end(Ok(RequestOutcome::Complete(RawObject::empty())), 0);
}
