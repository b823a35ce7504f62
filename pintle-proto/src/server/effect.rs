//! Requests that the engine carries out itself: prepared while they run as calls, and carried out when they end without an error.
//!
//! `initialize`, `ping`, `logging/setLevel`, subscriptions and their like are calls (`Call::is_own`) that run through the layers of a driver.
//! The innermost step prepares them with `Service::prepare`, which changes nothing. When the call ends without an error, the owner of the
//! engine carries the effect out, so a layer that fails a handshake leaves no session. A driver that has nothing to do around these
//! requests uses `Engine::receive` and `Service::admit`, which answer them at once.

use std::{
    any::Any,
    sync::{Arc, Mutex, PoisonError},
};

use pintle_types::{
    Frame, JsonObject, Message, Notification, RawObject, Request, RequestId, RpcError, method,
    schema::LoggingLevel,
};

use super::{
    Arrival, Call, Engine, Inbound, Listen, Listener, Outcome, Service,
    call::{CallInner, Origin},
    payer,
    session::{self, NewSession},
    stateless,
};
use crate::{Facts, Peer, inputs::Inputs, ledger::Charge};

/// The action of the engine if a request that [`Service::prepare`] has prepared ends without an error.
#[derive(Debug)]
pub struct Effect(pub(super) Action);

/// The action of an effect.
#[derive(Debug)]
pub(super) enum Action {
    /// The request only asks for something.
    Nothing,
    /// Opens a session, or renews its handshake. `described` is the memory of the description of its client.
    Handshake {
        peer: Arc<Peer>,
        described: usize,
    },
    SetLevel(LoggingLevel),
    Watch(Box<str>),
    Unwatch(Box<str>),
    /// Opens a subscription of the stateless era, with its first message.
    Listen(Box<Listener>, Vec<u8>),
}

/// The end of a call after its effect.
#[expect(clippy::exhaustive_enums, reason = "a driver must handle each")]
#[derive(Debug)]
pub enum CarriedOut {
    /// Pass the outcome to [`Engine::finish`] or [`Call::finish`]. It is the error of the engine if that cannot carry out the effect.
    Outcome(Outcome),
    /// A subscription was opened: send the acknowledgement, then the listener's notifications, until the ticket is
    /// cancelled.
    Listen(Listen),
}

impl Engine {
    /// Carries out the effect that was prepared for a call, if it ends without an error and was not cancelled.
    pub fn carry_out(&mut self, service: &Service, call: &Call, outcome: Outcome) -> CarriedOut {
        let Some(action) = call.take_action(&outcome) else { return CarriedOut::Outcome(outcome) };
        if !call.ticket().is_none_or(|ticket| self.in_flight.has(call.id(), ticket)) {
            return CarriedOut::Outcome(outcome);
        }
        if let Action::Listen(listener, acknowledgement) = action {
            return CarriedOut::Listen(Listen { call: call.clone(), listener: *listener, acknowledgement });
        }
        let Self { session, handshakes, account, names, .. } = self;
        let opening = || NewSession { account: payer(account.as_ref(), service), names: names.clone() };
        let done = session::carry_out(session, *handshakes, service, action, opening);
        CarriedOut::Outcome(done.map_or_else(Outcome::Failed, |()| outcome))
    }

    /// Handles a message, or a batch of messages, for a driver that has nothing to do around the requests that the engine carries out:
    /// they are answered at once. [`admit`](Self::admit) returns them as calls.
    pub fn receive(&mut self, service: &Service, frame: Frame, arrival: &Arrival<'_>) -> Inbound {
        let answer = |engine: &mut Self, call| engine.answered(service, call, arrival);
        match frame {
            Frame::Batch(items) => self.batch(service, items, arrival, answer),
            one => match self.admit(service, one, arrival) {
                Inbound::Call(call) => answer(self, call).unwrap_or(Inbound::Ignore("a call that is over")),
                other => other,
            },
        }
    }

