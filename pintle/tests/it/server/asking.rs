//! Asking for more than forms: the client's model, its directories, a page for its user. And who may bring back what.

use pintle::{
    Server,
    proto::Limits,
    server::{Caller, Cx, ToolError, prompt, resource, tool},
    types::schema::{CreateMessageParams, CreateMessageResult},
};
use serde_json::{Value, json};

use crate::support::{
    eras::{ALL, Client, R1, R2, R3, R4, R5, WITH_FORMS, each},
    line_client::{Raw, modern},
};

fn text_of(result: &CreateMessageResult) -> String {
    serde_json::to_value(&result.content).unwrap().to_string()
}

#[tokio::test]
async fn the_clients_model_writes_in_every_revision() {
    let poem = |cx: Cx| async move {
        let params = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "A poem."}}],
            "maxTokens": 100, "systemPrompt": "Be short."});
        let request: CreateMessageParams = serde_json::from_value(params).unwrap();
        let result = cx.sample("poem", request).await?;
        Ok::<_, ToolError>(text_of(&result))
    };
    let server = Server::new("s", "0").tool(tool("poem", poem));
    each(&server, &ALL, json!({"sampling": {}}), async |client: &mut Client| {
        client.answer = Box::new(|method, params| {
            assert_eq!(method, "sampling/createMessage");
            assert_eq!((&params["maxTokens"], &params["systemPrompt"]), (&json!(100), &json!("Be short.")));
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Roses."}})
        });
        let text = client.tool("poem").await;
        assert!(text.contains(r#""text":"Roses.""#), "{text}");
        assert_eq!(client.questions, 1);
    })
    .await;
}

#[tokio::test]
async fn the_directories_of_the_client_in_every_revision_and_from_every_kind_of_handler() {
    async fn names(cx: &Cx) -> Result<String, pintle::server::AskError> {
        Ok(cx.roots().await?.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
    }
    let server = Server::new("s", "0")
        .tool(tool("roots", |cx: Cx| async move { Ok::<_, ToolError>(names(&cx).await?) }))
        .prompt(prompt("roots", |cx: Cx| async move { names(&cx).await }))
        .resource(resource("x://roots", "roots", |cx: Cx| async move { names(&cx).await }));
    each(&server, &ALL, json!({"roots": {}}), async |client: &mut Client| {
        client.answer = Box::new(|method, _| {
            assert_eq!(method, "roots/list");
            json!({"roots": [{"uri": "file:///a"}, {"uri": "file:///b", "name": "b"}]})
        });
        let both = "file:///a file:///b";
        assert_eq!(client.tool("roots").await, both);
        let got = client.call("prompts/get", json!({"name": "roots"})).await;
        assert_eq!(got["result"]["messages"][0]["content"]["text"], both);
        let read = client.call("resources/read", json!({"uri": "x://roots"})).await;
        assert_eq!(read["result"]["contents"][0]["text"], both);
    })
    .await;
}

#[tokio::test]
async fn a_page_for_the_user_where_the_client_can_open_one() {
    let pay = |cx: Cx| async move {
        if !cx.can_elicit_url() {
            return Ok("pay at https://example.com/pay".to_owned());
        }
        let agreed = cx.elicit_url("pay", "Pay there.", "https://example.com/pay").await?;
        Ok::<_, ToolError>(agreed.to_string())
    };
    let server = Server::new("s", "0").tool(tool("pay", pay));
    each(&server, &[R4, R5], json!({"elicitation": {"url": {}}}), async |client: &mut Client| {
        client.answer = Box::new(|_, params| {
            assert_eq!((&params["mode"], &params["url"]), (&json!("url"), &json!("https://example.com/pay")));
            json!({"action": "accept"})
        });
        assert_eq!(client.tool("pay").await, "true");
        client.answer = Box::new(|_, _| json!({"action": "decline"}));
        assert_eq!(client.tool("pay").await, "false");
    })
    .await;
    each(&server, &WITH_FORMS, json!({"elicitation": {}}), async |client: &mut Client| {
        assert_eq!(client.tool("pay").await, "pay at https://example.com/pay");
    })
    .await;
}

#[tokio::test]
async fn roots_are_asked_for_again_in_a_session() {
    let twice = |cx: Cx| async move {
        let before = cx.roots().await?.remove(0).uri;
        let now = cx.roots().await?.remove(0).uri;
        Ok::<_, ToolError>(format!("{before} {now}"))
    };
    let server = Server::new("s", "0").tool(tool("twice", twice));
    each(&server, &ALL, json!({"roots": {"listChanged": true}}), async |client: &mut Client| {
        let mut asked = 0;
        client.answer = Box::new(move |_, _| {
            asked += 1;
            json!({"roots": [{"uri": format!("file:///{asked}")}]})
        });
        // Without a session the answer belongs to the call: it would be another if the handler ran again.
        let expected = match client.is_stateless() {
            false => ["file:///1 file:///2", "file:///3 file:///4"],
            true => ["file:///1 file:///1", "file:///2 file:///2"],
        };
        for expected in expected {
            assert_eq!(client.tool("twice").await, expected);
        }
    })
    .await;
}

#[tokio::test]
async fn the_client_is_notified_that_the_user_is_done() {
    let pay = |cx: Cx| async move {
        cx.elicit_url("pay", "Pay there.", "https://example.com/pay").await?;
        Ok::<_, ToolError>(cx.elicitation_complete("pay").await.to_string())
    };
    let server = Server::new("s", "0").tool(tool("pay", pay));
    each(&server, &[R4, R5], json!({"elicitation": {"url": {}}}), async |client: &mut Client| {
        let (sender, ids) = std::sync::mpsc::channel();
        client.answer = Box::new(move |_, params| {
            sender.send(params.get("elicitationId").cloned()).unwrap();
            json!({"action": "accept"})
        });
        if client.is_stateless() {
            assert_eq!(client.tool("pay").await, "false");
            assert_eq!(ids.recv(), Ok(None));
            assert!(client.received().is_empty());
            return;
        }
        let mut seen = Vec::new();
        for _ in 0..2 {
            assert_eq!(client.tool("pay").await, "true");
            let notified = client.receive().await;
            assert_eq!(notified["method"], "notifications/elicitation/complete");
            assert_eq!(Some(notified["params"]["elicitationId"].clone()), ids.recv().unwrap());
            seen.push(notified["params"]["elicitationId"].clone());
        }
        assert_ne!(seen[0], seen[1], "each question has its own id");
    })
    .await;
}

#[tokio::test]
async fn context_is_requested_of_clients_that_declare_it() {
    let sample = |cx: Cx| async move {
        let params = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "A poem."}}],
            "maxTokens": 100, "includeContext": "thisServer"});
        let request: CreateMessageParams = serde_json::from_value(params).unwrap();
        let asked = cx.sample("poem", request).await;
        Ok::<_, ToolError>(match asked {
            Ok(_) => format!("{}", cx.can_sample_with_context()),
            Err(error) => error.to_string(),
        })
    };
    let server = Server::new("s", "0").tool(tool("sample", sample));
    let answer = |_: &str, params: &Value| {
        assert_eq!(params["includeContext"], "thisServer");
        json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Roses."}})
    };
    each(&server, &[R4, R5], json!({"sampling": {"context": {}}}), async |client: &mut Client| {
        client.answer = Box::new(answer);
        assert_eq!(client.tool("sample").await, "true");
    })
    .await;
    // Clients of these revisions cannot declare it.
    each(&server, &[R1, R2, R3], json!({"sampling": {}}), async |client: &mut Client| {
        client.answer = Box::new(answer);
        assert_eq!(client.tool("sample").await, "false");
    })
    .await;
    each(&server, &[R4, R5], json!({"sampling": {}}), async |client: &mut Client| {
        let error = client.tool("sample").await;
        assert!(error.contains("context"), "{error}");
        assert_eq!(client.questions, 0);
    })
    .await;
}

