//! The server's side of the protocol: shared code until a message shows its era, then that era's module.

mod arrival;
mod batch;
mod call;
mod effect;
mod extension;
mod finish;
mod in_flight;
mod listener;
mod lowered_cache;
mod outcome;
mod peer_cache;
mod print;
mod questions;
mod record;
mod relayed;
mod service;
mod session;
mod stateless;
mod watched;
mod weight;

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use pintle_types::{
    Frame, Malformed, Message, Notification, Request, RequestId, Response, RpcError, method,
    schema::{CancelledParams, InputRequest},
};

pub use arrival::Arrival;
pub use call::Call;
pub use effect::{CarriedOut, Effect};
pub use extension::{Extension, Grant};
pub use in_flight::Ticket;
pub use listener::Listener;
pub use outcome::{Body, Finished, Outcome, Reply};
pub use questions::QuestionNames;
pub use record::SessionRecord;
pub use relayed::RelayedRound;
pub use service::{CacheHint, Service};
pub use watched::{PendingChanges, WatchObserver, Watched};

pub use crate::Change;

use self::{
    arrival::{charge_call, payer},
    batch::{BatchId, Batches},
    call::{CallInner, Origin, raise_params},
    effect::is_own,
    in_flight::InFlight,
    session::{Handshakes, ServerSession},
    stateless::Sender,
};
use crate::{
    Peer, Stamp, Unsayable,
    ledger::{Account, Charge},
};

/// The protocol state of one byte stream, or of one session over HTTP.
///
/// Messages go in and decisions come out; the driver moves the bytes and runs the handlers. Requests of both eras may
/// be interleaved. A stateless request over HTTP needs no engine: see [`Service::admit`].
///
/// ```
/// use pintle_proto::server::{Arrival, Engine, Inbound, Outcome, Service};
/// use pintle_types::{Frame, RawObject, schema::{Implementation, ServerCapabilities, ToolsCapability}};
///
/// let mut capabilities = ServerCapabilities::default();
/// capabilities.tools = Some(ToolsCapability::default());
/// let service = Service::new(Implementation::new("adder", "1.0.0"), capabilities);
/// let mut engine = Engine::new();
///
/// let line = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{
///     "io.modelcontextprotocol/protocolVersion":"2026-07-28",
///     "io.modelcontextprotocol/clientCapabilities":{}}}}"#;
/// let frame = Frame::parse(line, 100).unwrap();
/// let Inbound::Call(call) = engine.receive(&service, frame, &Arrival::at(0)) else { panic!("admitted") };
/// assert_eq!(call.method(), "tools/list");
///
/// let tools: RawObject = r#"{"tools":[]}"#.parse().unwrap();
/// let bytes = engine.finish(&service, &call, Outcome::Complete(tools.into()), 0).unwrap();
/// assert!(String::from_utf8(bytes).unwrap().contains(r#""tools":[],"resultType":"complete""#));
/// ```
#[derive(Debug, Default)]
pub struct Engine {
    session: Option<ServerSession>,
    handshakes: Handshakes,
    in_flight: InFlight,
    batches: Batches,
    /// The account of the peer. `None` if that is a process of this machine.
    account: Option<Account>,
    /// The ids of the questions of this process, if there are several.
    names: Option<QuestionNames>,
}

