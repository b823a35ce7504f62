//! The server's side of the session era: a handshake opens a session, and the server may send requests.

use std::{collections::BTreeSet, sync::Arc};

use pintle_types::{
    RawObject, Request, RpcError, method,
    schema::{InitializeParams, InitializeResult, LoggingLevel, SetLevelParams, SubscribeParams},
};
use serde::de::DeserializeOwned;

use super::{
    Outcome, Service, SessionRecord,
    effect::Action,
    listener::{Listener, Wants},
    questions::{QuestionNames, Questions},
    weight,
};
use crate::{
    Peer, Revision,
    inputs::Inputs,
    ledger::{Account, Charge, Held},
    stamp::Plain,
};

/// The state of a session.
#[derive(Debug)]
pub(super) struct ServerSession {
    peer: Arc<Peer>,
    pub(super) listener: Listener,
    /// The memory of the client's description, in bytes.
    described: usize,
    /// `None` until something is asked.
    pub(super) questions: Option<Box<Questions>>,
}

/// The account of a new session, and the ids of its questions.
pub(super) struct NewSession {
    pub(super) account: Account,
    pub(super) names: Option<QuestionNames>,
}

/// The number of handshakes that a connection allows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Handshakes {
    /// Any number: several clients may share a pipe, one after the other or at once.
    #[default]
    Many,
    /// One: over HTTP each client opens its own session.
    One,
}

/// Admits a request. `session` is `None` until the handshake. The params are taken.
pub(super) fn admit(
    session: Option<&ServerSession>,
    handshakes: Handshakes,
    service: &Service,
    request: &mut Request,
) -> Result<SessionCall, RpcError> {
    let params = &mut request.params;
    let peer = match (&*request.method, session) {
        // Either side may send a ping at any time.
        (method::PING, None) => unknown_peer(service),
        (method::PING, Some(session)) => session.peer.clone(),
        (method::INITIALIZE, Some(_)) if matches!(handshakes, Handshakes::One) => return Err(already_open()),
        (method::INITIALIZE, _) => {
            // A description that is too large is not read.
            described(service, params.as_ref())?;
            agreed_peer(service, params.as_ref())?
        }
        (_, None) => return Err(not_yet(service)),
        (method, Some(session)) => {
            let revision = session.revision();
            if !service.offers(method, revision) && !service.extended(method, &session.peer)? {
                return Err(RpcError::method_not_found(method));
            }
            super::raise_params(revision, method, params)?;
            session.peer.clone()
        }
    };
    Ok(SessionCall { peer, params: params.take().unwrap_or_default(), inputs: Inputs::live() })
}

/// Prepares a request that the engine carries out. The result has canonical shapes.
pub(super) fn prepare(
    service: &Service,
    method: &str,
    params: &RawObject,
) -> Result<(Outcome, Action), RpcError> {
    let (result, action) = match method {
        method::PING => (RawObject::empty(), Action::Nothing),
        method::INITIALIZE => {
            let described = described(service, Some(params))?;
            let (peer, result) = agree(service, Some(params))?;
            (result, Action::Handshake { peer, described })
        }
        method::LOGGING_SET_LEVEL => {
            let SetLevelParams { level, .. } = decode(method, Some(params))?;
            (RawObject::empty(), Action::SetLevel(level))
        }
        method::RESOURCES_SUBSCRIBE => {
            let SubscribeParams { uri, .. } = decode(method, Some(params))?;
            (RawObject::empty(), Action::Watch(uri.into()))
        }
        method::RESOURCES_UNSUBSCRIBE => {
            let SubscribeParams { uri, .. } = decode(method, Some(params))?;
            (RawObject::empty(), Action::Unwatch(uri.into()))
        }
        method => return Err(RpcError::method_not_found(method)),
    };
    Ok((Outcome::Complete(result.into()), action))
}

