//! Requests that stand alone, over HTTP.

use std::{sync::Arc, time::Duration};

use http::{Request, StatusCode};
use pintle::{
    Server,
    server::{Args, Arguments, Cx, Extension, HttpHead, Next, ToolError, around, http::Http, resource, tool},
    types::RawObject,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::http_client::{Answer, Wire};

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

fn adder() -> Server {
    Server::new("adder", "1.0.0").tool(tool("add", |Args(Add { a, b })| async move { a + b }))
}

async fn call(wire: &Wire, name: &str, arguments: Value) -> Answer {
    wire.modern(1, "tools/call", json!({"name": name, "arguments": arguments}), json!({})).await
}

#[tokio::test]
async fn an_answer_that_is_there_is_one_piece_of_json() {
    let wire = Wire::new(&adder().http().unwrap());
    let mut answer = call(&wire, "add", json!({"a": 1, "b": 2})).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("mcp-session-id"), None);
    let length = answer.length().unwrap();
    let piece = answer.piece().await.unwrap();
    assert_eq!(piece.len() as u64, length, "all of it at once");
    let reply: Value = serde_json::from_slice(&piece).unwrap();
    assert_eq!(reply["result"]["content"][0]["text"], "3");
    assert_eq!(reply["id"], 1);
}

#[tokio::test]
async fn statuses_say_whose_fault_it_is() {
    let wire = Wire::new(&adder().http().unwrap());
    let mut answer = wire.modern(7, "no/such", json!({}), json!({})).await;
    assert_eq!(answer.status, 404);
    let reply = answer.json().await;
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(7), &json!(-32601)));

    let mut answer = call(&wire, "subtract", json!({})).await;
    assert_eq!(answer.status, 200, "a call that failed is an answer");
    assert_eq!(answer.json().await["error"]["code"], -32602);

    let mut answer = call(&wire, "add", json!({"a": "x"})).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json().await["result"]["isError"], true);
}

#[tokio::test]
async fn discovery_needs_no_handler() {
    let wire = Wire::new(&adder().http().unwrap());
    let mut answer = wire.modern(1, "server/discover", json!({}), json!({})).await;
    assert_eq!(answer.status, 200);
    let result = answer.json().await;
    assert_eq!(result["result"]["supportedVersions"][0], "2026-07-28", "{result}");
}

#[tokio::test]
async fn a_notification_is_taken_in_silence_and_an_answer_is_refused() {
    let wire = Wire::new(&adder().http().unwrap()).with("mcp-protocol-version", "2026-07-28");
    let notified = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let mut taken = wire.with("mcp-method", "notifications/cancelled").post(notified).await;
    assert_eq!(taken.status, 202);
    assert!(taken.bytes().await.is_empty());
    let mut refused = wire.post(json!({"jsonrpc": "2.0", "id": 1, "result": {}})).await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json().await["error"]["code"], -32600);
}

#[tokio::test]
async fn a_header_that_disagrees_with_the_body_is_refused() {
    let server = Server::new("s", "0")
        .tool(tool("find", |_: Cx| async { "found" }).input_schema(json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"}}})));
    let wire = Wire::new(&server.http().unwrap());
    let mut answer = call(&wire, "find", json!({"region": "west"})).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json().await["error"]["code"], -32020);
    let mut answer = call(&wire.with("mcp-param-region", "west"), "find", json!({"region": "west"})).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json().await["result"]["content"][0]["text"], "found");
}

