//! Clients that can answer less than everything, users who refuse, and connections that break meanwhile.

use pintle_proto::client::{Extras, Mode};
use pintle_types::RpcError;
use serde_json::{Value, json};

use super::{
    ALL, R1, R2, R3, R4, R5, SESSIONS,
    client::{Client, Failure},
    engines::Pair,
    server::Server,
};

fn open(capabilities: &str, revision: &str) -> Pair {
    let mut pair = Pair::new(Client::able(capabilities, Mode::Auto, &[revision]), Server::new(ALL));
    assert_eq!(pair.open().as_deref(), Ok(revision));
    pair
}

/// What each revision makes of what a client declares: may a form, a page, a sample, the roots be asked for?
#[test]
fn nobody_is_asked_what_they_did_not_declare() {
    const TOOLS: [&str; 4] = ["greet", "pay", "think", "where"];
    #[rustfmt::skip]
    let table: [(&str, &[&str], [bool; 4]); 12] = [
        (r#"{}"#,                                 ALL,           [false, false, false, false]),
        (r#"{"roots":{}}"#,                       ALL,           [false, false, false, true]),
        (r#"{"sampling":{}}"#,                    ALL,           [false, false, true,  false]),
        (r#"{"elicitation":{}}"#,                 &[R5, R4, R3], [true,  false, false, false]),
        (r#"{"elicitation":{}}"#,                 &[R2, R1],     [false, false, false, false]),
        (r#"{"elicitation":{"form":{}}}"#,        &[R5, R4, R3], [true,  false, false, false]),
        (r#"{"elicitation":{"url":{}}}"#,         &[R5, R4],     [false, true,  false, false]),
        // That revision has no words for pages, and the bare word would promise forms.
        (r#"{"elicitation":{"url":{}}}"#,         &[R3, R2, R1], [false, false, false, false]),
        (r#"{"elicitation":{"form":{},"url":{}}}"#, &[R5, R4],   [true,  true,  false, false]),
        (r#"{"elicitation":{"form":{},"url":{}}}"#, &[R3],       [true,  false, false, false]),
        (r#"{"elicitation":{"form":{},"url":{}}}"#, &[R2, R1],   [false, false, false, false]),
        (r#"{"experimental":{"roots":{}}}"#,      ALL,           [false, false, false, false]),
    ];
    for (capabilities, revisions, can) in table {
        for revision in revisions {
            let mut pair = open(capabilities, revision);
            for (tool, can) in TOOLS.into_iter().zip(can) {
                let about = format!("{revision} {capabilities} {tool}");
                match pair.tool(tool, json!({})) {
                    Ok(_) => assert!(can, "{about}"),
                    Err(Failure::Error(error)) => {
                        assert!(!can, "{about}: {error}");
                        check_refusal(&error, revision, tool);
                        assert_eq!(pair.client().received(), ["answer"], "{about}");
                    }
                    Err(other) => panic!("{about}: {other:?}"),
                }
                pair.client().received();
            }
        }
    }
}

fn check_refusal(error: &RpcError, revision: &str, tool: &str) {
    let required = match tool {
        "greet" => json!({"elicitation": {}}),
        "pay" => json!({"elicitation": {"url": {}}}),
        "think" => json!({"sampling": {}}),
        _ => json!({"roots": {}}),
    };
    assert_eq!(error.code.0, if revision == R5 { -32021 } else { -32600 });
    assert_eq!(error.data_as::<Value>(), Some(json!({"requiredCapabilities": required})));
}

#[test]
fn a_user_who_refuses_ends_the_call_and_nothing_else() {
    for revision in ALL {
        let mut pair = open(r#"{"sampling":{}}"#, revision);
        pair.client().refuses = true;
        let Err(Failure::Error(error)) = pair.tool("think", json!({})) else { panic!("an error") };
        assert_eq!((error.code.0, &*error.message), (-1, "the user said no"));
        pair.client().refuses = false;
        assert_eq!(pair.tool("think", json!({})).unwrap(), "Hm? Yes.");
        assert_eq!(pair.server.engine.in_flight(), 0);
    }
}

#[test]
fn a_stateless_connection_that_breaks_is_listened_to_again() {
    let mut pair = open("{}", R5);
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    pair.client().start("subscriptions/listen", wanted.clone(), &Extras::default()).unwrap();
    pair.client().start("tools/call", json!({"name": "wait"}), &Extras::default()).unwrap();
    pair.drive();
    pair.server.restart();
    let lost = pair.client().engine.lose();
    assert_eq!(lost.requests, [2.into(), 3.into()]);
    assert_eq!(lost.listen.len(), 1);
    assert_eq!(lost.listen[0].decode::<Value>().unwrap(), wanted);
    pair.client().abandon_all();
    // No handshake: it just goes on.
    pair.client().start("subscriptions/listen", wanted, &Extras::default()).unwrap();
    assert_eq!(pair.tool("echo", json!({"text": "a"})).unwrap(), "a");
    pair.client().received();
    pair.server.changed(&pintle_proto::server::Change::Tools);
    pair.drive();
    assert_eq!(pair.client().received(), ["changed Tools"]);
}

#[test]
fn a_session_that_breaks_is_opened_again() {
    for revision in SESSIONS {
        let mut pair = open(r#"{"sampling":{}}"#, revision);
        pair.client().start("tools/call", json!({"name": "wait"}), &Extras::default()).unwrap();
        pair.drive();
        pair.server.restart();
        assert_eq!(pair.client().engine.lose().requests.len(), 1);
        pair.client().abandon_all();
        assert_eq!(pair.open().as_deref(), Ok(*revision));
        assert_eq!(pair.tool("think", json!({})).unwrap(), "Hm? Yes.");
    }
}

/// A client that does not follow the protocol: what comes before the handshake, and after it again.
#[test]
fn nothing_is_served_before_the_handshake_and_another_one_is_a_new_agreement() {
    for revision in SESSIONS {
        let mut pair = Pair::new(Client::new(Mode::Auto, &[revision]), Server::new(SESSIONS));
        let early = r#"{"jsonrpc":"2.0","id":"early","method":"tools/list"}"#;
        let late = format!(
            r#"{{"jsonrpc":"2.0","id":"late","method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
        );
        pair.client().out.push_back(early.into());
        pair.drive();
        assert_eq!(
            pair.client().received(),
            ["ignored a response to request \"early\", which was never sent"]
        );
        assert_eq!(pair.open().as_deref(), Ok(*revision));
        pair.client().out.push_back(late.into());
        pair.drive();
        assert_eq!(
            pair.client().received(),
            ["ignored a response to request \"late\", which was never sent"]
        );
        let codes: Vec<Value> = pair
            .wire
            .iter()
            .filter_map(|line| line.strip_prefix("< "))
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["error"]["code"].clone())
            .filter(|code| !code.is_null())
            .collect();
        assert_eq!(codes, [json!(-32602)], "what comes too early is refused, a second handshake is not");
        assert_eq!(pair.tool("echo", json!({"text": "a"})).unwrap(), "a");
    }
}
