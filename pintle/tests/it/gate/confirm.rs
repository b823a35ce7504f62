//! Confirmation by the user: bound to the arguments, in both eras, on servers and relays.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{
    Server,
    server::{Args, Cx, Decision, Elicited, GateRequest, ToolError, around, tool},
};
use pintle_relay::Relay;
use serde_json::{Value, json};

use crate::support::eras::{Client, R4, R5, WITH_FORMS};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Deleted {
    path: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Why {
    why: String,
}

fn server(ran: &Arc<AtomicUsize>) -> Server {
    let ran = ran.clone();
    let delete = move |Args(Deleted { path }): Args<Deleted>| {
        ran.fetch_add(1, Ordering::SeqCst);
        async move { format!("deleted {path}") }
    };
    let erase = delete.clone();
    async fn asks(cx: Cx) -> Result<String, ToolError> {
        Ok(match cx.elicit::<Why>("why", "Why?").await? {
            Elicited::Accept(Why { why }) => why,
            _ => "never mind".to_owned(),
        })
    }
    Server::new("s", "0").tool(tool("delete", delete)).tool(tool("erase", erase)).tool(tool("asks", asks))
}

fn confirms(request: &GateRequest<'_>) -> Decision {
    Decision::Confirm(format!("Run `{}`?", request.name()))
}

/// The server with a gate, alone, mounted and behind relays of both eras.
async fn places(ran: &Arc<AtomicUsize>) -> Vec<Server> {
    let mut places = vec![
        server(ran).gate(confirms),
        Server::new("outer", "0").mount("m", server(ran)).gate(confirms),
        Server::new("outer", "0").mount("m", server(ran).gate(confirms)),
    ];
    for revision in [R4, R5] {
        let behind = server(ran);
        let client = pintle::Client::new("relay", "0").revisions([revision.parse().unwrap()]);
        let relay = Relay::connect(client, move || {
            let transport = behind.in_process().map_err(std::io::Error::other);
            async { transport }
        });
        places.push(Server::new("front", "0").mount("m", relay.await.unwrap()).gate(confirms));
    }
    places
}

async fn name(client: &mut Client, name: &str) -> String {
    let tools = client.call("tools/list", json!({})).await;
    let names =
        tools["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
    names.into_iter().find(|found| found.ends_with(name)).unwrap().to_owned()
}

fn agree(method: &str, params: &Value) -> Value {
    assert_eq!(method, "elicitation/create");
    match params["message"].as_str().unwrap() {
        "Why?" => json!({"action": "accept", "content": {"why": "because"}}),
        message => {
            assert!(message.starts_with("Run `"), "{message}");
            json!({"action": "accept", "content": {}})
        }
    }
}

#[tokio::test]
async fn a_call_runs_once_the_user_agrees_and_not_before() {
    let ran = Arc::new(AtomicUsize::new(0));
    for (place, server) in places(&ran).await.iter().enumerate() {
        for revision in WITH_FORMS {
            let mut client = Client::open(server, revision, json!({"elicitation": {}})).await;
            let delete = name(&mut client, "delete").await;
            let call = json!({"name": delete, "arguments": {"path": "/tmp"}});
            for action in ["decline", "cancel"] {
                client.answer = Box::new(move |_, _| json!({"action": action}));
                let refused = client.call("tools/call", call.clone()).await;
                let message = refused["error"]["message"].as_str().unwrap_or_default();
                assert!(message.contains("did not confirm"), "{place} {revision} {refused}");
            }
            assert_eq!(ran.swap(0, Ordering::SeqCst), 0, "{place} {revision}");
            client.answer = Box::new(agree);
            let done = client.call("tools/call", call).await;
            assert_eq!(done["result"]["content"][0]["text"], "deleted /tmp", "{place} {revision} {done}");
            assert_eq!((ran.swap(0, Ordering::SeqCst), client.questions), (1, 3), "{place} {revision}");
        }
    }
}

#[tokio::test]
async fn questions_of_the_tool_follow_the_confirmation() {
    for (place, server) in places(&Arc::default()).await.iter().enumerate() {
        for revision in WITH_FORMS {
            let mut client = Client::open(server, revision, json!({"elicitation": {}})).await;
            let asks = name(&mut client, "asks").await;
            client.answer = Box::new(agree);
            let done = client.call("tools/call", json!({"name": asks})).await;
            assert_eq!(done["result"]["content"][0]["text"], "because", "{place} {revision} {done}");
            assert_eq!(client.questions, 2, "confirmed once: {place} {revision}");
        }
    }
}

#[tokio::test]
async fn a_confirmation_is_valid_for_its_arguments_only() {
    let ran = Arc::new(AtomicUsize::new(0));
    for (place, server) in places(&ran).await.iter().enumerate() {
        let mut client = Client::open(server, R5, json!({"elicitation": {}})).await;
        let delete = name(&mut client, "delete").await;
        let params = |path: &str| json!({"name": delete, "arguments": {"path": path}});
        let id = client.send("tools/call", params("/tmp")).await;
        let asked = client.until(id).await["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{place} {asked}");
        let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let mut changed = params("/home");
        changed["requestState"] = asked["requestState"].clone();
        changed["inputResponses"] = json!({key: {"action": "accept", "content": {}}});
        let id = client.send("tools/call", changed).await;
        let answer = client.until(id).await;
        let asked_again = answer["result"]["resultType"] == "input_required" || answer["error"].is_object();
        assert!(asked_again && ran.load(Ordering::SeqCst) == 0, "{place} {answer}");
    }
}

/// Without the state of the call, nothing but the key says what the user has agreed to.
#[tokio::test]
async fn an_answer_without_its_state_is_valid_for_its_tool_and_arguments_only() {
    let ran = Arc::new(AtomicUsize::new(0));
    for (place, server) in places(&ran).await.iter().enumerate() {
        let mut client = Client::open(server, R5, json!({"elicitation": {}})).await;
        let (delete, erase) = (name(&mut client, "delete").await, name(&mut client, "erase").await);
        let params = |name: &str, path: &str| json!({"name": name, "arguments": {"path": path}});
        let id = client.send("tools/call", params(&delete, "/tmp")).await;
        let asked = client.until(id).await["result"].clone();
        let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        for mut changed in [params(&delete, "/home"), params(&erase, "/tmp")] {
            changed["inputResponses"] = json!({ &*key: {"action": "accept", "content": {}} });
            let id = client.send("tools/call", changed).await;
            let answer = client.until(id).await;
            let asked_again =
                answer["result"]["resultType"] == "input_required" || answer["error"].is_object();
            assert!(asked_again && ran.load(Ordering::SeqCst) == 0, "{place} {answer}");
        }
    }
}

/// The answer is for the gate, and nobody behind it sees that there was a question.
#[tokio::test]
async fn an_answer_is_not_passed_on_to_the_tool() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let params = seen.clone();
    let behind = server(&Arc::default()).layer(&around(move |cx, next| {
        if cx.method() == "tools/call" {
            params.lock().unwrap().push(cx.params().as_str().to_owned());
        }
        next.run(cx)
    }));
    let server = Server::new("outer", "0").mount("m", behind).gate(confirms);
    let mut client = Client::open(&server, R5, json!({"elicitation": {}})).await;
    client.answer = Box::new(agree);
    client.call("tools/call", json!({"name": "m_delete", "arguments": {"path": "/tmp"}})).await;
    let seen = seen.lock().unwrap().join("\n");
    assert!(seen.contains("/tmp") && !seen.contains("confirm-"), "{seen}");
}
