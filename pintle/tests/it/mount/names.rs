//! The names of a mounted server.

use pintle::{
    Server,
    server::{Args, Cx, Mount, Prefix, prompt, resource, template, tool},
    types::schema::{CallToolResult, ContentBlock},
};
use serde_json::{Value, json};

use crate::support::eras::{Client, R4, R5, each, not_found};

fn notes() -> Server {
    Server::new("notes", "1")
        .tool(tool("find", |cx: Cx| async move {
            let _ = cx;
            let blocks: Vec<ContentBlock> = serde_json::from_value(json!([
                {"type": "resource_link", "uri": "note://1", "name": "one"},
                {"type": "resource", "resource": {"uri": "note://1", "text": "first"}},
                {"type": "text", "text": "note://1"},
            ]))
            .unwrap();
            CallToolResult::new(blocks)
        }))
        .prompt(prompt("open", || async { "note://1" }))
        .resource(resource("note://1", "one", || async { "first" }))
        .template(template("note://{id}/{part}", "part", || async { "a part" }))
}

#[tokio::test]
async fn uris_have_the_namespace_everywhere_if_the_prefix_says_so() {
    let desk = Server::new("desk", "1")
        .mount(Prefix::new("office").uris(), notes())
        .mount(Prefix::new("attic").separator(".").uris(), notes());
    desk.check().unwrap();
    each(&desk, &[R4, R5], json!({}), async |client| {
        let listed = async |client: &mut Client, method: &str, member: &str, key: &str| -> Vec<Value> {
            let listed = client.call(method, json!({})).await;
            listed["result"][member].as_array().unwrap().iter().map(|entry| entry[key].clone()).collect()
        };
        assert_eq!(listed(client, "tools/list", "tools", "name").await, ["office_find", "attic.find"]);
        assert_eq!(listed(client, "prompts/list", "prompts", "name").await, ["office_open", "attic.open"]);
        let uris = listed(client, "resources/list", "resources", "uri").await;
        assert_eq!(uris, ["note://office/1", "note://attic/1"]);
        let templates = listed(client, "resources/templates/list", "resourceTemplates", "uriTemplate").await;
        assert_eq!(templates, ["note://office/{id}/{part}", "note://attic/{id}/{part}"]);
        let read = client.call("resources/read", json!({"uri": "note://attic/1"})).await;
        assert_eq!(read["result"]["contents"][0]["uri"], "note://attic/1", "{read}");
        let read = client.call("resources/read", json!({"uri": "note://office/1/2"})).await;
        assert_eq!(read["result"]["contents"][0]["text"], "a part", "{read}");
        let found = client.call("tools/call", json!({"name": "attic.find"})).await;
        let content = &found["result"]["content"];
        assert_eq!(content[0]["uri"], "note://attic/1", "{found}");
        assert_eq!(content[1]["resource"]["uri"], "note://attic/1", "{found}");
        assert_eq!(content[2]["text"], "note://1", "text is text: {found}");
        let missing = client.call("resources/read", json!({"uri": "note://attic/9"})).await;
        assert_eq!(missing["error"]["code"], not_found(client));
        assert!(missing["error"].to_string().contains("note://attic/9"), "{missing}");
        let bare = client.call("resources/read", json!({"uri": "note://1"})).await;
        assert_eq!(bare["error"]["code"], not_found(client), "{bare}");
    })
    .await;
}

