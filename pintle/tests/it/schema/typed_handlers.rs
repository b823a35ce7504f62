//! Handlers over types: what they take and give is the tool's schema.

use pintle::{
    Server,
    server::{Args, Json, State, ToolError, tool},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::line_client::{Raw, modern};

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: i64,
    /// The second one.
    b: i64,
    note: Option<String>,
}

#[derive(JsonSchema, Serialize)]
struct Sum {
    sum: i64,
}

#[derive(Clone)]
struct Offset(i64);

async fn add(
    Args(Add { a, b, note }): Args<Add>,
    State(Offset(offset)): State<Offset>,
) -> Result<Json<Sum>, ToolError> {
    if note.is_some_and(|note| note == "fail") {
        return Err(ToolError::new("told to fail"));
    }
    let sum = a.checked_add(b).ok_or_else(|| ToolError::new("the sum does not fit into 64 bits"))?;
    Ok(Json(Sum { sum: sum + offset }))
}

#[tokio::test]
async fn the_schema_is_that_of_the_types() {
    let server = Server::new("s", "0").with_state(Offset(0)).tool(tool("add", add));
    let mut client = Raw::new(&server);
    client.request("tools/list", modern(json!({}), json!({}))).await;
    let listed = client.recv().await["result"]["tools"][0].clone();
    assert_eq!(
        listed["inputSchema"]["properties"]["a"],
        json!({"type": "integer", "format": "int64", "description": "The first number."})
    );
    assert_eq!(listed["inputSchema"]["required"], json!(["a", "b"]));
    assert_eq!(listed["outputSchema"]["properties"]["sum"]["type"], "integer");
}

#[tokio::test]
async fn integers_keep_64_bits_and_the_model_reads_the_errors() {
    let server = Server::new("s", "0").with_state(Offset(1)).tool(tool("add", add));
    let mut client = Raw::new(&server);
    let mut call = async |arguments: serde_json::Value| {
        client.request("tools/call", modern(json!({"name": "add", "arguments": arguments}), json!({}))).await;
        client.recv().await["result"].clone()
    };
    let result = call(json!({"a": i64::MAX - 2, "b": 1})).await;
    assert_eq!(result["structuredContent"], json!({"sum": i64::MAX}));
    assert_eq!(result["content"][0]["text"], r#"{"sum":9223372036854775807}"#);
    let result = call(json!({"a": i64::MAX, "b": 1})).await;
    assert_eq!(
        (&result["isError"], &result["content"][0]["text"]),
        (&json!(true), &json!("the sum does not fit into 64 bits"))
    );
    let result = call(json!({"a": "one", "b": 1})).await;
    assert_eq!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, "`/a` should be an integer, but is `\"one\"`\ncorrect it and try again");
}

#[tokio::test]
async fn missing_state_is_reported_before_the_first_call() {
    let server = Server::new("s", "0").tool(tool("add", add));
    let message = server.check().unwrap_err().to_string();
    assert!(message.starts_with("the tool `add` wants `State<"), "{message}");
    assert!(message.ends_with("give the server one with `with_state`"), "{message}");
    let twice = |_: Args<Add>, _: Args<Add>| async { "" };
    let message = Server::new("s", "0").tool(tool("twice", twice)).check().unwrap_err().to_string();
    assert_eq!(message, "`twice` takes `Args` twice: put all fields into one struct");
    let list = |_: Args<Vec<i64>>| async { "" };
    let message = Server::new("s", "0").tool(tool("list", list)).check().unwrap_err().to_string();
    assert!(message.contains("which is not a JSON object: use a struct with named fields"), "{message}");
}
