//! What an engine and a service make of how a message arrived, and of calls that end early.

use pintle_proto::{
    Limits,
    ledger::Owner,
    server::{Arrival, Call, Engine, Inbound, Service},
};
use pintle_types::{
    Frame, Message, Request,
    schema::{Implementation, LoggingLevel, ServerCapabilities, ToolsCapability},
};
use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::{Value, json};

fn service() -> Service {
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools.insert(ToolsCapability::default()).list_changed = Some(true);
    capabilities.logging = Some(Default::default());
    Service::new(Implementation::new("s", "0"), capabilities)
}

fn frame(message: &Value) -> Frame {
    Frame::parse(message.to_string().as_bytes(), 1).unwrap()
}

fn request(method: &str, params: &Value) -> Request {
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    match Message::parse(message.to_string().as_bytes()).unwrap() {
        Message::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

fn initialize(id: u64, client: &str) -> Frame {
    frame(&json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": client, "version": "1"}}}))
}

/// The `_meta` of a stateless request.
fn meta() -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        "io.modelcontextprotocol/logLevel": "debug"})
}

fn call(service: &Service, engine: &mut Engine, id: u64) -> Inbound {
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "a"}});
    engine.receive(service, frame(&call), &Arrival::at(0))
}

fn admitted(service: &Service, request: Request, arrival: &Arrival<'_>) -> Call {
    match service.admit(request, arrival) {
        Ok(Inbound::Call(call)) => call,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_has_the_principal_that_it_arrived_with() {
    let service = service();
    let list = || request("tools/list", &json!({"_meta": meta()}));
    assert_eq!(admitted(&service, list(), &Arrival::at(0)).principal(), None);
    let stamped = service.stamped(&list()).unwrap();
    let arrival = Arrival::at(0).by("ann").stamped(&stamped);
    assert_eq!(admitted(&service, list(), &arrival).principal(), Some("ann"));
    let mut engine = Engine::new();
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta()}});
    let Inbound::Call(call) = engine.receive(&service, frame(&message), &Arrival::at(0).by("ann")) else {
        panic!("it is a call")
    };
    assert_eq!(call.principal(), Some("ann"));
}

#[test]
fn the_sender_that_was_read_before_is_not_read_again() {
    let service = service();
    let stamped = service.stamped(&request("tools/list", &json!({"_meta": meta()}))).unwrap();
    let bare = || request("tools/list", &json!({}));
    assert!(service.admit(bare(), &Arrival::at(0)).is_err());
    let call = admitted(&service, bare(), &Arrival::at(0).stamped(&stamped));
    assert_eq!(call.peer().info.as_ref().unwrap().name, "c");
}

#[test]
fn a_session_has_one_handshake_and_a_stream_has_several() {
    let service = service();
    for (mut engine, second) in [(Engine::new_session(), "one"), (Engine::new(), "other")] {
        assert!(engine.peer().is_none());
        engine.receive(&service, initialize(1, "one"), &Arrival::at(0));
        let Inbound::Reply(reply) = engine.receive(&service, initialize(2, "other"), &Arrival::at(0)) else {
            panic!("it is answered")
        };
        assert_eq!(reply.result.is_ok(), second == "other", "{reply:?}");
        let peer = engine.peer().unwrap();
        assert_eq!(
            (peer.info.as_ref().unwrap().name.as_str(), peer.revision.as_str()),
            (second, "2025-11-25")
        );
    }
}

#[test]
fn a_call_whose_client_is_gone_is_over_and_frees_its_id() {
    let service = service();
    let mut engine = Engine::new_session();
    engine.receive(&service, initialize(1, "c"), &Arrival::at(0));
    let Inbound::Call(gone) = call(&service, &mut engine, 2) else { panic!("it is a call") };
    assert_eq!(engine.in_flight(), 1);
    assert!(matches!(call(&service, &mut engine, 2), Inbound::Reply(_)), "the id is in use");
    engine.forget(&gone);
    assert_eq!(engine.in_flight(), 0);
    assert!(matches!(gone.begin_once("pay"), pintle_proto::inputs::Once::Over));
    assert!(matches!(call(&service, &mut engine, 2), Inbound::Call(_)));
}

#[test]
fn a_subscription_with_its_own_stream_ends_with_its_id() {
    let service = service();
    let params = json!({"_meta": meta(), "notifications": {"toolsListChanged": true}});
    let listen = match service.admit(request("subscriptions/listen", &params), &Arrival::at(0)) {
        Ok(Inbound::Listen(listen)) => listen,
        other => panic!("{other:?}"),
    };
    let last: Value = serde_json::from_slice(&service.unlisten(&listen.call, 0)).unwrap();
    assert_eq!(last["id"], 7);
    assert_eq!(last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    assert_eq!(last["result"]["resultType"], "complete");
}

/// A value that fails after its first half.
struct Broken;

impl Serialize for Broken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq as _;
        let mut items = serializer.serialize_seq(Some(2))?;
        items.serialize_element("half")?;
        Err(S::Error::custom("the disk is gone"))
    }
}