    /// Answers a request, if the engine carries it out. `None` if a batch waits for other responses.
    fn answered(&mut self, service: &Service, call: Call, arrival: &Arrival<'_>) -> Option<Inbound> {
        if !call.is_own() {
            return Some(Inbound::Call(call));
        }
        let outcome = service.prepared(&call);
        match self.carry_out(service, &call, outcome) {
            CarriedOut::Listen(listen) => Some(Inbound::Listen(listen)),
            CarriedOut::Outcome(outcome) => {
                self.finish(service, &call, outcome, arrival.now()).map(|bytes| reply(&bytes))
            }
        }
    }

    /// Creates a `ping` whose answer only shows that the client is alive: nobody waits for it. `None` if there
    /// is no session.
    pub fn keepalive(&mut self) -> Option<Vec<u8>> {
        self.session.as_mut().map(session::ServerSession::keepalive)
    }

    /// Ends the session, because the application refuses its client. The next `initialize` opens another one.
    pub fn close_session(&mut self) {
        self.session = None;
    }

    /// Returns a notification as a call, for a driver that treats both alike. It has no response.
    pub fn notification_call(
        &self,
        service: &Service,
        notification: Notification,
        principal: Option<&str>,
    ) -> Call {
        Call::of_notification(service, notification, self.peer().cloned(), principal)
    }
}

/// Returns whether the engine carries out requests of a method.
pub(super) fn is_own(method: &str) -> bool {
    matches!(
        method,
        method::PING
            | method::INITIALIZE
            | method::LOGGING_SET_LEVEL
            | method::RESOURCES_SUBSCRIBE
            | method::RESOURCES_UNSUBSCRIBE
            | method::SERVER_DISCOVER
            | method::SUBSCRIPTIONS_LISTEN
    )
}

fn reply(bytes: &[u8]) -> Inbound {
    match Message::parse(bytes) {
        Ok(Message::Response(response)) => Inbound::Reply(response),
        _ => Inbound::Ignore("a malformed reply of the server's own"),
    }
}

impl Service {
    /// Prepares a request that the [engine carries out](Call::is_own), with these params: its outcome, and the effect that it has once
    /// [set](Call::set_effect). Nothing is changed.
    ///
    /// # Errors
    ///
    /// The error to respond with.
    pub fn prepare(&self, call: &Call, params: &RawObject) -> Result<(Outcome, Effect), RpcError> {
        let prepared = match call.method() {
            method::SERVER_DISCOVER | method::SUBSCRIPTIONS_LISTEN => stateless::prepare(self, call, params),
            method => session::prepare(self, method, params),
        };
        prepared.map(|(outcome, action)| (outcome, Effect(action)))
    }

    /// Prepares a request as it was received.
    fn prepared(&self, call: &Call) -> Outcome {
        match self.prepare(call, call.params()) {
            Ok((outcome, effect)) => {
                call.set_effect(effect);
                outcome
            }
            Err(error) => Outcome::Failed(error),
        }
    }

    /// Carries out the effect that was prepared for a call without an engine, if it ends without an error.
    pub fn carry_out(&self, call: &Call, outcome: Outcome) -> CarriedOut {
        match call.take_action(&outcome) {
            Some(Action::Listen(listener, acknowledgement)) => {
                CarriedOut::Listen(Listen { call: call.clone(), listener: *listener, acknowledgement })
            }
            _ => CarriedOut::Outcome(outcome),
        }
    }

    /// Handles a single stateless request, as over HTTP, for a driver that has nothing to do around the requests that the engine carries
    /// out: they are answered at once. [`admit_call`](Self::admit_call) returns them as calls.
    ///
    /// # Errors
    ///
    /// The error to respond with. Its code determines the HTTP status.
    pub fn admit(&self, request: Request, arrival: &Arrival<'_>) -> Result<Inbound, (RequestId, RpcError)> {
        let call = self.admit_call(request, arrival)?;
        if !call.is_own() {
            return Ok(Inbound::Call(call));
        }
        Ok(match self.carry_out(&call, self.prepared(&call)) {
            CarriedOut::Listen(listen) => Inbound::Listen(listen),
            CarriedOut::Outcome(Outcome::Failed(error)) => return Err((call.id().clone(), error)),
            CarriedOut::Outcome(outcome) => reply(&call.finish(self, outcome, arrival.now()).bytes),
        })
    }
}

