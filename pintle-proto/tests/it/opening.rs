//! Scripted servers, opened in every mode: what is sent, in which order, and how it ends.

use pintle_proto::{
    Limits, Revision,
    client::{
        Engine, Ignored, Inbound, Mode, OpenError, Opening, OpeningEvent, OpeningStep, Profile, Verdict,
    },
};
use pintle_types::{Message, Request};
use serde_json::{Value, json};

const R1: &str = "2024-11-05";
const R2: &str = "2025-03-26";
const R3: &str = "2025-06-18";
const R4: &str = "2025-11-25";
const R5: &str = "2026-07-28";

/// What a scripted server does with a request.
enum Does {
    Answers(Value),
    Refuses(Value),
    Garbles,
    Rejects(u16, Option<Value>),
    Keeps,
    Exits,
}
use Does::{Answers, Exits, Garbles, Keeps, Refuses, Rejects};

/// A server is a function of the request and of how many came before it.
type Server = fn(&str, &Value, usize) -> Does;

/// What a conversation came to: the methods that were sent, and `ready <revision>` or the error.
struct Story {
    sent: Vec<String>,
    end: String,
    error: Option<OpenError>,
}

fn open(server: Server, mode: Mode, remembered: Option<&str>, revisions: &[&str]) -> Story {
    let mut profile = Profile::new(
        r#"{"name":"t","version":"1"}"#.parse().unwrap(),
        r#"{"elicitation":{}}"#.parse().unwrap(),
    );
    if !revisions.is_empty() {
        profile.revisions = revisions.iter().map(|name| name.parse().unwrap()).collect();
    }
    let mut engine = Engine::new(profile.clone(), Limits::default());
    let remembered = remembered.map(|text| text.parse::<Verdict>().unwrap());
    let (mut opening, mut step) = Opening::new(profile, mode, remembered);
    let mut sent = Vec::new();
    let mut ids = Vec::new();
    let mut requests = 0;
    loop {
        assert!(sent.len() < 10, "it goes on for ever: {sent:?}");
        step = match step {
            OpeningStep::Send { method, params, revision } => {
                let Request { id, params, .. } = engine.opening_request(method, params);
                assert!(!ids.contains(&id), "an id is used twice");
                ids.push(id.clone());
                let params: Value = params.unwrap().decode().unwrap();
                sent.push(check_request(method, &params, revision));
                let body = match server(method, &params, requests) {
                    Answers(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                    Refuses(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
                    Garbles => {
                        engine.abandon(&id);
                        requests += 1;
                        step = opening.step(OpeningEvent::Garbled);
                        continue;
                    }
                    Rejects(status, error) => {
                        engine.abandon(&id);
                        requests += 1;
                        let error = error.map(|error| serde_json::from_value(error).unwrap());
                        step = opening.step(OpeningEvent::Status { status, error: error.as_ref() });
                        continue;
                    }
                    Keeps => {
                        engine.abandon(&id);
                        requests += 1;
                        step = opening.step(OpeningEvent::Silence);
                        // What comes after all is an answer to nothing.
                        let late = json!({"jsonrpc": "2.0", "id": id, "result": discover_result(&[R5])});
                        assert!(matches!(
                            engine.receive(Message::parse(late.to_string().as_bytes())),
                            Inbound::Ignored(Ignored::LateAnswer(_))
                        ));
                        continue;
                    }
                    Exits => {
                        engine.lose();
                        requests += 1;
                        step = opening.step(OpeningEvent::Closed);
                        continue;
                    }
                };
                requests += 1;
                match engine.receive(Message::parse(body.to_string().as_bytes())) {
                    Inbound::Answer { outcome, .. } => opening.step(OpeningEvent::from(&outcome)),
                    other => panic!("{other:?}"),
                }
            }
            OpeningStep::Notify(notification) => {
                sent.push(notification.method.into());
                opening.step(OpeningEvent::Done)
            }
            OpeningStep::Reopen => {
                sent.push("(start again)".into());
                opening.step(OpeningEvent::Done)
            }
            OpeningStep::TwoEndpoints => {
                sent.push("(two endpoints)".into());
                opening.step(OpeningEvent::Done)
            }
            OpeningStep::Ready(opened) => {
                engine.settle(&opened);
                assert_eq!(engine.revision(), Some(opened.revision));
                assert_eq!(opened.verdict.revision(), opened.revision);
                return Story { sent, end: format!("ready {}", opened.revision), error: None };
            }
            OpeningStep::Failed(error) => return Story { sent, end: error.to_string(), error: Some(error) },
            other => panic!("{other:?}"),
        };
    }
}

/// Every request that leaves is right for its era; its short form is `method revision`.
fn check_request(method: &str, params: &Value, revision: Revision) -> String {
    match method {
        "server/discover" => {
            let meta = &params["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], revision.as_str());
            assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
            assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "t");
            format!("discover {revision}")
        }
        "initialize" => {
            assert_eq!(params["protocolVersion"], revision.as_str());
            assert_ne!(params["protocolVersion"], R5, "the handshake never offers a stateless revision");
            assert_eq!(params["clientInfo"]["name"], "t");
            assert_eq!(params.get("_meta"), None);
            format!("initialize {revision}")
        }
        other => panic!("{other}"),
    }
}

fn discover_result(versions: &[&str]) -> Value {
    json!({
        "resultType": "complete", "supportedVersions": versions, "capabilities": {"tools": {}},
        "ttlMs": 0, "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}
    })
}

fn initialize_result(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}})
}

