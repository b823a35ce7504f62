//! `#[pintle::tool]` on functions.

use pintle::{
    Server,
    server::{Args, Arguments, Cx, Extension, FromCall, Json, Outcome, State, ToolError},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::line_client::{Raw, modern};

/// Add two integers.
#[pintle::tool]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

mod elsewhere {
    /// Take the second from the first.
    ///
    /// May be negative.
    #[pintle::tool(name = "subtract", title = "Subtract", read_only, idempotent, open_world = false)]
    pub(crate) fn sub(a: i64, b: i64) -> i64 {
        a - b
    }
}

pub(crate) async fn listed(server: &Server) -> Vec<Value> {
    let mut client = Raw::new(server);
    client.request("tools/list", modern(json!({}), json!({}))).await;
    client.recv().await["result"]["tools"].as_array().unwrap().clone()
}

pub(crate) async fn call(server: &Server, name: &str, arguments: Value) -> Value {
    let mut client = Raw::new(server);
    client.request("tools/call", modern(json!({"name": name, "arguments": arguments}), json!({}))).await;
    client.recv().await["result"].clone()
}

pub(crate) async fn text_of(server: &Server, name: &str, arguments: Value) -> String {
    call(server, name, arguments).await["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_smallest_server_answers_in_both_eras() {
    let server = Server::new("adder", "1.0.0").tools(pintle::tools![add]);
    let mut client = Raw::new(&server);
    client.request("server/discover", modern(json!({}), json!({}))).await;
    let notified = client.recv().await;
    assert_eq!(notified["result"]["capabilities"]["tools"], json!({"listChanged": true}), "{notified}");
    let mut client = Raw::new(&server);
    client.open("2025-06-18", json!({})).await;
    client.request("tools/call", json!({"name": "add", "arguments": {"a": 2, "b": 3}})).await;
    assert_eq!(client.recv().await["result"]["content"], json!([{"type": "text", "text": "5"}]));
}

#[tokio::test]
async fn the_function_stays_a_function() {
    assert_eq!(add(2, 3).await, 5);
    assert_eq!(elsewhere::sub(2, 3), -1);
}

#[tokio::test]
async fn docs_and_options_are_what_clients_see() {
    use elsewhere::sub;
    let server = Server::new("s", "0").tools(pintle::tools![add, sub, elsewhere::sub][..2].iter().cloned());
    let tools = listed(&server).await;
    assert_eq!(tools[0]["description"], "Add two integers.");
    assert_eq!(tools[0].get("annotations"), None);
    assert_eq!(
        tools[1],
        json!({
            "name": "subtract", "title": "Subtract",
            "description": "Take the second from the first.\n\nMay be negative.",
            "annotations": {"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false},
            "inputSchema": tools[1]["inputSchema"],
        })
    );
    assert_eq!(text_of(&server, "subtract", json!({"a": 1, "b": 5})).await, "-4");
    let wrong = call(&server, "add", json!({"a": 1, "b": "5"})).await;
    assert_eq!(wrong["isError"], true);
    assert_eq!(
        wrong["content"][0]["text"],
        "`/b` should be an integer, but is `\"5\"`: did you mean `5`?\ncorrect it and try again"
    );
}

#[derive(Clone)]
struct Unit(&'static str);

struct Method(String);

impl FromCall for Method {
    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        Ok(Self(cx.params().decode_member("name").ok().flatten().unwrap_or_default()))
    }
}

#[pintle::tool]
async fn everything(
    cx: Cx,
    mut amount: i64,
    State(Unit(unit)): pintle::server::State<Unit>,
    known: Option<Extension<Unit>>,
    #[extract] Method(method): Method,
    Arguments(whole): Arguments,
    r#type: Option<String>,
) -> Result<String, ToolError> {
    if amount < 0 {
        return Err(ToolError::new("less than nothing"));
    }
    amount += 1;
    let named = cx.peer().info.is_some();
    Ok(format!(
        "{amount} {unit} {} {method} {} {type:?} {named}",
        known.is_some(),
        whole.as_str(),
        r#type = r#type
    ))
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Point {
    x: i64,
}

#[pintle::tool]
async fn moved(Args(Point { x }): Args<Point>, _state: State<Unit>) -> Json<Point> {
    Json(Point { x: x + 1 })
}

#[pintle::tool]
fn nothing() {}

#[tokio::test]
async fn what_comes_from_the_call_is_no_argument() {
    let server =
        Server::new("s", "0").with_state(Unit("km")).tools(pintle::tools![everything, moved, nothing]);
    let tools = listed(&server).await;
    assert_eq!(
        tools[0]["inputSchema"]["properties"],
        json!({"amount": {"type": "integer", "format": "int64"}, "type": {"type": ["string", "null"]}})
    );
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["amount"]));
    assert_eq!(
        text_of(&server, "everything", json!({"amount": 1})).await,
        r#"2 km false everything {"amount":1} None false"#
    );
    assert_eq!(text_of(&server, "everything", json!({"amount": -1})).await, "less than nothing");
    assert_eq!(tools[1]["outputSchema"]["properties"]["x"]["type"], "integer");
    assert_eq!(call(&server, "moved", json!({"x": 1})).await["structuredContent"], json!({"x": 2}));
    assert_eq!(tools[2]["inputSchema"], json!({"type": "object", "properties": {}}));
    assert_eq!(call(&server, "nothing", json!({})).await["content"], json!([]));
}

/// Functions that have a parameter of their own name.
mod same_name {
    #[pintle::tool]
    pub(super) async fn query(query: String) -> String {
        query
    }

    #[pintle::tool(inline)]
    pub(super) fn sort(sort: String, #[arg(default = 2)] times: usize) -> String {
        sort.repeat(times)
    }

    #[pintle::tool]
    pub(super) fn r#type(r#type: Option<String>) -> String {
        r#type.unwrap_or_default()
    }

    #[pintle::prompt]
    pub(super) async fn topic(topic: String) -> String {
        topic
    }

    #[pintle::resource("name://{name}")]
    pub(super) async fn name(name: String) -> String {
        name
    }
}

#[tokio::test]
async fn a_parameter_may_have_the_name_of_its_function() {
    use same_name::{name, query, sort, topic, r#type};

    let server = Server::new("s", "0").routes(pintle::routes![query, sort, r#type, topic, name]);
    assert_eq!(text_of(&server, "query", json!({"query": "a"})).await, "a");
    assert_eq!(text_of(&server, "sort", json!({"sort": "a"})).await, "aa");
    assert_eq!(text_of(&server, "type", json!({"type": "a"})).await, "a");
    let mut client = Raw::new(&server);
    client
        .request("prompts/get", modern(json!({"name": "topic", "arguments": {"topic": "a"}}), json!({})))
        .await;
    assert_eq!(client.recv().await["result"]["messages"][0]["content"]["text"], "a");
    client.request("resources/read", modern(json!({"uri": "name://a"}), json!({}))).await;
    assert_eq!(client.recv().await["result"]["contents"][0]["text"], "a");
}
