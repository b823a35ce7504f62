//! Changes of what a provider offers, in lists, calls and completions, of every revision.

use pintle::{
    Server,
    server::{
        Args, Cx, EntryEdit, ListKind, Next, Outcome, Provider as _, ReportPart, Target, Transform, around,
        prompt, resource, template, tool,
    },
    types::schema::CallToolResult,
};
use serde_json::{Value, json};

use crate::support::eras::{ALL, Client};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Push {
    branch: String,
    force: bool,
    remote: Option<String>,
}

fn git() -> Server {
    let push = |Args(Push { branch, force, remote }): Args<Push>| async move {
        format!("{branch} {force} {}", remote.unwrap_or_default())
    };
    Server::new("git", "0")
        .tool_completion()
        .tool(tool("push", push))
        .tool(tool("gc", || async { "collected" }))
        .tool(tool("delete_branch", || async { "deleted" }))
        .prompt(prompt("log", || async { "logged".to_owned() }).optional("x", "").argument_values("x", ["a"]))
        .prompt(prompt("hidden", || async { "hidden".to_owned() }))
        .resource(resource("git://head", "head", || async { "head" }))
        .resource(resource("git://config", "config", || async { "secret" }))
        .template(template("blob://{id}", "blob", || async { "blob" }))
        .template(template("raw://{id}", "raw", || async { "raw" }))
}

fn desk() -> Server {
    let git = Transform::new(git())
        .tool(
            "push",
            EntryEdit::new()
                .rename("publish")
                .title("Publish")
                .describe("Publish a branch.")
                .fix("force", false)
                .default_value("branch", "main"),
        )
        .tool("gc", EntryEdit::new().hide())
        .hide(ListKind::Tools, "delete_*")
        .prompt("log", EntryEdit::new().rename("history"))
        .only(ListKind::Prompts, ["log"])
        .resource("git://config", EntryEdit::new().hide())
        .template("raw://{id}", EntryEdit::new().hide());
    Server::new("desk", "0").tool_completion().mount("g", git)
}