fn error(code: i32) -> Value {
    json!({"code": code, "message": "no"})
}

fn unsupported(supported: &[&str]) -> Value {
    json!({"code": -32022, "message": "no", "data": {"supported": supported, "requested": R5}})
}

/// Answers the handshake as an old server does, and everything else with `code`.
fn legacy(method: &str, params: &Value, version: &str, speaks: &[&str], code: i32) -> Does {
    let offered = params["protocolVersion"].as_str().unwrap_or_default();
    match method {
        "initialize" if speaks.contains(&offered) => Answers(initialize_result(offered)),
        "initialize" => Answers(initialize_result(version)),
        _ => Refuses(error(code)),
    }
}

fn modern_only(method: &str, _: &Value, _: usize) -> Does {
    match method {
        "server/discover" => Answers(discover_result(&[R5])),
        _ => Refuses(json!({"code": -32602, "message": "no", "data": {"supported": [R5]}})),
    }
}

fn dual(method: &str, params: &Value, before: usize) -> Does {
    match method {
        "server/discover" => Answers(discover_result(&[R5, R4, R3])),
        _ => legacy_r4(method, params, before),
    }
}

fn legacy_r4(method: &str, params: &Value, _: usize) -> Does {
    legacy(method, params, R4, &[R1, R2, R3, R4], -32601)
}

#[test]
fn old_servers_are_found_whatever_they_say_to_the_probe() {
    let servers: [(i32, Server); 8] = [
        (-32601, |m, p, _| legacy(m, p, R4, &[R4], -32601)),
        (-32602, |m, p, _| legacy(m, p, R4, &[R4], -32602)),
        (-32600, |m, p, _| legacy(m, p, R4, &[R4], -32600)),
        (-32000, |m, p, _| legacy(m, p, R4, &[R4], -32000)),
        (-32001, |m, p, _| legacy(m, p, R4, &[R4], -32001)),
        (-32004, |m, p, _| legacy(m, p, R4, &[R4], -32004)),
        (-32603, |m, p, _| legacy(m, p, R4, &[R4], -32603)),
        (0, |m, p, _| legacy(m, p, R4, &[R4], 0)),
    ];
    for (code, server) in servers {
        let story = open(server, Mode::Auto, None, &[]);
        assert_eq!(story.end, format!("ready {R4}"), "{code}");
        assert_eq!(
            story.sent,
            [&format!("discover {R5}"), &format!("initialize {R4}"), "notifications/initialized"],
            "{code}"
        );

        let story = open(server, Mode::Legacy, None, &[]);
        assert_eq!(story.sent, [&format!("initialize {R4}"), "notifications/initialized"], "{code}");

        let story = open(server, Mode::Modern, None, &[]);
        assert_eq!(story.sent, [format!("discover {R5}")], "{code}");
        assert!(story.end.contains("allow them with the mode `auto`"), "{code}: {}", story.end);
    }
}

#[test]
fn every_old_revision_is_agreed_on() {
    let servers: [(&str, Server); 4] = [
        (R1, |m, p, _| legacy(m, p, R1, &[R1], -32601)),
        (R2, |m, p, _| legacy(m, p, R2, &[R2], -32601)),
        (R3, |m, p, _| legacy(m, p, R3, &[R3], -32601)),
        (R4, |m, p, _| legacy(m, p, R4, &[R4], -32601)),
    ];
    for (revision, server) in servers {
        for mode in [Mode::Auto, Mode::Legacy] {
            let story = open(server, mode, None, &[]);
            assert_eq!(story.end, format!("ready {revision}"));
        }
        // A client that speaks just that one offers just that one.
        let story = open(server, Mode::Auto, None, &[revision]);
        assert_eq!(story.sent, [&format!("initialize {revision}"), "notifications/initialized"]);
    }
}

