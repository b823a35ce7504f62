use std::{
    sync::atomic::Ordering,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use pintle_proto::{
    client::{Ignored, Inbound, RequestOutcome, ServerQuestion},
    http::Probed,
};
use pintle_types::{Frame, Message, RawObject, RequestId, Response, RpcError, method};
use tracing::Instrument as _;

use super::{CallFailure, Driver, RunningAnswer, Waiter};
use crate::{
    Error,
    client::{
        asking::{Asker, SessionTasks},
        layer::question_span,
        state::{CallHandlers, CallbackEvent},
    },
    excerpt::excerpt,
    question_keys,
    telemetry::{AnsweredRequests, ConnectionFacts, ReceivedRequests},
    transport::{Delivery, Failed, Incoming, Oversized, Skipped, StreamPause},
};

/// Limit of quoted server output in errors, in bytes.
const SHOWN: usize = 200;

/// The decoded content of a frame. One message, the usual case, needs no list.
pub(super) enum Read {
    One(Inbound),
    Several(Vec<Inbound>),
}

impl Read {
    fn as_slice(&self) -> &[Inbound] {
        match self {
            Self::One(inbound) => std::slice::from_ref(inbound),
            Self::Several(inbound) => inbound,
        }
    }

    pub(super) fn into_vec(self) -> Vec<Inbound> {
        match self {
            Self::One(inbound) => vec![inbound],
            Self::Several(inbound) => inbound,
        }
    }
}

impl Driver {
    /// Handles one incoming message or failure.
    pub(super) fn receive(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Failed(failed) => self.request_failed(failed),
            Incoming::Oversized(oversized) => self.skipped(&oversized),
            Incoming::Message(bytes) => match self.read(&bytes) {
                Read::One(inbound) => self.take(inbound),
                Read::Several(inbound) => inbound.into_iter().for_each(|inbound| self.take(inbound)),
            },
        }
    }

    /// Tells the call whose stream the server ended before the answer.
    pub(super) fn stream_paused(&mut self, pause: &StreamPause) {
        tracing::debug!(request = %pause.request, wait = ?pause.wait, "the server ended the stream of a request for now");
        if let Some(Waiter::Call(post)) = self.waiting.get(&pause.request) {
            post.stream_paused(pause.wait);
        }
    }

    /// Fails a request that will not be answered. Ignored if it was answered.
    pub(super) fn request_failed(&mut self, mut failed: Box<Failed>) {
        self.name_stray(&mut failed);
        let Some(id) = failed.request.clone() else {
            tracing::debug!(%failed, "a message was not delivered");
            return;
        };
        if let Some(error) = failed.error.clone().filter(|_| failed.delivery != Delivery::LostSession) {
            let answer = Message::Response(Response::new(Some(id), Err(error)));
            let inbound = self.engine.receive(Ok(answer));
            return self.take(inbound);
        }
        if self.engine.abandon(&id).is_some() {
            tracing::debug!(%failed, "a subscription broke");
            return self.listening_broke(&id, &failed);
        }
        match self.waiting.remove(&id) {
            Some(Waiter::Call(post)) => {
                if failed.delivery == Delivery::LostSession {
                    self.stranded.push((post, failed));
                } else {
                    post.end(Err(CallFailure::Failed(failed)), self.shared.noticed());
                }
            }
            Some(Waiter::Subscriber(post, uri)) => {
                if failed.delivery == Delivery::LostSession {
                    // It stays wished for, and is asked for again with the next session.
                    self.stranded.push((post, failed));
                } else {
                    self.forget(&uri);
                    post.end(Err(CallFailure::Failed(failed)), self.shared.noticed());
                }
            }
            Some(Waiter::Own(reply)) => reply.send(Err(Error::Failed(failed))),
            Some(Waiter::Life) => tracing::debug!(%failed, "a request has no answer"),
            None => {}
        }
    }

    /// Handles a message that exceeded the limit: fails the request that it may have answered.
    fn skipped(&mut self, oversized: &Oversized) {
        const MAYBE: &str = "a message that was too long may have been its answer";
        self.received = true;
        let Oversized { limit, what, .. } = oversized;
        tracing::warn!(limit, ?what, "the server sent a message that is too long: it was skipped");
        match what {
            Skipped::Answer(id) => self.request_failed(Box::new(oversized.failed().of(id))),
            Skipped::Call(Some(id)) => {
                let error =
                    RpcError::invalid_request(format!("a message of more than {limit} bytes: send less"));
                self.reply(Response::new(Some(id.clone()), Err(error)));
            }
            Skipped::Call(None) | Skipped::Noise => {}
            // One of them has its answer and will have no other; which one cannot be told.
            Skipped::Unknown => {
                let open: Vec<RequestId> = self.waiting.keys().cloned().collect();
                for id in open {
                    self.cancel(&id, MAYBE);
                    self.request_failed(Box::new(oversized.failed().of(&id)));
                }
            }
        }
    }

    /// Decodes a frame.
    pub(super) fn read(&mut self, bytes: &Bytes) -> Read {
        self.received = true;
        let frame = Frame::parse(bytes, self.shared.settings.limits.batch);
        let received = frame.as_ref().map(ReceivedRequests::of).unwrap_or_default();
        let read = match frame {
            Ok(Frame::One(message)) => Read::One(self.engine.receive(Ok(message))),
            Ok(Frame::Batch(messages)) => Read::Several(self.engine.receive_batch(messages)),
            Err(malformed) => {
                let inbound = self.engine.receive(Err(malformed));
                if let Inbound::Ignored(Ignored::Noise(_)) = inbound {
                    self.record_noise(bytes);
                }
                Read::One(inbound)
            }
        };
        if !received.is_empty() {
            self.record_refusals(received, read.as_slice());
        }
        read
    }

    /// Adds to a failure that the server answered an unknown request.
    pub(super) fn name_stray(&mut self, failed: &mut Failed) {
        if failed.probed == Probed::Answered
            && let Some(id) = self.stray.take()
        {
            let message = failed.message.to_mut();
            message.push_str(&format!("; it answered request {id}, which was never sent"));
        }
    }

    fn record_noise(&mut self, line: &[u8]) {
        self.shared.noise.fetch_add(1, Ordering::Relaxed);
        let shown = line.get(..SHOWN).unwrap_or(line);
        let shown = String::from_utf8_lossy(shown);
        self.first_noise.get_or_insert_with(|| excerpt(&shown, SHOWN).into());
        if self.shared.settings.on_noise.is_some() {
            self.shared.notify(CallbackEvent::Noise(shown.into()));
        }
    }

    pub(super) fn take(&mut self, inbound: Inbound) {
        match inbound {
            Inbound::Answer { id, outcome } => {
                self.stray = None;
                self.transport.answered(&id);
                self.cancellations.answered(&id);
                match self.waiting.remove(&id) {
                    Some(Waiter::Call(post)) => post.end(Ok(outcome), self.shared.noticed()),
                    Some(Waiter::Subscriber(post, uri)) => {
                        if !matches!(outcome, RequestOutcome::Complete(_)) {
                            self.forget(&uri);
                        }
                        post.end(Ok(outcome), self.shared.noticed());
                    }
                    Some(Waiter::Own(reply)) => reply.send(Ok(outcome)),
                    Some(Waiter::Life) => self.misses = 0,
                    None => {}
                }
            }
            Inbound::Progress { id, params } => {
                if let Some(Waiter::Call(post)) = self.waiting.get(&id) {
                    post.progress(params);
                }
            }
            Inbound::Question(question) => self.think(question),
            Inbound::Withdrawn { id } => {
                if let Some(thought) = self.questions.remove(&id) {
                    thought.task.abort();
                    self.shared.questions.fetch_sub(1, Ordering::Relaxed);
                }
            }
            Inbound::Reply(response) => self.reply(response),
            Inbound::Log(params) => self.log(params),
            Inbound::Change { change, .. } => self.shared.changed(&change),
            Inbound::Acknowledged { subscription, granted } => self.acknowledged(&subscription, &granted),
            Inbound::Ended { subscription, end } => self.listening_ended(&subscription, end),
            Inbound::Notification { notification, .. } => self.shared.queue_notification(notification),
            Inbound::Ignored(Ignored::UnknownAnswer(id)) => {
                let id = excerpt(&id.to_string(), SHOWN);
                tracing::warn!(%id, "the server answered a request that was never sent");
                self.stray = Some(id.into());
            }
            Inbound::Ignored(ignored) => tracing::debug!(%ignored, "ignored a message of the server"),
            Inbound::Violation(violation) => tracing::warn!(%violation, "the server violated the protocol"),
            _ => tracing::debug!("ignored a message of the server that is of no kind we know"),
        }
    }

    /// Creates the spans of the requests of the server that the engine refuses.
    fn record_refusals(&self, received: ReceivedRequests, inbound: &[Inbound]) {
        let mut answered = AnsweredRequests::default();
        for inbound in inbound {
            match inbound {
                // Its handler has a span.
                Inbound::Question(question) => answered.add_call(&question.id),
                Inbound::Reply(response) => answered.add_response(response),
                _ => {}
            }
        }
        let (revision, transport) = (self.engine.revision(), self.shared.transport);
        drop(received.spans(ConnectionFacts { revision, session: None, transport }, &answered));
    }

    /// Starts the handler of an input request. A `ping` is answered at once, unless a layer waits.
    fn think(&mut self, question: ServerQuestion) {
        let ServerQuestion { id, method, params, .. } = question;
        let base = &self.shared.settings.handlers;
        let mut call = self.call_of_message();
        let handlers = match self.handlers_of(call.as_ref()) {
            Some(own) => own.questions.or(base),
            None => {
                // The only call in flight is not aborted with a handler of the client.
                call = self.transport.stream_request().cloned();
                base.clone()
            }
        };
        let (key, reports) = (question_keys::read(&params), self.progress_of(&id, &params));
        let tasks = self.tasks.as_ref().zip(self.engine.revision());
        let tasks = tasks.and_then(|(table, revision)| SessionTasks::new(table, revision));
        let asker = Asker { key, reports, tasks, ..self.shared.asker() };
        let (asked, shared) = (id.clone(), self.shared.clone());
        let (span, is_ping) = (question_span(|| shared.cx_origin(), &method, &id), &*method == method::PING);
        let answering = async move { (asked, shared.answer(handlers, asker, &method, params).await) };
        let mut answering = Box::pin(answering.instrument(span));
        if is_ping
            && let Poll::Ready((id, answer)) =
                answering.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            return self.engine.reply(&id, answer).into_iter().for_each(|response| self.reply(response));
        }
        let task = self.thinking.spawn(answering);
        self.questions.insert(id, RunningAnswer { task, call });
        self.shared.questions.fetch_add(1, Ordering::Relaxed);
    }

    /// Delivers a log message: to its call, if that has a callback, or else to the client's callback.
    fn log(&mut self, params: RawObject) {
        let call = self.call_of_message();
        if self.handlers_of(call.as_ref()).is_some_and(|own| own.logs)
            && let Some(Waiter::Call(post)) = call.and_then(|call| self.waiting.get(&call))
        {
            post.log(params);
        } else {
            self.shared.queue_log(params);
        }
    }

    fn handlers_of(&self, call: Option<&RequestId>) -> Option<&CallHandlers> {
        match self.waiting.get(call?)? {
            Waiter::Call(post) => post.handlers().map(|own| &**own),
            _ => None,
        }
    }
}
