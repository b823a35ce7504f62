//! A revision newer than the canonical one, beside those that exist: negotiated, and spoken in its own shapes.

use pintle_proto::client::{Extras, Mode, OpenError, SendError};
use serde_json::{Value, json};

use super::{
    ALL, NEXT, R4, R5,
    client::{Client, Failure},
    engines::Pair,
    features::run_all,
    server::Server,
};

const WITH_NEXT: &[&str] = &[NEXT, R5, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

fn pair(client: &[&str], server: &[&str]) -> Pair {
    Pair::new(Client::new(Mode::Auto, client), Server::new(server))
}

fn open(client: &[&str], server: &[&str]) -> Pair {
    let mut pair = pair(client, server);
    pair.open().unwrap();
    pair
}

/// The last line in this direction that holds a word.
fn last(pair: &Pair, direction: char, word: &str) -> Value {
    let line = pair.wire.iter().rfind(|line| line.starts_with(direction) && line.contains(word)).unwrap();
    serde_json::from_str(&line[2..]).unwrap()
}

#[test]
fn it_is_spoken_where_both_ask_for_it_and_nowhere_else() {
    for (client, server, spoken) in [
        (WITH_NEXT, WITH_NEXT, NEXT),
        (&[NEXT], WITH_NEXT, NEXT),
        (WITH_NEXT, &[NEXT], NEXT),
        (WITH_NEXT, ALL, R5),
        (ALL, WITH_NEXT, R5),
        (WITH_NEXT, &[R4], R4),
        (&[R4], WITH_NEXT, R4),
        (&[NEXT, R4], &[NEXT, R4], NEXT),
    ] {
        let mut pair = pair(client, server);
        assert_eq!(pair.open().as_deref(), Ok(spoken), "{client:?} with {server:?}");
    }
    for (client, server) in [(&[NEXT][..], ALL), (ALL, &[NEXT])] {
        let refused = pair(client, server).open();
        assert!(matches!(refused, Err(OpenError::NothingInCommon { .. })), "{refused:?}");
    }
}

#[test]
fn everything_works_in_it_and_in_the_others_beside_it() {
    for name in WITH_NEXT {
        let mut pair = open(&[name], WITH_NEXT);
        assert_eq!(pair.client().revision().as_str(), *name);
        run_all(&mut pair);
    }
}

#[test]
fn a_renamed_member_has_its_new_name_on_the_wire() {
    let mut pair = open(&[NEXT], WITH_NEXT);
    assert_eq!(pair.tool("echo", json!({"text": "hello"})).unwrap(), "hello");
    let sent = last(&pair, '>', "tools/call");
    assert_eq!(sent["params"]["input"], json!({"text": "hello"}));
    assert_eq!(sent["params"].get("arguments"), None);
    let mut older = open(&[R5], WITH_NEXT);
    assert_eq!(older.tool("echo", json!({"text": "hello"})).unwrap(), "hello");
    assert_eq!(last(&older, '>', "tools/call")["params"]["arguments"], json!({"text": "hello"}));
}

#[test]
fn a_reshaped_result_has_its_new_shape_on_the_wire_with_what_the_era_adds() {
    let mut pair = open(&[NEXT], WITH_NEXT);
    pair.server.shop.ttl_ms.set(7);
    let listed = pair.call("tools/list", json!({})).unwrap();
    assert_eq!((&listed["tools"][6]["name"], &listed["ttlMs"]), (&json!("echo"), &json!(7)));
    let sent = last(&pair, '<', "echo")["result"].take();
    assert_eq!(sent["tools"]["echo"], json!({"inputSchema": {"type": "object"}}));
    assert_eq!((sent.get("ttlMs"), &sent["maxAgeMs"]), (None, &json!(7)));
    assert_eq!(sent["resultType"], "complete");
}

#[test]
fn questions_answers_and_notifications_are_reshaped_too() {
    let mut pair = open(&[NEXT], WITH_NEXT);
    assert_eq!(pair.tool("greet", json!({})).unwrap(), "Hello, Ann");
    let asked = last(&pair, '<', "inputRequests")["result"]["inputRequests"]["name"].take();
    assert_eq!((&asked["params"]["prompt"], asked["params"].get("message")), (&json!("Your name?"), None));
    let answered = last(&pair, '>', "inputResponses")["params"]["inputResponses"]["name"].take();
    assert_eq!(answered, json!({"action": "accept", "fields": {"value": "Ann"}}));

    let mut extras = Extras::default();
    extras.progress = true;
    pair.client().received();
    pair.call_with("tools/call", json!({"name": "count"}), &extras).unwrap();
    assert!(pair.client().received().contains(&"progress 0.5 \"half\"".to_owned()));
    let notified = pair.wire.iter().find(|line| line.contains("notifications/progress")).unwrap();
    assert!(notified.contains(r#""text":"half""#) && !notified.contains("message"), "{notified}");

    pair.client()
        .start(
            "subscriptions/listen",
            json!({"notifications": {"resourceSubscriptions": ["note://1"]}}),
            &Extras::default(),
        )
        .unwrap();
    pair.drive();
    pair.server.changed(&pintle_proto::server::Change::Resource("note://1".into()));
    pair.drive();
    assert!(pair.client().received().contains(&"updated note://1".to_owned()));
    let notified = last(&pair, '<', "notifications/resources/updated");
    assert_eq!((&notified["params"]["resource"], notified["params"].get("uri")), (&json!("note://1"), None));
    pair.client().abandon_all();
}

#[test]
fn an_added_method_is_there_and_in_no_other_revision() {
    let mut pair = open(&[NEXT], WITH_NEXT);
    assert_eq!(pair.call("server/echo", json!({"text": "hi"})).unwrap()["echo"], "hi");
    for name in ALL {
        let mut older = open(&[name], WITH_NEXT);
        let refused = older.call("server/echo", json!({"text": "hi"}));
        assert!(
            matches!(refused, Err(Failure::Unsent(SendError::Unavailable { .. }))),
            "{name}: {refused:?}"
        );
    }
}

#[test]
fn a_call_may_end_in_another_revision_than_it_began_in() {
    // What the first round remembers is canonical, whichever revision the next one comes in.
    let mut pair = open(&[NEXT], WITH_NEXT);
    assert_eq!(pair.tool("book", json!({})).unwrap(), "12A, soup, charge 1");
    let round = last(&pair, '>', "requestState");
    let mut params = round["params"].clone();
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(R5);
    let input = params.as_object_mut().unwrap().shift_remove("input").unwrap();
    params["arguments"] = input;
    params["inputResponses"]["meal"] = json!({"action": "accept", "content": {"value": "soup"}});
    let again = json!({"jsonrpc": "2.0", "id": "again", "method": "tools/call", "params": params});
    pair.server.receive(again.to_string().as_bytes(), pair.now, None);
    pair.server.poll(pair.now);
    let reply = String::from_utf8(pair.server.out.pop_back().unwrap()).unwrap();
    assert!(reply.contains("12A, soup, charge 1"), "{reply}");
}