#[test]
fn a_modern_server_is_never_sent_a_handshake() {
    for mode in [Mode::Auto, Mode::Modern] {
        let story = open(modern_only, mode, None, &[]);
        assert_eq!(story.end, format!("ready {R5}"));
        assert_eq!(story.sent, [format!("discover {R5}")]);
    }
    let story = open(modern_only, Mode::Legacy, None, &[]);
    assert_eq!(story.sent, [format!("initialize {R4}")]);
    assert_eq!(
        story.end,
        "no revision in common: this client speaks `2025-11-25`, `2025-06-18`, `2025-03-26`, `2024-11-05`, the server \
         speaks `2026-07-28`: allow more revisions, or update the older side"
    );
}

#[test]
fn a_server_of_both_eras_is_opened_in_the_newer_that_is_allowed() {
    for (mode, end) in [(Mode::Auto, R5), (Mode::Modern, R5), (Mode::Legacy, R4)] {
        assert_eq!(open(dual, mode, None, &[]).end, format!("ready {end}"));
    }
    assert_eq!(open(dual, Mode::Auto, None, &[R3, R2]).end, format!("ready {R3}"));
}

#[test]
fn a_silent_server_is_asked_in_the_old_way() {
    let silent_to_probe: Server = |m, p, n| if m == "initialize" { legacy_r4(m, p, n) } else { Keeps };
    let story = open(silent_to_probe, Mode::Auto, None, &[]);
    assert_eq!(story.end, format!("ready {R4}"));
    assert_eq!(
        open(silent_to_probe, Mode::Modern, None, &[]).error,
        Some(OpenError::Silent { method: "server/discover" })
    );
    let silent: Server = |_, _, _| Keeps;
    for (mode, method) in
        [(Mode::Auto, "initialize"), (Mode::Legacy, "initialize"), (Mode::Modern, "server/discover")]
    {
        assert_eq!(open(silent, mode, None, &[]).error, Some(OpenError::Silent { method }));
    }
}

#[test]
fn a_server_that_the_probe_kills_is_started_again_once() {
    let exits_on_probe: Server = |m, p, n| if m == "initialize" { legacy_r4(m, p, n) } else { Exits };
    let story = open(exits_on_probe, Mode::Auto, None, &[]);
    assert_eq!(
        story.sent,
        [
            &format!("discover {R5}"),
            "(start again)",
            &format!("initialize {R4}"),
            "notifications/initialized"
        ]
    );
    assert_eq!(
        open(exits_on_probe, Mode::Modern, None, &[]).error,
        Some(OpenError::Exited { method: "server/discover" })
    );
    // Remembered, it is not killed in the first place.
    let story = open(exits_on_probe, Mode::Auto, Some(R4), &[]);
    assert_eq!(story.sent, [&format!("initialize {R4}"), "notifications/initialized"]);

    let exits: Server = |_, _, _| Exits;
    let story = open(exits, Mode::Auto, None, &[]);
    assert_eq!(story.error, Some(OpenError::Exited { method: "initialize" }));
    assert_eq!(story.sent, [&format!("discover {R5}"), "(start again)", &format!("initialize {R4}")]);
}

