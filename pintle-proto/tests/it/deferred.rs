//! Requests that need no handler, when a driver sees them as calls first; and notifications as calls.

use pintle_proto::{
    Limits,
    server::{Arrival, Call, Engine, Inbound, Outcome, Performed, Service},
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
    let mut service = Service::new(Implementation::new("s", "0"), capabilities).limits(limits);
    service.set_deferred(true);
    service
}

fn receive(engine: &mut Engine, service: &Service, id: u64, method: &str, params: &Value) -> Inbound {
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let frame = Frame::parse(message.to_string().as_bytes(), 1).unwrap();
    engine.receive(service, frame, &Arrival::at(0))
}

fn call(engine: &mut Engine, service: &Service, id: u64, method: &str, params: &Value) -> Call {
    match receive(engine, service, id, method, params) {
        Inbound::Call(call) => call,
        other => panic!("{other:?}"),
    }
}

fn performed(engine: &mut Engine, service: &Service, call: &Call) -> Value {
    let outcome = match engine.perform(service, call, call.params()) {
        Ok(Performed::Outcome(outcome)) => outcome,
        other => panic!("{other:?}"),
    };
    serde_json::from_slice(&engine.finish(service, call, outcome, 0).unwrap()).unwrap()
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
fn a_deferred_request_has_its_effect_when_it_is_performed() {
    let service = service(Limits::default());
    let mut engine = Engine::new_session();
    let handshake = call(&mut engine, &service, 1, "initialize", &initialize());
    assert!(handshake.is_deferred() && handshake.precedes_others() && !handshake.is_notification());
    assert!(engine.peer().is_none());
    let reply = performed(&mut engine, &service, &handshake);
    assert_eq!(reply["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(engine.peer().unwrap().info.as_ref().unwrap().name, "c");

    let ping = call(&mut engine, &service, 2, "ping", &json!({}));
    assert!(ping.is_deferred() && !ping.precedes_others());
    assert_eq!(performed(&mut engine, &service, &ping), json!({"jsonrpc": "2.0", "id": 2, "result": {}}));

    let level = call(&mut engine, &service, 3, "logging/setLevel", &json!({"level": "error"}));
    assert!(level.is_deferred() && level.precedes_others());
    assert_eq!(engine.peer().unwrap().log_level, None);
    assert_eq!(performed(&mut engine, &service, &level)["result"], json!({}));
    assert!(engine.peer().unwrap().log_level.is_some());

    let tool = call(&mut engine, &service, 4, "tools/call", &json!({"name": "t"}));
    assert!(!tool.is_deferred() && !tool.precedes_others());
    let error = engine.perform(&service, &tool, tool.params()).unwrap_err();
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
    let late = engine.perform(&service, &fourth, fourth.params()).unwrap_err();
    assert_eq!(late.message, second.message);
}

#[test]
fn a_deferred_subscription_counts_as_a_subscription_and_a_call_does_not() {
    let mut limits = Limits::default();
    limits.subscriptions = 1;
    let service = service(limits);
    let mut engine = Engine::new();
    let mut params = stateless();
    params["notifications"] = json!({"toolsListChanged": true});
    let listen = call(&mut engine, &service, 1, "subscriptions/listen", &params);
    assert!(listen.is_deferred() && listen.precedes_others());
    let second = refused(receive(&mut engine, &service, 2, "subscriptions/listen", &params));
    assert_eq!(
        (second.code, &*second.message),
        (ErrorCode::OVERLOADED, "1 subscriptions are open: end one first")
    );
    for id in 3..6 {
        call(&mut engine, &service, id, "tools/list", &stateless());
        call(&mut engine, &service, id + 10, "server/discover", &stateless());
    }
    let opened = match engine.perform(&service, &listen, listen.params()) {
        Ok(Performed::Listen(opened)) => opened,
        other => panic!("{other:?}"),
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
    assert!(!misnamed.is_deferred() && !misnamed.precedes_others());
}