/// Carries out what was prepared.
pub(super) fn carry_out(
    session: &mut Option<ServerSession>,
    handshakes: Handshakes,
    service: &Service,
    action: Action,
    opening: impl FnOnce() -> NewSession,
) -> Result<(), RpcError> {
    match (action, session.as_mut()) {
        (Action::Nothing | Action::Listen(..), _) => {}
        (Action::Handshake { .. }, Some(_)) if matches!(handshakes, Handshakes::One) => {
            return Err(already_open());
        }
        (Action::Handshake { peer, described }, Some(session)) => {
            session.describe(service, described)?;
            session.renew(peer);
        }
        (Action::Handshake { peer, described }, None) => {
            let NewSession { account, names } = opening();
            let mut opened = ServerSession::new(service, peer, BTreeSet::new(), 0, account);
            if names.is_some() {
                opened.set_names(names);
            }
            opened.describe(service, described)?;
            *session = Some(opened);
        }
        (_, None) => return Err(not_yet(service)),
        (Action::SetLevel(level), Some(session)) => session.set_level(level),
        (Action::Watch(uri), Some(session)) => session.listener.watch(&uri, service)?,
        (Action::Unwatch(uri), Some(session)) => session.listener.unwatch(&uri),
    }
    Ok(())
}

/// Returns the memory of the description of a client, unless it is too much for one session. The description is not parsed.
fn described(service: &Service, params: Option<&RawObject>) -> Result<usize, RpcError> {
    let described = params.map_or(0, |params| weight::weight(params.as_str()));
    weight::check(described, service, SHORTER).map(|()| described)
}

const SHORTER: &str = "send a shorter `initialize`, without icons or experimental capabilities";

fn already_open() -> RpcError {
    RpcError::invalid_request("the session is already open: use it, or open another connection")
}

/// Returns the peer of a message before the handshake.
pub(super) fn unknown_peer(service: &Service) -> Arc<Peer> {
    let revision = service.newest_session().or_else(|| service.revisions().first().copied());
    Arc::new(Peer {
        revision: revision.unwrap_or(Revision::LATEST),
        info: None,
        capabilities: Default::default(),
        log_level: None,
    })
}

/// A call that has no ticket yet.
pub(super) struct SessionCall {
    pub(super) peer: Arc<Peer>,
    pub(super) params: RawObject,
    pub(super) inputs: Inputs,
}

/// Returns the client that `initialize` describes, with the revision that it is given.
fn agreed_peer(service: &Service, params: Option<&RawObject>) -> Result<Arc<Peer>, RpcError> {
    let text = params.map_or("{}", RawObject::as_str);
    if let Some(peer) = service.handshakes().find(text) {
        return Ok(peer);
    }
    let peer = Arc::new(introduced(service, params)?);
    service.handshakes().add(text, &peer);
    Ok(peer)
}

/// Performs a handshake: returns the client, and the result of `initialize` in canonical shapes.
fn agree(service: &Service, params: Option<&RawObject>) -> Result<(Arc<Peer>, RawObject), RpcError> {
    let peer = agreed_peer(service, params)?;
    let revision = peer.revision;
    let mut can = service.capabilities().clone();
    if let Some(extensions) = &mut can.extensions {
        extensions.retain(|name, _| service.is_declared_in(name, revision));
    }
    let mut result = InitializeResult::new(revision.as_str(), can, service.info().clone());
    result.instructions = service.instructions_text().cloned();
    let result = RawObject::from_serialize(&result).expect("a description of the server prints");
    Ok((peer, result))
}

/// Reads the client's description in `initialize`, in the shapes of the revision that it is given.
fn introduced(service: &Service, params: Option<&RawObject>) -> Result<Peer, RpcError> {
    let offered: InitializeParams = decode(method::INITIALIZE, params)?;
    let spoken = service.spoken(&offered.protocol_version, false).or_else(|| service.newest_session());
    // A server without a session-era revision cannot open a session; the error lists the supported ones.
    let revision = spoken.ok_or_else(|| service.unsupported(&offered.protocol_version))?;
    let mut params = params.cloned();
    super::raise_params(revision, method::INITIALIZE, &mut params)?;
    let offered: InitializeParams = decode(method::INITIALIZE, params.as_ref())?;
    Ok(Peer {
        revision,
        info: Some(offered.client_info),
        capabilities: offered.capabilities,
        log_level: None,
    })
}