#[test]
fn a_server_that_the_probe_kills_with_the_next_line_is_started_again_once() {
    // The first handshake reaches a process that the probe has broken, the second one a new process.
    let exits_on_next_line: Server = |m, p, n| match n {
        0 => Keeps,
        1 => Exits,
        _ => legacy_r4(m, p, n),
    };
    let story = open(exits_on_next_line, Mode::Auto, None, &[]);
    assert_eq!(
        story.sent,
        [
            &format!("discover {R5}"),
            &format!("initialize {R4}"),
            "(start again)",
            &format!("initialize {R4}"),
            "notifications/initialized"
        ]
    );
    assert_eq!(story.end, format!("ready {R4}"));

    let exits_on_handshake: Server = |_, _, n| if n == 0 { Keeps } else { Exits };
    let story = open(exits_on_handshake, Mode::Auto, None, &[]);
    assert_eq!(story.error, Some(OpenError::Exited { method: "initialize" }));
    assert_eq!(
        story.sent,
        [
            &format!("discover {R5}"),
            &format!("initialize {R4}"),
            "(start again)",
            &format!("initialize {R4}")
        ]
    );

    // Whoever answered the probe did not die of it, and who was never sent one neither.
    let answers: Server = |_, _, n| if n == 0 { Refuses(error(-32601)) } else { Exits };
    let garbles: Server = |_, _, n| if n == 0 { Garbles } else { Exits };
    for server in [answers, garbles] {
        let story = open(server, Mode::Auto, None, &[]);
        assert_eq!(story.error, Some(OpenError::Exited { method: "initialize" }));
        assert_eq!(story.sent, [format!("discover {R5}"), format!("initialize {R4}")]);
    }
    let exits: Server = |_, _, _| Exits;
    for (mode, remembered) in [(Mode::Legacy, None), (Mode::Auto, Some(R4))] {
        assert_eq!(open(exits, mode, remembered, &[]).sent, [format!("initialize {R4}")]);
    }
}

#[test]
fn a_refused_version_is_tried_again_once_even_if_it_is_the_same() {
    let refuses_first: Server =
        |m, p, n| if n == 0 { Refuses(unsupported(&[R5])) } else { modern_only(m, p, n) };
    for mode in [Mode::Auto, Mode::Modern] {
        let story = open(refuses_first, mode, None, &[]);
        assert_eq!(story.end, format!("ready {R5}"));
        assert_eq!(story.sent, [format!("discover {R5}"), format!("discover {R5}")]);
    }
    let refuses_always: Server = |_, _, _| Refuses(unsupported(&[R5]));
    let story = open(refuses_always, Mode::Auto, None, &[]);
    assert_eq!(story.sent.len(), 2);
    assert!(story.end.contains("lists revision `2026-07-28` as supported but refuses it"), "{}", story.end);

    // What has shown its era is not started again for the sake of the other.
    let dies: Server = |_, _, n| if n == 0 { Refuses(unsupported(&[R5])) } else { Exits };
    let story = open(dies, Mode::Auto, None, &[]);
    assert_eq!(story.sent, [format!("discover {R5}"), format!("discover {R5}")]);
    assert_eq!(story.error, Some(OpenError::Exited { method: "server/discover" }));

    // A server of the new era that has no `server/discover` is used without its description.
    let no_discover: Server =
        |_, _, n| if n == 0 { Refuses(unsupported(&[R5])) } else { Refuses(error(-32601)) };
    assert_eq!(open(no_discover, Mode::Auto, None, &[]).end, format!("ready {R5}"));
}

#[test]
fn the_three_modern_codes_never_lead_to_a_handshake() {
    let servers: [(i32, Server); 3] = [
        (-32020, |_, _, _| Refuses(error(-32020))),
        (-32021, |_, _, _| Refuses(error(-32021))),
        (-32022, |_, _, _| Refuses(error(-32022))),
    ];
    for (code, server) in servers {
        let story = open(server, Mode::Auto, None, &[]);
        assert_eq!(story.sent, [format!("discover {R5}")], "{code}");
        assert!(story.end.starts_with("the server refused `server/discover`"), "{}", story.end);
    }
    let unknown: Server = |_, _, _| Refuses(unsupported(&["2031-01-01"]));
    let story = open(unknown, Mode::Auto, None, &[]);
    assert_eq!(story.sent.len(), 1);
    assert!(story.end.contains("the server speaks `2031-01-01`"), "{}", story.end);
}

#[test]
fn a_list_of_old_revisions_leads_to_a_handshake_with_one_of_them() {
    let by_error: Server =
        |m, p, n| if n == 0 { Refuses(unsupported(&[R2, R3])) } else { legacy(m, p, R3, &[R3], -32601) };
    let by_result: Server =
        |m, p, n| if n == 0 { Answers(discover_result(&[R2, R3])) } else { legacy(m, p, R3, &[R3], -32601) };
    for server in [by_error, by_result] {
        let story = open(server, Mode::Auto, None, &[]);
        assert_eq!(story.end, format!("ready {R3}"));
        assert_eq!(story.sent[1], format!("initialize {R3}"));
        let story = open(server, Mode::Modern, None, &[]);
        assert!(matches!(story.error, Some(OpenError::NothingInCommon { .. })), "{}", story.end);
    }
}

