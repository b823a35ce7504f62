//! Requests that the engine carries out itself, after a driver has seen them as calls.

use std::{
    any::Any,
    sync::{Arc, Mutex, PoisonError},
};

use pintle_types::{JsonObject, Notification, RawObject, RequestId, RpcError, method};

use super::{
    Call, Engine, Listen, Outcome, Service,
    call::{CallInner, Origin},
    payer,
    session::{self, NewSession},
    stateless,
};
use crate::{Facts, Peer, inputs::Inputs, ledger::Charge};

/// The effect of [`Engine::perform`].
#[expect(clippy::exhaustive_enums, reason = "a driver must handle each")]
#[derive(Debug)]
pub enum Performed {
    /// The request was carried out: pass the outcome to [`Engine::finish`].
    Outcome(Outcome),
    /// A subscription was opened: send the acknowledgement, then the listener's notifications, until the ticket is
    /// cancelled.
    Listen(Listen),
}

impl Engine {
    /// Carries out a request that [`Service::set_deferred`] made a call of, with these params.
    ///
    /// # Errors
    ///
    /// The error to respond with.
    pub fn perform(
        &mut self,
        service: &Service,
        call: &Call,
        params: &RawObject,
    ) -> Result<Performed, RpcError> {
        if matches!(call.method(), method::SERVER_DISCOVER | method::SUBSCRIPTIONS_LISTEN) {
            return service.perform(call, params);
        }
        let Self { session, handshakes, account, names, .. } = self;
        let opening = || NewSession { account: payer(account.as_ref(), service), names: names.clone() };
        let done = session::perform(session, *handshakes, service, call.method(), params, opening);
        done.map(|result| Performed::Outcome(Outcome::Complete(result.into())))
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

impl Service {
    /// Carries out a stateless request that [`set_deferred`](Self::set_deferred) made a call of, with these params.
    ///
    /// # Errors
    ///
    /// The error to respond with.
    pub fn perform(&self, call: &Call, params: &RawObject) -> Result<Performed, RpcError> {
        stateless::perform(self, call, params)
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

    /// Returns whether the engine carries out the request, after a driver has seen it: see
    /// [`Service::set_deferred`].
    pub fn is_deferred(&self) -> bool {
        !self.is_notification()
            && matches!(
                self.method(),
                method::PING
                    | method::INITIALIZE
                    | method::LOGGING_SET_LEVEL
                    | method::RESOURCES_SUBSCRIBE
                    | method::RESOURCES_UNSUBSCRIBE
                    | method::SERVER_DISCOVER
                    | method::SUBSCRIPTIONS_LISTEN
            )
    }

    /// Keeps a value until the last clone of the call is dropped, such as the means of a subscription. A second value replaces the
    /// first.
    pub fn hold(&self, value: impl Any + Send) {
        let before =
            self.inner().held.lock().unwrap_or_else(PoisonError::into_inner).replace(Box::new(value));
        drop(before);
    }

    /// Grants a subscription members of its filter, before [`Engine::perform`] opens it: those that only the driver can decide about,
    /// such as ids of things of other servers. A list is added to the one that an extension of the service grants.
    pub fn grant(&self, members: JsonObject) {
        *self.inner().granted.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(members));
    }

    /// Takes what the driver has granted.
    pub(super) fn take_granted(&self) -> JsonObject {
        let granted = self.inner().granted.lock().unwrap_or_else(PoisonError::into_inner).take();
        granted.map(|granted| *granted).unwrap_or_default()
    }

    /// Returns whether later messages of a connection depend on the effect of this request, so that they have to wait for
    /// it.
    pub fn precedes_others(&self) -> bool {
        self.is_deferred() && !matches!(self.method(), method::PING | method::SERVER_DISCOVER)
    }
}
