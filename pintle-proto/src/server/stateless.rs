//! The server's side of the stateless era: each request describes its sender; the server sends no requests, but returns
//! `input_required`.

use std::{collections::BTreeSet, sync::Arc};

use pintle_types::{
    RawObject, RawValue, Request, RequestId, RpcError, keys, method,
    schema::{
        ClientCapabilities, Implementation, InputRequest, LoggingLevel, ServerCapabilities,
        SubscriptionFilter, SubscriptionsListenParams,
    },
};
use serde::Serialize;
use serde_json::{Value, value::to_raw_value};

use super::{
    Arrival, Body, CacheHint, Call, Outcome, Service,
    effect::Action,
    listener::{Listener, Wants},
    print, weight,
};
use crate::{
    Part, Peer, Revision, Stamp,
    inputs::{Binding, Inputs},
    ledger::{Charge, Held},
    revision::ReshapeError,
    stamp::Plain,
};

/// A call that has no ticket yet.
pub(super) struct StatelessCall {
    pub(super) peer: Arc<Peer>,
    pub(super) progress: Option<RequestId>,
    pub(super) inputs: Inputs,
}

/// Reads the sender of a request from its `_meta`, which is parsed at most once.
pub(super) fn sender(service: &Service, params: Option<&RawObject>) -> Result<Sender, RpcError> {
    let Some(meta) = params.and_then(|params| params.get("_meta")) else { return Ok(Sender::Session(None)) };
    if let Some(peer) = service.peers().find(meta) {
        return Ok(Sender::Stateless(Caller { peer, progress: None }));
    }
    sender_of(service, meta, Stamp::of(meta)?)
}

/// Returns the sender of a request with this `_meta`, which was parsed as `stamp`.
pub(super) fn sender_of(service: &Service, meta: &str, stamp: Stamp<'_>) -> Result<Sender, RpcError> {
    if !stamp.is_stateless() {
        return Ok(Sender::Session(stamp.progress));
    }
    let peer = Arc::new(peer(service, &stamp)?);
    if stamp.progress.is_none() {
        service.peers().add(meta, &peer);
    }
    Ok(Sender::Stateless(Caller { peer, progress: stamp.progress }))
}

/// The sender of a request.
#[derive(Clone, Debug)]
pub(super) enum Sender {
    /// A client that describes itself in the request.
    Stateless(Caller),
    /// The client of a session, with the token to report progress under.
    Session(Option<RequestId>),
}

/// A client that describes itself, and the token to report progress under.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) peer: Arc<Peer>,
    pub(super) progress: Option<RequestId>,
}

/// Returns the peer that a stamp describes.
///
/// The order of the checks is observable: missing members first, then the revision.
fn peer(service: &Service, stamp: &Stamp<'_>) -> Result<Peer, RpcError> {
    let version = Stamp::require(stamp.version()?, stamp.has_capabilities())?;
    let Some(revision) = service.spoken(&version, true) else { return Err(service.unsupported(&version)) };
    Ok(Peer {
        revision,
        info: stamp.info.map(|info| member::<Implementation>("clientInfo", info)).transpose()?,
        capabilities: stamp.capabilities.map(read_capabilities).transpose()?.unwrap_or_default(),
        // A server that does not declare logging sends no log messages.
        log_level: stamp
            .log_level
            .as_deref()
            .map(log_level)
            .transpose()?
            .filter(|_| service.capabilities().logging.is_some()),
    })
}

/// Admits a request, from its own content only. The method is checked first.
pub(super) fn admit(
    service: &Service,
    request: &mut Request,
    caller: Caller,
    arrival: &Arrival<'_>,
) -> Result<StatelessCall, RpcError> {
    let Caller { peer, progress } = caller;
    super::raise_params(peer.revision, &request.method, &mut request.params)?;
    let request = &*request;
    if !service.offers(&request.method, peer.revision) && !service.extended(&request.method, &peer)? {
        return Err(RpcError::method_not_found(&request.method));
    }
    let inputs = match &request.params {
        // Only these methods may ask questions, so only they have answers.
        Some(params) if method::find(&request.method).is_some_and(|row| row.may_ask) => {
            replay(service, request, params, peer.revision, arrival)?
        }
        _ => Inputs::alone(None),
    };
    Ok(StatelessCall { peer, progress, inputs })
}