#[test]
fn a_handshake_that_fails_says_what_both_sides_speak() {
    let future: Server = |m, p, _| legacy(m, p, "2019-01-01", &[], -32601);
    let story = open(future, Mode::Auto, None, &[R5, R3]);
    assert!(
        story.end.contains("this client speaks `2026-07-28`, `2025-06-18`, the server speaks `2019-01-01`"),
        "{}",
        story.end
    );
    let stateless: Server = |m, p, _| legacy(m, p, R5, &[], -32601);
    assert!(open(stateless, Mode::Auto, None, &[]).end.contains("which has no handshake"));
    let lying: Server = |m, _, _| if m == "initialize" { Answers(json!({})) } else { Refuses(error(0)) };
    assert!(open(lying, Mode::Auto, None, &[]).end.contains("`protocolVersion` is missing"));
}

#[test]
fn a_handshake_refused_with_a_list_is_offered_from_the_list_once() {
    let by_error: Server = |m, p, n| match (m, p["protocolVersion"].as_str()) {
        ("initialize", Some(R1)) => legacy(m, p, R1, &[R1], 0),
        ("initialize", offered) => Refuses(
            json!({"code": -32602, "message": "Unsupported protocol version", "data": {"supported": [R1], "requested": offered}}),
        ),
        _ => legacy_r4(m, p, n),
    };
    let story = open(by_error, Mode::Legacy, None, &[]);
    assert_eq!(
        story.sent,
        [&format!("initialize {R4}"), &format!("initialize {R1}"), "notifications/initialized"]
    );
    assert!(open(by_error, Mode::Legacy, None, &[R4]).end.contains("the server speaks `2024-11-05`"));
    let never: Server =
        |_, _, _| Refuses(json!({"code": -32602, "message": "no", "data": {"supported": [R4]}}));
    let story = open(never, Mode::Legacy, None, &[]);
    assert_eq!(story.sent.len(), 1);
    assert_eq!(story.end, "the server refused `initialize`: no (-32602)");
}

#[test]
fn a_server_that_answers_everything_is_not_taken_for_modern() {
    let yes: Server = |m, p, n| if m == "initialize" { legacy_r4(m, p, n) } else { Answers(json!({})) };
    assert_eq!(open(yes, Mode::Auto, None, &[]).end, format!("ready {R4}"));
    let almost: Server = |_, _, _| Answers(json!({"resultType": "complete"}));
    for mode in [Mode::Auto, Mode::Modern] {
        let story = open(almost, mode, None, &[]);
        assert_eq!(story.sent.len(), 1);
        assert!(story.end.contains("has no `supportedVersions`"), "{}", story.end);
    }
}

#[test]
fn memory_is_a_hint() {
    // Right: no probe, or just the probe.
    assert_eq!(open(legacy_r4, Mode::Auto, Some(R3), &[]).sent.len(), 2);
    assert_eq!(open(dual, Mode::Auto, Some(R5), &[]).sent.len(), 1);
    // Out of date in either direction.
    assert_eq!(open(modern_only, Mode::Auto, Some(R4), &[]).end, format!("ready {R5}"));
    assert_eq!(open(legacy_r4, Mode::Auto, Some(R5), &[]).end, format!("ready {R4}"));
    // Out of date, and the server gives no reason.
    let terse: Server =
        |m, _, _| if m == "initialize" { Refuses(error(-32601)) } else { Answers(discover_result(&[R5])) };
    assert_eq!(open(terse, Mode::Auto, Some(R4), &[]).end, format!("ready {R5}"));
    let nothing: Server = |_, _, _| Refuses(error(-32601));
    let story = open(nothing, Mode::Auto, Some(R4), &[]);
    assert_eq!(story.sent, [format!("initialize {R4}"), format!("discover {R5}")]);
    assert_eq!(story.end, "the server refused `initialize`: no (-32601)");
    // The mode is stronger.
    assert_eq!(open(dual, Mode::Modern, Some(R4), &[]).end, format!("ready {R5}"));
}