#[test]
fn a_log_message_that_cannot_be_serialized_has_the_reason_in_its_place() {
    let service = service();
    let call = admitted(&service, request("tools/list", &json!({"_meta": meta()})), &Arrival::at(0));
    let line = call.log(LoggingLevel::Info, Some("backup"), &Broken).unwrap();
    let message: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(message["method"], "notifications/message");
    assert_eq!(
        message["params"],
        json!({"level": "info", "logger": "backup",
            "data": "a log message that cannot be serialized: the disk is gone"})
    );
}

#[test]
fn what_a_request_says_of_its_sender_is_known_before_it_is_admitted() {
    let service = service();
    let stamped = |params: &Value| service.stamped(&request("tools/list", params)).unwrap();
    let good = stamped(&json!({"_meta": meta()}));
    assert_eq!((good.version(), good.has_capabilities()), (Some("2026-07-28"), true));
    assert_eq!(good.peer().unwrap().info.as_ref().unwrap().name, "c");
    let unknown = stamped(&json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "v999.0.0"}}));
    assert_eq!((unknown.version(), unknown.has_capabilities()), (Some("v999.0.0"), false));
    assert!(unknown.peer().is_none());
    let silent = stamped(&json!({}));
    assert_eq!((silent.version(), silent.has_capabilities()), (None, false));
    assert!(silent.peer().is_none());
}

#[test]
fn a_session_takes_over_what_another_process_has_recorded() {
    let mut capabilities = ServerCapabilities::default();
    capabilities.resources.insert(Default::default()).subscribe = Some(true);
    let service = Service::new(Implementation::new("s", "0"), capabilities);
    let mut engine = Engine::new_session();
    engine.receive(&service, initialize(1, "c"), &Arrival::at(0));
    let mut record = engine.record().unwrap();
    record.watched.push("file:///a".into());
    record.log_level = Some(LoggingLevel::Error);
    engine.adopt(&service, &record);
    assert_eq!(engine.record().unwrap(), record);
    assert_eq!(engine.peer().unwrap().log_level, Some(LoggingLevel::Error));
}

#[test]
fn a_long_call_is_charged_to_whoever_sent_it_until_it_is_dropped() {
    let mut limits = Limits::default();
    limits.held_bytes = 256 << 10;
    let service = service().limits(limits);
    let ann = service.ledger().account(&Owner::Principal("ann".into()));
    let long = "x".repeat(50 << 10);
    let session = json!({"name": "a", "arguments": {"text": long}});
    let stateless = json!({"name": "a", "arguments": {"text": long}, "_meta": meta()});
    let call = |id: u64, params: &Value| {
        frame(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    };
    let refused = |inbound: &Inbound| match inbound {
        Inbound::Reply(reply) => reply.result.as_ref().unwrap_err().message.contains("this client"),
        _ => false,
    };
    for params in [&session, &stateless] {
        let mut engine = Engine::new_session().charged_to(ann.clone());
        engine.receive(&service, initialize(1, "c"), &Arrival::at(0));
        let first = engine.receive(&service, call(2, params), &Arrival::at(0));
        assert!(matches!(first, Inbound::Call(_)), "{first:?}");
        assert!(service.ledger().bytes() >= 46 << 10);
        // A client has a quarter of all.
        let second = engine.receive(&service, call(3, params), &Arrival::at(0));
        assert!(refused(&second), "{second:?}");
        // Others have theirs, also those that run on this machine.
        let mut other = Engine::new();
        other.receive(&service, initialize(1, "other"), &Arrival::at(0));
        let calls = [4, 5].map(|id| other.receive(&service, call(id, params), &Arrival::at(0)));
        assert!(calls.iter().all(|call| matches!(call, Inbound::Call(_))), "{calls:?}");
        drop((first, calls));
        assert_eq!(service.ledger().bytes(), 0);
    }
    // Without an engine the account is asked for only if the request is long.
    let asked = std::cell::Cell::new(0);
    let account = || {
        asked.set(asked.get() + 1);
        ann.clone()
    };
    let arrival = Arrival::at(0).charged_to(&account);
    let short = admitted(&service, request("tools/call", &json!({"name": "a", "_meta": meta()})), &arrival);
    assert_eq!((asked.get(), short.charge().bytes()), (0, 0));
    let first = admitted(&service, request("tools/call", &stateless), &arrival);
    assert_eq!(asked.get(), 1);
    assert!(first.charge().bytes() > 50 << 10);
    let second = service.admit(request("tools/call", &stateless), &arrival).unwrap_err();
    assert!(second.1.message.contains("this client"), "{second:?}");
    drop(first);
    assert_eq!(service.ledger().bytes(), 0);
}