/// The action that a received message requires.
#[expect(clippy::exhaustive_enums, reason = "a driver must handle each")]
#[derive(Debug)]
pub enum Inbound {
    /// Run the handler, or [`Service::prepare`] what the engine carries out, and pass the outcome to [`Engine::carry_out`] and
    /// [`Engine::finish`].
    Call(Call),
    /// Send the acknowledgement, then the listener's notifications, until the ticket is cancelled.
    Listen(Listen),
    /// Send this response; no handler is involved.
    Reply(Response),
    /// Send this array: the responses to a batch that needed no handler.
    BatchReply(Vec<u8>),
    /// The client answered a question or a ping from the server.
    Answer(Response),
    /// The client cancelled a call or a subscription: drop it, and send no response.
    Cancel(Ticket),
    /// The client sent a notification that the protocol state does not depend on.
    Notify(Notification, Option<Arc<Peer>>),
    /// Nothing, with the reason for the log.
    Ignore(&'static str),
    /// Several actions: the message was a batch.
    Many(Vec<Self>),
}

/// The description that a request carries of its sender, read once.
#[derive(Clone, Debug)]
pub struct Stamped {
    version: Option<Box<str>>,
    capabilities: bool,
    /// The sender, or the error to respond with if nothing else is wrong with the request.
    sender: Result<Sender, RpcError>,
}

impl Stamped {
    /// Returns the revision that the request names. `None` in a session.
    pub fn version(&self) -> Option<&str> {
        match &self.sender {
            Ok(Sender::Stateless(caller)) => Some(caller.peer.revision.as_str()),
            _ => self.version.as_deref(),
        }
    }

    /// Returns whether the request declares its sender's capabilities.
    pub fn has_capabilities(&self) -> bool {
        self.capabilities
    }

    /// Returns the sender, if the request is stateless and valid.
    pub fn peer(&self) -> Option<&Arc<Peer>> {
        match &self.sender {
            Ok(Sender::Stateless(caller)) => Some(&caller.peer),
            _ => None,
        }
    }
}

/// A subscription that was just opened.
#[non_exhaustive]
#[derive(Debug)]
pub struct Listen {
    /// The request that opened it.
    pub call: Call,
    /// The listener that collects the changes.
    pub listener: Listener,
    /// The first message of the subscription.
    pub acknowledgement: Vec<u8>,
}

impl Engine {
    /// Creates the engine of a new stream.
    ///
    /// Each `initialize` on it replaces the previous one, because gateways let several clients share one stream:
    /// running calls are answered under the handshake they started with, subscriptions and the log level stay, and
    /// later requests use the new handshake.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the engine of a session over HTTP, before its handshake. A second `initialize` is refused.
    pub fn new_session() -> Self {
        Self { handshakes: Handshakes::One, ..Self::default() }
    }

    /// Sets the account that is charged for what the peer makes the server hold. By default it is that of a process of this machine.
    #[must_use]
    pub fn charged_to(mut self, account: Account) -> Self {
        if let Some(session) = &mut self.session {
            session.charge_to(account.clone());
        }
        self.account = Some(account);
        self
    }

    /// Returns what the session is charged for.
    pub fn charge(&self) -> Option<&Charge> {
        self.session.as_ref().map(|session| &session.listener.charge)
    }

    /// Admits a message, or a batch of messages. Every request is a call, also one that the [engine carries out](Call::is_own).
    pub fn admit(&mut self, service: &Service, frame: Frame, arrival: &Arrival<'_>) -> Inbound {
        match frame {
            Frame::One(message) => self.message(service, message, arrival, None),
            Frame::Batch(items) => self.batch(service, items, arrival, |_, call| Some(Inbound::Call(call))),
        }
    }

    /// Returns whether there is a session with a revision that has batches.
    pub fn takes_batches(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.revision().dialect().batches)
    }

    /// Handles bytes that are not a message.
    pub fn malformed(&mut self, malformed: &Malformed) -> Inbound {
        if let Some(reply) = malformed.reply() {
            return Inbound::Reply(reply);
        }
        // The call that asked must not wait: no other response will arrive.
        let answer = Response::new(malformed.id.clone(), Err(malformed.error.clone()));
        if self.asked(&answer) { Inbound::Answer(answer) } else { Inbound::Ignore("a malformed response") }
    }

    /// Returns whether this response answers an open question or ping, and closes it.
    fn asked(&mut self, answer: &Response) -> bool {
        self.session.as_mut().is_some_and(|session| session.answered(answer))
    }

    /// Returns the response to a message of more than `limit` bytes, which was not read, with its id if that is known.
    pub fn oversized(limit: usize, id: Option<RequestId>) -> Response {
        Response::new(
            id,
            Err(RpcError::invalid_request(format!("the message is larger than {limit} bytes: send less"))),
        )
    }

