//! Headers that repeat arguments of a tool of the server behind a relay.

use http::HeaderValue;
use pintle::{
    Client, Server,
    client::Mode,
    server::{
        Cx, EntryEdit, Installation, ProtocolExtension, Rules, ToolRoute, Transform, http::Http, method, tool,
    },
    types::{JsonObject, RpcError, schema::Tool},
};
use pintle_relay::Relay;
use serde_json::{Value, json};

use crate::support::{
    eras::{R4, R5},
    http_client::Wire,
    line_client::modern,
};

/// A relay over HTTP, in front of a server of this era.
async fn front(behind: Mode) -> Http {
    let schema =
        json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let deploy: Tool = serde_json::from_value(json!({"name": "deploy", "inputSchema": schema})).unwrap();
    let cloud = Server::new("cloud", "1").tool(ToolRoute::of(deploy, || async { "deployed" }));
    let client = Client::new("front", "1").mode(behind);
    let relay = Relay::new(client.connect(cloud.in_process().unwrap()).await.unwrap());
    relay.into_server().http().unwrap()
}

async fn ask(wire: &Wire, method: &str, params: Value, region: Option<&'static str>) -> (u16, Value) {
    let name = params["name"].as_str().map(str::to_owned);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": modern(params, json!({}))});
    let mut wire = wire.with("mcp-protocol-version", R5).with("mcp-method", method);
    if let Some(name) = name {
        wire = wire.with("mcp-name", name);
    }
    let mut request = wire.request("POST", "/mcp", body.to_string());
    if let Some(region) = region {
        request.headers_mut().insert("mcp-param-region", HeaderValue::from_static(region));
    }
    let mut answer = wire.send(request).await;
    (answer.status.as_u16(), answer.json().await)
}

#[tokio::test]
async fn are_compared_with_the_arguments() {
    for behind in [Mode::Modern, Mode::Legacy] {
        let wire = Wire::new(&front(behind).await);
        let (_, listed) = ask(&wire, "tools/list", json!({}), None).await;
        assert_eq!(listed["result"]["tools"][0]["name"], "deploy");
        for (region, status) in [(Some("eu"), 200), (Some("us"), 400), (None, 400)] {
            let params = json!({"name": "deploy", "arguments": {"region": "eu"}});
            let (got, answer) = ask(&wire, "tools/call", params, region).await;
            let code = if status == 200 { json!(null) } else { json!(-32020) };
            assert_eq!((got, &answer["error"]["code"]), (status, &code), "{behind:?} {region:?}: {answer}");
        }
    }
}

/// A relay over HTTP to a server whose tool returns the headers that repeat arguments.
async fn of_cloud() -> Relay {
    let schema =
        json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let deploy: Tool = serde_json::from_value(json!({"name": "deploy", "inputSchema": schema})).unwrap();
    let cloud = Server::new("cloud", "1").tool(ToolRoute::of(deploy, |cx: Cx| async move {
        let headers = &cx.http().unwrap().headers;
        let mut seen: Vec<_> = headers
            .iter()
            .filter(|(name, _)| name.as_str().starts_with("mcp-param-"))
            .map(|(name, value)| format!("{name}={}", value.to_str().unwrap()))
            .collect();
        seen.sort();
        seen.join(" ")
    }));
    let behind =
        pintle::client::http::Http::new("http://localhost/mcp").unwrap().client(cloud.http().unwrap());
    Relay::new(Client::new("front", "1").connect(behind).await.unwrap())
}

#[tokio::test]
async fn that_no_schema_names_are_forwarded_and_others_made_anew() {
    let relay = of_cloud().await;
    let wire = Wire::new(&relay.into_server().http().unwrap()).with("mcp-param-colour", "blue");
    // The relay does not know the schema before the first list.
    for listed in [false, true] {
        if listed {
            ask(&wire, "tools/list", json!({}), None).await;
        }
        let params = json!({"name": "deploy", "arguments": {"region": "eu"}});
        let (status, answer) = ask(&wire, "tools/call", params, Some("eu")).await;
        let text = &answer["result"]["content"][0]["text"];
        assert_eq!((status, text), (200, &json!("mcp-param-colour=blue mcp-param-region=eu")), "{answer}");
    }
}

