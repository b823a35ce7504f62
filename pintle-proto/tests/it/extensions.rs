//! Extensions: their methods, result types and subscriptions exist for clients that declared them.

use pintle_proto::{
    Limits,
    server::{Arrival, Call, Engine, Extension, Inbound, Outcome, Service},
};
use pintle_types::{
    ErrorCode, Frame, Message, Request, RpcError,
    schema::{Implementation, ServerCapabilities},
};
use serde_json::{Value, json};

const CLOCK: &str = "com.example/clock";

fn service(stateless_only: bool) -> Service {
    let mut clock = Extension::new(CLOCK);
    clock.methods.push("clock/now".into());
    clock.result_types.push("clock/later".into());
    clock.listens.push("clockTicks".into());
    clock.stateless_only = stateless_only;
    let mut capabilities = ServerCapabilities::default();
    capabilities.extensions.get_or_insert_default().insert(CLOCK.into(), json!({}));
    let mut limits = Limits::default();
    limits.watched = 2;
    Service::new(Implementation::new("s", "0"), capabilities).limits(limits).extend(clock)
}

fn capabilities(declared: bool) -> Value {
    if declared {
        json!({"extensions": {CLOCK: {}}})
    } else {
        json!({"extensions": {"com.example/other": {}}})
    }
}

fn request(method: &str, declared: bool, more: (&str, Value)) -> Request {
    let mut params = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities(declared)}});
    params[more.0] = more.1;
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    match Message::parse(message.to_string().as_bytes()).unwrap() {
        Message::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

fn admitted(service: &Service, request: Request) -> Result<Inbound, RpcError> {
    service.admit(request, &Arrival::at(0)).map_err(|(_, error)| error)
}

fn refused(service: &Service, request: Request) -> RpcError {
    match admitted(service, request) {
        Err(error) => error,
        Ok(Inbound::Reply(response)) => response.result.unwrap_err(),
        other => panic!("{other:?}"),
    }
}

fn now(service: &Service, declared: bool) -> Result<Call, RpcError> {
    match admitted(service, request("clock/now", declared, ("zone", json!("utc"))))? {
        Inbound::Call(call) => Ok(call),
        Inbound::Reply(response) => Err(response.result.unwrap_err()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_method_of_an_extension_is_for_clients_that_declared_it() {
    for stateless_only in [false, true] {
        let service = service(stateless_only);
        assert_eq!(now(&service, true).unwrap().method(), "clock/now");
        let error = now(&service, false).unwrap_err();
        assert_eq!(error.code, ErrorCode::MISSING_CLIENT_CAPABILITY);
        assert!(error.message.contains("`com.example/clock` is not declared"), "{error}");
        let unknown = refused(&service, request("clock/wind", true, ("zone", json!("utc"))));
        assert_eq!(unknown.code, ErrorCode::METHOD_NOT_FOUND);
    }
}

#[test]
fn in_a_session_an_extension_that_is_not_declared_or_stateless_only_is_unknown() {
    for (stateless_only, declared, is_known) in
        [(false, true, true), (false, false, false), (true, true, false), (true, false, false)]
    {
        let service = service(stateless_only);
        let mut engine = Engine::new_session();
        let mut receive = |id: u64, method: &str, params: Value| {
            let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            let frame = Frame::parse(message.to_string().as_bytes(), 1).unwrap();
            engine.receive(&service, frame, &Arrival::at(0))
        };
        let handshake = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities(declared),
            "clientInfo": {"name": "c", "version": "1"}});
        let Inbound::Reply(reply) = receive(1, "initialize", handshake) else { panic!("it is answered") };
        let result: Value = serde_json::from_str(reply.result.unwrap().as_str()).unwrap();
        assert_eq!(result["capabilities"]["extensions"][CLOCK].is_object(), !stateless_only, "{result}");
        match receive(2, "clock/now", json!({})) {
            Inbound::Call(_) => assert!(is_known),
            Inbound::Reply(reply) => {
                assert!(!is_known);
                assert_eq!(reply.result.unwrap_err().code, ErrorCode::METHOD_NOT_FOUND);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_result_type_of_an_extension_is_for_clients_that_declared_it() {
    let service = service(false).methods(["own/call"]);
    let finished = |declared: bool, kind: &str| {
        let call = match admitted(&service, request("own/call", declared, ("x", json!(1)))) {
            Ok(Inbound::Call(call)) => call,
            other => panic!("{other:?}"),
        };
        let body: pintle_types::RawObject = json!({"resultType": kind}).to_string().parse().unwrap();
        call.finish(&service, Outcome::Complete(body.into()), 0).error
    };
    assert_eq!(finished(true, "clock/later"), None);
    assert_eq!(finished(false, "clock/later"), Some(ErrorCode::MISSING_CLIENT_CAPABILITY));
    assert_eq!(finished(false, "complete"), None);
}

#[test]
fn a_subscription_to_an_extension_is_granted_to_clients_that_declared_it() {
    let service = service(false);
    let listen =
        |declared: bool, filter: Value| request("subscriptions/listen", declared, ("notifications", filter));
    let ticks = |count: usize| json!({"clockTicks": vec![1; count]});
    let listener = match admitted(&service, listen(true, ticks(2))) {
        Ok(Inbound::Listen(listen)) => listen.listener,
        other => panic!("{other:?}"),
    };
    assert_eq!(listener.grants("clockTicks"), Some(&json!([1, 1])));
    assert_eq!(listener.grants("other"), None);
    let error = refused(&service, listen(false, ticks(2)));
    assert_eq!(error.code, ErrorCode::MISSING_CLIENT_CAPABILITY);
    let error = refused(&service, listen(true, ticks(3)));
    assert_eq!(error.message, "`clockTicks` has more than 2 entries: open several subscriptions");
    // Without anything to subscribe to, the method is unknown.
    let silent = Service::new(Implementation::new("s", "0"), ServerCapabilities::default())
        .extend(Extension::new(CLOCK));
    let error = refused(&silent, listen(true, json!({})));
    assert_eq!(error.code, ErrorCode::METHOD_NOT_FOUND);
}