/// Prepares a request that the engine carries out.
pub(super) fn prepare(
    service: &Service,
    call: &Call,
    params: &RawObject,
) -> Result<(Outcome, Action), RpcError> {
    match call.method() {
        method::SERVER_DISCOVER => {
            let hint = service.discover_hint_ref().clone();
            Ok((Outcome::Cacheable(service.discovered().into(), hint), Action::Nothing))
        }
        method::SUBSCRIPTIONS_LISTEN => {
            let (granted, charge) = granted(service, call, params)?;
            let (listener, acknowledgement) = listen(service, call, &granted, charge);
            let listening = Action::Listen(Box::new(listener), acknowledgement);
            Ok((Outcome::Complete(RawObject::empty().into()), listening))
        }
        method => Err(RpcError::method_not_found(method)),
    }
}

/// Returns the notifications that a subscription is granted, and the charge for its memory.
fn granted(
    service: &Service,
    call: &Call,
    params: &RawObject,
) -> Result<(SubscriptionFilter, Charge), RpcError> {
    service.bounds().check_filter(params)?;
    let wanted: SubscriptionsListenParams = params
        .decode()
        .map_err(|error| RpcError::invalid_params(format!("`subscriptions/listen`: {}", Plain(&error))))?;
    let mut granted = grant(service, wanted.notifications, call.peer(), call.principal())?;
    for (member, value) in call.take_granted() {
        match (granted.extra.get_mut(&member), value) {
            (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
            (_, value) => drop(granted.extra.insert(member, value)),
        }
    }
    let mut charge = Charge::new(call.account(service), Held::Session);
    let uris = granted.resource_subscriptions.iter().flatten();
    let extra = serde_json::to_string(&granted.extra).map_or(0, |text| weight::weight(&text));
    let bytes = uris.map(|uri| weight::watched(uri)).sum::<usize>().saturating_add(extra);
    weight::charge(&mut charge, bytes, service, "watch fewer resources with one subscription")?;
    Ok((granted, charge))
}

fn member<T: serde::de::DeserializeOwned>(name: &str, raw: &RawValue) -> Result<T, RpcError> {
    serde_json::from_str(raw.get()).map_err(|error| {
        let reason = Plain(&error);
        RpcError::invalid_params(format!("`_meta[\"io.modelcontextprotocol/{name}\"]` is invalid: {reason}"))
    })
}

fn read_capabilities(raw: &RawValue) -> Result<ClientCapabilities, RpcError> {
    // The most frequent value is not parsed.
    if raw.get() == "{}" { Ok(ClientCapabilities::default()) } else { member("clientCapabilities", raw) }
}

fn log_level(level: &str) -> Result<LoggingLevel, RpcError> {
    level.parse().map_err(|error| {
        RpcError::invalid_params(format!("`_meta[\"io.modelcontextprotocol/logLevel\"]` is invalid: {error}"))
    })
}

/// Restores the inputs of earlier rounds of a call.
fn replay(
    service: &Service,
    request: &Request,
    params: &RawObject,
    revision: Revision,
    arrival: &Arrival<'_>,
) -> Result<Inputs, RpcError> {
    let (offered, state) = (params.get("inputResponses"), params.get("requestState"));
    if offered.is_none() && state.is_none() {
        return Ok(Inputs::alone(None));
    }
    let refuse = |name: &str, error: &serde_json::Error| {
        RpcError::invalid_params(format!("`{name}` is invalid: {}", Plain(error)))
    };
    let offered: Option<RawObject> =
        params.decode_member("inputResponses").map_err(|error| refuse("inputResponses", &error))?;
    let state: Option<String> =
        params.decode_member("requestState").map_err(|error| refuse("requestState", &error))?;
    let Some(state) = state else { return Ok(Inputs::alone(offered)) };
    let binding = Binding {
        service: &service.info().name,
        method: &request.method,
        params,
        principal: arrival.principal,
    };
    let Some(seal) = service.sealer() else {
        return Err(RpcError::invalid_params(
            "`requestState` is not one of this server's: start the call again",
        ));
    };
    let opened = binding.open(seal, &state, service.bounds().state_bytes, arrival.now())?;
    Inputs::replayed(state, &opened, offered, revision)
}

/// Returns the part of a filter that the server offers.
fn grant(
    service: &Service,
    wanted: SubscriptionFilter,
    peer: &Peer,
    principal: Option<&str>,
) -> Result<SubscriptionFilter, RpcError> {
    let ServerCapabilities { tools, prompts, resources, .. } = service.capabilities();
    let limit = service.bounds().watched;
    let both = |wanted: Option<bool>, offered: Option<bool>| {
        (wanted == Some(true) && offered == Some(true)).then_some(true)
    };
    let mut granted = SubscriptionFilter::new();
    granted.tools_list_changed =
        both(wanted.tools_list_changed, tools.as_ref().and_then(|tools| tools.list_changed));
    granted.prompts_list_changed =
        both(wanted.prompts_list_changed, prompts.as_ref().and_then(|prompts| prompts.list_changed));
    granted.resources_list_changed =
        both(wanted.resources_list_changed, resources.as_ref().and_then(|resources| resources.list_changed));
    if resources.as_ref().is_some_and(|resources| resources.subscribe == Some(true)) {
        granted.resource_subscriptions = wanted.resource_subscriptions;
    }
    if granted.resource_subscriptions.as_ref().is_some_and(|uris| uris.len() > limit) {
        return Err(RpcError::invalid_params(format!(
            "`resourceSubscriptions` has more than {limit} entries: open several subscriptions"
        )));
    }
    granted
        .resource_subscriptions
        .iter()
        .flatten()
        .try_for_each(|uri| service.bounds().check_watched(uri))?;
    granted.extra = service.granted(wanted.extra, peer, principal)?;
    Ok(granted)
}

/// Returns the listener of a new subscription, and the acknowledgement that must be its first message.
fn listen(
    service: &Service,
    call: &Call,
    granted: &SubscriptionFilter,
    charge: Charge,
) -> (Listener, Vec<u8>) {
    #[derive(Serialize)]
    struct Acknowledged<'a> {
        notifications: &'a SubscriptionFilter,
    }
    let watched: BTreeSet<Box<str>> =
        granted.resource_subscriptions.iter().flatten().map(|uri| uri.as_str().into()).collect();
    let (wants, tag, observer) = (Wants::of(granted), Some(call.id().clone()), service.watch_observer());
    let listener = Listener::new(wants, watched, tag, call.peer().revision, observer)
        .granted(granted.extra.clone())
        .charged(charge);
    let params = RawObject::from_serialize(&Acknowledged { notifications: granted }).ok();
    let acknowledgement =
        listener.notification(method::NOTIFICATIONS_SUBSCRIPTIONS_ACKNOWLEDGED, params.as_ref());
    (listener, acknowledgement)
}