    /// Admits the messages of a batch, and decides about each call with `start`.
    fn batch(
        &mut self,
        service: &Service,
        items: Vec<Result<Message, Box<Malformed>>>,
        arrival: &Arrival<'_>,
        start: impl Fn(&mut Self, Call) -> Option<Inbound>,
    ) -> Inbound {
        if !self.takes_batches() {
            let reason = "this protocol revision has no batches: send each message separately";
            return Inbound::Reply(Response::new(None, Err(RpcError::invalid_request(reason))));
        }
        let id = self.batches.open();
        let mut decisions = Vec::with_capacity(items.len());
        for item in items {
            let decision = match item {
                Ok(message) => self.message(service, message, arrival, Some(id)),
                Err(malformed) => self.malformed(&malformed),
            };
            match decision {
                Inbound::Reply(response) => self.batches.reply(id, response),
                Inbound::Call(call) => {
                    if let Some(ticket) = call.ticket() {
                        self.batches.expect(id, ticket);
                    }
                    decisions.extend(start(self, call));
                }
                Inbound::Many(several) => decisions.extend(several),
                other => decisions.push(other),
            }
        }
        decisions.extend(self.batches.split(id).map(Inbound::BatchReply));
        Inbound::Many(decisions)
    }

    fn message(
        &mut self,
        service: &Service,
        message: Message,
        arrival: &Arrival<'_>,
        batch: Option<BatchId>,
    ) -> Inbound {
        match message {
            Message::Request(request) => self.request(service, request, arrival, batch),
            Message::Notification(notification) => self.notification(notification),
            Message::Response(response) => {
                if self.asked(&response) {
                    Inbound::Answer(response)
                } else {
                    Inbound::Ignore("a response to no open request")
                }
            }
        }
    }

    fn request(
        &mut self,
        service: &Service,
        mut request: Request,
        arrival: &Arrival<'_>,
        batch: Option<BatchId>,
    ) -> Inbound {
        let reply = |id, result| Inbound::Reply(Response::new(Some(id), result));
        let progress = match stateless::sender(service, request.params.as_ref()) {
            Err(error) => return reply(request.id, Err(error)),
            Ok(Sender::Session(progress)) => progress,
            Ok(Sender::Stateless(_)) if batch.is_some() => {
                let reason = "a stateless request cannot be part of a batch: send it separately";
                return reply(request.id, Err(RpcError::invalid_request(reason)));
            }
            Ok(Sender::Stateless(caller)) => {
                let paid = arrival.paid_by(self.account.as_ref());
                let start = stateless::admit(service, &mut request, caller, &paid);
                let start = start.and_then(|start| Ok((start, service.charge_call(&request, &paid)?)));
                let start =
                    start.and_then(|(start, charge)| Ok((start, charge, self.enter(service, &request)?)));
                return match start {
                    Ok((start, charge, ticket)) => {
                        Inbound::Call(start.call(request, arrival, Some(ticket), charge))
                    }
                    Err(error) => reply(request.id, Err(error)),
                };
            }
        };
        if batch.is_some() && request.method == method::INITIALIZE {
            let reason = "`initialize` cannot be part of a batch: send it separately";
            return reply(request.id, Err(RpcError::invalid_request(reason)));
        }
        let admitted = session::admit(self.session.as_ref(), self.handshakes, service, &mut request);
        let admitted = admitted.and_then(|start| {
            let charge = charge_call(service, &start.params, || payer(self.account.as_ref(), service))?;
            Ok((start, charge))
        });
        let (start, charge) = match admitted {
            Ok(admitted) => admitted,
            Err(error) => return reply(request.id, Err(self.lowered_error(&request.method, error))),
        };
        let ticket = match self.enter(service, &request) {
            Ok(ticket) => ticket,
            Err(error) => return reply(request.id, Err(error)),
        };
        let Request { id, method, .. } = request;
        Inbound::Call(Call::new(CallInner {
            id,
            method,
            params: start.params,
            peer: start.peer,
            principal: arrival.principal.map(Into::into),
            progress,
            inputs: start.inputs,
            ticket: Some(ticket),
            batch,
            done: Mutex::default(),
            held: Mutex::default(),
            granted: Mutex::default(),
            action: Mutex::default(),
            origin: Origin::Request,
            charge,
        }))
    }

