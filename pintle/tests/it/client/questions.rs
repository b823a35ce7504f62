//! What servers ask, answered by the same handlers in both eras.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Client, Connection, Error,
    client::{Answer, Cx, Next, Roots, around},
    types::{
        RpcError,
        schema::{ContentBlock, CreateMessageResult},
    },
};
use pintle_testing::Peer;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::support::scripted_server::{BOTH, SESSION, STATELESS, client, open, settle, text};

/// Lets the server ask, in its era's way, while `call` is open; then finishes the call. Returns the answers.
async fn ask(peer: &mut Peer, revision: &str, call: &Value, questions: Value) -> Value {
    if revision == STATELESS {
        let result = json!({"resultType": "input_required", "inputRequests": questions, "requestState": "s"});
        peer.answers(call, result).await;
        let retry = peer.receives("tools/call").await;
        assert_eq!(retry["params"]["requestState"], "s");
        assert_ne!(retry["id"], call["id"]);
        peer.answers(&retry, text("done")).await;
        return retry["params"]["inputResponses"].clone();
    }
    for (key, question) in questions.as_object().unwrap() {
        peer.asks(key.as_str(), question["method"].as_str().unwrap(), question["params"].clone()).await;
    }
    let mut answers = serde_json::Map::new();
    for _ in 0..questions.as_object().unwrap().len() {
        let answer = peer.next().await.unwrap();
        let detail = answer.get("result").or(answer.get("error")).unwrap();
        answers.insert(answer["id"].as_str().unwrap().to_owned(), detail.clone());
    }
    peer.answers(call, text("done")).await;
    answers.into()
}

/// One call during which the server asks.
async fn call_and_ask(server: &Connection, peer: &mut Peer, revision: &str, questions: Value) -> Value {
    let script = async {
        let call = peer.receives("tools/call").await;
        ask(peer, revision, &call, questions).await
    };
    let (result, answers) = tokio::join!(server.call_tool("t", json!({"n": 1})), script);
    assert_eq!(result.unwrap().content[0].as_text(), Some("done"));
    answers
}

fn form() -> Value {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 3}},
        "required": ["city"]
    });
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": "Where?", "requestedSchema": schema}})
}

#[tokio::test(start_paused = true)]
async fn one_handler_answers_forms_in_both_eras() {
    let client = client().on_elicit(|question| async move {
        assert_eq!(question.message, "Where?");
        assert_eq!(question.server.as_ref().unwrap().name, "played");
        Answer::accept(json!({"city": "Bergen"}))
    });
    for revision in BOTH {
        let (server, mut peer) = open(&client, revision, json!({})).await;
        let answers = call_and_ask(&server, &mut peer, revision, json!({"where": form()})).await;
        assert_eq!(answers["where"], json!({"action": "accept", "content": {"city": "Bergen", "days": 3}}));
    }
}

#[tokio::test(start_paused = true)]
async fn the_handlers_are_the_capabilities() {
    let all = client()
        .on_elicit(|_| async { Answer::Decline })
        .on_elicit_url(|_| async { Answer::Decline })
        .on_sample(|_| async { CreateMessageResult::new("m", ContentBlock::text("a")) })
        .sample_with_tools(true)
        .roots(["file:///a"])
        .extension("com.example/x", serde_json::Map::new());
    let offers = |client: Client| async move {
        let (mut peer, transport) = Peer::new();
        let connecting = tokio::spawn(async move { client.connect(transport).await });
        let probe = peer.receives("server/discover").await;
        connecting.abort();
        probe["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone()
    };
    assert_eq!(
        offers(all).await,
        json!({
            "elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {},
            "extensions": {"com.example/x": {}}
        })
    );
    assert_eq!(offers(client()).await, json!({}));
}

#[tokio::test(start_paused = true)]
async fn samples_and_roots_are_answered_in_both_eras() {
    let roots = Roots::new(["file:///a"]).unwrap();
    let client = client().roots(&roots).on_sample(|question| async move {
        CreateMessageResult::new("m", ContentBlock::text(format!("{} messages", question.messages.len())))
    });
    for revision in BOTH {
        let (server, mut peer) = open(&client, revision, json!({})).await;
        let sample = json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}});
        let questions = json!({"model": sample, "where": {"method": "roots/list", "params": {}}});
        let answers = call_and_ask(&server, &mut peer, revision, questions).await;
        assert_eq!(answers["model"]["content"], json!({"type": "text", "text": "0 messages"}));
        assert_eq!(answers["where"], json!({"roots": [{"uri": "file:///a"}]}));
    }
}

