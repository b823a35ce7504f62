//! Large and many: each of these takes minutes if anything costs the square of its size, and no clock is looked at.

use pintle_proto::server::{Arrival, Call, Change, Engine, Inbound, Listener, Outcome, Service};
use pintle_types::{Frame, RawObject, RequestId};
use serde_json::{Value, json};

use crate::stream::service;

const MIB: usize = 1 << 20;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;

fn receive(engine: &mut Engine, service: &Service, text: &str) -> Inbound {
    let frame = Frame::parse(text.as_bytes(), service.bounds().batch).expect("a frame");
    engine.receive(service, frame, &Arrival::at(0))
}

fn call(engine: &mut Engine, service: &Service, text: &str) -> Call {
    match receive(engine, service, text) {
        Inbound::Call(call) => call,
        other => panic!("not admitted: {other:?}"),
    }
}

fn open(service: &Service, revision: &str) -> Engine {
    let mut engine = Engine::new();
    let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "c", "version": "0" } });
    let opening = json!({ "jsonrpc": "2.0", "id": "open", "method": "initialize", "params": params });
    assert!(matches!(receive(&mut engine, service, &opening.to_string()), Inbound::Reply(_)));
    engine
}

/// Sends the arguments, has them back as a result, and gives the answer's length.
fn there_and_back(engine: &mut Engine, service: &Service, meta: &str, arguments: &str) -> usize {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"big",{meta}"arguments":{arguments}}}}}"#
    );
    let call = call(engine, service, &text);
    let arguments = call.params().get("arguments").expect("arguments");
    let result: RawObject =
        format!(r#"{{"content":[],"structuredContent":{arguments}}}"#).parse().expect("a result");
    let bytes = engine.finish(service, &call, Outcome::Complete(result.into()), 0).expect("an answer");
    assert_eq!(engine.in_flight(), 0);
    bytes.len()
}

/// Arguments of about that many bytes, in shapes that have hurt others.
fn shapes(bytes: usize) -> [(&'static str, String); 5] {
    let members: Vec<_> = (0..bytes / 15 + 1).map(|n| format!("\"m{n:09}\":1")).collect();
    [
        ("a string", format!(r#"{{"text":"{}"}}"#, "x".repeat(bytes))),
        ("escapes", format!(r#"{{"text":"{}"}}"#, r"\n".repeat(bytes / 2))),
        ("members", format!("{{{}}}", members.join(","))),
        ("deep arrays", format!(r#"{{"deep":{}{}}}"#, "[".repeat(bytes / 2), "]".repeat(bytes / 2))),
        ("white space", format!(r#"{{"a":[1,{}2]}}"#, " \n".repeat(bytes / 2))),
    ]
}

#[test]
fn large_messages_of_any_shape_come_back() {
    let service = service("");
    for bytes in [MIB, 16 * MIB] {
        for (shape, arguments) in shapes(bytes) {
            let mut engine = Engine::new();
            let back = there_and_back(&mut engine, &service, &format!("{META},"), &arguments);
            assert!(back > bytes - 16, "{shape}: {back}");
            // A session pays for a tree, where its revision has other words; what is too deep for one goes as it is.
            if bytes > MIB && shape != "a string" {
                continue;
            }
            let mut engine = open(&service, "2025-11-25");
            let back = there_and_back(&mut engine, &service, "", &arguments);
            assert!(back > bytes / 2 || shape == "white space", "{shape}: {back}");
        }
    }
}

#[test]
fn large_messages_that_are_none_are_refused() {
    for bytes in [MIB / 4, 4 * MIB] {
        for text in [
            "[".repeat(bytes),
            "{\"a\":".repeat(bytes / 5),
            format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}", "x".repeat(bytes)),
            format!("[{}]", "1,".repeat(bytes / 2)),
            format!("[{}1]", "1,".repeat(bytes / 2)),
            format!("{{{}}}", vec!["\"id\":1"; bytes / 7].join(",")),
        ] {
            let refused = Frame::parse(text.as_bytes(), 100).expect_err("not a frame");
            assert!(refused.error.message.len() < 200, "{}", refused.error.message);
        }
    }
}

#[test]
fn a_large_call_asks_and_is_answered() {
    let service = service("");
    let mut engine = Engine::new();
    let question: pintle_types::schema::ElicitParams = serde_json::from_value(
        json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } }),
    )
    .unwrap();
    let question = pintle_proto::inputs::Question::Elicit(Box::new(question));
    let text = "x".repeat(MIB);
    let request = |more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"big",{META}{more},"arguments":{{"text":"{text}"}}}}}}"#
        )
    };
    let first = call(&mut engine, &service, &request(""));
    first.ask(&service, "q", &question).unwrap();
    let bytes = engine.finish(&service, &first, Outcome::InputRequired, 0).unwrap();
    // The params are bound to the state, not carried in it.
    assert!(bytes.len() < 2000, "{}", bytes.len());
    let answer: Value = serde_json::from_slice(&bytes).unwrap();
    let state = &answer["result"]["requestState"];
    let unasked: Vec<_> = (0..50_000).map(|n| format!("\"u{n}\":{{}}")).collect();
    let more = format!(
        r#","requestState":{state},"inputResponses":{{{},"q":{{"action":"accept"}}}}"#,
        unasked.join(",")
    );
    let again = call(&mut engine, &service, &request(&more));
    assert!(matches!(again.ask(&service, "q", &question), Ok(pintle_proto::inputs::Ask::Answered(_))));
}

