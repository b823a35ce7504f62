use std::{collections::BTreeSet, time::Duration};

use pintle_proto::client::{End, Extras, RequestOutcome, SendError};
use pintle_types::{
    ErrorCode, JsonObject, Message, RawObject, RawValue, RequestId, method,
    method::tasks_extension,
    schema::{
        ClientCapabilities, ServerCapabilities, SubscribeParams, SubscriptionFilter,
        SubscriptionsListenParams,
    },
};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    CallFailure, Driver, Waiter,
    command::{GRANTED, WatchChange},
    own_messages::{LayerReply, OwnKind},
};
use crate::{Ended, Error, client::state::CallSender, transport::Failed};

/// The member of the filter of subscriptions that names tasks.
const TASK_IDS: &str = "taskIds";

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
    /// The part of the filter that the server has granted last.
    granted: RawObject,
    /// The acknowledged request.
    live: Option<RequestId>,
    /// The newest request, until the layers of the client have ended.
    opening: Option<OpeningListen>,
    /// Callers that wait for the acknowledgement, with their resource.
    waiters: Vec<(SubscriptionTarget, CallSender)>,
    failures: u32,
    /// Whether the last request ended, so that changes may have been missed.
    broke: bool,
    /// The time of the next attempt.
    pub(super) retry: Option<Instant>,
    /// The filter of the newest request, until that ends.
    requested: Option<SubscriptionFilter>,
}

/// A `subscriptions/listen` request that is in the layers of the client.
#[derive(Debug, Default)]
struct OpeningListen {
    /// The request, once the layers have passed it on, and until it ends.
    request: Option<RequestId>,
    /// Returns the acknowledgement to the layers.
    reply: Option<LayerReply>,
    /// The part of the filter that the server has granted.
    granted: Option<RawObject>,
    /// Whether another one is sent after this one, which has ended.
    retries: bool,
}

impl OpeningListen {
    /// Whether the server has not acknowledged this request of it yet.
    fn awaits(&self, subscription: &RequestId) -> bool {
        self.granted.is_none() && self.request.as_ref() == Some(subscription)
    }

    /// Returns the error of its request to the layers.
    fn fail(&mut self, error: Error, retries: bool) {
        self.request = None;
        self.retries = retries;
        if let Some(reply) = self.reply.take() {
            reply.send(Err(error));
        }
    }
}

/// The effect of a change of the subscriptions.
enum ListenChange {
    /// There is nothing to listen to.
    Nothing,
    /// The server listens already.
    Unchanged,
    /// The server will acknowledge a request.
    Requested,
}

/// The target of a subscription that a caller waits for.
#[derive(Debug)]
enum SubscriptionTarget {
    Lists,
    Resource {
        uri: String,
        /// Whether it was subscribed to before.
        known: bool,
    },
    Extension {
        name: String,
        /// The value that this one replaces.
        before: Option<Value>,
    },
}

impl SubscriptionTarget {
    fn uri(&self) -> Option<&str> {
        match self {
            Self::Resource { uri, .. } => Some(uri),
            Self::Lists | Self::Extension { .. } => None,
        }
    }
}

impl Subscriptions {
    /// Undoes a subscription that failed.
    fn forget(&mut self, target: &SubscriptionTarget) {
        match target {
            SubscriptionTarget::Lists | SubscriptionTarget::Resource { known: true, .. } => {}
            SubscriptionTarget::Resource { uri, .. } => drop(self.uris.remove(uri)),
            SubscriptionTarget::Extension { name, before: Some(value) } => {
                self.extensions.insert(name.clone(), value.clone());
            }
            SubscriptionTarget::Extension { name, before: None } => drop(self.extensions.remove(name)),
        }
    }

    /// Removes a subscription that the server does not grant.
    fn remove(&mut self, target: &SubscriptionTarget) {
        match target {
            SubscriptionTarget::Lists => {}
            SubscriptionTarget::Resource { uri, .. } => drop(self.uris.remove(uri)),
            SubscriptionTarget::Extension { name, .. } => drop(self.extensions.remove(name)),
        }
    }

