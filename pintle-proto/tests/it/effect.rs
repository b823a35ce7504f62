//! Requests that the engine carries out when their calls end; and notifications as calls.

use pintle_proto::{
    Limits,
    server::{Arrival, Call, CarriedOut, Engine, Inbound, Outcome, Service},
};
use pintle_types::{
    ErrorCode, Frame, Notification, RpcError,
    schema::{Implementation, ServerCapabilities, ToolsCapability},
};
use serde_json::{Value, json};

fn service(limits: Limits) -> Service {
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools.insert(ToolsCapability::default()).list_changed = Some(true);
    capabilities.logging = Some(Default::default());
    Service::new(Implementation::new("s", "0"), capabilities).limits(limits)
}

fn receive(engine: &mut Engine, service: &Service, id: u64, method: &str, params: &Value) -> Inbound {
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let frame = Frame::parse(message.to_string().as_bytes(), 1).unwrap();
    engine.admit(service, frame, &Arrival::at(0))
}

fn call(engine: &mut Engine, service: &Service, id: u64, method: &str, params: &Value) -> Call {
    match receive(engine, service, id, method, params) {
        Inbound::Call(call) => call,
        other => panic!("{other:?}"),
    }
}

fn performed(engine: &mut Engine, service: &Service, call: &Call) -> Value {
    let CarriedOut::Outcome(outcome) = carried_out(engine, service, call) else { panic!("an outcome") };
    serde_json::from_slice(&engine.finish(service, call, outcome, 0).unwrap()).unwrap()
}

fn carried_out(engine: &mut Engine, service: &Service, call: &Call) -> CarriedOut {
    let (outcome, effect) = service.prepare(call, call.params()).unwrap();
    call.set_effect(effect);
    engine.carry_out(service, call, outcome)
}

fn refused(inbound: Inbound) -> RpcError {
    match inbound {
        Inbound::Reply(response) => response.result.unwrap_err(),
        other => panic!("{other:?}"),
    }
}

fn initialize() -> Value {
    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}})
}

/// The params of a stateless request.
fn stateless() -> Value {
    json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}})
}