async fn names(client: &mut Client, method: &str, list: &str, key: &str) -> Vec<String> {
    let result = client.call(method, json!({})).await;
    let entries = result["result"][list].as_array().unwrap_or_else(|| panic!("{result}")).clone();
    entries.iter().map(|entry| entry[key].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn what_is_renamed_and_removed_is_so_everywhere() {
    let desk = desk();
    desk.check().unwrap();
    for revision in ALL {
        let mut client = Client::open(&desk, revision, json!({})).await;
        assert_eq!(names(&mut client, "tools/list", "tools", "name").await, ["g_publish"]);
        assert_eq!(names(&mut client, "prompts/list", "prompts", "name").await, ["g_history"]);
        assert_eq!(names(&mut client, "resources/list", "resources", "uri").await, ["git://head"]);
        let templates =
            names(&mut client, "resources/templates/list", "resourceTemplates", "uriTemplate").await;
        assert_eq!(templates, ["blob://{id}"]);
        let complete = |reference: Value| json!({"ref": reference, "argument": {"name": "x", "value": ""}});
        for (method, params, there) in [
            ("tools/call", json!({"name": "g_publish"}), true),
            ("tools/call", json!({"name": "g_push", "arguments": {"branch": "a", "force": true}}), false),
            ("tools/call", json!({"name": "g_gc"}), false),
            ("tools/call", json!({"name": "g_delete_branch"}), false),
            ("prompts/get", json!({"name": "g_history"}), true),
            ("prompts/get", json!({"name": "g_log"}), false),
            ("prompts/get", json!({"name": "g_hidden"}), false),
            ("completion/complete", complete(json!({"type": "ref/prompt", "name": "g_history"})), true),
            ("completion/complete", complete(json!({"type": "ref/prompt", "name": "g_log"})), false),
            ("resources/read", json!({"uri": "git://head"}), true),
            ("resources/read", json!({"uri": "git://config"}), false),
            ("resources/read", json!({"uri": "blob://1"}), true),
            ("resources/read", json!({"uri": "raw://1"}), false),
        ] {
            let answer = client.call(method, params.clone()).await;
            assert_eq!(answer["result"].is_object(), there, "{method} {params} {answer}");
        }
    }
}

#[tokio::test]
async fn a_ref_names_an_entry_in_a_completion_only() {
    let seen = tool("seen", |cx: Cx| async move { cx.params().get("ref").unwrap_or("none").to_owned() });
    let seen = Transform::new(Server::new("git", "0").tool(seen).prompt(prompt("log", || async { "" })))
        .tool("seen", EntryEdit::new().rename("look"))
        .prompt("log", EntryEdit::new().rename("history"));
    let desk = Server::new("desk", "0").mount("g", seen);
    for revision in ALL {
        let mut client = Client::open(&desk, revision, json!({})).await;
        for reference in [r#"{"type":"ref/prompt","name":"g_history"}"#, r#"{"name":"g_look"}"#, "7"] {
            let sent: Value = serde_json::from_str(reference).unwrap();
            let answer = client.call("tools/call", json!({"name": "g_look", "ref": sent})).await;
            let got: Value =
                serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
            assert_eq!(got, sent, "{answer}");
        }
    }
}

#[test]
fn tools_that_are_known_beforehand_have_their_new_names() {
    let git = Transform::new(git())
        .tool("push", EntryEdit::new().rename("publish"))
        .hide(ListKind::Tools, "delete_*");
    assert_eq!(git.report(ReportPart::Names(ListKind::Tools)), ["publish", "gc"]);
    let known = Server::new("desk", "1").provider(git).tools_where(|_: &_| true);
    let known: Vec<_> = known.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(known, ["publish", "gc"]);
}

#[tokio::test]
async fn arguments_are_fixed_and_have_defaults() {
    let mut client = Client::open(&desk(), "2025-11-25", json!({})).await;
    let tools = client.call("tools/list", json!({})).await;
    let tool = &tools["result"]["tools"][0];
    assert_eq!((&tool["title"], &tool["description"]), (&json!("Publish"), &json!("Publish a branch.")));
    let schema = &tool["inputSchema"];
    assert_eq!(schema["properties"].get("force"), None, "{schema}");
    assert_eq!(schema["properties"]["branch"]["default"], "main", "{schema}");
    assert!(schema["required"].as_array().is_none_or(Vec::is_empty), "{schema}");
    for (arguments, expected) in
        [(json!({}), "main false "), (json!({"branch": "next", "remote": "up"}), "next false up")]
    {
        let done = client.call("tools/call", json!({"name": "g_publish", "arguments": arguments})).await;
        assert_eq!(done["result"]["content"][0]["text"], expected, "{done}");
    }
    let refused = client.call("tools/call", json!({"name": "g_publish", "arguments": {"force": true}})).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("no argument `force`"), "{refused}");
}

#[tokio::test]
async fn a_name_that_was_given_away_is_the_one_it_was_given_to() {
    let pair = || Server::new("s", "0").tool(tool("a", || async { "a" })).tool(tool("b", || async { "b" }));
    let server =
        Server::new("o", "0").provider(Transform::new(pair()).tool("a", EntryEdit::new().rename("b")));
    let mut client = Client::open(&server, "2025-11-25", json!({})).await;
    assert_eq!(names(&mut client, "tools/list", "tools", "name").await, ["b"]);
    assert_eq!(client.tool("b").await, "a");
    let swapped = Transform::new(pair())
        .tool("a", EntryEdit::new().rename("b"))
        .tool("b", EntryEdit::new().rename("a"));
    let mut client = Client::open(&Server::new("o", "0").provider(swapped), "2025-11-25", json!({})).await;
    assert_eq!((client.tool("a").await, client.tool("b").await), ("b".to_owned(), "a".to_owned()));
    let twice = Transform::new(pair())
        .tool("a", EntryEdit::new().rename("c"))
        .tool("b", EntryEdit::new().rename("c"))
        .resource("x://y", EntryEdit::new().rename("x://z"));
    let fault = Server::new("o", "0").provider(twice).check().unwrap_err().to_string();
    assert!(fault.contains("would both be `c`") && fault.contains("cannot be renamed"), "{fault}");
}

/// A server with layers may answer for names that it does not list. What was removed or renamed is out of their reach.
#[tokio::test]
async fn a_provider_may_answer_for_names_that_it_does_not_list() {
    async fn dynamic(cx: Cx, next: Next) -> Outcome {
        match cx.target() {
            Some(Target::Tool(name)) if name == "dynamic" => {
                Outcome::Complete(CallToolResult::raw_text("from a layer").into())
            }
            _ => next.run(cx).await,
        }
    }
    let git = Transform::new(git().layer(&around(dynamic)))
        .tool("push", EntryEdit::new().rename("publish"))
        .hide(ListKind::Tools, "delete_*")
        .template("raw://{id}", EntryEdit::new().hide());
    let desk = Server::new("desk", "0").mount("g", git);
    for revision in ALL {
        let mut client = Client::open(&desk, revision, json!({})).await;
        assert_eq!(client.tool("g_dynamic").await, "from a layer");
        for (method, params) in [
            ("tools/call", json!({"name": "g_delete_branch"})),
            ("tools/call", json!({"name": "g_push", "arguments": {"branch": "a", "force": true}})),
            ("tools/call", json!({"name": "g_elete_branch"})),
            ("resources/read", json!({"uri": "raw://1"})),
        ] {
            let answer = client.call(method, params.clone()).await;
            assert!(answer["error"].is_object(), "{params} {answer}");
            assert!(!answer.to_string().contains("did you mean"), "{answer}");
        }
    }
}