    pub(super) fn new(lists: bool) -> Self {
        Self {
            lists,
            uris: BTreeSet::new(),
            extensions: JsonObject::new(),
            granted: RawObject::empty(),
            live: None,
            opening: None,
            waiters: Vec::new(),
            failures: 0,
            broke: false,
            retry: None,
            requested: None,
        }
    }

    /// Whether the newest request was not acknowledged yet.
    fn awaits(&self, subscription: &RequestId) -> bool {
        self.opening.as_ref().is_some_and(|opening| opening.awaits(subscription))
    }

    /// Takes the request that was not acknowledged.
    fn take_unacknowledged(&mut self) -> Option<RequestId> {
        self.opening.take().filter(|opening| opening.granted.is_none())?.request
    }

    /// Resets the state after a loss of the connection. The subscriptions stay.
    pub(super) fn lose(&mut self, ended: &Ended) {
        self.live = None;
        self.opening = None;
        self.retry = None;
        self.requested = None;
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
    pub(super) fn change_watch(&mut self, watch: WatchChange, params: Option<RawObject>, post: CallSender) {
        let limit = self.shared.settings.limits.watched;
        self.watching.waiters.retain(|(_, post)| !post.is_abandoned());
        let target = match watch {
            WatchChange::Lists if self.watching.lists && self.watching.opening.is_none() => {
                return done(post);
            }
            WatchChange::Lists => {
                self.watching.lists = true;
                SubscriptionTarget::Lists
            }
            WatchChange::Resource(uri) => {
                if self.watching.uris.len() >= limit && !self.watching.uris.contains(&uri) {
                    let message = format!("{limit} resources are already watched: raise the limit `watched`");
                    return post.end(Err(CallFailure::Refused(message)), 0);
                }
                let known = !self.watching.uris.insert(uri.clone());
                SubscriptionTarget::Resource { uri, known }
            }
            WatchChange::Extension(name, value) => {
                let known = self.watching.extensions.contains_key(&name);
                if self.watching.extensions.len() >= limit && !known {
                    let message =
                        format!("{limit} extensions are already subscribed to: raise the limit `watched`");
                    return post.end(Err(CallFailure::Refused(message)), 0);
                }
                let before = self.watching.extensions.insert(name.clone(), value);
                SubscriptionTarget::Extension { name, before }
            }
            WatchChange::NotResource(uri) => {
                self.watching.uris.remove(&uri);
                return self.unwatch(uri, params, post);
            }
        };
        match self.listen() {
            Ok(ListenChange::Requested) => self.watching.waiters.push((target, post)),
            Ok(ListenChange::Unchanged) => granted_to(&self.watching.granted, &target, post),
            Ok(ListenChange::Nothing) => done(post),
            Err(SendError::Unavailable { .. }) => {
                self.subscribe(method::RESOURCES_SUBSCRIBE, target.uri().map(Into::into), params, post);
            }
            Err(error) => {
                self.watching.forget(&target);
                post.end(Err(CallFailure::Unsent(error)), 0);
            }
        }
    }

    fn unwatch(&mut self, uri: String, params: Option<RawObject>, post: CallSender) {
        if self.watching.live.is_none() && self.watching.opening.is_none() {
            return self.subscribe(method::RESOURCES_UNSUBSCRIBE, Some(uri), params, post);
        }
        match self.listen() {
            Ok(ListenChange::Requested) => self.watching.waiters.push((SubscriptionTarget::Lists, post)),
            Ok(ListenChange::Unchanged) => done(post),
            Ok(ListenChange::Nothing) => {
                self.stop_listening();
                done(post);
            }
            Err(error) => post.end(Err(CallFailure::Unsent(error)), 0),
        }
    }

    /// Subscribes or unsubscribes by a request for each resource, as in the session era.
    fn subscribe(
        &mut self,
        method: &'static str,
        uri: Option<String>,
        params: Option<RawObject>,
        post: CallSender,
    ) {
        let Some(uri) = uri else { return done(post) };
        let default = || RawObject::from_serialize(&SubscribeParams::new(uri.as_str())).unwrap_or_default();
        let params = params.unwrap_or_else(default);
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
                self.send_own(OwnKind::Request(method::RESOURCES_SUBSCRIBE), params);
            }
        }
    }

    /// Sends the pending `subscriptions/listen` again.
    pub(super) fn watch(&mut self) {
        // It was possible before.
        let _ = self.listen();
    }

    /// Sends one request for all subscriptions, unless they did not change.
    fn listen(&mut self) -> Result<ListenChange, SendError> {
        let facts = self.shared.server_facts();
        let filter = self.watching.filter(facts.capabilities.as_ref());
        if filter == SubscriptionFilter::new() {
            return Ok(ListenChange::Nothing);
        }
        if self.watching.requested.as_ref() == Some(&filter) {
            return Ok(match self.watching.opening.is_some() {
                true => ListenChange::Requested,
                false => ListenChange::Unchanged,
            });
        }
        let revision = self.engine.revision().ok_or(SendError::NotOpen)?;
        if !revision.has_method(method::SUBSCRIPTIONS_LISTEN) {
            return Err(SendError::Unavailable { method: method::SUBSCRIPTIONS_LISTEN.into(), revision });
        }
        let params = SubscriptionsListenParams::new(filter.clone());
        self.stop_opening();
        self.watching.opening = Some(OpeningListen::default());
        self.send_own(OwnKind::Listen, RawObject::from_serialize(&params).unwrap_or_default());
        self.watching.retry = None;
        self.watching.requested = Some(filter);
        Ok(ListenChange::Requested)
    }

    /// Returns the capabilities of the client, with the extension of tasks.
    fn with_tasks(&self) -> Option<RawObject> {
        let mut capabilities: ClientCapabilities = self.profile.capabilities.decode().ok()?;
        let extensions = capabilities.extensions.get_or_insert_default();
        extensions.entry(tasks_extension::NAME).or_insert_with(|| JsonObject::new().into());
        RawObject::from_serialize(&capabilities).ok()
    }

    /// Sends a request that the layers have passed on.
    pub(super) fn listen_passed(&mut self, params: &RawObject, reply: LayerReply) {
        // Whoever watches tasks has the extension, also if it is other clients that do.
        let has_tasks = self.watching.extensions.contains_key(TASK_IDS);
        let declared = has_tasks.then(|| self.with_tasks()).flatten();
        let mut extras = Extras::default();
        extras.capabilities = declared.as_ref();
        let request = match self.engine.request(method::SUBSCRIPTIONS_LISTEN, params, &extras) {
            Ok(request) => request,
            Err(error) => return reply.send(Err(Error::Misuse(error.to_string()))),
        };
        // The layers may send it twice.
        self.watching.take_unacknowledged().iter().for_each(|id| self.stop(id));
        let (request_id, reply) = (Some(request.id.clone()), Some(reply));
        self.watching.opening = Some(OpeningListen { request: request_id, reply, ..Default::default() });
        self.send(&Message::Request(request));
    }

    /// Handles the end of a request in the layers. If they refuse it, the subscription ends.
    pub(super) fn listen_ended(&mut self, result: crate::Result<RawObject>) {
        let Some(opening) = self.watching.opening.take() else { return };
        let OpeningListen { request, granted, retries, .. } = opening;
        match result {
            Ok(result) => self.granted(&granted.unwrap_or(result)),
            Err(error) => {
                self.watching.requested = None;
                if let Some(id) = request {
                    if self.watching.live.take_if(|live| *live == id).is_some() {
                        self.shared.tools_unsubscribed();
                    }
                    self.stop(&id);
                }
                // The last one first: it may have replaced the value of another.
                for (target, post) in std::mem::take(&mut self.watching.waiters).into_iter().rev() {
                    self.watching.forget(&target);
                    post.end(
                        match &error {
                            Error::Rpc(error) => Ok(RequestOutcome::Error(error.clone())),
                            Error::Failed(failed) => Err(CallFailure::Failed(failed.clone())),
                            Error::Closed(ended) => Err(CallFailure::Closed(ended.clone())),
                            Error::Misuse(message) => Err(CallFailure::Misused(message.clone())),
                            error => Err(CallFailure::Refused(error.to_string())),
                        },
                        0,
                    );
                }
            }
        }
        if retries {
            self.listen_later();
        }
    }

    /// Ends the newest request, because it is no longer wanted.
    fn stop_opening(&mut self) {
        self.stop_own_listen();
        self.watching.take_unacknowledged().iter().for_each(|id| self.stop(id));
    }

    fn stop_listening(&mut self) {
        self.stop_opening();
        self.watching.requested = None;
        self.watching.live.take().iter().for_each(|id| self.stop(id));
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
        let opening = self.watching.opening.as_mut().filter(|opening| opening.awaits(subscription));
        let Some(opening) = opening else { return };
        opening.granted = Some(granted.clone());
        // Those who wait do so until the layers have ended.
        let reply = opening.reply.take();
        self.watching.failures = 0;
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
        if let Some(reply) = reply {
            reply.send(Ok(RequestOutcome::Complete(granted.clone())));
        }
    }

    /// Ends the wait for an acknowledgement.
    fn granted(&mut self, granted: &RawObject) {
        self.watching.granted = granted.clone();
        let uris: Vec<String> =
            granted.decode_member("resourceSubscriptions").ok().flatten().unwrap_or_default();
        for (target, post) in std::mem::take(&mut self.watching.waiters) {
            let refused = match &target {
                SubscriptionTarget::Resource { uri, .. } if !uris.contains(uri) => {
                    format!("the server does not report changes of `{uri}`")
                }
                SubscriptionTarget::Extension { name, .. } if granted.get(name).is_none() => {
                    format!("the server does not support subscriptions to `{name}`")
                }
                target => {
                    granted_to(granted, target, post);
                    continue;
                }
            };
            self.watching.remove(&target);
            // What is asked for again is sent again.
            self.watching.requested = None;
            post.end(Err(CallFailure::Refused(refused)), 0);
        }
    }

    pub(super) fn listening_ended(&mut self, subscription: &RequestId, end: End) {
        let refused = match end {
            End::Error(error) => Some(error),
            _ => None,
        };
        // A server that has no such method, or cannot read the wish, will not have changed its mind in a minute.
        let hopeless = refused.as_ref().is_some_and(|error| {
            [ErrorCode::METHOD_NOT_FOUND, ErrorCode::INVALID_PARAMS].contains(&error.code)
        });
        let at_once = || Error::Refused("the server ended the subscription at once".into());
        self.listening_over(subscription, refused.map_or_else(at_once, Error::Rpc), !hopeless);
    }

    /// Handles a subscription whose stream broke, or could not be opened.
    pub(super) fn listening_broke(&mut self, subscription: &RequestId, failed: &Failed) {
        self.listening_over(subscription, Error::Failed(Box::new(failed.clone())), true);
    }

    /// Handles the end of a subscription, or of one that was not acknowledged.
    fn listening_over(&mut self, subscription: &RequestId, error: Error, retries: bool) {
        let is_live = self.watching.live.as_ref() == Some(subscription);
        let awaits = self.watching.awaits(subscription);
        if let Some(opening) = self.watching.opening.as_mut().filter(|_| awaits) {
            opening.fail(error, retries && self.watching.live.is_none());
            self.watching.requested = None;
        } else if is_live {
            self.missed(subscription, retries);
            if retries {
                self.listen_later();
            }
        }
    }

    /// Records the end of a subscription: changes may be missed from now on.
    fn missed(&mut self, subscription: &RequestId, retries: bool) {
        self.watching.live = None;
        self.watching.broke = true;
        match &mut self.watching.opening {
            // The layers have its acknowledgement, and have not ended.
            Some(opening) if opening.request.as_ref() == Some(subscription) => {
                opening.request = None;
                opening.retries = retries;
                self.watching.requested = None;
            }
            Some(_) => {}
            None => self.watching.requested = None,
        }
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

/// Returns to a caller what the server has granted of the member that it has set.
fn granted_to(granted: &RawObject, target: &SubscriptionTarget, post: CallSender) {
    let value = match target {
        SubscriptionTarget::Extension { name, .. } => granted.decode_member::<&RawValue>(name).ok().flatten(),
        _ => None,
    };
    let result = value.map_or_else(RawObject::empty, |value| RawObject::empty().with(GRANTED, value));
    post.end(Ok(RequestOutcome::Complete(result)), 0);
}

fn done(post: CallSender) {
    post.end(Ok(RequestOutcome::Complete(RawObject::empty())), 0);
}