/// A client whose headers nobody compares with its arguments cannot say one thing in them and another in the body.
#[tokio::test]
async fn of_a_client_that_need_not_send_them_are_made_of_the_judged_arguments() {
    let relay = of_cloud().await;
    let fix = EntryEdit::new().fix("region", "eu");
    let fixed = || Transform::new(relay.clone()).tool("deploy", fix.clone());
    let of = |name: &str, condition: Value| {
        let set =
            json!({"rules": [{"arguments": {name: condition}, "decision": "deny"}, {"decision": "allow"}]});
        Rules::new(serde_json::from_value(set).unwrap()).unwrap()
    };
    let rules = |name: &str| of(name, json!(1));
    let front = || Server::new("front", "1");
    for (server, arguments, modern, session) in [
        (front().provider(relay.clone()), json!({"region": "eu"}), "colour=blue region=eu", "region=eu"),
        (
            front().provider(relay.clone()).gate(rules("Colour")),
            json!({"region": "eu"}),
            "region=eu",
            "region=eu",
        ),
        (
            front().provider(relay.clone()).gate(rules("size.x")),
            json!({"region": "eu"}),
            "colour=blue region=eu",
            "region=eu",
        ),
        (
            front().provider(relay.clone()).gate(of("paint.colour", json!({"absent": false}))),
            json!({"region": "eu", "paint": {}}),
            "region=eu",
            "region=eu",
        ),
        (front().provider(fixed()), json!({}), "region=eu", "region=eu"),
    ] {
        let http = server.http().unwrap();
        let wire = Wire::new(&http).with("mcp-param-colour", "blue");
        let params = json!({"name": "deploy", "arguments": arguments});
        let sent = arguments["region"].as_str().map(|_| "eu");
        let (_, answer) = ask(&wire, "tools/call", params.clone(), sent).await;
        let seen = |answer: &Value| {
            let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
            text.replace("mcp-param-", "")
        };
        assert_eq!(seen(&answer), modern);
        let open = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": R4,
            "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}});
        let opened = wire.send(wire.request("POST", "/mcp", open.to_string())).await;
        let wire = wire.with("mcp-session-id", opened.header("mcp-session-id").unwrap());
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let wire = wire.with("mcp-param-region", "us");
        let mut answer = wire.send(wire.request("POST", "/mcp", call.to_string())).await;
        assert_eq!(seen(&answer.json().await), session);
    }
}

/// The extension of tasks, as far as its requests name one.
struct Tasks;

impl ProtocolExtension for Tasks {
    fn name(&self) -> &str {
        "io.modelcontextprotocol/tasks"
    }

    fn install(self, tasks: Installation) -> Installation {
        tasks
            .named_by("tasks/get", "taskId")
            .method(method("tasks/get", |_, params: JsonObject| async move { Ok::<_, RpcError>(params) }))
    }
}

#[tokio::test]
async fn that_name_a_task_are_compared_with_the_params() {
    let jobs = Server::new("jobs", "1").with(Tasks).tool(tool("nothing", || async { "" }));
    let behind = Client::new("front", "1").connect(jobs.in_process().unwrap()).await.unwrap();
    let wire = Wire::new(&Relay::new(behind).into_server().http().unwrap());
    let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    for (name, status) in [("t-1", 200), ("t-2", 400)] {
        let params = modern(json!({"taskId": "t-1"}), capabilities.clone());
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": params});
        let wire =
            wire.with("mcp-protocol-version", R5).with("mcp-method", "tasks/get").with("mcp-name", name);
        let mut answer = wire.send(wire.request("POST", "/mcp", body.to_string())).await;
        let (found, answer) = (answer.status.as_u16(), answer.json().await);
        let code = if status == 200 { json!(null) } else { json!(-32020) };
        assert_eq!((found, &answer["error"]["code"]), (status, &code), "{name}: {answer}");
    }
}