    /// Adds a request to those in flight.
    fn enter(&mut self, service: &Service, request: &Request) -> Result<Ticket, RpcError> {
        let bounds = service.bounds();
        match &*request.method {
            method::SUBSCRIPTIONS_LISTEN => {
                self.in_flight.subscribe(&request.id, bounds.in_flight, bounds.subscriptions)
            }
            // A client that waits for many calls may ask whether the server is alive.
            method if is_own(method) => {
                self.in_flight.enter(&request.id, bounds.in_flight.saturating_add(RESERVED))
            }
            _ => self.in_flight.enter(&request.id, bounds.in_flight),
        }
    }

    fn notification(&mut self, notification: Notification) -> Inbound {
        if notification.method != method::NOTIFICATIONS_CANCELLED {
            let peer = self.session.as_ref().map(|session| session.peer().clone());
            return Inbound::Notify(notification, peer);
        }
        let params = notification.params.unwrap_or_default();
        match params.decode::<CancelledParams>() {
            Ok(CancelledParams { request_id: Some(id), .. }) => match self.in_flight.cancel(&id) {
                Some(ticket) => Inbound::Cancel(ticket),
                None => Inbound::Ignore("a cancellation of no request in flight"),
            },
            _ => Inbound::Ignore("a cancellation without a request id"),
        }
    }

    /// Gives an error the code of the session's revision, if there is a session.
    fn lowered_error(&self, method: &str, mut error: RpcError) -> RpcError {
        if let Some(session) = &self.session {
            session.revision().lower_error(method, &mut error);
        }
        error
    }

    /// Ends a call, and returns the bytes to send now, if any: a cancelled call gets no response, and a call of a batch
    /// waits for the others.
    pub fn finish(&mut self, service: &Service, call: &Call, outcome: Outcome, now: u64) -> Option<Vec<u8>> {
        let current = call.ticket().is_none_or(|ticket| self.in_flight.leave(call.id(), ticket));
        if !current {
            return self.cancelled(call);
        }
        let finished = call.finish(service, outcome, now);
        match call.inner().batch.zip(call.ticket()) {
            Some((batch, ticket)) => self.batches.settle(batch, ticket, Some(&finished.bytes)),
            None => Some(finished.bytes),
        }
    }

    /// Ends a call without a response, because its client is gone.
    pub fn forget(&mut self, call: &Call) {
        call.close();
        let Some(ticket) = call.ticket() else { return };
        self.in_flight.leave(call.id(), ticket);
        if let Some(batch) = call.inner().batch {
            // Otherwise the batch's other responses would be kept for the life of the session.
            self.batches.settle(batch, ticket, None);
        }
    }

    /// Drops a cancelled call, and returns the bytes to send now, if it was the last that a batch waited for.
    pub fn cancelled(&mut self, call: &Call) -> Option<Vec<u8>> {
        call.close();
        self.batches.settle(call.inner().batch?, call.ticket()?, None)
    }

    /// Ends a subscription from the server's side, on a stream that stays open, and returns the messages to send.
    pub fn unlisten(&mut self, service: &Service, call: &Call, now: u64) -> Vec<Vec<u8>> {
        let notice = stateless::unlisten_notice(call);
        let result = stateless::unlisten(call.id());
        let end = self.finish(service, call, Outcome::Complete(result.into()), now);
        end.map_or_else(Vec::new, |end| vec![notice, end])
    }

    /// Returns the session's listener. `None` before the handshake.
    pub fn listener(&mut self) -> Option<&mut Listener> {
        self.session.as_mut().map(|session| &mut session.listener)
    }

