//! Messages that a connection sends by itself, and their way through the layers of the client.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    future::poll_fn,
    task::{Context, Poll},
};

use pintle_proto::client::{Extras, RequestOutcome};
use pintle_types::{RawObject, method};
use tokio::{
    sync::{mpsc, oneshot},
    task::{AbortHandle, JoinSet},
};

use super::{BUDGET, Driver, Waiter};
use crate::{
    Error, Result,
    client::{
        asking::caught,
        layer::{Cx, LayerFuture, Next},
    },
};

/// Limit of messages that the layers have passed on and that were not sent yet.
const MAX_PASSED: usize = 16;

/// The messages of a connection itself that are in the layers.
#[derive(Debug)]
pub(super) struct LayerTasks {
    layers: Next,
    tasks: JoinSet<(u64, OwnMessage, Result<RawObject>)>,
    passing: mpsc::Sender<PassedMessage>,
    passed: mpsc::Receiver<PassedMessage>,
    /// The number of the last message.
    last: u64,
    /// The messages that the layers have neither passed on nor refused.
    entering: HashSet<u64>,
    /// The notifications that are in the layers, and whether another one is to follow: it says nothing that the next does not.
    notifying: HashMap<&'static str, bool>,
}

/// A message that the connection sends by itself.
#[derive(Clone, Copy, Debug)]
pub(super) enum OwnMessage {
    /// A request whose result the connection does not use.
    Request(&'static str),
    Notification(&'static str),
    /// The request for all subscriptions.
    Listen,
}

impl OwnMessage {
    fn method(self) -> &'static str {
        match self {
            Self::Request(method) | Self::Notification(method) => method,
            Self::Listen => method::SUBSCRIPTIONS_LISTEN,
        }
    }
}

/// A message that the layers have passed on.
#[derive(Debug)]
struct PassedMessage {
    number: u64,
    message: OwnMessage,
    params: RawObject,
    reply: LayerReply,
}

/// Returns the result of a message to the layers.
#[derive(Debug)]
pub(super) struct LayerReply(oneshot::Sender<Result<RawObject>>);

impl LayerReply {
    pub(super) fn send(self, result: Result<RawObject>) {
        // The layers may have ended meanwhile.
        let _ = self.0.send(result);
    }

    pub(super) fn complete(self, result: RawObject) {
        self.send(Ok(result));
    }

    pub(super) fn fail(self, error: Error) {
        self.send(Err(error));
    }

    pub(super) fn answer(self, outcome: RequestOutcome) {
        match outcome {
            RequestOutcome::Complete(result) | RequestOutcome::Extension { result, .. } => {
                self.complete(result)
            }
            RequestOutcome::Error(error) => self.fail(Error::Rpc(error)),
            RequestOutcome::Violation(violation) => self.fail(Error::Protocol(violation)),
            _ => self.fail(Error::Decode("the response is of an unknown kind".into())),
        }
    }
}

impl LayerTasks {
    pub(super) fn new(layers: Next) -> Self {
        let (passing, passed) = mpsc::channel(MAX_PASSED);
        Self {
            layers,
            tasks: JoinSet::new(),
            passing,
            passed,
            last: 0,
            entering: HashSet::new(),
            notifying: HashMap::new(),
        }
    }

    /// Drops all messages, because the connection is lost.
    pub(super) fn clear(&mut self) {
        *self = Self { last: self.last, ..Self::new(self.layers.clone()) };
    }

    /// Records that a task was aborted.
    pub(super) fn forget(&mut self, number: u64) {
        self.entering.remove(&number);
    }
}

impl Driver {
    /// Starts a task that passes a message through the layers. Returns its number.
    pub(super) fn enter_layers(
        &mut self,
        message: OwnMessage,
        params: RawObject,
    ) -> Option<(u64, AbortHandle)> {
        let shared = self.shared.clone();
        let layering = self.layering.as_mut()?;
        layering.last += 1;
        let (number, passing) = (layering.last, layering.passing.clone());
        let perform = move |cx: Cx| -> LayerFuture {
            let (passing, shared) = (passing.clone(), shared.clone());
            Box::pin(async move {
                let (reply, replied) = oneshot::channel();
                let passed =
                    PassedMessage { number, message, params: cx.into_params(), reply: LayerReply(reply) };
                let closed = || Error::Closed(shared.how_ended());
                passing.send(passed).await.map_err(|_| closed())?;
                replied.await.unwrap_or_else(|_| Err(closed()))
            })
        };
        let cx = Cx::sent(self.shared.cx_origin(), message.method().into(), params, perform);
        let cx = if let OwnMessage::Notification(_) = message { cx.notification() } else { cx };
        let running = caught(layering.layers.start(cx));
        let task = layering.tasks.spawn(async move {
            let result = running.await;
            (number, message, result.unwrap_or_else(|| Err(Error::Refused("a layer panicked".into()))))
        });
        layering.entering.insert(number);
        Some((number, task))
    }

    /// Passes a request through the layers and sends it, if the revision has it. Its result is discarded.
    pub(super) fn request_layered(&mut self, method: &'static str, params: RawObject) {
        if self.engine.revision().is_some_and(|revision| revision.has_method(method)) {
            self.enter_layers(OwnMessage::Request(method), params);
        }
    }

