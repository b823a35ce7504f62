//! Clients without a session of a server that has them: calls that wait in the relay for answers.

use std::time::Duration;

use pintle::{
    Server,
    proto::Limits,
    server::{Caller, Cx, ToolError, tool},
};
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
    // Not overload, after which clients call again by themselves: it has run until its question.
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("the call was ended: too many calls wait"), "{message}");
    for other in [Caller::new().principal("bob"), Caller::new()] {
        let mut other = Raw::known(&front, other);
        let asked = call(&mut other, "book", None, Value::Null).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    }
}

/// A relay that may hold 1 MiB of its clients: an eighth of one whose calls wait.
async fn small(behind: &Server) -> Server {
    let mut limits = Limits::default();
    limits.held_bytes = 1 << 20;
    world::relayed(behind, R4).await.limits(limits)
}

/// Sends a round of a call with arguments of this length.
async fn long(client: &mut Raw, (name, bytes): (&str, usize), state: Option<&Value>) -> Value {
    let mut params = json!({"name": name, "arguments": {"x": "y".repeat(bytes)}});
    if let Some(state) = state {
        let declined = json!({"action": "decline"});
        params["inputResponses"] = json!({"guests": declined, "long": declined});
        params["requestState"] = state.clone();
    }
    let id = client.request("tools/call", modern(params, everything())).await;
    loop {
        let message = client.recv().await;
        if message["id"] == id {
            return message;
        }
    }
}

/// Has calls wait until one is refused. Returns the states of those that wait, and the refusal.
async fn wait_with(client: &mut Raw, call: (&str, usize)) -> (Vec<Value>, Value) {
    let mut states = Vec::new();
    loop {
        let answer = long(client, call, None).await;
        match answer["result"].get("requestState") {
            Some(state) => states.push(state.clone()),
            None => return (states, answer),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_and_questions_of_calls_that_wait_are_charged_to_the_caller() {
    let asking = tool("ask", |cx: Cx| async move {
        cx.elicit::<()>("long", &"?".repeat(60_000)).await?;
        Ok::<_, ToolError>("asked")
    });
    for (behind, call) in [
        (world::server(&Seen::default()), ("book", 60_000)),
        (Server::new("s", "1").tool(asking), ("ask", 1)),
    ] {
        let front = small(&behind).await;
        let mut ann = Raw::known(&front, Caller::new().principal("ann"));
        let (states, refused) = wait_with(&mut ann, call).await;
        assert_eq!((states.len(), &refused["error"]["code"]), (2, &json!(-32603)), "{call:?}: {refused}");
        // Who answers has room again.
        let done = long(&mut ann, call, Some(&states[0])).await;
        assert!(done["result"]["content"].is_array(), "{done}");
        assert_eq!(wait_with(&mut ann, call).await.0.len(), 1, "{call:?}");
        let mut bob = Raw::known(&front, Caller::new().principal("bob"));
        assert_eq!(wait_with(&mut bob, call).await.0.len(), 2, "{call:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_gives_way_if_its_caller_holds_most() {
    let front = small(&world::server(&Seen::default())).await;
    let call = ("book", 60_000);
    let mut waiting = Vec::new();
    for name in ["ann", "bob", "cid", "dan"] {
        let mut client = Raw::known(&front, Caller::new().principal(name));
        let (states, _) = wait_with(&mut client, call).await;
        waiting.extend(states.into_iter().map(|state| (name, state)));
    }
    assert_eq!(waiting.len(), 8);
    // The first finds the last room, and the second is given that of one who holds more.
    for name in ["eve", "fay"] {
        let mut newcomer = Raw::known(&front, Caller::new().principal(name));
        let asked = long(&mut newcomer, call, None).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{name}: {asked}");
    }
    let mut lost = 0;
    for (name, state) in waiting {
        let mut client = Raw::known(&front, Caller::new().principal(name));
        let answer = long(&mut client, call, Some(&state)).await;
        if let Some(message) = answer["error"]["message"].as_str() {
            assert!(message.ends_with("its memory was needed: start the call again"), "{message}");
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            lost += 1;
        }
    }
    assert_eq!(lost, 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_with_more_than_a_mebibyte_of_questions_ends() {
    let asking = tool("ask", |cx: Cx| async move {
        cx.elicit::<()>("long", &"?".repeat(1 << 20)).await?;
        Ok::<_, ToolError>("asked")
    });
    let front = world::relayed(&Server::new("s", "1").tool(asking), R4).await;
    let mut client = Raw::known(&front, Caller::new().principal("ann"));
    let ended = long(&mut client, ("ask", 1), None).await;
    assert_eq!(ended["error"]["code"], -32603, "{ended}");
    let message = ended["error"]["message"].as_str().unwrap();
    assert!(message.ends_with("the limit is 1048576: ask for less at once"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn so_many_calls_wait_in_a_relay() {
    let front = world::relayed(&world::server(&Seen::default()), R4).await;
    for caller in 0..32 {
        let mut client = Raw::known(&front, Caller::new().principal(format!("caller-{caller}")));
        assert_eq!(wait_with(&mut client, ("book", 1)).await.0.len(), 32);
    }
    let mut client = Raw::known(&front, Caller::new().principal("late"));
    let ended = long(&mut client, ("book", 1), None).await;
    assert_eq!(ended["error"]["code"], -32603, "{ended}");
    assert!(ended["error"]["message"].as_str().unwrap().contains("too many calls wait"), "{ended}");
}
