use std::{collections::BTreeSet, time::Duration};

use pintle_proto::client::{End, Extras, RequestOutcome, SendError};
use pintle_types::{
    ErrorCode, JsonObject, RawObject, RawValue, RequestId, method,
    method::tasks_extension,
    schema::{
        ClientCapabilities, ServerCapabilities, SubscribeParams, SubscriptionFilter,
        SubscriptionsListenParams,
    },
};
use serde_json::Value;
use tokio::{task::AbortHandle, time::Instant};

use super::{
    CallFailure, Driver, LayerReply, Waiter,
    command::{GRANTED, Watch},
    layered::OwnMessage,
    spans,
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
    /// The request that the server has not acknowledged yet.
    opening: Option<RequestId>,
    /// Callers that wait for the acknowledgement, with their resource.
    waiters: Vec<(SubscriptionTarget, CallSender)>,
    failures: u32,
    /// Whether the last request ended, so that changes may have been missed.
    broke: bool,
    /// The time of the next attempt.
    pub(super) retry: Option<Instant>,
    /// The filter of the newest request, until that ends.
    requested: Option<SubscriptionFilter>,
    /// The newest request, if it is in the layers of the client.
    in_layers: Option<LayeredListen>,
}

/// A `subscriptions/listen` request in the layers of the client.
#[derive(Debug)]
struct LayeredListen {
    number: u64,
    task: AbortHandle,
    /// The request, once the layers have passed it on.
    request: Option<RequestId>,
    /// Returns the acknowledgement to the layers.
    reply: Option<LayerReply>,
    /// The part of the filter that the server has granted.
    granted: Option<RawObject>,
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
            in_layers: None,
        }
    }

    /// Whether the newest request was not acknowledged yet.
    fn is_opening(&self) -> bool {
        self.opening.is_some() || self.in_layers.is_some()
    }

    /// Returns the outcome of a request to the layers, if it is in them.
    fn answer_layers(
        &mut self,
        subscription: &RequestId,
        result: impl FnOnce() -> crate::Result<RawObject>,
    ) -> bool {
        let listen = self.in_layers.as_mut().filter(|listen| listen.request.as_ref() == Some(subscription));
        match listen.and_then(|listen| listen.reply.take()) {
            Some(reply) => {
                reply.send(result());
                true
            }
            None => false,
        }
    }

    /// Resets the state after a loss of the connection. The subscriptions stay.
    pub(super) fn lose(&mut self, ended: &Ended) {
        self.live = None;
        self.opening = None;
        self.retry = None;
        self.requested = None;
        self.in_layers = None;
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
    pub(super) fn change_watch(&mut self, watch: Watch, params: Option<RawObject>, post: CallSender) {
        let limit = self.shared.settings.limits.watched;
        self.watching.waiters.retain(|(_, post)| !post.is_abandoned());
        let target = match watch {
            Watch::Lists if self.watching.lists && !self.watching.is_opening() => return done(post),
            Watch::Lists => {
                self.watching.lists = true;
                SubscriptionTarget::Lists
            }
            Watch::Resource(uri) => {
                if self.watching.uris.len() >= limit && !self.watching.uris.contains(&uri) {
                    let message = format!("{limit} resources are watched already: raise the limit `watched`");
                    return post.end(Err(CallFailure::Refused(message)), 0);
                }
                let known = !self.watching.uris.insert(uri.clone());
                SubscriptionTarget::Resource { uri, known }
            }
            Watch::Extension(name, value) => {
                let known = self.watching.extensions.contains_key(&name);
                if self.watching.extensions.len() >= limit && !known {
                    let message =
                        format!("{limit} extensions are subscribed to already: raise the limit `watched`");
                    return post.end(Err(CallFailure::Refused(message)), 0);
                }
                let before = self.watching.extensions.insert(name.clone(), value);
                SubscriptionTarget::Extension { name, before }
            }
            Watch::NotResource(uri) => {
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
        if self.watching.live.is_none() && !self.watching.is_opening() {
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

    /// Sends one request for all subscriptions, unless they did not change.
    fn listen(&mut self) -> Result<ListenChange, SendError> {
        let facts = self.shared.server_facts();
        let filter = self.watching.filter(facts.capabilities.as_ref());
        if filter == SubscriptionFilter::new() {
            return Ok(ListenChange::Nothing);
        }
        if self.watching.requested.as_ref() == Some(&filter) {
            return Ok(match self.watching.is_opening() {
                true => ListenChange::Requested,
                false => ListenChange::Unchanged,
            });
        }
        let params = SubscriptionsListenParams::new(filter.clone());
        let params = RawObject::from_serialize(&params).unwrap_or_default();
        let can =
            self.engine.revision().is_some_and(|revision| revision.has_method(method::SUBSCRIPTIONS_LISTEN));
        let entered = if can { self.enter_layers(OwnMessage::Listen, params.clone()) } else { None };
        match entered {
            Some((number, task)) => {
                self.stop_layers();
                if let Some(overtaken) = self.watching.opening.take() {
                    self.stop(&overtaken);
                }
                let listen = LayeredListen { number, task, request: None, reply: None, granted: None };
                self.watching.in_layers = Some(listen);
            }
            None => drop(self.send_listen(&params)?),
        }
        self.watching.retry = None;
        self.watching.requested = Some(filter);
        Ok(ListenChange::Requested)
    }

    fn send_listen(&mut self, params: &RawObject) -> Result<RequestId, SendError> {
        // Whoever watches tasks has the extension, also if it is other clients that do.
        let has_tasks = self.watching.extensions.contains_key(TASK_IDS);
        let declared = has_tasks.then(|| self.with_tasks()).flatten();
        let mut extras = Extras::default();
        extras.capabilities = declared.as_ref();
        let request = self.engine.request(method::SUBSCRIPTIONS_LISTEN, params, &extras)?;
        let id = request.id.clone();
        if let Some(overtaken) = self.watching.opening.replace(id.clone()) {
            self.stop(&overtaken);
        }
        self.start_span(&id, &request.method, request.params.as_ref());
        self.send(&pintle_types::Message::Request(request));
        Ok(id)
    }

    /// Returns the capabilities of the client, with the extension of tasks.
    fn with_tasks(&self) -> Option<RawObject> {
        let mut capabilities: ClientCapabilities = self.profile.capabilities.decode().ok()?;
        let extensions = capabilities.extensions.get_or_insert_default();
        extensions.entry(tasks_extension::NAME).or_insert_with(|| JsonObject::new().into());
        RawObject::from_serialize(&capabilities).ok()
    }

    /// Sends a request that the layers have passed on, unless there is a newer one.
    pub(super) fn listen_passed(&mut self, number: u64, params: &RawObject, reply: LayerReply) {
        if self.watching.in_layers.as_ref().is_none_or(|listen| listen.number != number) {
            return;
        }
        let sent = self.send_listen(params);
        let Some(listen) = &mut self.watching.in_layers else { return };
        match sent {
            Ok(id) => {
                listen.request = Some(id);
                listen.reply = Some(reply);
            }
            Err(error) => reply.fail(Error::Misuse(error.to_string())),
        }
    }

    /// Handles the end of a request in the layers. If they refuse it, the subscription ends.
    pub(super) fn listen_left_layers(&mut self, number: u64, result: crate::Result<RawObject>) {
        let Some(listen) = self.watching.in_layers.take_if(|listen| listen.number == number) else { return };
        match result {
            Ok(result) => self.granted(&listen.granted.unwrap_or(result)),
            Err(error) => {
                self.watching.requested = None;
                if listen.request.is_some() && self.watching.opening == listen.request {
                    self.watching.opening = None;
                    listen.request.iter().for_each(|id| self.stop(id));
                } else if listen.request.is_some() && self.watching.live == listen.request {
                    self.watching.live = None;
                    listen.request.iter().for_each(|id| self.stop(id));
                    self.shared.tools_unsubscribed();
                }
                let reason = error.to_string();
                for (target, post) in std::mem::take(&mut self.watching.waiters).into_iter().rev() {
                    self.watching.forget(&target);
                    post.end(
                        match &error {
                            Error::Rpc(error) => Ok(RequestOutcome::Error(error.clone())),
                            Error::Failed(failed) => Err(CallFailure::Failed(failed.clone())),
                            Error::Closed(ended) => Err(CallFailure::Closed(ended.clone())),
                            _ => Err(CallFailure::Refused(reason.clone())),
                        },
                        0,
                    );
                }
            }
        }
    }

    /// Ends the way of a request through the layers, because it is no longer wanted.
    fn stop_layers(&mut self) {
        if let Some(listen) = self.watching.in_layers.take() {
            listen.task.abort();
            self.layering.iter_mut().for_each(|layering| layering.forget(listen.number));
        }
    }

    fn stop_listening(&mut self) {
        self.stop_layers();
        self.watching.requested = None;
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
        // Those who wait do so until the layers have ended.
        if self.watching.answer_layers(subscription, || Ok(granted.clone())) {
            if let Some(listen) = &mut self.watching.in_layers {
                listen.granted = Some(granted.clone());
            }
            return;
        }
        self.granted(granted);
    }

    /// Ends the wait for an acknowledgement.
    fn granted(&mut self, granted: &RawObject) {
        self.watching.granted = granted.clone();
        let uris: Vec<String> =
            granted.decode_member("resourceSubscriptions").ok().flatten().unwrap_or_default();
        for (target, post) in std::mem::take(&mut self.watching.waiters) {
            let refused = match &target {
                SubscriptionTarget::Resource { uri, .. } if !uris.contains(uri) => {
                    format!("the server does not tell of changes of `{uri}`")
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
        let opening = self.watching.opening.as_ref() == Some(subscription);
        if !opening && self.watching.live.as_ref() != Some(subscription) {
            return;
        }
        if opening {
            self.watching.opening = None;
            self.watching.requested = None;
        } else {
            self.missed();
        }
        let refused = match end {
            End::Error(error) => Some(error),
            _ => None,
        };
        self.spans.end(subscription, |span| spans::record_end(span, refused.as_ref()));
        const AT_ONCE: &str = "the server ended the subscription at once";
        let result = || match &refused {
            Some(error) => Err(Error::Rpc(error.clone())),
            None => Err(Error::Refused(AT_ONCE.into())),
        };
        if opening && !self.watching.answer_layers(subscription, result) {
            // The last one first: it may have replaced the value of another.
            for (target, post) in std::mem::take(&mut self.watching.waiters).into_iter().rev() {
                self.watching.forget(&target);
                post.end(
                    match &refused {
                        Some(error) => Ok(RequestOutcome::Error(error.clone())),
                        None => Err(CallFailure::Refused(AT_ONCE.into())),
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
            self.watching.requested = None;
            let result = || Err(Error::Failed(Box::new(failed.clone())));
            if !self.watching.answer_layers(subscription, result) {
                // The last one first: it may have replaced the value of another.
                for (target, post) in std::mem::take(&mut self.watching.waiters).into_iter().rev() {
                    self.watching.forget(&target);
                    post.end(Err(CallFailure::Failed(Box::new(failed.clone()))), 0);
                }
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
        if !self.watching.is_opening() {
            self.watching.requested = None;
        }
        self.shared.tools_unsubscribed();
    }

    fn listen_later(&mut self) {
        const MAX_WAIT: Duration = Duration::from_secs(60);
        if self.watching.is_opening() {
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
