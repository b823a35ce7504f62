//! What a client may do to the state that it carries for a server: send it back, or be refused.

use pintle_proto::{
    Limits,
    client::{Extras, Mode, RetryError},
};
use serde_json::{Value, json};

use super::{
    ALL, R5,
    client::{Client, Failure},
    engines::Pair,
    server::Server,
};

/// What a dishonest client does to the params of its retry.
type Forge = fn(&mut Value);

const THINKS_MS: u64 = 1_000;

/// A call of `book` whose user is still thinking about the first question; its number.
fn thinking(server: Server, forges: Option<Forge>) -> (Pair, usize) {
    let mut pair = Pair::new(Client::new(Mode::Auto, ALL), server);
    pair.principal = Some("ann");
    assert_eq!(pair.open().as_deref(), Ok(R5));
    pair.client().thinks_ms = THINKS_MS;
    pair.client().forges = forges;
    let params = json!({"name": "book", "arguments": {"for": "ann"}});
    let call = pair.client().start("tools/call", params, &Extras::default()).unwrap();
    pair.drive();
    (pair, call)
}

/// How the call ends when time goes on.
fn end(mut pair: Pair, call: usize) -> (Result<Value, Failure>, u32) {
    pair.advance(10 * THINKS_MS);
    (pair.client().ended(call).expect("an end"), pair.server.shop.charges.get())
}

fn refused(pair: Pair, call: usize, text: &str) {
    let (end, charges) = end(pair, call);
    let Err(Failure::Error(error)) = end else { panic!("{end:?}") };
    assert_eq!((error.code.0, &*error.message), (-32602, text));
    assert_eq!(charges, 0, "nothing was done");
}

const FOREIGN: &str = "`requestState` is not one of this server's for this call: start the call again";

#[test]
fn an_honest_client_gets_through() {
    let (pair, call) = thinking(Server::new(ALL), None);
    let (end, charges) = end(pair, call);
    assert_eq!(end.unwrap()["content"][0]["text"], "12A, soup, charge 1");
    assert_eq!(charges, 1);
}

#[test]
fn a_tampered_state_is_refused() {
    let forges: [Forge; 6] = [
        |params| {
            let state = params["requestState"].as_str().unwrap();
            let (head, tail) = state.split_at(state.len() / 2);
            let other = if tail.starts_with('A') { "B" } else { "A" };
            params["requestState"] = format!("{head}{other}{}", &tail[1..]).into();
        },
        |params| {
            let state = params["requestState"].as_str().unwrap();
            params["requestState"] = state[..state.len() - 4].into();
        },
        |params| params["requestState"] = format!("{}AAAA", params["requestState"].as_str().unwrap()).into(),
        |params| params["requestState"] = "".into(),
        |params| params["requestState"] = "{\"r\":1}".into(),
        |params| params["requestState"] = "AAAA".repeat(40).into(),
    ];
    for forge in forges {
        let (pair, call) = thinking(Server::new(ALL), Some(forge));
        refused(pair, call, FOREIGN);
    }
}

#[test]
fn a_state_of_the_wrong_shape_is_refused() {
    let forges: [(Forge, &str); 3] = [
        (|params| params["requestState"] = 5.into(), "`requestState` is invalid"),
        (|params| params["inputResponses"] = json!([]), "`inputResponses` is invalid"),
        (
            |params| params["inputResponses"] = json!({"seat": {"roots": []}}),
            "the answer to `seat` is invalid",
        ),
    ];
    for (forge, text) in forges {
        let (pair, call) = thinking(Server::new(ALL), Some(forge));
        let (end, charges) = end(pair, call);
        let Err(Failure::Error(error)) = end else { panic!("{end:?}") };
        assert_eq!(error.code.0, -32602);
        assert!(error.message.starts_with(text), "{}", error.message);
        assert_eq!(charges, 0);
    }
}

#[test]
fn an_expired_state_is_refused() {
    for (ttl, expired) in [(THINKS_MS + 1, false), (THINKS_MS, true)] {
        let mut limits = Limits::default();
        limits.state_ttl_ms = ttl;
        let (pair, call) = thinking(Server::bounded(ALL, limits), None);
        if expired {
            refused(pair, call, "`requestState` has expired: start the call again");
        } else {
            assert!(end(pair, call).0.is_ok());
        }
    }
}

#[test]
fn the_state_of_somebody_else_is_refused() {
    for principal in [Some("bob"), None, Some("")] {
        let (mut pair, call) = thinking(Server::new(ALL), None);
        pair.principal = principal;
        refused(pair, call, FOREIGN);
    }
}

#[test]
fn the_state_of_another_call_is_refused() {
    let forges: [Forge; 3] = [
        |params| params["name"] = "greet".into(),
        |params| params["arguments"] = json!({"for": "bob"}),
        |params| drop(params.as_object_mut().unwrap().remove("arguments")),
    ];
    for forge in forges {
        let (pair, call) = thinking(Server::new(ALL), Some(forge));
        refused(pair, call, FOREIGN);
    }
}

#[test]
fn the_state_of_another_method_is_refused() {
    let (mut pair, _) = thinking(Server::new(ALL), None);
    let state = {
        let line = pair.wire.iter().rfind(|line| line.starts_with('<')).unwrap();
        serde_json::from_str::<Value>(&line[2..]).unwrap()["result"]["requestState"].clone()
    };
    let params = json!({"name": "book", "arguments": {"for": "ann"}, "requestState": state});
    let Err(Failure::Error(error)) = pair.call("prompts/get", params.clone()) else { panic!("an error") };
    assert_eq!((error.code.0, &*error.message), (-32602, FOREIGN));
    // Its own method takes it, and asks for what is still missing.
    pair.client().thinks_ms = 0;
    assert_eq!(pair.call("tools/call", params).unwrap()["content"][0]["text"], "12A, soup, charge 1");
}

#[test]
fn a_state_that_is_left_out_begins_anew() {
    // Answers without a state are answers all the same: the handler asks, and finds them.
    let forge: Forge = |params| drop(params.as_object_mut().unwrap().remove("requestState"));
    let (pair, call) = thinking(Server::new(ALL), Some(forge));
    let (end, charges) = end(pair, call);
    // What was remembered went with the state, and the first answer is not sent again: it never ends by itself.
    assert!(matches!(end, Err(Failure::Retry(RetryError::TooManyRounds { limit: 8 }))), "{end:?}");
    assert!(charges > 0);
}

#[test]
fn any_node_of_a_fleet_goes_on_with_a_call() {
    let (mut pair, call) = thinking(Server::new(ALL), None);
    pair.server.restart();
    pair.advance(THINKS_MS);
    pair.server.restart();
    let (end, charges) = end(pair, call);
    assert_eq!(end.unwrap()["content"][0]["text"], "12A, soup, charge 1");
    assert_eq!(charges, 1);
}

#[test]
fn a_question_that_is_another_one_now_is_not_answered_with_the_old_answer() {
    let (pair, call) = thinking(Server::new(ALL), None);
    pair.server.shop.fickle.set(true);
    let (end, charges) = end(pair, call);
    let Err(Failure::Error(error)) = end else { panic!("{end:?}") };
    assert_eq!(error.code.0, -32603);
    assert!(error.message.starts_with("the key `seat` is already used for another question"));
    assert_eq!(charges, 0);
}