#[test]
fn over_http_the_oldest_transport_is_tried_last() {
    // What neither knows the question nor the handshake until it is asked at its other endpoint.
    let two: Server = |m, p, n| if n < 2 { Rejects(405, None) } else { legacy(m, p, R1, &[R1], 0) };
    let wordy: Server =
        |m, p, n| if n < 2 { Rejects(400, Some(error(-32000))) } else { legacy(m, p, R1, &[R1], 0) };
    for server in [two, wordy] {
        let story = open(server, Mode::Auto, None, &[]);
        assert_eq!(story.end, format!("ready {R1}"));
        assert_eq!(story.sent[2], "(two endpoints)");
    }
    let never: Server = |_, _, _| Rejects(404, None);
    let story = open(never, Mode::Auto, None, &[]);
    assert_eq!(story.sent.len(), 4);
    assert!(story.end.contains("HTTP status 404"), "{}", story.end);
    assert_eq!(open(never, Mode::Auto, None, &[R4, R3]).sent.len(), 1, "not for a client without it");
}

#[test]
fn over_http_the_status_does_not_hide_the_error() {
    let stateless: Server = |m, p, n| match n {
        0 => Rejects(400, Some(unsupported(&[R5]))),
        _ => modern_only(m, p, n),
    };
    assert_eq!(open(stateless, Mode::Auto, None, &[]).sent.len(), 2);
    // A server without the old era tells a handshake so.
    let header: Server =
        |m, p, n| if m == "initialize" { Rejects(400, Some(error(-32020))) } else { modern_only(m, p, n) };
    assert_eq!(open(header, Mode::Auto, Some(R4), &[]).end, format!("ready {R5}"));
    let story = open(header, Mode::Legacy, None, &[]);
    assert_eq!(story.sent, [format!("initialize {R4}")]);
    assert_eq!(story.end, "the server refused `initialize`: no (-32020)");
    // An old one does not know the question.
    let old: Server = |m, p, n| match m {
        "initialize" => legacy_r4(m, p, n),
        _ => Rejects(400, Some(error(-32000))),
    };
    assert_eq!(open(old, Mode::Auto, None, &[]).end, format!("ready {R4}"));
}

#[test]
fn garbage_is_taken_for_an_old_server_that_prints() {
    let noise: Server = |m, p, n| if m == "initialize" { legacy_r4(m, p, n) } else { Garbles };
    assert_eq!(open(noise, Mode::Auto, None, &[]).end, format!("ready {R4}"));
    let only: Server = |_, _, _| Garbles;
    assert!(open(only, Mode::Auto, None, &[]).end.contains("is not a JSON-RPC message"));
}

#[test]
fn settings_that_leave_nothing_to_try_are_said_at_once() {
    for (mode, revisions) in [(Mode::Modern, [R4]), (Mode::Legacy, [R5])] {
        let story = open(dual, mode, None, &revisions);
        assert!(story.sent.is_empty());
        assert_eq!(story.error, Some(OpenError::NothingToOffer));
    }
}

#[test]
fn what_the_server_says_of_itself_is_kept() {
    let profile = || Profile::new("{}".parse().unwrap(), "{}".parse().unwrap());
    let (mut opening, _) = Opening::new(profile(), Mode::Modern, None);
    let mut result = discover_result(&[R5]);
    result["instructions"] = json!("Be kind.");
    let OpeningStep::Ready(opened) =
        opening.step(OpeningEvent::Answer(Ok(&result.to_string().parse().unwrap())))
    else {
        panic!()
    };
    assert_eq!(opened.info.as_ref().unwrap().get("name"), Some("\"s\""));
    assert_eq!(opened.capabilities.as_ref().unwrap().as_str(), r#"{"tools":{}}"#);
    assert_eq!(opened.instructions.as_deref(), Some("Be kind."));
    assert_eq!(opened.verdict.to_string(), R5);
    // It is open; there is nothing more to tell it.
    assert!(matches!(opening.step(OpeningEvent::Closed), OpeningStep::Failed(OpenError::OutOfStep)));

    let (mut opening, _) = Opening::new(profile(), Mode::Legacy, None);
    let mut result = initialize_result(R3);
    result["instructions"] = json!("Be kind.");
    // Not an extension of that revision, whatever the server thinks.
    result["capabilities"]["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    opening.step(OpeningEvent::Answer(Ok(&result.to_string().parse().unwrap())));
    let OpeningStep::Ready(opened) = opening.step(OpeningEvent::Done) else { panic!() };
    assert_eq!(opened.info.as_ref().unwrap().get("name"), Some("\"s\""));
    let capabilities = opened.capabilities.as_ref().unwrap();
    assert_eq!(capabilities.get("tools"), Some("{}"));
    assert!(!capabilities.as_str().contains("tasks"), "{capabilities:?}");
    assert_eq!(opened.instructions.as_deref(), Some("Be kind."));
}