impl Call {
    /// Returns a notification as a call, for a driver that treats both alike. It has no response. Before a handshake, the
    /// peer is not known.
    pub fn of_notification(
        service: &Service,
        notification: Notification,
        peer: Option<Arc<Peer>>,
        principal: Option<&str>,
    ) -> Self {
        let Notification { method, params, .. } = notification;
        let known = peer.is_some();
        Self::new(CallInner {
            id: RequestId::Number(0),
            method,
            params: params.unwrap_or_default(),
            peer: peer.unwrap_or_else(|| session::unknown_peer(service)),
            principal: principal.map(Into::into),
            progress: None,
            inputs: Inputs::alone(None),
            ticket: None,
            batch: None,
            done: Mutex::default(),
            held: Mutex::default(),
            granted: Mutex::default(),
            action: Mutex::default(),
            origin: Origin::Notification { known },
            charge: Charge::default(),
        })
    }

    /// Returns whether this is a notification, which has no response.
    pub fn is_notification(&self) -> bool {
        matches!(self.inner().origin, Origin::Notification { .. })
    }

    /// Returns the peer, unless this is a notification that was received before the handshake.
    pub fn known_peer(&self) -> Option<&Arc<Peer>> {
        (self.inner().origin != Origin::Notification { known: false }).then(|| self.peer())
    }

    /// Returns the facts of the client's revision, as far as they hold for this message: a notification cannot ask, and before a
    /// handshake it belongs to no session.
    pub fn facts(&self) -> Facts {
        let facts = self.peer().revision.facts();
        match self.is_notification() {
            true => Facts {
                asks_by_request: false,
                keeps_session: facts.keeps_session && self.known_peer().is_some(),
                ..facts
            },
            false => facts,
        }
    }

    /// Returns whether the engine carries out the request itself: [`Service::prepare`] takes the place of a handler.
    pub fn is_own(&self) -> bool {
        !self.is_notification() && is_own(self.method())
    }

    /// Keeps a value until the last clone of the call is dropped, such as the means of a subscription. A second value replaces the
    /// first.
    pub fn hold(&self, value: impl Any + Send) {
        let before =
            self.inner().held.lock().unwrap_or_else(PoisonError::into_inner).replace(Box::new(value));
        drop(before);
    }

    /// Grants a subscription members of its filter, before [`Service::prepare`] makes it: those that only the driver can decide about,
    /// such as ids of things of other servers. A list is added to the one that an extension of the service grants.
    pub fn grant(&self, members: JsonObject) {
        *self.inner().granted.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(members));
    }

    /// Takes what the driver has granted.
    pub(super) fn take_granted(&self) -> JsonObject {
        let granted = self.inner().granted.lock().unwrap_or_else(PoisonError::into_inner).take();
        granted.map(|granted| *granted).unwrap_or_default()
    }

    /// Sets what [`Engine::carry_out`] does if the call ends without an error. A second effect replaces the first.
    pub fn set_effect(&self, effect: Effect) {
        *self.inner().action.lock().unwrap_or_else(PoisonError::into_inner) = Some(effect.0);
    }

    /// Returns the resource that the session watches if the call ends without an error.
    pub fn prepared_watch(&self) -> Option<Box<str>> {
        match &*self.inner().action.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(Action::Watch(uri)) => Some(uri.clone()),
            _ => None,
        }
    }

    /// Returns the resource that the session does not watch any more if the call ends without an error.
    pub fn prepared_unwatch(&self) -> Option<Box<str>> {
        match &*self.inner().action.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(Action::Unwatch(uri)) => Some(uri.clone()),
            _ => None,
        }
    }

    /// Takes what there is to do, if this outcome is not an error.
    fn take_action(&self, outcome: &Outcome) -> Option<Action> {
        let action = self.inner().action.lock().unwrap_or_else(PoisonError::into_inner).take();
        action.filter(|_| matches!(outcome, Outcome::Complete(_) | Outcome::Cacheable(..)))
    }

    /// Returns whether later messages of a connection depend on the effect of this request, so that they have to wait for
    /// it.
    pub fn precedes_others(&self) -> bool {
        self.is_own() && !matches!(self.method(), method::PING | method::SERVER_DISCOVER)
    }
}