    /// Passes a notification through the layers and sends it, if the revision has it. While one of this method is in the layers,
    /// others are merged into one that follows it.
    pub(super) fn notify_layered(&mut self, method: &'static str) {
        if !self.engine.revision().is_some_and(|revision| revision.has_method(method)) {
            return;
        }
        let Some(layering) = &mut self.layering else { return };
        match layering.notifying.entry(method) {
            Entry::Occupied(mut again) => drop(again.insert(true)),
            Entry::Vacant(first) => {
                first.insert(false);
                self.enter_layers(OwnMessage::Notification(method), RawObject::empty());
            }
        }
    }

    /// Sends what the layers have passed on, up to a budget. Returns whether there may be more.
    pub(super) fn poll_layers(&mut self, cx: &mut Context<'_>) -> bool {
        for _ in 0..BUDGET {
            let Some(layering) = &mut self.layering else { return false };
            if let Poll::Ready(Some(passed)) = layering.passed.poll_recv(cx) {
                self.send_passed(passed);
                continue;
            }
            match layering.tasks.poll_join_next(cx) {
                Poll::Ready(Some(Ok((number, message, result)))) => {
                    layering.entering.remove(&number);
                    self.left_layers(number, message, result);
                }
                // It was aborted.
                Poll::Ready(Some(Err(_))) => {}
                Poll::Ready(None) | Poll::Pending => return false,
            }
        }
        true
    }

    /// Waits until the layers have passed on or refused what was sent so far.
    pub(super) async fn layers_entered(&mut self) {
        poll_fn(|cx| {
            if self.poll_layers(cx) {
                cx.waker().wake_by_ref();
            }
            match &self.layering {
                Some(layering) if !layering.entering.is_empty() => Poll::Pending,
                _ => Poll::Ready(()),
            }
        })
        .await;
    }

    fn send_passed(&mut self, passed: PassedMessage) {
        let PassedMessage { number, message, params, reply } = passed;
        self.layering.iter_mut().for_each(|layering| layering.forget(number));
        match message {
            OwnMessage::Request(method) => match self.engine.request(method, &params, &Extras::default()) {
                Ok(request) => self.send_request(request, Waiter::Layered(reply)),
                Err(error) => reply.fail(Error::Misuse(error.to_string())),
            },
            OwnMessage::Notification(method) => {
                match self.engine.notify(method, Some(params).filter(|params| !params.is_empty())) {
                    Ok(notification) => {
                        self.send_notification(notification);
                        reply.complete(RawObject::empty());
                    }
                    Err(error) => reply.fail(Error::Misuse(error.to_string())),
                }
            }
            OwnMessage::Listen => self.listen_passed(number, &params, reply),
        }
    }

    fn left_layers(&mut self, number: u64, message: OwnMessage, result: Result<RawObject>) {
        if let OwnMessage::Notification(method) = message
            && self.layering.as_mut().and_then(|layering| layering.notifying.remove(method)) == Some(true)
        {
            self.notify_layered(method);
        }
        match (message, result) {
            (OwnMessage::Listen, result) => self.listen_left_layers(number, result),
            (message, Err(error)) => {
                tracing::debug!(method = message.method(), %error, "a message of the connection was not answered");
            }
            (_, Ok(_)) => {}
        }
    }

    /// Starts to pass a message of the opening through the layers, if there are any.
    pub(super) fn opening_layers(
        &self,
        method: &'static str,
        params: RawObject,
        is_notification: bool,
    ) -> Option<OpeningLayers> {
        let layers = self.shared.settings.layers.as_ref()?;
        let (passing, passed) = mpsc::channel(1);
        let perform = move |cx: Cx| -> LayerFuture {
            let passing = passing.clone();
            Box::pin(async move {
                let (reply, replied) = oneshot::channel();
                let over = || Error::Refused("the connection is no longer being opened".into());
                passing.send((cx.into_params(), LayerReply(reply))).await.map_err(|_| over())?;
                replied.await.unwrap_or_else(|_| Err(over()))
            })
        };
        let cx = Cx::sent(self.shared.cx_origin(), method.into(), params, perform);
        let running = layers.start(if is_notification { cx.notification() } else { cx });
        Some(OpeningLayers { running, passed })
    }
}

/// A message of the opening that is in the layers.
pub(super) struct OpeningLayers {
    running: LayerFuture,
    passed: mpsc::Receiver<(RawObject, LayerReply)>,
}

/// A step of a message of the opening through the layers.
pub(super) enum OpeningPass {
    /// The layers pass it on, with these params.
    Passed(RawObject, LayerReply),
    /// The layers have ended.
    Ended(Result<RawObject>),
}

impl OpeningLayers {
    pub(super) async fn next(&mut self) -> OpeningPass {
        poll_fn(|cx| {
            if let Poll::Ready(result) = self.running.as_mut().poll(cx) {
                return Poll::Ready(OpeningPass::Ended(result));
            }
            match self.passed.poll_recv(cx) {
                Poll::Ready(Some((params, reply))) => Poll::Ready(OpeningPass::Passed(params, reply)),
                _ => Poll::Pending,
            }
        })
        .await
    }
}