#[test]
fn a_request_has_its_effect_when_its_call_ends() {
    let service = service(Limits::default());
    let mut engine = Engine::new_session();
    let handshake = call(&mut engine, &service, 1, "initialize", &initialize());
    assert!(handshake.is_own() && handshake.precedes_others() && !handshake.is_notification());
    assert!(engine.peer().is_none());
    let reply = performed(&mut engine, &service, &handshake);
    assert_eq!(reply["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(engine.peer().unwrap().info.as_ref().unwrap().name, "c");

    let ping = call(&mut engine, &service, 2, "ping", &json!({}));
    assert!(ping.is_own() && !ping.precedes_others());
    assert_eq!(performed(&mut engine, &service, &ping), json!({"jsonrpc": "2.0", "id": 2, "result": {}}));

    let level = call(&mut engine, &service, 3, "logging/setLevel", &json!({"level": "error"}));
    assert!(level.is_own() && level.precedes_others());
    assert_eq!(engine.peer().unwrap().log_level, None);
    assert_eq!(performed(&mut engine, &service, &level)["result"], json!({}));
    assert!(engine.peer().unwrap().log_level.is_some());

    let tool = call(&mut engine, &service, 4, "tools/call", &json!({"name": "t"}));
    assert!(!tool.is_own() && !tool.precedes_others());
    let error = service.prepare(&tool, tool.params()).unwrap_err();
    assert_eq!(error.code, ErrorCode::METHOD_NOT_FOUND);
    engine.finish(&service, &tool, Outcome::Failed(error), 0).unwrap();
    assert_eq!(engine.in_flight(), 0);
}

#[test]
fn a_session_that_the_application_ends_can_be_opened_again() {
    let service = service(Limits::default());
    let mut engine = Engine::new_session();
    let first = call(&mut engine, &service, 1, "initialize", &initialize());
    performed(&mut engine, &service, &first);
    let second = refused(receive(&mut engine, &service, 2, "initialize", &initialize()));
    assert_eq!(second.message, "the session is already open: use it, or open another connection");
    engine.close_session();
    assert!(engine.peer().is_none());
    // Both are received before either is performed.
    let [third, fourth] = [3, 4].map(|id| call(&mut engine, &service, id, "initialize", &initialize()));
    assert!(performed(&mut engine, &service, &third)["result"].is_object());
    let late = performed(&mut engine, &service, &fourth);
    assert_eq!(late["error"]["message"], *second.message);
}

#[test]
fn a_subscription_counts_as_a_subscription_and_a_call_does_not() {
    let mut limits = Limits::default();
    limits.subscriptions = 1;
    let service = service(limits);
    let mut engine = Engine::new();
    let mut params = stateless();
    params["notifications"] = json!({"toolsListChanged": true});
    let listen = call(&mut engine, &service, 1, "subscriptions/listen", &params);
    assert!(listen.is_own() && listen.precedes_others());
    let second = refused(receive(&mut engine, &service, 2, "subscriptions/listen", &params));
    assert_eq!(
        (second.code, &*second.message),
        (ErrorCode::OVERLOADED, "1 subscriptions are open: end one first")
    );
    for id in 3..6 {
        call(&mut engine, &service, id, "tools/list", &stateless());
        call(&mut engine, &service, id + 10, "server/discover", &stateless());
    }
    let CarriedOut::Listen(opened) = carried_out(&mut engine, &service, &listen) else {
        panic!("it is open")
    };
    assert_eq!(opened.listener.tag(), Some(listen.id()));
    let first: Value = serde_json::from_slice(&opened.acknowledgement).unwrap();
    assert_eq!(first["params"]["notifications"], json!({"toolsListChanged": true}));
}

#[test]
fn a_notification_as_a_call_has_no_peer_before_the_handshake() {
    let service = service(Limits::default());
    let mut engine = Engine::new_session();
    let notification = |name: &'static str| Notification::new(name, None);
    let early = engine.notification_call(&service, notification("notifications/x"), Some("ann"));
    assert!(early.is_notification() && early.known_peer().is_none());
    assert_eq!(early.principal(), Some("ann"));
    let handshake = call(&mut engine, &service, 1, "initialize", &initialize());
    assert!(handshake.known_peer().is_some());
    performed(&mut engine, &service, &handshake);
    let later = engine.notification_call(&service, notification("notifications/x"), None);
    assert_eq!(later.known_peer().unwrap().info.as_ref().unwrap().name, "c");
    // The engine carries out requests only, whatever a notification is called.
    let misnamed = engine.notification_call(&service, notification("initialize"), None);
    assert!(!misnamed.is_own() && !misnamed.precedes_others());
}

#[test]
fn a_request_that_fails_or_is_cancelled_has_no_effect() {
    let service = service(Limits::default());
    let mut engine = Engine::new();
    for (id, is_cancelled) in [(1, false), (2, true)] {
        let handshake = call(&mut engine, &service, id, "initialize", &initialize());
        let (outcome, effect) = service.prepare(&handshake, handshake.params()).unwrap();
        handshake.set_effect(effect);
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        let outcome = match is_cancelled {
            true => {
                let frame = Frame::parse(cancelled.to_string().as_bytes(), 1).unwrap();
                assert!(matches!(engine.admit(&service, frame, &Arrival::at(0)), Inbound::Cancel(_)));
                outcome
            }
            false => Outcome::Failed(RpcError::invalid_request("not today")),
        };
        let CarriedOut::Outcome(outcome) = engine.carry_out(&service, &handshake, outcome) else {
            panic!("an outcome")
        };
        assert!(engine.peer().is_none());
        assert_eq!(engine.finish(&service, &handshake, outcome, 0).is_none(), is_cancelled);
        assert_eq!(engine.in_flight(), 0);
    }
}
