//! Servers that keep silent, die, answer late or print what they should not, and two clients on one stream.

use pintle_proto::client::{Extras, Mode, OpenError};
use serde_json::{Value, json};

use super::{
    ALL, R4, R5, SESSIONS,
    client::{Client, PATIENCE_MS},
    engines::{Manner, Pair},
    features::run_all,
    server::Server,
};

fn pair(mode: Mode, server: &[&str], manner: Manner) -> Pair {
    let mut pair = Pair::new(Client::new(mode, ALL), Server::new(server));
    pair.manner = manner;
    let now = pair.now;
    pair.client().open(now);
    pair.drive();
    pair
}

/// The methods that the client has sent.
fn sent(pair: &Pair) -> Vec<String> {
    let lines = pair.wire.iter().filter_map(|line| line.strip_prefix("> "));
    lines
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["method"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_server_that_keeps_silent_about_the_probe_gets_a_handshake() {
    let manner = Manner { deaf: &["server/discover"], ..Manner::default() };
    let mut pair = pair(Mode::Auto, SESSIONS, manner);
    pair.advance(PATIENCE_MS - 1);
    assert_eq!(pair.opened(), None);
    pair.advance(1);
    assert_eq!(pair.opened(), Some(Ok(R4.into())));
    assert_eq!(sent(&pair), ["server/discover", "initialize", "notifications/initialized"]);
    run_all(&mut pair);
}

#[test]
fn a_server_that_keeps_silent_about_everything_is_given_up() {
    for (mode, silent, last) in
        [(Mode::Auto, 2, "initialize"), (Mode::Legacy, 1, "initialize"), (Mode::Modern, 1, "server/discover")]
    {
        let manner = Manner { deaf: &["server/discover", "initialize"], ..Manner::default() };
        let mut pair = pair(mode, ALL, manner);
        pair.advance(silent * PATIENCE_MS - 1);
        assert_eq!(pair.opened(), None);
        pair.advance(1);
        assert_eq!(pair.opened(), Some(Err(OpenError::Silent { method: last })));
    }
}

#[test]
fn a_server_that_dies_of_the_probe_is_started_again_once() {
    let manner = Manner { dies_of: &["server/discover"], ..Manner::default() };
    let mut pair = pair(Mode::Auto, SESSIONS, manner);
    assert_eq!(pair.opened(), Some(Ok(R4.into())));
    assert_eq!(pair.manner.deaths, 1);
    assert_eq!(pair.client().received(), ["started again"]);
    assert_eq!(sent(&pair), ["server/discover", "initialize", "notifications/initialized"]);
    run_all(&mut pair);
}

#[test]
fn a_server_that_dies_of_everything_is_not_started_for_ever() {
    for (mode, deaths, last) in
        [(Mode::Auto, 2, "initialize"), (Mode::Legacy, 1, "initialize"), (Mode::Modern, 1, "server/discover")]
    {
        let manner = Manner { dies_of: &["server/discover", "initialize"], ..Manner::default() };
        let pair = pair(mode, ALL, manner);
        assert_eq!(pair.opened(), Some(Err(OpenError::Exited { method: last })));
        assert_eq!(pair.manner.deaths, deaths);
    }
}

#[test]
fn an_answer_to_the_probe_after_the_handshake_changes_nothing() {
    // It comes while the handshake is on its way, and long after it.
    for late in [PATIENCE_MS, PATIENCE_MS + 1, 10 * PATIENCE_MS] {
        let manner = Manner { slow_probe_ms: late, ..Manner::default() };
        let mut pair = pair(Mode::Auto, ALL, manner);
        pair.advance(10 * PATIENCE_MS);
        assert_eq!(pair.opened(), Some(Ok(R4.into())), "{late}");
        assert_eq!(pair.client().received(), ["ignored a response to request 1, which has ended"]);
        run_all(&mut pair);
    }
}

#[test]
fn an_answer_to_the_probe_just_in_time_counts() {
    let manner = Manner { slow_probe_ms: PATIENCE_MS - 1, ..Manner::default() };
    let mut pair = pair(Mode::Auto, ALL, manner);
    pair.advance(PATIENCE_MS);
    assert_eq!(pair.opened(), Some(Ok(R5.into())));
    assert_eq!(sent(&pair), ["server/discover"]);
}

#[test]
fn noise_is_ignored() {
    for server in [SESSIONS, ALL] {
        let manner = Manner { noisy: true, ..Manner::default() };
        let mut pair = pair(Mode::Auto, server, manner);
        assert!(matches!(pair.opened(), Some(Ok(_))));
        run_all(&mut pair);
    }
}

/// Two clients on one byte stream: the first of the session era, the second, whose ids are above a thousand, of the other.
fn two_eras() -> Pair {
    let mut second = Client::new(Mode::Modern, ALL);
    for _ in 0..1_000 {
        let request = second.engine.opening_request("ping", "{}".parse().unwrap());
        second.engine.abandon(&request.id);
    }
    let mut pair = Pair::new(Client::new(Mode::Legacy, ALL), Server::new(ALL));
    pair.clients.push(second);
    pair.route = |line| {
        let meta = &line["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        let about = [&line["id"], &line["params"]["progressToken"], &line["params"]["requestId"], meta];
        usize::from(about.iter().any(|id| id.as_i64().is_some_and(|id| id > 1_000)))
    };
    assert_eq!(pair.open().as_deref(), Ok(R4));
    assert_eq!(pair.clients[1].revision().as_str(), R5);
    pair
}

#[test]
fn both_eras_on_one_stream() {
    let mut pair = two_eras();
    for client in &mut pair.clients {
        client.thinks_ms = 10;
    }
    let mut extras = Extras::default();
    extras.progress = true;
    // Everything at once, and each answer finds its asker.
    for (name, expected) in [
        ("echo", "a"),
        ("greet", "Hello, Ann"),
        ("book", "12A, soup, charge "),
        ("plan", "Go? Yes. file:///home/ann"),
        ("count", "counted"),
    ] {
        let params = json!({"name": name, "arguments": {"text": "a"}});
        let calls: Vec<_> = pair
            .clients
            .iter_mut()
            .map(|client| client.start("tools/call", params.clone(), &extras).unwrap())
            .collect();
        pair.drive();
        pair.advance(100);
        for (client, call) in pair.clients.iter_mut().zip(calls) {
            let result = client.ended(call).unwrap().unwrap();
            assert!(result["content"][0]["text"].as_str().unwrap().starts_with(expected), "{result}");
            let odd: Vec<_> =
                client.received().into_iter().filter(|line| !line.starts_with("asked")).collect();
            if name == "count" {
                assert_eq!(odd, ["progress 0.5 \"half\"", "progress 1.0 \"all\"", "answer"]);
            } else {
                assert_eq!(odd, ["answer"], "{name}");
            }
        }
    }
    assert_eq!(pair.server.shop.charges.get(), 2, "once a call");
    assert_eq!(pair.server.engine.in_flight(), 0);
}

#[test]
fn what_one_era_sets_says_nothing_of_the_other() {
    let mut pair = two_eras();
    pair.call("logging/setLevel", json!({"level": "debug"})).unwrap();
    pair.call("resources/subscribe", json!({"uri": "note://1"})).unwrap();
    let chat = json!({"name": "chat"});
    let call = pair.clients[1].start("tools/call", chat.clone(), &Extras::default()).unwrap();
    pair.drive();
    assert!(pair.clients[1].ended(call).unwrap().is_ok());
    assert_eq!(pair.clients[1].received(), ["answer"], "it asked for no log");
    // And a cancellation reaches the call of its own era only: ids do not say which they are of.
    let calls: Vec<_> = pair
        .clients
        .iter_mut()
        .map(|client| client.start("tools/call", json!({"name": "wait"}), &Extras::default()).unwrap())
        .collect();
    pair.drive();
    pair.clients[1].cancel(calls[1]);
    pair.drive();
    assert_eq!(pair.server.running(), 1);
    pair.server.shop.release.set(true);
    pair.drive();
    assert!(pair.clients[0].ended(calls[0]).unwrap().is_ok());
    assert!(pair.clients[1].ended(calls[1]).is_none());
    pair.client().received();
    // Changes: the session hears of all, the other one of what it listens to.
    pair.server.changed(&pintle_proto::server::Change::Tools);
    pair.server.changed(&pintle_proto::server::Change::Resource("note://1".into()));
    pair.drive();
    assert_eq!(pair.client().received(), ["changed Tools", "updated note://1"]);
    assert!(pair.clients[1].received().is_empty());
}