#[tokio::test]
async fn headers_repeat_what_the_client_sent_whatever_a_layer_makes_of_it() {
    let schema =
        || json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let echo = |Arguments(arguments): Arguments| async move { arguments.as_str().to_owned() };
    let north = |cx: Cx, next: Next| async move {
        let params = json!({"name": "found", "arguments": {"region": "north"}});
        next.run(cx.with_params(RawObject::from_serialize(&params).unwrap())).await
    };
    let server = Server::new("s", "0")
        .tool(tool("find", echo).input_schema(schema()))
        .tool(tool("found", echo).input_schema(schema()))
        .layer(&around(north));
    let wire = Wire::new(&server.http().unwrap());
    let west = || json!({"region": "west"});
    let mut answer = call(&wire.with("mcp-param-region", "west"), "find", west()).await;
    let answer = answer.json().await;
    assert_eq!(answer["result"]["content"][0]["text"], r#"{"region":"north"}"#, "{answer}");
    for header in ["north", ""] {
        let mut lie = call(&wire.with("mcp-param-region", header), "find", west()).await;
        assert_eq!(lie.json().await["error"]["code"], -32020, "{header}");
    }
}

#[tokio::test]
async fn an_annotation_that_cannot_be_mirrored_is_the_authors_fault() {
    let server = Server::new("s", "0").tool(tool("t", |_: Cx| async { "" }).input_schema(
        json!({"type": "object", "properties": {"ratio": {"type": "number", "x-mcp-header": "Ratio"}}}),
    ));
    assert!(server.http().unwrap_err().to_string().contains("`x-mcp-header` at `/properties/ratio`"));
}

fn talker() -> Server {
    Server::new("talker", "0").logging().tool(tool("count", |cx: Cx| async move {
        for n in 1..=3 {
            cx.progress_with(f64::from(n), 3.0, "counting").await;
        }
        "counted"
    }))
}

#[tokio::test]
async fn the_first_word_makes_a_stream_of_the_answer() {
    let wire = Wire::new(&talker().http().unwrap());
    let mut quiet = call(&wire, "count", json!({})).await;
    assert!(!quiet.is_stream(), "nobody asked for progress");
    assert_eq!(quiet.json().await["result"]["content"][0]["text"], "counted");

    let params = json!({"name": "count", "_meta": {"progressToken": "p"}});
    let mut answer = wire.modern(2, "tools/call", params.clone(), json!({})).await;
    assert_eq!(answer.status, 200);
    assert!(answer.is_stream());
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
    assert_eq!(answer.header("cache-control"), Some("no-cache"));
    let first = answer.event().await.unwrap();
    assert_eq!((first.id, first.retry), (None, None), "there is no coming back");
    let messages = answer.messages().await;
    let done: Vec<_> = messages.iter().map(|message| &message["params"]["progress"]).collect();
    assert_eq!(done, [&json!(2.0), &json!(3.0), &Value::Null]);
    assert_eq!(messages[2]["result"]["content"][0]["text"], "counted");

    let mut json =
        wire.with("accept", "application/json").modern(3, "tools/call", params.clone(), json!({})).await;
    assert_eq!(json.json().await["result"]["content"][0]["text"], "counted", "no place for words");
    let only = Wire::new(&talker().http().unwrap().json_only());
    assert!(!only.modern(4, "tools/call", params, json!({})).await.is_stream());
    let mut events =
        wire.with("accept", "text/event-stream").modern(5, "tools/list", json!({}), json!({})).await;
    assert_eq!(events.messages().await.len(), 1, "what is not acceptable as JSON is an event");
}

#[tokio::test(start_paused = true)]
async fn a_long_silence_opens_a_stream_and_keeps_it_alive() {
    let server = Server::new("s", "0").tool(tool("sleep", || async {
        tokio::time::sleep(Duration::from_secs(40)).await;
        "awake"
    }));
    let wire = Wire::new(&server.http().unwrap());
    let begun = tokio::time::Instant::now();
    let mut answer = call(&wire, "sleep", json!({})).await;
    assert_eq!(begun.elapsed().as_secs(), 15);
    assert!(answer.is_stream());
    let mut pieces = Vec::new();
    while let Some(piece) = answer.piece().await {
        pieces.push((begun.elapsed().as_secs(), String::from_utf8(piece).unwrap()));
    }
    assert_eq!(pieces[0], (30, ":\n\n".to_owned()));
    assert_eq!(pieces[1].0, 40);
    assert!(pieces[1].1.contains("awake"));
    assert_eq!(pieces.len(), 2);
}

/// Says when it is dropped.
struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn hanging_up_cancels() {
    let (begun, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let signals = (begun.clone(), ended.clone());
    let server = Server::new("s", "0").tool(tool("wait", move |cx: Cx| {
        let (begun, ended) = signals.clone();
        async move {
            let _dropped = Dropped(ended);
            cx.progress(1.0, None).await;
            begun.notify_one();
            std::future::pending::<()>().await;
            ""
        }
    }));
    let wire = Wire::new(&server.http().unwrap());
    // Before there was an answer,
    let silent = tokio::spawn({
        let wire = wire.clone();
        async move { call(&wire, "wait", json!({})).await }
    });
    begun.notified().await;
    silent.abort();
    ended.notified().await;
    // and in the middle of its stream.
    let params = json!({"name": "wait", "_meta": {"progressToken": 1}});
    let mut answer = wire.modern(1, "tools/call", params, json!({})).await;
    assert_eq!(answer.message().await.unwrap()["params"]["progress"], 1.0);
    drop(answer);
    ended.notified().await;
}

#[tokio::test]
async fn a_question_ends_the_round_and_its_answer_begins_another() {
    #[derive(Deserialize, JsonSchema)]
    struct Seat {
        seat: String,
    }
    let server = Server::new("s", "0").tool(tool("book", |cx: Cx| async move {
        let seat = cx.elicit::<Seat>("seat", "Which seat?").await?.accepted();
        Ok::<_, ToolError>(format!("booked {}", seat.map_or_else(String::new, |seat| seat.seat)))
    }));
    let wire = Wire::new(&server.http().unwrap());
    let can = json!({"elicitation": {}});
    let mut params = json!({"name": "book"});
    let asked = wire.modern(1, "tools/call", params.clone(), can.clone()).await.json().await["result"].take();
    assert_eq!(asked["resultType"], "input_required");
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({"seat": {"action": "accept", "content": {"seat": "7A"}}});
    let answer = wire.modern(2, "tools/call", params, can).await.json().await;
    assert_eq!(answer["result"]["content"][0]["text"], "booked 7A");

    let mut answer = wire.modern(3, "tools/call", json!({"name": "book"}), json!({})).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json().await["error"]["code"], -32021);
}

#[tokio::test]
async fn what_layers_leave_reaches_the_handler() {
    #[derive(Clone)]
    struct User(&'static str);
    let server = Server::new("s", "0").tool(tool(
        "who",
        |cx: Cx, Extension(user): Extension<User>, head: HttpHead| async move {
            format!("{} {} {}", cx.principal().unwrap(), user.0, head.headers["user-agent"].to_str().unwrap())
        },
    ));
    let http = server.http().unwrap().principal(|head| Some(head.extensions.get::<User>()?.0.to_uppercase()));
    let wire = Wire::new(&http).with("user-agent", "hands");
    let params = crate::support::line_client::modern(json!({"name": "who"}), json!({}));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let dressed = wire
        .with("mcp-protocol-version", "2026-07-28")
        .with("mcp-method", "tools/call")
        .with("mcp-name", "who");
    let mut request: Request<String> = dressed.request("POST", "/mcp", body);
    request.extensions_mut().insert(User("ann"));
    let answer = wire.send(request).await.json().await;
    assert_eq!(answer["result"]["content"][0]["text"], "ANN ann hands");
}

#[tokio::test]
async fn a_subscription_receives_what_it_requested_and_ends_with_a_result() {
    let server = adder().resource(resource("note://1", "one", || async { "" }));
    let http: Http = server.http().unwrap();
    let wire = Wire::new(&http);
    let wanted = json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["note://1"]}});
    let mut stream = wire.modern(9, "subscriptions/listen", wanted, json!({})).await;
    assert_eq!(stream.status, StatusCode::OK);
    assert_eq!(stream.message().await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    server.add_tool(tool("other", || async { "" })).unwrap();
    server.resource_updated("note://1");
    server.resource_updated("note://2");
    for method in ["notifications/tools/list_changed", "notifications/resources/updated"] {
        let received = stream.message().await.unwrap();
        assert_eq!(received["method"], method);
        assert_eq!(received["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 9, "{received}");
    }
    http.close_streams();
    let rest = stream.messages().await;
    assert_eq!((rest.len(), &rest[0]["id"]), (1, &json!(9)));
    assert!(rest[0]["result"].is_object());
}

#[tokio::test]
async fn as_many_subscriptions_as_one_may_hold() {
    let mut limits = pintle::proto::Limits::default();
    limits.subscriptions = 1;
    let wire = Wire::new(&adder().limits(limits).http().unwrap().principal(|_| Some("ann".to_owned())));
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let first = wire.modern(1, "subscriptions/listen", wanted.clone(), json!({})).await;
    assert!(first.is_stream());
    let mut second = wire.modern(2, "subscriptions/listen", wanted.clone(), json!({})).await;
    assert_eq!(second.json().await["error"]["message"], "1 subscriptions are open: end one first");
    drop(first);
    assert!(wire.modern(3, "subscriptions/listen", wanted, json!({})).await.is_stream());
}

#[tokio::test]
async fn a_handler_that_panics_fails_its_call_only() {
    let server = adder().tool(tool("bad", || async { panic!("secret") as &str }));
    let wire = Wire::new(&server.http().unwrap());
    let answer = call(&wire, "bad", json!({})).await.json().await;
    assert_eq!(answer["error"]["message"], "the handler failed: see the server's log");
    assert_eq!(call(&wire, "add", json!({"a": 1, "b": 1})).await.status, 200);
}
