use std::borrow::Cow;

use bytes::Bytes;
use http::HeaderMap;
use pintle_proto::client::{Extras, SendError};
use pintle_types::{Message, RawObject, schema::LoggingLevel};
use serde_json::Value;

use super::{CallFailure, Driver, Waiter};
use crate::{
    client::{state::CallSender, tools::ToolsVersion},
    transport::MessageContext,
};

/// A command of a handle to the driver.
#[derive(Debug)]
pub(in crate::client) enum Command {
    /// Send a request.
    Call(CallRequest<'static>),
    /// Send requests as one message, where the revision has batches.
    Batch(Vec<CallRequest<'static>>),
    /// Send a notification.
    Tell(Cow<'static, str>, Option<RawObject>, tokio::sync::oneshot::Sender<Result<(), SendError>>),
    /// Change the subscriptions. The params are those of the request of one resource, if layers have passed it on.
    Watch(WatchChange, Option<RawObject>, CallSender),
}

/// A request to be sent.
#[derive(Debug)]
pub(in crate::client) struct CallRequest<'a> {
    pub(in crate::client) method: Cow<'static, str>,
    pub(in crate::client) params: Cow<'a, RawObject>,
    pub(in crate::client) progress: bool,
    pub(in crate::client) log_level: Option<LoggingLevel>,
    /// The version of the tools that the policy decided on.
    pub(in crate::client) decided_on: Option<ToolsVersion>,
    pub(in crate::client) post: CallSender,
}

impl CallRequest<'_> {
    /// Clones borrowed params, so that the request can be queued.
    pub(in crate::client) fn into_owned(self) -> CallRequest<'static> {
        let Self { method, params, progress, log_level, decided_on, post } = self;
        CallRequest { method, params: Cow::Owned(params.into_owned()), progress, log_level, decided_on, post }
    }
}

/// The member of the result of a [`WatchChange`] with what the server has granted of a member of the filter.
pub(in crate::client) const GRANTED: &str = "granted";

/// A change of what is subscribed to.
#[derive(Clone, Debug)]
pub(in crate::client) enum WatchChange {
    /// Subscribe to the lists.
    Lists,
    /// Subscribe to a resource.
    Resource(String),
    /// Unsubscribe from a resource.
    NotResource(String),
    /// Set a member of the filter that belongs to an extension.
    Extension(String, Value),
}

impl Driver {
    pub(super) fn obey(&mut self, command: Command) {
        match command {
            Command::Call(ask) => self.ask(ask),
            Command::Batch(asks) => self.send_batch(asks),
            Command::Tell(method, params, done) => {
                let sent = self.engine.notify(method, params);
                // Whoever asked may have left.
                let _ = done.send(sent.map(|notification| self.send_notification(notification)));
            }
            Command::Watch(watch, params, post) => self.change_watch(watch, params, post),
        }
    }

    pub(super) fn ask(&mut self, ask: CallRequest<'_>) {
        if let Some((message, headers)) = self.admit(ask) {
            self.send_as(&message, self.engine.revision(), headers);
        }
    }

    /// Registers the caller and returns the message to send, with its extra headers.
    fn admit(&mut self, ask: CallRequest<'_>) -> Option<(Message, HeaderMap)> {
        let CallRequest { method, params, progress, log_level, decided_on, post } = ask;
        if post.is_abandoned() {
            return None;
        }
        // As after waiting in the queue for a server that was started again.
        if decided_on.is_some_and(|version| !self.shared.is_current(version)) {
            post.end(Err(CallFailure::Outdated), 0);
            return None;
        }
        let own = post.handlers();
        let foreign = own.map(|own| &own.headers).filter(|headers| !headers.is_empty());
        let headers = match self.shared.mirrored(&method, &params, foreign) {
            Ok(headers) => headers,
            Err(bad) => {
                post.end(Err(CallFailure::Misused(bad.to_string())), 0);
                return None;
            }
        };
        let mut extras = Extras::default();
        extras.progress = progress;
        extras.log_level = log_level.map(LoggingLevel::as_str);
        extras.capabilities = own.and_then(|own| own.capabilities.as_ref());
        extras.any_result_type = own.is_some_and(|own| own.questions.raw.is_some());
        match self.engine.request(method, &params, &extras) {
            Ok(request) => {
                if !post.sent_as(&request.id) {
                    self.engine.abandon(&request.id);
                    return None;
                }
                self.waiting.insert(request.id.clone(), Waiter::Call(post));
                Some((Message::Request(request), headers))
            }
            Err(error) => {
                post.end(Err(CallFailure::Unsent(error)), 0);
                None
            }
        }
    }

    fn send_batch(&mut self, asks: Vec<CallRequest<'static>>) {
        let batch_limit =
            if self.engine.takes_batches() { self.shared.settings.limits.batch.max(1) } else { 1 };
        let messages: Vec<Message> = asks.into_iter().filter_map(|ask| Some(self.admit(ask)?.0)).collect();
        for messages in messages.chunks(batch_limit) {
            let [message] = messages else {
                let mut array = Vec::with_capacity(256 * messages.len());
                for message in messages {
                    array.push(if array.is_empty() { b'[' } else { b',' });
                    message.write(&mut array);
                }
                array.push(b']');
                let about = MessageContext::new(messages, self.engine.revision());
                self.transport.send_with(Bytes::from(array), about);
                continue;
            };
            self.send(message);
        }
    }
}
