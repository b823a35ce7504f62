//! The catalogue: asked about, linted, paged, and changed while the server runs.

use std::sync::Arc;

use pintle::{
    Server, ToolQuery, ToolTraits,
    server::{ToolRoute, prompt, resource, template, tool},
    types::schema::Tool,
    uri::Vars,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::eras::{ALL, Client, R1, R2, each};

fn named(name: &str) -> ToolRoute {
    tool(name, || async { "called" }).description("Does nothing.")
}

async fn names(client: &mut Client, method: &str, list: &str) -> Vec<String> {
    let answer = client.call(method, json!({})).await;
    let entries = answer["result"][list].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
    entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn several_changes_are_notified_once_and_never_in_part() {
    let server = Server::new("s", "0").may_change();
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        server.replace_tools([named("a")]).unwrap();
        server.replace_prompts([]).unwrap();
        assert_eq!(names(client, "tools/list", "tools").await, ["a"]);
        client.received();
        client.listen(&[]).await;
        server.extend_tools([named("b"), named("c")]).unwrap();
        server.remove_tool("c");
        assert_eq!(client.receive().await["method"], "notifications/tools/list_changed");
        server.add_prompt(prompt("p", || async { String::new() })).unwrap();
        assert_eq!(
            client.receive().await["method"],
            "notifications/prompts/list_changed",
            "tools were told once"
        );
        assert_eq!(names(client, "tools/list", "tools").await, ["a", "b"]);
        let text = server.extend_tools([named("d"), named("b")]).unwrap_err().to_string();
        assert_eq!(text, "a tool named `b` is already registered; choose another name");
        assert!(server.extend_tools([named("d"), named("d")]).is_err());
        assert!(server.replace_tools([named("not a name")]).is_err());
        assert_eq!(names(client, "tools/list", "tools").await, ["a", "b"], "all or nothing");
        server.replace_tools([named("z")]).unwrap();
        assert_eq!(client.receive().await["method"], "notifications/tools/list_changed");
        assert_eq!(names(client, "tools/list", "tools").await, ["z"]);
        assert!(client.received().is_empty());
        assert_eq!(names(client, "prompts/list", "prompts").await, ["p"]);
    })
    .await;
}

#[tokio::test]
async fn resources_and_templates_come_and_go() {
    let server = Server::new("s", "0").may_change();
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        client.listen(&["x://1"]).await;
        server.add_resource(resource("x://1", "one", || async { "1" })).unwrap();
        server
            .add_template(template("y://{n}", "many", |vars: Vars| async move {
                vars.get("n").unwrap_or("?").to_owned()
            }))
            .unwrap();
        assert_eq!(client.receive().await["method"], "notifications/resources/list_changed");
        assert_eq!(names(client, "resources/list", "resources").await, ["one"]);
        assert_eq!(names(client, "resources/templates/list", "resourceTemplates").await, ["many"]);
        let read = client.call("resources/read", json!({"uri": "y://7"})).await;
        assert_eq!(read["result"]["contents"][0]["text"], "7");
        server.resource_updated("x://1");
        let notified = client.receive().await;
        assert_eq!(
            (&notified["method"], &notified["params"]["uri"]),
            (&json!("notifications/resources/updated"), &json!("x://1"))
        );
        assert!(server.remove_resource("x://1") && server.remove_template("y://{n}"));
        assert_eq!(client.receive().await["method"], "notifications/resources/list_changed");
        let gone = client.call("resources/read", json!({"uri": "y://7"})).await;
        assert_eq!(gone["error"]["message"], "no such resource: `y://7`");
    })
    .await;
}