    /// Returns the client of the session. `None` before the handshake.
    pub fn peer(&self) -> Option<&Arc<Peer>> {
        self.session.as_ref().map(ServerSession::peer)
    }

    /// Creates the request for a question of a session's call, in the revision that the call started with. The response
    /// is returned as [`Inbound::Answer`] with the same id.
    pub fn ask(
        &mut self,
        call: &Call,
        request: &InputRequest,
    ) -> Option<Result<(RequestId, Vec<u8>), Unsayable>> {
        self.session.as_mut().map(|session| session.ask(call.peer().revision, request))
    }

    /// Creates a `ping`, to check whether the client is alive. `None` if there is no session.
    pub fn ping(&mut self) -> Option<(RequestId, Vec<u8>)> {
        self.session.as_mut().map(ServerSession::ping)
    }

    /// Cancels a question because its call has ended, and returns the notification to send.
    pub fn abandon(&mut self, id: &RequestId) -> Option<Vec<u8>> {
        self.session.as_mut()?.abandon(id)
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }
}

impl Service {
    /// Admits a single stateless request, as over HTTP, which needs no engine.
    ///
    /// # Errors
    ///
    /// The error to respond with. Its code determines the HTTP status.
    pub fn admit_call(
        &self,
        mut request: Request,
        arrival: &Arrival<'_>,
    ) -> Result<Call, (RequestId, RpcError)> {
        let sender = match arrival.sender {
            Some(sender) => Ok(sender.clone()),
            None => stateless::sender(self, request.params.as_ref()),
        };
        let start = match sender {
            Ok(Sender::Stateless(caller)) => stateless::admit(self, &mut request, caller, arrival),
            // It names neither a revision nor capabilities.
            Ok(Sender::Session(_)) => Stamp::require(None::<Infallible>, false).map(|never| match never {}),
            Err(error) => Err(error),
        };
        match start.and_then(|start| Ok((start, self.charge_call(&request, arrival)?))) {
            Ok((start, charge)) => Ok(start.call(request, arrival, None, charge)),
            Err(error) => Err((request.id, error)),
        }
    }

    /// Reads the description that a request carries of its sender, which its routing depends on. A description that was
    /// read recently is not parsed again.
    ///
    /// # Errors
    ///
    /// The description cannot be read.
    pub fn stamped(&self, request: &Request) -> Result<Stamped, RpcError> {
        let Some(meta) = request.params.as_ref().and_then(|params| params.get("_meta")) else {
            return Ok(Stamped { version: None, capabilities: false, sender: Ok(Sender::Session(None)) });
        };
        if let Some(peer) = self.peers().find(meta) {
            let sender = Ok(Sender::Stateless(stateless::Caller { peer, progress: None }));
            return Ok(Stamped { version: None, capabilities: true, sender });
        }
        let stamp = Stamp::of(meta)?;
        let version = stamp.version()?.map(Into::into);
        let capabilities = stamp.has_capabilities();
        Ok(Stamped { version, capabilities, sender: stateless::sender_of(self, meta, stamp) })
    }

    /// Ends a subscription with a stream of its own, and returns the last message of that stream.
    pub fn unlisten(&self, call: &Call, now: u64) -> Vec<u8> {
        call.finish(self, Outcome::Complete(stateless::unlisten(call.id()).into()), now).bytes
    }
}

impl stateless::StatelessCall {
    fn call(self, request: Request, arrival: &Arrival<'_>, ticket: Option<Ticket>, charge: Charge) -> Call {
        let Request { id, method, params, .. } = request;
        Call::new(CallInner {
            id,
            method,
            params: params.unwrap_or_default(),
            peer: self.peer,
            principal: arrival.principal.map(Into::into),
            progress: self.progress,
            inputs: self.inputs,
            ticket,
            batch: None,
            done: Mutex::default(),
            held: Mutex::default(),
            granted: Mutex::default(),
            action: Mutex::default(),
            origin: Origin::Request,
            charge,
        })
    }
}

/// The number of requests that the engine carries out itself besides the limit of those in flight.
const RESERVED: usize = 16;