/// Returns the error for a request before the handshake. It addresses clients of either era.
fn not_yet(service: &Service) -> RpcError {
    const NO_STAMP: &str = "no `_meta[\"io.modelcontextprotocol/protocolVersion\"]`";
    const NO_SESSION: &str = "no session yet";
    let ways = service.ways();
    let era = |stateless| service.revisions().iter().any(|revision| revision.is_stateless() == stateless);
    RpcError::invalid_params(match (era(false), era(true)) {
        (true, false) => format!("{NO_SESSION}: {ways}"),
        (false, _) => format!("{NO_STAMP}: {ways}"),
        (true, true) => format!("{NO_SESSION} and {NO_STAMP}: {ways}"),
    })
}

impl ServerSession {
    fn new(
        service: &Service,
        peer: Arc<Peer>,
        watched: BTreeSet<Box<str>>,
        last_id: i64,
        account: Account,
    ) -> Self {
        let can = service.capabilities();
        let wants = Wants {
            tools: can.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true)),
            prompts: can.prompts.as_ref().is_some_and(|prompts| prompts.list_changed == Some(true)),
            resources: can.resources.as_ref().is_some_and(|resources| resources.list_changed == Some(true)),
        };
        let bytes = watched.iter().map(|uri| weight::watched(uri)).sum();
        let mut charge = Charge::new(account, Held::Session);
        charge.force(bytes);
        let observer = service.watch_observer();
        let questions = (last_id != 0).then(|| Box::new(Questions { last_id, ..Questions::default() }));
        let listener = Listener::new(wants, watched, None, peer.revision, observer).charged(charge);
        Self { peer, listener, described: 0, questions }
    }

    /// Charges the memory of the client's description, if the limits allow it.
    fn describe(&mut self, service: &Service, described: usize) -> Result<(), RpcError> {
        let charge = &mut self.listener.charge;
        let bytes = charge.bytes().saturating_sub(self.described).saturating_add(described);
        weight::charge(charge, bytes, service, SHORTER)?;
        self.described = described;
        Ok(())
    }

    pub(super) fn restore(
        service: &Service,
        record: &SessionRecord,
        last_id: i64,
        account: Account,
    ) -> Option<Self> {
        let peer = Peer {
            revision: service.spoken(&record.revision, false)?,
            info: record.client.clone(),
            capabilities: record.capabilities.clone(),
            log_level: record.log_level,
        };
        let watched = record.watched.iter().map(|uri| uri.as_str().into()).collect();
        let mut restored = Self::new(service, Arc::new(peer), watched, last_id, account);
        restored.described = record.weight();
        let charge = &mut restored.listener.charge;
        charge.force(charge.bytes().saturating_add(restored.described));
        Some(restored)
    }

    /// Charges the session to another account.
    pub(super) fn charge_to(&mut self, account: Account) {
        let bytes = self.listener.charge.bytes();
        self.listener.charge = Charge::new(account, Held::Session);
        self.listener.charge.force(bytes);
    }

    /// Replaces the handshake. Watched resources, the log level and open questions stay; running calls keep the peer
    /// they started with.
    fn renew(&mut self, peer: Arc<Peer>) {
        let level = self.peer.log_level;
        self.listener.revision = peer.revision;
        self.peer = peer;
        if let Some(level) = level {
            self.set_level(level);
        }
    }

    pub(super) fn adopt(&mut self, service: &Service, record: &SessionRecord) {
        if self.record() == *record {
            return;
        }
        let Some(account) = self.listener.charge.account().cloned() else { return };
        let restored = Self::restore(service, record, 0, account);
        if let Some(Self { peer, listener, described, .. }) = restored {
            self.peer = peer;
            self.described = described;
            self.listener = listener.taking_over(&mut self.listener);
        }
    }

    pub(super) fn record(&self) -> SessionRecord {
        SessionRecord {
            revision: self.peer.revision.as_str().to_owned(),
            client: self.peer.info.clone(),
            capabilities: self.peer.capabilities.clone(),
            log_level: self.peer.log_level,
            watched: self.listener.watched().all().into_iter().map(Into::into).collect(),
        }
    }

    pub(super) fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    pub(super) fn revision(&self) -> Revision {
        self.peer.revision
    }

    fn set_level(&mut self, level: LoggingLevel) {
        // Running calls keep the peer they started with.
        self.peer = Arc::new(Peer { log_level: Some(level), ..(*self.peer).clone() });
    }
}