#[test]
fn ten_thousand_calls_are_answered_in_any_order() {
    const MANY: usize = 10_000;
    let service = service("");
    let mut engine = open(&service, "2025-11-25");
    let mut calls: Vec<Call> = (0..MANY)
        .map(|n| {
            let id = if n % 2 == 0 { json!(n) } else { json!(n.to_string()) };
            let meta = if n % 3 == 0 { META } else { "\"x\":1" };
            call(
                &mut engine,
                &service,
                &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{meta}}}}}"#),
            )
        })
        .collect();
    assert_eq!(engine.in_flight(), MANY);
    shuffle(&mut calls);
    let (dropped, answered) = calls.split_at(MANY / 3);
    for call in dropped {
        let id = serde_json::to_string(call.id()).unwrap();
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        );
        assert!(
            matches!(receive(&mut engine, &service, &text), Inbound::Cancel(ticket) if Some(ticket) == call.ticket())
        );
    }
    for call in answered {
        let bytes = engine.finish(&service, call, Outcome::Complete(RawObject::empty().into()), 0).unwrap();
        let answer: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(serde_json::from_value::<RequestId>(answer["id"].clone()).unwrap(), *call.id());
    }
    for call in dropped {
        assert_eq!(engine.finish(&service, call, Outcome::Complete(RawObject::empty().into()), 0), None);
    }
    assert_eq!(engine.in_flight(), 0);
}

#[test]
fn a_thousand_subscriptions_are_notified_each_of_its_own_change() {
    const MANY: usize = 1000;
    let service = service("");
    let mut engine = Engine::new();
    let mut listeners: Vec<Listener> =
        (0..MANY).map(|n| listen(&mut engine, &service, n, &[format!("note://{n}/x")])).collect();
    let all: Vec<_> = (0..MANY).map(|n| format!("note://{n}")).collect();
    listeners.push(listen(&mut engine, &service, MANY, &all));
    for n in 0..MANY {
        let change = Change::Resource(format!("note://{n}/x/y").into());
        let received =
            listeners.iter_mut().filter_map(|listener| listener.note(&change).then_some(())).count();
        assert_eq!(received, 2, "its own and the one that watches all");
    }
    let notified: Vec<_> =
        listeners.iter_mut().map(|listener| std::iter::from_fn(|| listener.next_notice()).count()).collect();
    assert!(notified.iter().take(MANY).all(|notified| *notified == 1));
    assert_eq!(notified[MANY], MANY);
}

#[test]
fn a_long_address_is_found_among_the_watched() {
    let service = service("session-bytes=4194304");
    let mut engine = Engine::new();
    let (few, slashes) = ("/".repeat(60), "/".repeat(MIB));
    let watched = [few.clone() + "a", "a:".to_owned(), "note://".to_owned() + &few];
    let mut listener = listen(&mut engine, &service, 1, &watched);
    assert!(!listener.note(&Change::Resource((slashes.clone() + "b").into())));
    assert!(!listener.note(&Change::Resource(slashes.clone().into())));
    assert!(listener.note(&Change::Resource((few + "a/b" + &slashes).into())));
    assert!(listener.note(&Change::Resource(("a:".to_owned() + &slashes).into())));
}

#[test]
fn a_batch_at_its_limit_is_answered_by_one_array() {
    const MANY: usize = 10_000;
    let service = service("batch=10000");
    let mut engine = open(&service, "2025-03-26");
    let items: Vec<_> = (0..MANY)
        .map(|n| match n % 4 {
            0 => format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"ping"}}"#),
            1 => n.to_string(),
            _ => format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/list"}}"#),
        })
        .collect();
    let Inbound::Many(decisions) = receive(&mut engine, &service, &format!("[{}]", items.join(","))) else {
        panic!("not a batch")
    };
    let mut calls: Vec<_> = decisions
        .into_iter()
        .map(|decision| match decision {
            Inbound::Call(call) => call,
            other => panic!("not a call: {other:?}"),
        })
        .collect();
    shuffle(&mut calls);
    let mut arrays = Vec::new();
    for call in &calls {
        arrays.extend(engine.finish(&service, call, Outcome::Complete(RawObject::empty().into()), 0));
    }
    assert_eq!(arrays.len(), 1);
    assert_eq!(serde_json::from_slice::<Vec<Value>>(&arrays[0]).unwrap().len(), MANY);
}

fn listen(engine: &mut Engine, service: &Service, id: usize, watched: &[String]) -> Listener {
    let wanted = json!({ "resourceSubscriptions": watched });
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{{META},"notifications":{wanted}}}}}"#
    );
    match receive(engine, service, &text) {
        Inbound::Listen(listen) => listen.listener,
        other => panic!("not granted: {other:?}"),
    }
}

/// The same disorder each time.
fn shuffle<T>(items: &mut [T]) {
    let mut state = 7_u64;
    for at in (1..items.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(at, (state >> 33) as usize % (at + 1));
    }
}

#[test]
fn a_small_answer_is_made_to_measure() {
    let service = service("");
    for id in ["0", "7", "-10", "99", "100", "9223372036854775807", r#""a""#] {
        let mut engine = open(&service, "2025-11-25");
        for meta in ["", META] {
            let comma = if meta.is_empty() { "" } else { "," };
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x"{comma}{meta}}}}}"#
            );
            let call = call(&mut engine, &service, &text);
            let result: RawObject = r#"{"content":[]}"#.parse().expect("a result");
            let bytes =
                engine.finish(&service, &call, Outcome::Complete(result.into()), 0).expect("an answer");
            assert_eq!(bytes.capacity(), bytes.len(), "{}", String::from_utf8_lossy(&bytes));
        }
    }
}