/// Returns the result that ends a subscription: empty, with the id of the subscription.
pub(super) fn unlisten(id: &RequestId) -> RawObject {
    let meta = to_raw_value(&serde_json::json!({ keys::SUBSCRIPTION_ID: id }));
    meta.map_or_else(|_| RawObject::empty(), |meta| RawObject::empty().with("_meta", &meta))
}

/// Returns the cancellation that precedes the result on a stream that stays open; the specification requires both.
pub(super) fn unlisten_notice(call: &Call) -> Vec<u8> {
    let params = serde_json::json!({ "requestId": call.id(), "reason": "the server ended the subscription" });
    print::notification(call.peer().revision, method::NOTIFICATIONS_CANCELLED, &params)
}

/// Refuses a result type of an extension that the client did not declare. A text has none.
pub(super) fn check_type(call: &Call, service: &Service, body: &Body) -> Result<(), RpcError> {
    if service.extensions().is_empty() || matches!(body, Body::Text(_)) || body.get("resultType").is_none() {
        return Ok(());
    }
    match body.decode_member::<String>("resultType") {
        Ok(Some(kind)) => service.check_result_type(&kind, call.peer()),
        _ => Ok(()),
    }
}

/// Writes a result with its `resultType`, its cache hints and the server's name.
pub(super) fn complete(call: &Call, service: &Service, body: Body, hint: &CacheHint, out: &mut Vec<u8>) {
    // A handler may have set any of these members itself, for example in a gateway or an extension.
    let own = |name| if let Body::Text(_) = body { None } else { body.get(name) };
    let kind = own("resultType");
    let cacheable = method::find(call.method()).is_some_and(|row| row.cacheable)
        && kind.is_none_or(|kind| kind == "\"complete\"");
    let kind = kind.is_some();
    let ttl = cacheable && own("ttlMs").is_none();
    let scope = cacheable && own("cacheScope").is_none();
    let meta = own("_meta").map(str::to_owned);
    print::open_object(out, if meta.is_some() { body.without(&["_meta"]).into() } else { body });
    if !kind {
        out.extend_from_slice(br#""resultType":"complete","#);
    }
    if ttl {
        out.extend_from_slice(br#""ttlMs":"#);
        print::json(out, &hint.ttl_ms);
        out.push(b',');
    }
    if scope {
        out.extend_from_slice(br#""cacheScope":"#);
        print::json(out, &hint.scope);
        out.push(b',');
    }
    sign(service, meta.as_deref(), out);
    if out.last() == Some(&b',') {
        out.pop();
    }
    out.push(b'}');
}

/// Returns the number of bytes that are added to a tool's result that has none of these members.
pub(super) fn room(service: &Service) -> usize {
    let signed = service.signature().map_or(0, |signature| r#","_meta":{}"#.len() + signature.len());
    r#","resultType":"complete""#.len() + signed
}

/// Writes the `_meta` of a result: the handler's, and the server's name. Ends with a comma if anything was written.
fn sign(service: &Service, meta: Option<&str>, out: &mut Vec<u8>) {
    const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    let own: Option<RawObject> = meta.and_then(|meta| meta.parse().ok());
    let signature =
        service.signature().filter(|_| own.as_ref().is_none_or(|own| own.get(SERVER_INFO).is_none()));
    let own = own.as_ref().map(RawObject::inner).filter(|inner| !inner.is_empty());
    if own.is_none() && signature.is_none() && meta.is_none() {
        return;
    }
    out.extend_from_slice(br#""_meta":{"#);
    for part in own.into_iter().chain(signature) {
        if out.last() != Some(&b'{') {
            out.push(b',');
        }
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(b"},");
}

/// Lowers the params of a question to the shapes of a revision.
pub(super) fn lower_question(revision: Revision, question: &mut InputRequest) -> Result<(), ReshapeError> {
    let part = Part::Params(&question.method);
    let text = question.params.as_deref().map_or("{}", RawValue::get);
    if !revision.lowers(part, text) {
        return Ok(());
    }
    let params = revision.lowered(part, text.parse().map_err(ReshapeError::Unreadable)?)?;
    question.params = Some(RawValue::from_string(params.into_string()).map_err(ReshapeError::Unreadable)?);
    Ok(())
}

/// Returns the sealed state of a call for its next round.
pub(super) fn sealed_state(call: &Call, service: &Service, now: u64) -> Result<String, RpcError> {
    let Some(seal) = service.sealer() else {
        return Err(RpcError::internal(
            "the server has no seal: set one with `Service::seal` to ask stateless clients",
        ));
    };
    let plain = call.inner().inputs.remembered();
    let lives = call.inner().inputs.answer_timeout_ms(service.bounds().state_ttl_ms);
    let expires = now.saturating_add(lives);
    let sealed = call.binding(service).seal(seal, &plain, expires);
    let state = sealed.map_err(|error| RpcError::internal(error.to_string()))?;
    let limit = service.bounds().state_bytes;
    if state.len() > limit {
        return Err(RpcError::internal(format!(
            "the state of the call takes {} bytes, and the limit is {limit}: store less, or raise the limit",
            state.len()
        )));
    }
    Ok(state)
}

/// Writes the result that ends a round: the questions, and the sealed state for the next round.
pub(super) fn input_required(
    call: &Call,
    service: &Service,
    now: u64,
    out: &mut Vec<u8>,
) -> Result<(), RpcError> {
    let mut questions = call.open_questions();
    if questions.is_empty() && call.note().is_none() {
        return Err(RpcError::internal(
            "the call ended with `InputRequired` but has no questions: ask through the call",
        ));
    }
    let revision = call.peer().revision;
    if !revision.is_canonical() {
        for (key, question) in &mut questions {
            lower_question(revision, question).map_err(|error| {
                RpcError::internal(format!("the question `{key}` cannot be asked: {error}"))
            })?;
        }
    }
    let state = sealed_state(call, service, now)?;
    out.extend_from_slice(br#"{"resultType":"input_required","#);
    if !questions.is_empty() {
        out.extend_from_slice(br#""inputRequests":"#);
        print::json(out, &questions);
        out.push(b',');
    }
    out.extend_from_slice(br#""requestState":"#);
    print::json(out, &state);
    out.push(b',');
    sign(service, None, out);
    if out.last() == Some(&b',') {
        out.pop();
    }
    out.push(b'}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use pintle_types::schema::ToolsCapability;

    use pintle_types::Message;

    use super::*;
    use crate::{
        inputs::{Question, tests::Clear},
        server::{Inbound, Outcome},
    };

    #[test]
    fn a_state_is_good_for_as_long_as_its_questions_wait() {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        let service = Service::new(Implementation::new("s", "0"), capabilities).seal(Arc::new(Clear(1)));
        let most = service.bounds().state_ttl_ms;
        let admit = |state: &str, now: u64| {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t"{state},"_meta":{{
                    "io.modelcontextprotocol/protocolVersion":"2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities":{{"roots":{{}}}}}}}}}}"#
            );
            let Ok(Message::Request(request)) = Message::parse(text.as_bytes()) else { panic!("a request") };
            match service.admit(request, &Arrival::at(now)) {
                Ok(Inbound::Call(call)) => Ok(call),
                Err((_, error)) => Err(error.message),
                other => panic!("{other:?}"),
            }
        };
        for (patience, lives) in [(None, most), (Some(5000), 5000), (Some(u64::MAX), most)] {
            let call = admit("", 1000).unwrap();
            assert!(!call.returned());
            call.ask(&service, "roots", &Question::Roots).unwrap();
            patience.into_iter().for_each(|patience| call.set_answer_timeout_ms(patience));
            let reply = call.finish(&service, Outcome::InputRequired, 1000).reply(call.id());
            let result: serde_json::Value = serde_json::from_str(&reply.body).unwrap();
            let state = format!(r#","requestState":{}"#, result["requestState"]);
            assert!(admit(&state, 1000 + lives - 1).unwrap().returned());
            let late = admit(&state, 1000 + lives).unwrap_err();
            assert_eq!(late, "`requestState` has expired: start the call again");
        }
    }

    /// A cipher without keys.
    #[derive(Debug)]
    struct Broken;

    impl crate::inputs::Seal for Broken {
        fn key(&self) -> crate::inputs::KeyId {
            crate::inputs::KeyId([0; 8])
        }
        fn seal(
            &self,
            _: crate::inputs::KeyId,
            _: &[u8],
            _: &[u8],
        ) -> Result<Vec<u8>, crate::inputs::SealError> {
            Err(crate::inputs::SealError::new("no random bytes"))
        }
        fn open(&self, _: crate::inputs::KeyId, _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
            None
        }
    }

    #[test]
    fn a_state_that_cannot_be_sealed_is_an_error_and_not_an_empty_state() {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        let service = Service::new(Implementation::new("s", "0"), capabilities).seal(Arc::new(Broken));
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{
            "io.modelcontextprotocol/protocolVersion":"2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}"#;
        let Ok(Message::Request(request)) = Message::parse(text.as_bytes()) else { panic!("a request") };
        let Ok(Inbound::Call(call)) = service.admit(request, &Arrival::at(0)) else { panic!("admitted") };
        call.ask(&service, "roots", &Question::Roots).unwrap();
        let finished = call.finish(&service, Outcome::InputRequired, 0);
        assert_eq!(finished.error, Some(pintle_types::ErrorCode::INTERNAL_ERROR));
        let reply = String::from_utf8(finished.bytes).unwrap();
        assert!(reply.contains("the state of the call could not be sealed: no random bytes"), "{reply}");
    }

    #[test]
    fn a_reply_is_given_again_under_another_id() {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        let service = Service::new(Implementation::new("s", "0"), capabilities);
        let call = |id: &str| {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","_meta":{{
                    "io.modelcontextprotocol/protocolVersion":"2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
            );
            let Ok(Message::Request(request)) = Message::parse(text.as_bytes()) else { panic!("a request") };
            match service.admit(request, &Arrival::at(0)) {
                Ok(Inbound::Call(call)) => call,
                other => panic!("{other:?}"),
            }
        };
        let body: RawObject = r#"{"content":[]}"#.parse().unwrap();
        let error = RpcError::invalid_params("no \"such\" tool").with_data(&1);
        for outcome in [Outcome::Complete(body.into()), Outcome::Failed(error)] {
            let first = call("7");
            let finished = first.finish(&service, outcome, 0);
            let again = call(r#""b\"""#).finish(&service, Outcome::Replied(finished.reply(first.id())), 0);
            let expected = String::from_utf8(finished.bytes).unwrap().replace(r#""id":7"#, r#""id":"b\"""#);
            assert_eq!(String::from_utf8(again.bytes).unwrap(), expected);
            assert_eq!(again.error, finished.error);
        }
        // A store may have written it in several lines, which would be several messages.
        let stored = super::super::Reply::new(false, "{\r\n\"content\":[]}");
        let again = call("7").finish(&service, Outcome::Replied(stored), 0).bytes;
        assert_eq!(
            String::from_utf8(again).unwrap(),
            r#"{"jsonrpc":"2.0","id":7,"result":{  "content":[]}}"#
        );
    }

    #[test]
    fn a_question_is_lowered_to_the_revision_of_its_client() {
        let older: Revision = "2025-06-18".parse().unwrap();
        let form = serde_json::json!({"mode": "form", "message": "?", "requestedSchema": {
            "type": "object", "properties": {"count": {"type": "integer", "default": 3}}}});
        let mut question = InputRequest::new("elicitation/create", &form).unwrap();
        lower_question(older, &mut question).unwrap();
        assert_eq!(
            question.params.as_deref().unwrap().get(),
            r#"{"message":"?","requestedSchema":{"type":"object","properties":{"count":{"type":"integer"}}}}"#
        );
        let plain = serde_json::json!({"messages": [], "maxTokens": 9});
        let mut question = InputRequest::new("sampling/createMessage", &plain).unwrap();
        lower_question(older, &mut question).unwrap();
        assert_eq!(question.params.as_deref().unwrap().get(), plain.to_string());
        let url = serde_json::json!({"mode": "url", "message": "?", "url": "https://a.example"});
        let mut question = InputRequest::new("elicitation/create", &url).unwrap();
        assert!(lower_question(older, &mut question).is_err());
    }
}