/// Returns the error for a call that ended with open questions, which only a stateless call may.
pub(super) fn unanswered_questions() -> RpcError {
    RpcError::internal(
        "the call ended with open questions in a session: send the questions and run the handler again",
    )
}

fn decode<T: DeserializeOwned>(method: &str, params: Option<&RawObject>) -> Result<T, RpcError> {
    let text = params.map_or("{}", RawObject::as_str);
    serde_json::from_str(text)
        .map_err(|error| RpcError::invalid_params(format!("`{method}`: {}", Plain(&error))))
}

#[cfg(test)]
mod tests {
    use pintle_types::{
        Frame, Response,
        schema::{Implementation, ResourcesCapability, ServerCapabilities},
    };

    use serde_json::Value;

    use super::*;
    use crate::{
        Limits,
        ledger::Owner,
        server::{Arrival, Engine, Inbound},
    };

    fn watchable(limits: Limits) -> Service {
        let mut can = ServerCapabilities::default();
        can.resources.insert(ResourcesCapability::default()).subscribe = Some(true);
        Service::new(Implementation::new("s", "0"), can).limits(limits)
    }

    fn request(engine: &mut Engine, service: &Service, method: &str, params: &Value) -> Result<(), RpcError> {
        let message = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let frame = Frame::parse(message.to_string().as_bytes(), 1).unwrap();
        match engine.receive(service, frame, &Arrival::at(0)) {
            Inbound::Reply(reply) => reply.result.map(drop),
            Inbound::Listen(listen) => {
                engine.forget(&listen.call);
                Ok(())
            }
            other => panic!("{other:?}"),
        }
    }

    fn handshake(engine: &mut Engine, service: &Service, experimental: &Value) -> Result<(), RpcError> {
        let revision = service.newest_session().unwrap();
        let params = serde_json::json!({"protocolVersion": revision.as_str(),
            "clientInfo": {"name": "c", "version": "1"}, "capabilities": {"experimental": experimental}});
        request(engine, service, "initialize", &params)
    }

    fn subscribe(engine: &mut Engine, service: &Service, uri: &str) -> Result<(), RpcError> {
        request(engine, service, "resources/subscribe", &serde_json::json!({ "uri": uri }))
    }

    #[test]
    fn a_client_that_says_too_much_of_itself_gets_no_session() {
        let service = watchable(Limits::default());
        let mut engine = Engine::new();
        // A text that is long, and one that becomes large when it is read.
        for much in
            [serde_json::json!({"x": "y".repeat(300 << 10)}), serde_json::json!({"x": vec![[0]; 4000]})]
        {
            let error = handshake(&mut engine, &service, &much).unwrap_err();
            assert_eq!(error.code, pintle_types::ErrorCode::INVALID_PARAMS);
            assert!(
                error.message.contains("262144 bytes") && error.message.contains("`initialize`"),
                "{error:?}"
            );
            assert!(engine.peer().is_none());
        }
        assert!(handshake(&mut engine, &service, &serde_json::json!({"x": "y".repeat(200 << 10)})).is_ok());
    }

    #[test]
    fn a_handshake_that_is_too_large_is_refused_before_it_is_read() {
        let service = watchable(Limits::default());
        // What is wrong with it is not found out.
        let params = serde_json::json!({"protocolVersion": 7, "x": "y".repeat(300 << 10)});
        let error = request(&mut Engine::new(), &service, "initialize", &params).unwrap_err();
        assert!(error.message.contains("send a shorter `initialize`"), "{error:?}");
    }

    #[test]
    fn one_address_does_not_fill_what_all_sessions_may_keep() {
        let service = watchable(Limits { sessions_bytes: 2 << 20, ..Limits::default() });
        let much = serde_json::json!({"x": "y".repeat(200 << 10)});
        let open = |owner: Owner| {
            let mut engine = Engine::new().charged_to(service.ledger().account(&owner));
            handshake(&mut engine, &service, &much).map(|()| engine)
        };
        let at = |network, near| Owner::Address { network, near };
        let mut engines = Vec::new();
        for near in 0..4 {
            let opened: Vec<_> = (0..340).map_while(|_| open(at(1, near)).ok()).collect();
            assert!(opened.len() <= 2, "{}", opened.len());
            engines.extend(opened);
        }
        assert_eq!(engines.len(), 5, "half of all is the network's");
        engines.push(open(at(2, 9)).unwrap());
        let error = open(at(1, 9)).unwrap_err();
        assert!(error.message.contains("or authenticate"), "{error:?}");
        open(Owner::Principal("ann".into())).unwrap();
        drop(engines);
        assert_eq!(service.ledger().bytes(), 0);
    }

