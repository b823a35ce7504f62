//! Clients without a session of a server that has them: calls that wait in the relay for answers.

use std::time::Duration;

use pintle::server::Caller;
use serde_json::{Value, json};

use super::world::{self, Seen, everything};
use crate::support::{
    eras::R4,
    line_client::{Raw, modern},
};

async fn call(client: &mut Raw, name: &str, state: Option<&Value>, answers: Value) -> Value {
    let mut params = json!({"name": name});
    if let Some(state) = state {
        params["requestState"] = state.clone();
        params["inputResponses"] = answers;
    }
    let id = client.request("tools/call", modern(params, everything())).await;
    loop {
        let message = client.recv().await;
        if message["id"] == id {
            return message;
        }
    }
}

fn guests(count: u8) -> Value {
    json!({"guests": {"action": "accept", "content": {"count": count}}})
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_sent_twice_gets_the_same_reply() {
    let front = world::relayed(&world::server(&Seen::default()), R4).await;
    let mut client = Raw::new(&front);
    let first = call(&mut client, "book", None, Value::Null).await;
    let (result, key) = (&first["result"], "guests");
    let answers = json!({key: {"action": "decline"}});
    assert_eq!(result["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), [key]);
    let done = call(&mut client, "book", Some(&result["requestState"]), answers.clone()).await;
    assert_eq!(done["result"]["content"][0]["text"], "Never mind.");
    let again = call(&mut client, "book", Some(&result["requestState"]), answers).await;
    assert_eq!(again["result"], done["result"]);
    let other = json!({key: {"action": "cancel"}});
    let other = call(&mut client, "book", Some(&result["requestState"]), other).await;
    assert!(other["error"]["message"].as_str().unwrap().contains("other answers"), "{other}");
}

#[tokio::test(start_paused = true)]
async fn an_invalid_answer_can_be_sent_again() {
    let front = world::relayed(&world::server(&Seen::default()), R4).await;
    let mut client = Raw::new(&front);
    let first = call(&mut client, "book", None, Value::Null).await;
    let state = &first["result"]["requestState"];
    for bad in [json!({}), json!({"guests": 7}), json!({"guests": {"action": 7}})] {
        let refused = call(&mut client, "book", Some(state), bad).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let done = call(&mut client, "book", Some(state), json!({"guests": {"action": "decline"}})).await;
    assert_eq!(done["result"]["content"][0]["text"], "Never mind.", "{done}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waited_too_long_is_cancelled_and_says_so() {
    let seen = Seen::default();
    let behind = world::server(&seen);
    let front = world::relayed(&behind, R4).await;
    let mut client = Raw::new(&front);
    let first = call(&mut client, "book", None, Value::Null).await;
    tokio::time::sleep(Duration::from_secs(7200)).await;
    let lost = call(&mut client, "book", Some(&first["result"]["requestState"]), guests(4)).await;
    let message = lost["error"]["message"].as_str().unwrap();
    assert!(message.ends_with("start the call again"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn the_answers_of_another_principal_are_refused() {
    // The call waits in the relay, or the server behind has the state.
    for upstream in world::ERAS {
        refuse_those_of_another(upstream).await;
    }
}

async fn refuse_those_of_another(upstream: &str) {
    let front = world::relayed(&world::server(&Seen::default()), upstream).await;
    let mut ann = Raw::known(&front, Caller::new().principal("ann"));
    let mut bob = Raw::known(&front, Caller::new().principal("bob"));
    let first = call(&mut ann, "book", None, Value::Null).await;
    let state = &first["result"]["requestState"];
    let answers = json!({"guests": {"action": "decline"}});
    let refused = call(&mut bob, "book", Some(state), answers.clone()).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("not one of this server's"), "{refused}");
    let done = call(&mut ann, "book", Some(state), answers).await;
    assert_eq!(done["result"]["content"][0]["text"], "Never mind.");
}

#[tokio::test(start_paused = true)]
async fn a_caller_cannot_fill_the_relay_for_others() {
    for caller in [Caller::new().principal("ann"), Caller::new(), Caller::local()] {
        fill_and_try_others(caller).await;
    }
}

async fn fill_and_try_others(caller: Caller) {
    let front = world::relayed(&world::server(&Seen::default()), R4).await;
    let mut full = Raw::known(&front, caller);
    let mut refused = None;
    for at in 0..40 {
        let asked = call(&mut full, "book", None, Value::Null).await;
        if asked.get("error").is_some() {
            refused = Some((at, asked));
            break;
        }
    }
    let (at, refused) = refused.expect("there is a limit");
    assert_eq!(at, 32);
    assert!(refused["error"]["message"].as_str().unwrap().contains("too many calls wait"), "{refused}");
    for other in [Caller::new().principal("bob"), Caller::new()] {
        let mut other = Raw::known(&front, other);
        let asked = call(&mut other, "book", None, Value::Null).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    }
}