/// Makes the first round of a call and returns what the client is to bring back.
async fn asked(server: &Server, caller: Caller, call: &Value) -> (Raw, String) {
    let mut raw = Raw::known(server, caller);
    raw.request("tools/call", modern(call.clone(), json!({"roots": {}}))).await;
    let state = raw.recv().await["result"]["requestState"].as_str().unwrap().to_owned();
    (raw, state)
}

async fn brought(raw: &mut Raw, mut call: Value, state: &str) -> Value {
    call["requestState"] = state.into();
    call["inputResponses"] = json!({"roots": {"roots": []}});
    raw.request("tools/call", modern(call, json!({"roots": {}}))).await;
    raw.recv().await
}

#[tokio::test]
async fn a_state_that_was_tampered_with_or_is_anothers_or_old_is_refused() {
    let ask = |cx: Cx| async move {
        cx.roots().await?;
        Ok::<_, ToolError>("done")
    };
    let server = Server::new("s", "0").tool(tool("ask", ask)).tool(tool("other", ask));
    let ann = || Caller::new().principal("ann");
    let call = json!({"name": "ask", "arguments": {"a": 1}});
    let (mut raw, state) = asked(&server, ann(), &call).await;
    let fine = brought(&mut raw, call.clone(), &state).await;
    assert_eq!(fine["result"]["content"][0]["text"], "done", "{fine}");

    let mut tampered = state.clone();
    let last = if tampered.pop() == Some('A') { 'B' } else { 'A' };
    tampered.push(last);
    assert_eq!(brought(&mut raw, call.clone(), &tampered).await["error"]["code"], -32602);
    let other_tool = json!({"name": "other", "arguments": {"a": 1}});
    assert_eq!(brought(&mut raw, other_tool, &state).await["error"]["code"], -32602);
    let other_arguments = json!({"name": "ask", "arguments": {"a": 2}});
    assert_eq!(brought(&mut raw, other_arguments, &state).await["error"]["code"], -32602);
    for caller in [Caller::new().principal("bob"), Caller::new()] {
        let mut stranger = Raw::known(&server, caller);
        assert_eq!(brought(&mut stranger, call.clone(), &state).await["error"]["code"], -32602);
    }
    let mut elsewhere = Raw::known(&Server::new("s", "0").tool(tool("ask", ask)), ann());
    assert_eq!(brought(&mut elsewhere, call.clone(), &state).await["error"]["code"], -32602, "another key");

    let mut limits = Limits::default();
    limits.state_ttl_ms = 0;
    let (mut raw, state) = asked(&server.limits(limits), ann(), &call).await;
    let old = brought(&mut raw, call, &state).await;
    assert_eq!(old["error"]["code"], -32602);
    assert_eq!(old["error"]["message"], "`requestState` has expired: start the call again");
}