#[tokio::test(start_paused = true)]
async fn the_questions_of_one_round_are_thought_about_at_the_same_time() {
    // Each handler waits for the other.
    for revision in BOTH {
        let meeting = Arc::new(tokio::sync::Barrier::new(2));
        let client = client().on_elicit(move |_| {
            let meeting = meeting.clone();
            async move {
                meeting.wait().await;
                Answer::accept(json!({"city": "x"}))
            }
        });
        let (server, mut peer) = open(&client, revision, json!({})).await;
        let answers = call_and_ask(&server, &mut peer, revision, json!({"a": form(), "b": form()})).await;
        assert_eq!(answers.as_object().unwrap().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_or_fails_is_an_answer() {
    for (client, detail) in [
        (
            client().on_elicit(|question| async move {
                assert!(question.message.is_empty(), "this handler is broken");
                Answer::Decline
            }),
            "the client failed to answer",
        ),
        (client().on_elicit(|_| async { Err::<Answer, _>(RpcError::internal("no screen")) }), "no screen"),
        (
            client().on_elicit(|_| async { Answer::accept(json!({})) }),
            "the answer lacks `city`, which the form requires",
        ),
    ] {
        let (server, mut peer) = open(&client, SESSION, json!({})).await;
        let answers = call_and_ask(&server, &mut peer, SESSION, json!({"a": form()})).await;
        assert_eq!(answers["a"], json!({"code": -32603, "message": detail}));

        // There is no way to say so in the other era: the call is given up.
        let (server, mut peer) = open(&client, STATELESS, json!({})).await;
        let script = async {
            let call = peer.receives("tools/call").await;
            peer.answers(&call, json!({"resultType": "input_required", "inputRequests": {"a": form()}}))
                .await;
        };
        let (result, ()) = tokio::join!(server.call_tool("t", json!({})), script);
        let error = result.unwrap_err();
        assert!(matches!(&error, Error::Refused(text) if text.contains(detail)), "{error}");
        settle().await;
        assert_eq!(peer.receives_now().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn rounds_send_only_their_own_answers_and_end_some_time() {
    let asked = Arc::new(AtomicUsize::new(0));
    let client = client().on_elicit({
        let asked = asked.clone();
        move |_| {
            let count = asked.fetch_add(1, Ordering::Relaxed);
            async move { Answer::accept(json!({"city": format!("{count}")})) }
        }
    });
    let (server, mut peer) = open(&client, STATELESS, json!({})).await;
    let script = async {
        let first = peer.receives("prompts/get").await;
        let result =
            json!({"resultType": "input_required", "inputRequests": {"one": form()}, "requestState": "1"});
        peer.answers(&first, result).await;
        let second = peer.receives("prompts/get").await;
        peer.answers(&second, json!({"resultType": "input_required", "inputRequests": {"two": form()}}))
            .await;
        let third = peer.receives("prompts/get").await;
        assert_eq!(third["params"]["inputResponses"]["two"]["content"]["city"], "1");
        assert_eq!(third["params"]["inputResponses"].as_object().unwrap().len(), 1);
        assert_eq!(third["params"].get("requestState"), None);
        assert_eq!(third["params"]["arguments"], json!({"a": "b"}));
        peer.answers(&third, json!({"resultType": "complete", "messages": []})).await;
    };
    let (result, ()) = tokio::join!(server.get_prompt("p", json!({"a": "b"})), script);
    result.unwrap();

    let script = async {
        for _ in 0..17 {
            let call = peer.receives("tools/call").await;
            peer.answers(&call, json!({"resultType": "input_required", "requestState": "more"})).await;
        }
    };
    let (result, ()) = tokio::join!(server.call_tool("t", ()), script);
    assert!(result.unwrap_err().to_string().starts_with("the server still asks questions after 16 rounds"));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_withdrawn_is_no_longer_thought_about() {
    let (gone, dropped) = oneshot::channel::<()>();
    let gone = Arc::new(std::sync::Mutex::new(Some(gone)));
    let client = client().on_elicit(move |_| {
        let held = gone.lock().unwrap().take();
        async move {
            let _held = held;
            std::future::pending::<Answer>().await
        }
    });
    let (server, mut peer) = open(&client, SESSION, json!({})).await;
    let script = async {
        let call = peer.receives("tools/call").await;
        peer.asks(1, "elicitation/create", form()["params"].clone()).await;
        settle().await;
        peer.notifies("notifications/cancelled", json!({"requestId": 1})).await;
        assert!(dropped.await.is_err(), "the handler was dropped");
        peer.answers(&call, text("done")).await;
    };
    let (result, ()) = tokio::join!(server.call_tool("t", ()), script);
    assert!(result.is_ok());
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_stops_its_handlers() {
    let (gone, dropped) = oneshot::channel::<()>();
    let gone = Arc::new(std::sync::Mutex::new(Some(gone)));
    let client = client().on_elicit(move |_| {
        let held = gone.lock().unwrap().take();
        async move {
            let _held = held;
            std::future::pending::<Answer>().await
        }
    });
    let (server, mut peer) = open(&client, STATELESS, json!({})).await;
    let call = tokio::spawn(async move { server.call_tool("t", ()).await });
    let asked = peer.receives("tools/call").await;
    peer.answers(&asked, json!({"resultType": "input_required", "inputRequests": {"a": form()}})).await;
    settle().await;
    call.abort();
    assert!(dropped.await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_time_that_people_take_is_not_the_servers() {
    let client = client().on_elicit(|_| async {
        tokio::time::sleep(Duration::from_secs(100)).await;
        Answer::accept(json!({"city": "x"}))
    });
    for revision in BOTH {
        let (server, mut peer) = open(&client, revision, json!({})).await;
        call_and_ask(&server, &mut peer, revision, json!({"a": form()})).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_is_shown_and_the_call_tried_again() {
    let client = client().on_elicit_url(|question| async move {
        assert_eq!(question.url, "https://example.com/pay");
        Answer::Accept(Value::Null)
    });
    let (server, mut peer) = open(&client, SESSION, json!({})).await;
    let url =
        json!({"mode": "url", "message": "Pay", "url": "https://example.com/pay", "elicitationId": "e"});
    let required = |call: &Value| json!({"id": call["id"], "error": {"code": -32042, "message": "pay first", "data": {"elicitations": [url.clone()]}}});
    let script = async {
        let call = peer.receives("tools/call").await;
        peer.sends(required(&call)).await;
        settle().await;
        assert_eq!(peer.receives_now().await, None, "the user has agreed, and is not done");
        peer.notifies("notifications/elicitation/complete", json!({"elicitationId": "e"})).await;
        let again = peer.receives("tools/call").await;
        peer.answers(&again, text("paid")).await;

        // A server that insists is not believed twice.
        let call = peer.receives("tools/call").await;
        peer.sends(required(&call)).await;
        let again = peer.receives("tools/call").await;
        peer.sends(required(&again)).await;
    };
    let calls = async {
        assert_eq!(server.call_tool("t", ()).await.unwrap().content[0].as_text(), Some("paid"));
        let error = server.call_tool("t", ()).await.unwrap_err();
        assert!(matches!(&error, Error::Rpc(error) if error.code.0 == -32042), "{error}");
    };
    tokio::join!(calls, script);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_must_not_be_opened_reaches_no_handler() {
    let client = client().on_elicit_url(|question| async move {
        assert_eq!(question.host, "example.com", "{}", question.url);
        Answer::Accept(Value::Null)
    });
    let page = |url: &str| json!({"mode": "url", "message": "Pay", "url": url, "elicitationId": "e"});
    for url in
        ["javascript://example.com/%0aalert(1)", "https://example.com@evil.test/", "http://example.com/"]
    {
        let (server, mut peer) = open(&client, SESSION, json!({})).await;
        peer.asks(7, "elicitation/create", page(url)).await;
        let refused = peer.next().await.unwrap();
        assert_eq!(refused["error"]["code"], -32602, "{url}: {refused}");
        let script = async {
            let call = peer.receives("tools/call").await;
            let data = json!({"elicitations": [page(url)]});
            peer.sends(json!({"id": call["id"], "error": {"code": -32042, "message": "pay", "data": data}}))
                .await;
        };
        let (refused, ()) = tokio::join!(server.call_tool("t", ()), script);
        let refused = refused.unwrap_err();
        assert!(
            matches!(&refused, Error::Refused(detail) if detail.contains("its `url` ")),
            "{url}: {refused:?}"
        );

        let (server, mut peer) = open(&client, STATELESS, json!({})).await;
        let script = async {
            let call = peer.receives("tools/call").await;
            let asks = json!({"pay": {"method": "elicitation/create", "params": page(url)}});
            peer.answers(&call, json!({"resultType": "input_required", "inputRequests": asks})).await;
        };
        let (refused, ()) = tokio::join!(server.call_tool("t", ()), script);
        let refused = refused.unwrap_err();
        assert!(
            matches!(&refused, Error::Refused(detail) if detail.contains("its `url` ")),
            "{url}: {refused:?}"
        );
    }
    let (_server, mut peer) = open(&client, SESSION, json!({})).await;
    peer.asks(8, "elicitation/create", page("https://EXAMPLE.com:443/pay")).await;
    assert_eq!(peer.next().await.unwrap()["result"]["action"], "accept");
}

#[tokio::test(start_paused = true)]
async fn servers_are_told_when_the_roots_change() {
    let roots = Roots::new(["file:///a"]).unwrap();
    let client = client().roots(&roots);
    let (_server, mut peer) = open(&client, SESSION, json!({})).await;
    roots.add("file:///b").unwrap();
    peer.receives("notifications/roots/list_changed").await;
    peer.asks(1, "roots/list", json!({})).await;
    assert_eq!(
        peer.next().await.unwrap()["result"],
        json!({"roots": [{"uri": "file:///a"}, {"uri": "file:///b"}]})
    );
    roots.remove("file:///nowhere").unwrap();
    roots.add("file:///b").unwrap();
    settle().await;
    assert_eq!(peer.receives_now().await, None, "nothing has changed");

    // In the other era there is no such notification.
    let (server, mut peer) = open(&client, STATELESS, json!({})).await;
    roots.set(["file:///c"]).unwrap();
    server.notify_roots_changed().await.unwrap();
    settle().await;
    assert_eq!(peer.receives_now().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_handler_reports_progress_of_its_answer_if_the_server_asked_for_it() {
    async fn answered(layered: bool, token: Option<&str>) -> Vec<Value> {
        let seen = Arc::new(AtomicUsize::new(0));
        let count = seen.clone();
        let client = client().on_sample(|question| async move {
            question.progress(1.0, 2.0).await;
            question.progress(0.5, None).await;
            question.progress_with(2.0, 2.0, "nearly").await;
            let late = question.clone();
            tokio::spawn(async move {
                settle().await;
                late.progress(3.0, None).await;
            });
            CreateMessageResult::new("m", ContentBlock::text("four"))
        });
        let client = match layered {
            true => client.layer(&around(move |cx: Cx, next: Next| {
                count.fetch_add(usize::from(cx.method() == "notifications/progress"), Ordering::Relaxed);
                next.run(cx)
            })),
            false => client,
        };
        let (_connection, mut peer) = open(&client, SESSION, json!({})).await;
        let mut params = json!({"messages": [], "maxTokens": 1});
        if let Some(token) = token {
            params["_meta"] = json!({"progressToken": token});
        }
        peer.asks(1, "sampling/createMessage", params).await;
        let mut sent = Vec::new();
        loop {
            let message = peer.next().await.unwrap();
            let over = message.get("result").is_some();
            sent.push(message["params"].clone());
            if over {
                break;
            }
        }
        settle().await;
        settle().await;
        assert_eq!(peer.receives_now().await, None, "progress after the answer");
        let reports = if layered && token.is_some() { 2..=3 } else { 0..=0 };
        assert!(reports.contains(&seen.load(Ordering::Relaxed)));
        sent
    }

    for layered in [false, true] {
        assert_eq!(answered(layered, None).await, [Value::Null]);
        let expected = [
            json!({"progressToken": "p", "progress": 1, "total": 2}),
            json!({"progressToken": "p", "progress": 2, "total": 2, "message": "nearly"}),
            Value::Null,
        ];
        assert_eq!(answered(layered, Some("p")).await, expected);
    }
}
