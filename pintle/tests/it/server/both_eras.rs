//! A handler that asks is written once: the same words for a session and for a request that stands alone.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{
    Server,
    server::{Answer, Arguments, Cx, Question, ToolError, tool},
    types::schema::{ElicitAction, ElicitFormParams, ElicitParams, ElicitSchema},
};
use serde_json::json;

use crate::support::line_client::{Raw, modern};

fn form(message: &str) -> Question {
    let schema: ElicitSchema =
        serde_json::from_value(json!({"type": "object", "properties": {"yes": {"type": "boolean"}}}))
            .unwrap();
    Question::Elicit(Box::new(ElicitParams::Form(ElicitFormParams::new(message, schema))))
}

async fn agreed(cx: &Cx, key: &str) -> Result<bool, ToolError> {
    match cx.ask(key, form(&format!("{key}?"))).await? {
        Answer::Elicit(result) => Ok(result.action == ElicitAction::Accept),
        _ => Ok(false),
    }
}

fn server(acts: Arc<AtomicUsize>) -> Server {
    let book = move |cx: Cx, Arguments(arguments): Arguments| {
        let acts = acts.clone();
        async move {
            let first = agreed(&cx, "first").await?;
            let number = cx.once("act", async { acts.fetch_add(1, Ordering::SeqCst) + 1 }).await?;
            let second = agreed(&cx, "second").await?;
            Ok::<_, ToolError>(format!("{} {first} {number} {second}", arguments.as_str()))
        }
    };
    Server::new("booking", "1.0.0").tool(tool("book", book).description("Book."))
}

#[tokio::test]
async fn two_questions_and_an_act_between_them_in_a_session() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let acts = Arc::new(AtomicUsize::new(0));
        let mut client = Raw::new(&server(acts.clone()));
        client.open(revision, json!({"elicitation": {}})).await;
        let id = client.request("tools/call", json!({"name": "book", "arguments": {"to": "Oslo"}})).await;
        for _ in 0..2 {
            let question = client.recv().await;
            assert_eq!(question["method"], "elicitation/create", "{question}");
            let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"yes": true}}});
            client.send(answer).await;
        }
        let done = client.recv().await;
        assert_eq!(done["id"], id);
        assert_eq!(done["result"]["content"][0]["text"], r#"{"to":"Oslo"} true 1 true"#, "{done}");
        assert_eq!(acts.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn two_questions_and_an_act_between_them_without_a_session() {
    let acts = Arc::new(AtomicUsize::new(0));
    let mut client = Raw::new(&server(acts.clone()));
    let call = json!({"name": "book", "arguments": {"to": "Oslo"}});
    let mut params = call.clone();
    for key in ["first", "second"] {
        client.request("tools/call", modern(params, json!({"elicitation": {}}))).await;
        let asked = client.recv().await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        assert_eq!(asked["result"]["inputRequests"][key]["method"], "elicitation/create", "{asked}");
        params = call.clone();
        params["requestState"] = asked["result"]["requestState"].clone();
        params["inputResponses"][key] = json!({"action": "accept", "content": {"yes": true}});
    }
    client.request("tools/call", modern(params, json!({"elicitation": {}}))).await;
    let done = client.recv().await;
    assert_eq!(done["result"]["content"][0]["text"], r#"{"to":"Oslo"} true 1 true"#, "{done}");
    assert_eq!(acts.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_handler_that_panics_is_answered_and_the_others_go_on() {
    let boom = |cx: Cx| async move {
        assert!(cx.method().is_empty(), "boom");
        ""
    };
    let server = Server::new("s", "0").tool(tool("boom", boom)).tool(tool("fine", || async { "fine" }));
    let mut client = Raw::new(&server);
    client.request("tools/call", modern(json!({"name": "boom"}), json!({}))).await;
    assert_eq!(client.recv().await["error"]["code"], -32603);
    client.request("tools/call", modern(json!({"name": "fine"}), json!({}))).await;
    assert_eq!(client.recv().await["result"]["content"][0]["text"], "fine");
}