#[tokio::test]
async fn a_tool_that_is_taken_away_finishes_what_it_does() {
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = {
        let (begun, go) = (begun.clone(), go.clone());
        move || {
            let (begun, go) = (begun.clone(), go.clone());
            async move {
                begun.notify_one();
                go.notified().await;
                "finished"
            }
        }
    };
    for revision in ALL {
        let server = Server::new("s", "0").tool(tool("slow", slow.clone())).may_change();
        let mut client = Client::open(&server, revision, json!({})).await;
        let id = client.send("tools/call", json!({"name": "slow"})).await;
        begun.notified().await;
        assert!(server.remove_tool("slow"));
        let unknown = client.call("tools/call", json!({"name": "slow"})).await;
        assert_eq!(unknown["error"]["message"], "no such tool: `slow`");
        go.notify_one();
        assert_eq!(client.until(id).await["result"]["content"][0]["text"], "finished");
    }
}

#[tokio::test]
async fn pages_survive_changes_and_cursors_are_checked() {
    let server = Server::new("s", "0").page_size(2);
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        server.replace_tools(["a", "b", "c", "d", "e"].map(named)).unwrap();
        let mut found = Vec::new();
        let mut params = json!({});
        loop {
            let page = client.call("tools/list", params).await["result"].clone();
            found.extend(page["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()));
            let Some(cursor) = page.get("nextCursor") else { break };
            // What was listed already may go; the page goes on where it was.
            server.remove_tool("b");
            params = json!({"cursor": cursor});
        }
        assert_eq!(found, ["a", "b", "c", "d", "e"]);
        let prompts = client.call("tools/list", json!({"cursor": "cAAAAAAAAAAB"})).await;
        let rubbish = client.call("tools/list", json!({"cursor": "?"})).await;
        for refused in [prompts, rubbish] {
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
        }
    })
    .await;
}

#[tokio::test]
async fn tools_are_found_by_what_they_say_of_themselves() {
    let server = Server::new("s", "0")
        .tool(named("find").read_only().tag("db").open_world(false))
        .tool(named("add").destructive(false).idempotent().tag("db").tag("slow"))
        .tool(named("drop").traits(ToolTraits::new().sensitive().category("admin")).tag("db"));
    let found = |query: ToolQuery| {
        server.tools_where(query).into_iter().map(|tool| tool.name).collect::<Vec<_>>().join(" ")
    };
    let query = ToolQuery::new;
    assert_eq!(found(query().tagged("db").except(query().destructive())), "find add");
    assert_eq!(found(query().category("admin")), "drop");
    assert_eq!(found(query().idempotent().open_world()), "add");
    assert_eq!(server.tools_where(|tool: &Tool| ToolTraits::of(tool).sensitive)[0].name, "drop");
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        let listed = client.call("tools/list", json!({})).await["result"]["tools"].clone();
        match client.revision {
            R1 | R2 => assert!(listed[0].get("_meta").is_none(), "{listed}"),
            _ => assert_eq!(
                listed[2]["_meta"]["dev.pintle/traits"],
                json!({"sensitive": true, "category": "admin", "tags": ["db"]})
            ),
        }
        let read_only = if client.revision == R1 { Value::Null } else { json!(true) };
        assert_eq!(listed[0]["annotations"]["readOnlyHint"], read_only);
    })
    .await;
}

#[test]
fn contradictions_are_refused_and_improvements_suggested() {
    let server = Server::new("s", "0").tool(named("odd").read_only().destructive(true));
    assert_eq!(
        server.check().unwrap_err().to_string(),
        "the tool `odd` is marked read-only and destructive: remove one of the hints"
    );
    let server = Server::new("s", "0")
        .tool(tool("bare", || async { "" }))
        .tool(named("twice").tag("a").tag("a"))
        .tool(
            named("needy")
                .traits(ToolTraits::new().depends_on("gone").depends_on("bare").depends_on("needy")),
        )
        .prompt(prompt("p", || async { String::new() }).argument_values("x", ["a"]));
    server.check().unwrap();
    assert_eq!(
        server.lint(),
        [
            "the tool `bare` has no description: describe what it does, the model relies on it",
            "the tool `twice` has the tag `a` twice: once will do",
            "the tool `needy` depends on `gone`, which is not there: add it",
            "the tool `needy` depends on itself: it can never be called",
            "the prompt `p` has no description: describe what it is for",
            "the prompt `p` has values for `x`, which is not one of its arguments",
        ]
    );
}