    #[test]
    fn pings_that_are_never_answered_are_forgotten() {
        let service = watchable(Limits::default());
        let mut engine = Engine::new();
        handshake(&mut engine, &service, &serde_json::json!({})).unwrap();
        let (question, _) = engine.ping().unwrap();
        for _ in 0..1000 {
            engine.keepalive().unwrap();
        }
        let session = engine.session.as_mut().unwrap();
        assert_eq!(session.questions().asked.len(), 1, "the question");
        assert!(session.answered(&Response::new(Some(question), Ok(RawObject::empty()))));
    }

    #[test]
    fn what_a_session_watches_is_bounded_in_bytes() {
        let service = watchable(Limits::default());
        let mut engine = Engine::new();
        handshake(&mut engine, &service, &serde_json::json!({})).unwrap();
        let uri = |n: usize| format!("note://{n}/{}", "x".repeat(2000));
        let refused = (0..140).find_map(|n| Some((n, subscribe(&mut engine, &service, &uri(n)).err()?)));
        let (last, error) = refused.unwrap();
        assert!(last > 100, "{last}");
        assert!(error.message.contains("262144 bytes") && error.message.contains("unsubscribe"), "{error:?}");
        subscribe(&mut engine, &service, &uri(0)).unwrap();
        request(&mut engine, &service, "resources/unsubscribe", &serde_json::json!({ "uri": uri(0) }))
            .unwrap();
        subscribe(&mut engine, &service, &uri(last)).unwrap();
    }

    #[test]
    fn what_all_sessions_keep_is_bounded_and_small_ones_are_opened_all_the_same() {
        let limits = Limits { sessions_bytes: 1 << 20, ..Limits::default() };
        let service = watchable(limits);
        let much = serde_json::json!({"x": "y".repeat(200 << 10)});
        let mut engines: Vec<_> = (0..5).map(|_| Engine::new()).collect();
        engines.iter_mut().for_each(|engine| handshake(engine, &service, &much).unwrap());
        let mut one_more = Engine::new();
        let error = handshake(&mut one_more, &service, &much).unwrap_err();
        assert!(error.message.contains("try again later"), "{error:?}");
        let local = service.ledger().account(&Owner::Local);
        assert!(!service.has_room_for(&engines[0].record().unwrap(), &local));
        handshake(&mut Engine::new(), &service, &serde_json::json!({"x": "y"})).unwrap();
        let written = engines.pop().unwrap().record().unwrap();
        assert!(service.has_room_for(&written, &local));
        let restored = Engine::restore(&service, &written, 0).unwrap();
        assert!(
            handshake(&mut one_more, &service, &much).is_err(),
            "it takes as much when it is gone on with"
        );
        drop(restored);
        handshake(&mut one_more, &service, &much).unwrap();
    }

    #[test]
    fn what_a_subscription_watches_is_bounded_in_bytes() {
        let limits = Limits { sessions_bytes: 1 << 20, ..Limits::default() };
        let service = watchable(limits);
        let stateless = service.revisions()[0];
        let listen = |uris: Vec<String>| {
            let params = serde_json::json!({"notifications": {"resourceSubscriptions": uris}, "_meta": {
                "io.modelcontextprotocol/protocolVersion": stateless.as_str(),
                "io.modelcontextprotocol/clientCapabilities": {}}});
            request(&mut Engine::new(), &service, "subscriptions/listen", &params)
        };
        let many = |count: usize| (0..count).map(|n| format!("note://{n}/{}", "x".repeat(2000))).collect();
        let error = listen(many(150)).unwrap_err();
        assert!(error.message.contains("262144 bytes"), "{error:?}");
        for _ in 0..10 {
            // Nothing is left of one that is over.
            listen(many(100)).unwrap();
        }
    }
}
