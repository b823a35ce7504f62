//! What a call offers its handler, in a session and without one.

use std::sync::Arc;

use pintle_proto::{
    Limits,
    inputs::{Ask, Kind, Once, Question},
    server::{Arrival, Call, Engine, Inbound, Outcome, Service},
};
use pintle_types::{
    Frame, Message, RawObject,
    schema::{Implementation, ServerCapabilities, ToolsCapability},
};
use serde_json::{Value, json, value::to_raw_value};

use crate::seal::Checksum;

fn service() -> Service {
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools = Some(ToolsCapability::default());
    Service::new(Implementation::new("s", "0"), capabilities).seal(Arc::new(Checksum))
}

fn in_session(service: &Service, version: &str, params: &Value) -> Call {
    in_session_of(service, version, &json!({"roots": {}}), params)
}

fn in_session_of(service: &Service, version: &str, capabilities: &Value, params: &Value) -> Call {
    let mut engine = Engine::new_session();
    let mut receive = |id: u64, method: &str, params: &Value| {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        engine.receive(service, Frame::parse(message.to_string().as_bytes(), 1).unwrap(), &Arrival::at(0))
    };
    receive(
        1,
        "initialize",
        &json!({"protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "c", "version": "1"}}),
    );
    match receive(2, "tools/call", params) {
        Inbound::Call(call) => call,
        other => panic!("{other:?}"),
    }
}

fn stateless(service: &Service, more: &Value) -> Call {
    let mut params = json!({"name": "t", "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"roots": {}}}});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let Message::Request(request) = Message::parse(message.to_string().as_bytes()).unwrap() else {
        panic!("it is a request")
    };
    match service.admit(request, &Arrival::at(0)) {
        Ok(Inbound::Call(call)) => call,
        other => panic!("{other:?}"),
    }
}

#[test]
fn in_a_session_an_answer_can_be_asked_for_again() {
    let service = service();
    let call = in_session(&service, "2025-11-25", &json!({"name": "t"}));
    assert!(call.facts().asks_by_request && call.can_ask(&Question::Roots));
    let roots: RawObject = r#"{"roots":[]}"#.parse().unwrap();
    let ask = || call.ask(&service, "roots", &Question::Roots).unwrap();
    assert!(matches!(ask(), Ask::Send(_)));
    call.settle("roots", Kind::Roots, &roots).unwrap();
    assert!(matches!(ask(), Ask::Answered(_)));
    call.forget_answer("roots");
    assert!(matches!(ask(), Ask::Send(_)));
}

#[test]
fn without_a_session_an_answer_stays_with_its_call() {
    let service = service();
    let call = stateless(&service, &json!({"inputResponses": {"roots": {"roots": []}}}));
    assert!(!call.facts().asks_by_request);
    let ask = || call.ask(&service, "roots", &Question::Roots).unwrap();
    assert!(matches!(ask(), Ask::Answered(_)));
    call.forget_answer("roots");
    assert!(matches!(ask(), Ask::Answered(_)));
    let sample =
        Question::Sample(Box::new(serde_json::from_value(json!({"messages": [], "maxTokens": 1})).unwrap()));
    assert!(!call.can_ask(&sample), "it was not declared");
}

#[test]
fn sampling_with_context_needs_its_capability_in_the_revisions_that_have_one() {
    let service = service();
    let sample = |context: Option<&str>| {
        let mut params = json!({"messages": [], "maxTokens": 1});
        context.into_iter().for_each(|context| params["includeContext"] = context.into());
        Question::Sample(Box::new(serde_json::from_value(params).unwrap()))
    };
    for (version, sampling, expected) in [
        ("2025-11-25", json!({}), [true, true, false]),
        ("2025-11-25", json!({"context": {}}), [true, true, true]),
        ("2025-06-18", json!({}), [true, true, true]),
    ] {
        let call = in_session_of(&service, version, &json!({"sampling": sampling}), &json!({"name": "t"}));
        let asked = [None, Some("none"), Some("thisServer")].map(|context| call.can_ask(&sample(context)));
        assert_eq!(asked, expected, "{version} {sampling}");
    }
}

#[test]
fn progress_that_is_no_number_is_not_sent() {
    let service = service();
    let call = in_session(&service, "2025-11-25", &json!({"name": "t", "_meta": {"progressToken": 1}}));
    assert_eq!(call.progress(f64::NAN, None, None), None);
    assert_eq!(call.progress(1.0, Some(f64::INFINITY), None), None);
    assert!(call.progress(1.0, Some(2.0), None).is_some());
    assert_eq!(call.progress(1.0, Some(2.0), None), None, "it did not increase");
}

#[test]
fn completion_of_an_elicitation_is_notified_in_the_revision_that_has_it() {
    let service = service();
    let call = in_session(&service, "2025-11-25", &json!({"name": "t", "_meta": {"progressToken": 1}}));
    assert!(call.wants_progress() && call.has_elicitation_ids());
    let notice: Value = serde_json::from_slice(&call.elicitation_complete("e1").unwrap()).unwrap();
    assert_eq!(notice["method"], "notifications/elicitation/complete");
    assert_eq!(notice["params"]["elicitationId"], "e1");
    call.close();
    assert_eq!(call.elicitation_complete("e1"), None);
    let older = in_session(&service, "2025-06-18", &json!({"name": "t"}));
    assert!(!older.wants_progress() && !older.has_elicitation_ids());
    assert_eq!(older.elicitation_complete("e1"), None);
}

#[test]
fn what_a_lost_round_has_done_is_known_to_the_next_use_of_its_state() {
    let service = service();
    let first = stateless(&service, &json!({}));
    assert_eq!((first.state_use(), first.progress_so_far()), (None, None));
    first.ask(&service, "roots", &Question::Roots).unwrap();
    let reply = first.finish(&service, Outcome::InputRequired, 0).reply(first.id());
    let reply: Value = serde_json::from_str(&reply.body).unwrap();
    let state = json!({"requestState": reply["requestState"]});

    let lost = stateless(&service, &state);
    assert_eq!(lost.state_use().unwrap().state.as_ref(), reply["requestState"].as_str().unwrap());
    assert_eq!(lost.call_key(|| "key".to_owned()), "key");
    assert!(matches!(lost.begin_once("pay"), Once::Act));
    assert!(lost.is_acting());
    lost.remember("pay", to_raw_value(&1).unwrap());
    assert!(!lost.is_acting());
    assert!(matches!(lost.begin_once("mail"), Once::Act));
    lost.lose("mail");
    assert!(!lost.is_acting() && matches!(lost.begin_once("mail"), Once::Unknown));
    let progress = lost.progress_so_far().unwrap();

    let again = stateless(&service, &state);
    assert!(!again.resume(b"not a state"));
    assert!(again.resume(&progress));
    assert_eq!(again.call_key(|| "another".to_owned()), "key");
    assert!(matches!(again.begin_once("pay"), Once::Done(_)));
    assert!(matches!(again.begin_once("mail"), Once::Unknown));
}

#[test]
fn a_state_may_be_as_long_as_the_limit() {
    let state = |limit: Option<usize>| {
        let mut limits = Limits::default();
        limit.into_iter().for_each(|limit| limits.state_bytes = limit);
        let service = service().limits(limits);
        let call = stateless(&service, &json!({}));
        call.ask(&service, "roots", &Question::Roots).unwrap();
        let reply = call.finish(&service, Outcome::InputRequired, 0).bytes;
        let reply: Value = serde_json::from_slice(&reply).unwrap();
        reply["result"]["requestState"].as_str().map(str::len)
    };
    let length = state(None).unwrap();
    assert_eq!(state(Some(length)), Some(length));
    assert_eq!(state(Some(length - 1)), None);
}
