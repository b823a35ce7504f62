//! Mounted servers over HTTP.

use http::{HeaderValue, Request};
use pintle::{
    Server,
    server::{Authenticated, MissingRights, Mount, Opened, Prefix, http::Http, resource, template, tool},
    types::{RpcError, schema::Tool},
};
use serde_json::{Value, json};

use crate::support::{
    eras::{R4, R5},
    http_client::Wire,
};

fn server() -> Server {
    let git = Server::new("git", "1")
        .tool(tool("status", || async { "clean" }))
        .tool(tool("push", || async { "pushed" }).requires(["push"]))
        .tool(tool("crack", || async { "cracked" }).requires(["crack"]).hidden());
    let code = Server::new("code", "1").provider(Mount::new("git", git).requires(["git"]));
    Server::new("desk", "1").mount("code", code)
}

fn by(mut request: Request<String>, rights: &'static [&'static str]) -> Request<String> {
    let ann = Authenticated::new("ann")
        .rights(|right| rights.contains(&right))
        .challenge(|lacking: &MissingRights<'_>| HeaderValue::from_str(&lacking.needed.join(" ")).ok());
    request.extensions_mut().insert(ann);
    request
}

fn stateless(http: &Http, params: Value) -> Request<String> {
    let name = params["name"].as_str().unwrap().to_owned();
    let params = crate::support::line_client::modern(params, json!({}));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let wire = Wire::new(http).with("mcp-protocol-version", R5).with("mcp-method", "tools/call");
    wire.with("mcp-name", &name).request("POST", "/mcp", body.to_string())
}

#[tokio::test]
async fn missing_rights_of_a_mounted_tool_are_challenged_in_both_eras() {
    let http = server().http().unwrap();
    let wire = Wire::new(&http);
    let call = |name: &str| stateless(&http, json!({"name": name}));
    let answer = wire.send(by(call("code_git_push"), &["git"])).await;
    assert_eq!((answer.status.as_u16(), answer.header("www-authenticate")), (403, Some("git push")));
    let answer = wire.send(by(call("code_git_status"), &[])).await;
    assert_eq!((answer.status.as_u16(), answer.header("www-authenticate")), (403, Some("git")));
    let mut answer = wire.send(by(call("code_git_push"), &["git", "push"])).await;
    assert_eq!(answer.json().await["result"]["content"][0]["text"], "pushed");
    let mut hidden = wire.send(by(call("code_git_crack"), &["git"])).await;
    assert_eq!(hidden.json().await["error"]["message"], "no such tool: `code_git_crack`");

    let open = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": R4,
        "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}});
    let opened = wire.send(by(wire.request("POST", "/mcp", open.to_string()), &[])).await;
    let session = wire.with("mcp-session-id", opened.header("mcp-session-id").unwrap());
    let push =
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "code_git_push"}});
    let request = || session.request("POST", "/mcp", push.to_string());
    let answer = session.send(by(request(), &["push"])).await;
    assert_eq!((answer.status.as_u16(), answer.header("www-authenticate")), (403, Some("git push")));
    let mut answer = session.send(by(request(), &["git", "push"])).await;
    assert_eq!(answer.json().await["result"]["content"][0]["text"], "pushed");
}

#[tokio::test]
async fn the_rights_of_a_listed_resource_are_needed_and_not_those_of_a_template_of_the_server() {
    let shelf = Server::new("shelf", "1")
        .resource(resource("note://1", "one", || async { "listed" }).requires(["shelf"]))
        .resource(resource("note://2", "two", || async { "open" }));
    let own = template("note://{id}", "own", || async { "own" }).requires(["desk"]);
    let http = Server::new("desk", "1").template(own).mount(Prefix::none(), shelf).http().unwrap();
    let wire = Wire::new(&http).with("mcp-protocol-version", R5);
    let read = |uri: &str| {
        let params = crate::support::line_client::modern(json!({ "uri": uri }), json!({}));
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params});
        let wire = wire.with("mcp-method", "resources/read").with("mcp-name", uri);
        wire.request("POST", "/mcp", body.to_string())
    };
    for (uri, needed) in [("note://1", "shelf"), ("note://3", "desk")] {
        let answer = wire.send(by(read(uri), &[])).await;
        assert_eq!((answer.status.as_u16(), answer.header("www-authenticate")), (403, Some(needed)), "{uri}");
    }
    for (uri, rights, text) in [
        ("note://1", &["shelf"] as &[_], "listed"),
        ("note://2", &[], "open"),
        ("note://3", &["desk"], "own"),
    ] {
        let mut answer = wire.send(by(read(uri), rights)).await;
        assert_eq!(answer.json().await["result"]["contents"][0]["text"], text, "{uri}");
    }
}

#[tokio::test]
async fn headers_that_repeat_arguments_are_checked_for_a_mounted_tool() {
    let tool_value: Tool = serde_json::from_value(json!({"name": "deploy", "inputSchema": {"type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}}))
    .unwrap();
    let route = pintle::server::ToolRoute::of(tool_value, || async { "deployed" });
    let cloud = Server::new("cloud", "1").tool(route);
    let http = Server::new("desk", "1").mount("cloud", cloud).http().unwrap();
    let wire = Wire::new(&http);
    for (header, status) in [(Some("eu"), 200), (Some("us"), 400), (None, 400)] {
        let mut request = stateless(&http, json!({"name": "cloud_deploy", "arguments": {"region": "eu"}}));
        if let Some(header) = header {
            request.headers_mut().insert("mcp-param-region", HeaderValue::from_static(header));
        }
        let answer = wire.send(request).await;
        assert_eq!(answer.status.as_u16(), status, "{header:?}");
    }
}

#[tokio::test]
async fn a_hook_of_a_mounted_server_refuses_requests_without_a_session() {
    let git =
        Server::new("git", "1").tool(tool("status", || async { "clean" })).on_open(|opened: &Opened| {
            match opened.principal() {
                Some(_) => Ok(()),
                None => Err(RpcError::invalid_request("log in first")),
            }
        });
    let http = Server::new("desk", "1").mount("git", git).http().unwrap();
    let mut refused = Wire::new(&http).send(stateless(&http, json!({"name": "git_status"}))).await;
    assert_eq!(refused.json().await["error"]["message"], "log in first");
    let mut fine = Wire::new(&http).send(by(stateless(&http, json!({"name": "git_status"})), &[])).await;
    assert_eq!(fine.json().await["result"]["content"][0]["text"], "clean");
}
