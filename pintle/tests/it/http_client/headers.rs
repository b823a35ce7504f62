//! Arguments that are repeated as headers, and the tools that say which.

use pintle::Error;
use serde_json::{Value, json};

use crate::support::scripted_http::{Asked, Script, client, script};

fn tools(tools: Value) -> String {
    json!({"resultType": "complete", "tools": tools, "ttlMs": 300_000, "cacheScope": "public"}).to_string()
}

fn tool(name: &str, properties: Value) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
}

const DONE: &str = r#"{"resultType":"complete","content":[]}"#;
const MISMATCH: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"the `Mcp-Param-Region` header is missing"}}"#;

fn params(asked: &Asked) -> Vec<(String, String)> {
    let headers = asked.head.headers.iter();
    let mut found: Vec<_> = headers
        .filter(|(name, _)| name.as_str().starts_with("mcp-param-"))
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    found.sort();
    found
}

async fn lists(server: &mut Script, result: String) {
    server.receives("tools/list").await.result(&result);
}

#[tokio::test(start_paused = true)]
async fn annotated_arguments_are_repeated() {
    let (mut server, http) = script();
    let connection = server.opens(client(), http).await;
    let properties = json!({
        "region": {"type": "string", "x-mcp-header": "Region"},
        "priority": {"type": "integer", "x-mcp-header": "Priority"},
        "verbose": {"type": "boolean", "x-mcp-header": "Verbose"},
        "empty": {"type": "string", "x-mcp-header": "EmptyVal"},
        "tab": {"type": "string", "x-mcp-header": "Tab"},
        "missing": {"type": "string", "x-mcp-header": "Missing"},
        "nothing": {"type": "string", "x-mcp-header": "Nothing"},
        "query": {"type": "string"},
    });
    let (listed, ()) =
        tokio::join!(connection.tools(), lists(&mut server, tools(json!([tool("t", properties)]))));
    assert_eq!(listed.unwrap().len(), 1);
    let arguments = json!({"region": "us west", "priority": 42, "verbose": false, "empty": "", "tab": "\tx", "nothing": null, "query": "q"});
    let (called, ()) = tokio::join!(connection.call_tool("t", arguments), async {
        let asked = server.receives("tools/call").await;
        let expected = [
            ("mcp-param-emptyval", ""),
            ("mcp-param-priority", "42"),
            ("mcp-param-region", "us west"),
            ("mcp-param-tab", "=?base64?CXg=?="),
            ("mcp-param-verbose", "false"),
        ];
        let expected: Vec<_> = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(params(&asked), expected);
        asked.result(DONE);
    });
    called.unwrap();

    // What no header can say is the caller's mistake, and is not sent.
    let error = connection.call_tool("t", json!({"priority": 1.5})).await.unwrap_err();
    assert!(matches!(error, Error::Misuse(_)), "{error:?}");
    assert!(error.to_string().contains("argument `priority`"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_cannot_be_repeated_is_left_out() {
    let (mut server, http) = script();
    let connection = server.opens(client(), http).await;
    let with = |schema: Value| json!({"x": schema});
    let listed = json!([
        tool("valid_tool", with(json!({"type": "string", "x-mcp-header": "Region"}))),
        tool("empty", with(json!({"type": "string", "x-mcp-header": ""}))),
        tool("number", with(json!({"type": "number", "x-mcp-header": "X"}))),
        tool("space", with(json!({"type": "string", "x-mcp-header": "a b"}))),
        tool("unreachable", with(json!({"type": "array", "items": {"type": "string", "x-mcp-header": "X"}}))),
        tool(
            "twice",
            json!({"a": {"type": "string", "x-mcp-header": "X"}, "b": {"type": "string", "x-mcp-header": "x"}})
        ),
        tool("plain", json!({})),
    ]);
    let (listed, ()) = tokio::join!(connection.tools(), lists(&mut server, tools(listed)));
    let names: Vec<_> = listed.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["valid_tool", "plain"]);
}

#[tokio::test(start_paused = true)]
async fn in_a_session_no_tool_is_left_out_and_nothing_is_repeated() {
    let (mut server, http) = script();
    let connection = server.shakes("2025-11-25", client(), http).await;
    server.line("GET http://server.test/mcp").await.status(405);
    let odd = tool("odd", json!({"x": {"type": "number", "x-mcp-header": "X"}}));
    let (listed, ()) = tokio::join!(connection.tools(), async {
        server.receives("tools/list").await.result(&json!({"tools": [odd]}).to_string());
    });
    assert_eq!(listed.unwrap().len(), 1);
    let (called, ()) = tokio::join!(connection.call_tool("odd", json!({"x": 1})), async {
        let asked = server.receives("tools/call").await;
        assert!(params(&asked).is_empty());
        assert_eq!(asked.header("mcp-method"), None);
        asked.result(r#"{"content":[]}"#);
    });
    called.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_mismatch_is_mended_once() {
    let (mut server, http) = script();
    let connection = server.opens(client(), http).await;
    let listed = tools(json!([tool("t", json!({"region": {"type": "string", "x-mcp-header": "Region"}}))]));
    let (called, ()) = tokio::join!(connection.call_tool("t", json!({"region": "eu"})), async {
        let asked = server.receives("tools/call").await;
        assert!(params(&asked).is_empty(), "the tool is not known yet");
        asked.json(400, MISMATCH);
        lists(&mut server, listed.clone()).await;
        let asked = server.receives("tools/call").await;
        assert_eq!(asked.header("mcp-param-region"), Some("eu"));
        assert_eq!(asked.message()["id"], 4, "it is a new request");
        asked.result(DONE);
    });
    called.unwrap();

    // Once, even if the list is still good.
    let (called, ()) = tokio::join!(connection.call_tool("t", json!({"region": "eu"})), async {
        server.receives("tools/call").await.json(400, MISMATCH);
        lists(&mut server, listed).await;
        server.receives("tools/call").await.json(400, MISMATCH);
    });
    assert!(matches!(called, Err(Error::Rpc(error)) if error.code.0 == -32020));
}

#[tokio::test(start_paused = true)]
async fn what_a_request_names_is_repeated() {
    let (mut server, http) = script();
    let connection = server.opens(client(), http).await;
    let uri = "file:///path/to/file%20name.txt";
    let (read, ()) = tokio::join!(connection.read_resource(uri), async {
        let asked = server.receives("resources/read").await;
        assert_eq!(
            (asked.header("mcp-method"), asked.header("mcp-name")),
            (Some("resources/read"), Some(uri))
        );
        asked.result(r#"{"resultType":"complete","contents":[],"ttlMs":0,"cacheScope":"public"}"#);
    });
    read.unwrap();
    let raw = connection.call_raw("tasks/get", r#"{"taskId":"7"}"#.parse().unwrap());
    let (got, ()) = tokio::join!(raw, async {
        let asked = server.receives("tasks/get").await;
        assert_eq!(asked.header("mcp-name"), Some("7"));
        asked.result(r#"{"resultType":"complete"}"#);
    });
    got.unwrap();
    let (listed, ()) = tokio::join!(connection.prompts(), async {
        let asked = server.receives("prompts/list").await;
        assert_eq!(asked.header("mcp-name"), None);
        asked.result(r#"{"resultType":"complete","prompts":[],"ttlMs":0,"cacheScope":"public"}"#);
    });
    listed.unwrap();
}