#[tokio::test]
async fn two_names_that_meet_are_an_error_that_names_both() {
    let twice = Server::new("desk", "1").mount("a", notes()).mount("b", notes());
    let error = twice.check().unwrap_err().to_string();
    assert!(error.contains("two resources have the URI `note://1`, one of `a` and one of `b`"), "{error}");
    assert!(error.contains("two resource templates have the URI template `note://{id}/{part}`"), "{error}");
    assert!(!error.contains("a_find"), "{error}");
    assert!(twice.in_process().is_err(), "it is not served");

    let tools = |name: &'static str| {
        Server::new(name, "1").tool(tool("x_y", || async { 1 })).tool(tool("y", || async { 2 }))
    };
    let meeting = Server::new("desk", "1").mount(Prefix::none(), tools("plain")).mount("x", tools("x"));
    let error = meeting.check().unwrap_err().to_string();
    assert!(error.contains("two tools are named `x_y`, one of `plain` and one of `x`"), "{error}");

    let own = Server::new("desk", "1").tool(tool("x_y", || async { 1 })).mount("x", tools("x"));
    let error = own.check().unwrap_err().to_string();
    assert!(error.contains("`x_y`, one of the server itself and one of `x`"), "{error}");
    let late = Server::new("desk", "1").tool(tool("x_y", || async { 1 }));
    assert!(late.add_provider(Mount::new("x", tools("x"))).is_err());

    // `check` sees names that met after it was asked first.
    let child = Server::new("child", "1");
    let desk = Server::new("desk", "1").tool(tool("c_new", || async { 1 })).mount("c", child.clone());
    desk.check().unwrap();
    child.add_tool(tool("new", || async { 2 })).unwrap();
    assert!(desk.check().is_err());
}

#[tokio::test]
async fn faults_of_a_mounted_server_and_of_a_prefix_are_reported() {
    let broken = Server::new("git", "1").tool(tool("x", || async { 1 })).tool(tool("x", || async { 2 }));
    let error = Server::new("desk", "1").mount("git", broken).check().unwrap_err().to_string();
    assert!(error.contains("`git`: ") && error.contains("`x` is already registered"), "{error}");
    let error = Server::new("desk", "1").mount("a b", notes()).check().unwrap_err().to_string();
    assert!(error.contains("`a b_` is not a prefix"), "{error}");
}

#[tokio::test]
async fn a_server_cannot_contain_itself() {
    let one = Server::new("one", "1");
    let error = one.clone().mount("self", one.clone()).check().unwrap_err().to_string();
    assert!(error.contains("`one` cannot be mounted in itself"), "{error}");
    let (a, b, c) = (Server::new("a", "1"), Server::new("b", "1"), Server::new("c", "1"));
    a.add_provider(Mount::new("b", b.clone())).unwrap();
    b.add_provider(Mount::new("c", c.clone())).unwrap();
    let error = c.add_provider(Mount::new("a", a.clone())).unwrap_err().to_string();
    assert!(error.contains("`c` cannot be mounted in itself"), "{error}");
    a.check().unwrap();
    // The same server twice, beside itself, is none.
    a.add_provider(Mount::new("c", c.clone())).unwrap();
    c.add_tool(tool("x", || async { 1 })).unwrap();
    let mut client = Client::open(&a, R5, json!({})).await;
    assert_eq!(client.tool("c_x").await, "1");
    assert_eq!(client.tool("b_c_x").await, "1");
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    #[serde(default)]
    b: i64,
}

#[tokio::test]
async fn arguments_are_checked_by_the_mounted_server() {
    let add = tool("add", |Args(Add { a, b }): Args<Add>| async move { a + b });
    let desk = Server::new("desk", "1").mount("math", Server::new("math", "1").tool(add));
    each(&desk, &[R4, R5], json!({}), async |client| {
        let sum = client.call("tools/call", json!({"name": "math_add", "arguments": {"a": 2}})).await;
        assert_eq!(sum["result"]["content"][0]["text"], "2", "{sum}");
        let refused = client.call("tools/call", json!({"name": "math_add", "arguments": {"a": "x"}})).await;
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        // Long ones, whose strings are decoded while they are read.
        let long = "x".repeat(100_000);
        let refused = client.call("tools/call", json!({"name": "math_add", "arguments": {"a": long}})).await;
        assert_eq!(refused["result"]["isError"], true);
    })
    .await;
}
