//! What is hidden comes out of no result: of tasks, questions, completions, lists that continue, and the handshake.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{
    Server,
    server::{
        Authenticated, Caller, Cx, Decision, GateRequest, Mount, Prefix, Principal, RequestError, StateKeys,
        ToolError, method, prompt, resource, template, tool,
    },
    types::schema::{ContentBlock, CreateMessageParams, Role, SamplingMessage},
};
use pintle_relay::Relay;
use pintle_tasks::Tasks;
use serde_json::{Value, json};

use crate::support::{
    eras::{ALL, Client, R4, R5},
    line_client::Raw,
};

fn no_secrets(request: &GateRequest<'_>) -> Decision {
    if request.name().contains("secret") { Decision::Hide } else { Decision::Allow }
}

fn block(block: Value) -> ContentBlock {
    serde_json::from_value(block).unwrap()
}

fn embedded(uri: &str) -> ContentBlock {
    block(json!({"type": "resource", "resource": {"uri": uri, "text": format!("text of {uri}")}}))
}

/// Notes, a tool that returns one of each kind, and one that asks with them.
fn notes() -> Server {
    async fn consult(cx: Cx) -> Result<String, ToolError> {
        let notified = ["open://n", "secret://n"].map(|uri| SamplingMessage::new(Role::User, embedded(uri)));
        Ok(cx.sample("k", CreateMessageParams::new(notified.to_vec(), 9)).await?.text())
    }
    let server = Server::new("notes", "0")
        .with(Tasks::new())
        .tool(
            tool("report", || async { vec![embedded("open://n"), embedded("secret://n")] }).task("optional"),
        )
        .tool(tool("consult", consult))
        .prompt(prompt("p", || async { "" }).optional("x", "").argument_values("x", ["a"]))
        .template(
            template("note://{folder}/{title}", "note", || async { "" })
                .complete("folder", || async { vec!["open", "secret"] })
                .complete("title", || async { vec!["a"] }),
        );
    let note = |server: Server, uri: &'static str| server.resource(resource(uri, uri, || async { "" }));
    note(note(server, "open://n"), "secret://n")
}

/// A gate on the server itself, and in front of a relay to it.
async fn gated(behind: Option<&str>) -> Server {
    let Some(revision) = behind else { return notes().gate(no_secrets) };
    let client = pintle::Client::new("relay", "0").revisions([revision.parse().unwrap()]);
    let relay = Relay::connect(client, || async { notes().in_process().map_err(std::io::Error::other) });
    // Nobody has listed anything yet.
    Server::new("outer", "0").provider(relay.await.unwrap()).gate(no_secrets)
}

#[tokio::test]
async fn a_task_has_no_more_than_the_call() {
    for behind in [None, Some(R4), Some(R5)] {
        let server = gated(behind).await;
        let mut client = Client::open(&server, R4, json!({})).await;
        let created = client.call("tools/call", json!({"name": "report", "task": {"ttl": 60000}})).await;
        let id = &created["result"]["task"]["taskId"];
        let result = client.call("tasks/result", json!({"taskId": id})).await;
        assert_eq!(result["result"]["content"].as_array().map(Vec::len), Some(1), "{behind:?} {result}");
        assert!(!result.to_string().contains("secret"), "{behind:?} {result}");

        let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        let mut client = Client::open(&server, R5, tasks).await;
        let mut answer = client.call("tools/call", json!({"name": "report"})).await;
        while let Some(id) =
            answer["result"]["taskId"].as_str().filter(|_| answer["result"]["result"].is_null())
        {
            answer = client.call("tasks/get", json!({"taskId": id})).await;
        }
        assert!(answer.to_string().contains("text of open://n"), "{behind:?} {answer}");
        assert!(!answer.to_string().contains("secret"), "{behind:?} {answer}");
    }
}

#[tokio::test]
async fn a_question_has_no_more_than_a_result() {
    for behind in [None, Some(R4), Some(R5)] {
        let server = gated(behind).await;
        for revision in [R4, R5] {
            let mut client = Client::open(&server, revision, json!({"sampling": {}})).await;
            client.answer = Box::new(|_, params| {
                let asked = params.to_string();
                assert!(asked.contains("text of open://n") && !asked.contains("secret"), "{asked}");
                json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "yes"}})
            });
            assert_eq!(client.tool("consult").await, "yes", "{behind:?} {revision}");
        }
    }
}

#[tokio::test]
async fn a_completion_names_nothing_that_is_hidden() {
    for behind in [None, Some(R4), Some(R5)] {
        let server = gated(behind).await;
        for revision in [R4, R5] {
            let mut client = Client::open(&server, revision, json!({})).await;
            let mut asked = json!({"ref": {"type": "ref/resource", "uri": "note://{folder}/{title}"},
                "argument": {"name": "folder", "value": ""}});
            let completed = client.call("completion/complete", asked.clone()).await;
            assert_eq!(completed["result"]["completion"]["values"], json!(["open"]), "{completed}");
            assert_eq!(completed["result"]["completion"]["total"], Value::Null, "{completed}");
            // Nothing can be read by a URI that is too long.
            for (title, values) in [("x", json!(["open"])), (&"x".repeat(9_000), json!([]))] {
                asked["context"] = json!({"arguments": {"title": title}});
                let completed = client.call("completion/complete", asked.clone()).await;
                assert_eq!(completed["result"]["completion"]["values"], values, "{completed}");
            }
        }
    }
}

/// Nothing of a request for a task that was not sealed here reaches a server behind.
#[tokio::test]
async fn a_task_id_of_any_other_shape_is_refused_here() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let answer = move |_: Cx, params: Value| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, RequestError>(params) }
    };
    let methods = ["tasks/get", "tasks/result", "tasks/cancel", "tasks/update"];
    let behind = methods
        .iter()
        .fold(Server::new("b", "0"), |server, name| server.method(method(*name, answer.clone())));
    let server = Server::new("outer", "0").provider(behind);
    for (server, revision) in [(server.clone(), R4), (server.clone().gate(no_secrets), R4), (server, R5)] {
        let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        let mut client = Client::open(&server, revision, tasks).await;
        let absent = if revision == R5 { "tasks/result" } else { "tasks/update" };
        for method in methods.iter().filter(|name| **name != absent) {
            for id in [json!("task-1"), json!(["task-1"]), json!(1), json!({"id": 1}), json!(null)] {
                let answer = client.call(method, json!({"taskId": id})).await;
                assert_eq!(answer["error"]["code"], -32602, "{revision} {method} {id} {answer}");
            }
            let answer = client.call(method, json!({})).await;
            assert_eq!(answer["error"]["code"], -32602, "{revision} {method} {answer}");
        }
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

/// Ann sees all, bob nothing of the vault.
#[tokio::test]
async fn a_provider_of_which_a_caller_sees_nothing_declares_nothing_to_it() {
    let part = |name: &'static str| Server::new(name, "0").instructions(format!("Use the {name}."));
    let vault = || {
        let count = |_: Cx, _: Value| async { Ok::<_, RequestError>(json!({})) };
        part("vault").prompt(prompt("secret", || async { "" })).method(method("vault/count", count)).logging()
    };
    let desk = || part("desk").tool(tool("open", || async { "" }));
    let gate = |request: &GateRequest<'_>| match request.identity() {
        Principal::Named("ann") => Decision::Allow,
        _ if request.backend == Some("vault") || request.name().starts_with("vault_") => Decision::Hide,
        _ => no_secrets(request),
    };
    let outer = || Server::new("outer", "0").instructions("Ask.");
    let both = || outer().mount("vault", vault()).mount("desk", desk());
    let by_rights = Mount::new("vault", vault()).requires(["gold"]).hidden();
    for server in [
        both().gate(gate),
        Server::new("o", "0").mount(Prefix::none(), both().gate(gate)),
        outer().provider(by_rights).mount("desk", desk()),
    ] {
        for (name, sees) in [("ann", true), ("bob", false), ("ann", true)] {
            let caller = || Caller::new().with(Authenticated::new(name).rights(move |_| sees));
            for revision in ALL {
                let mut client = Client::over(Raw::known(&server, caller()), revision, json!({})).await;
                let declared = client.declared().await;
                assert!(declared["instructions"].as_str().unwrap().contains("Use the desk."), "{declared}");
                assert!(declared["capabilities"]["tools"].is_object(), "{declared}");
                assert_eq!(declared.to_string().contains("vault"), sees, "{name} {declared}");
                for capability in ["prompts", "logging"] {
                    assert_eq!(declared["capabilities"][capability].is_object(), sees, "{name} {declared}");
                }
            }
        }
    }
}

/// A list that was read page by page is known as one that was read at once.
#[tokio::test]
async fn a_server_behind_that_pages_declares_what_it_has_once_it_was_listed() {
    for revision in [R4, R5] {
        let client = pintle::Client::new("relay", "0").revisions([revision.parse().unwrap()]);
        let behind = notes().instructions("Use the notes.").page_size(1);
        let open = move || std::future::ready(behind.in_process().map_err(std::io::Error::other));
        let relay = Relay::connect(client, open);
        let server = Server::new("outer", "0").provider(relay.await.unwrap()).gate(no_secrets);
        let mut client = Client::open(&server, R5, json!({})).await;
        for is_known in [false, true] {
            let declared = client.declared().await.to_string();
            assert_eq!(declared.contains("Use the notes."), is_known, "{revision} {declared}");
            let mut params = json!({});
            while !params["cursor"].is_null() || params == json!({}) {
                let page = client.call("tools/list", params).await;
                params = json!({"cursor": page["result"]["nextCursor"]});
            }
        }
    }
}

#[tokio::test]
async fn a_cursor_is_readable_and_usable_by_nobody_else() {
    let server = |key: u8| {
        let names = ["tool_one", "tool_two", "tool_three"];
        let own = Server::new("s", "0").tools(names.map(|name| tool(name, || async { "" })));
        let mounted = Server::new("m", "0").tools(names.map(|name| tool(name, || async { "" })));
        own.mount("m", mounted.page_size(1)).page_size(2).state_keys(StateKeys::from([key; 32]))
    };
    let open = |server: &Server, name: &str| {
        let raw = Raw::known(server, Caller::new().principal(name));
        Client::over(raw, R5, json!({}))
    };
    let (first, second, other) = (server(1), server(1), server(2));
    let mut ann = open(&first, "ann").await;
    let (mut names, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
        let page = ann.call("tools/list", params.clone()).await["result"].clone();
        // Another process with the same keys continues it.
        assert_eq!(open(&second, "ann").await.call("tools/list", params).await["result"], page);
        names.extend(page["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()));
        cursor = page["nextCursor"].clone();
        let Some(text) = cursor.as_str() else { break };
        let bytes = base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, text).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("tool_"), "{text}");
        for (server, name) in [(&first, "bob"), (&other, "ann")] {
            let refused = open(server, name).await.call("tools/list", json!({"cursor": text})).await;
            assert_eq!(refused["error"]["code"], -32602, "{name} {refused}");
        }
    }
    assert_eq!(names.len(), 6, "{names:?}");
}

/// What a reference names is told by its type.
#[tokio::test]
async fn a_reference_of_a_completion_is_read_by_its_type() {
    let server = Server::new("outer", "0").mount("git", notes());
    for revision in ALL {
        let mut client = Client::open(&server, revision, json!({})).await;
        let reference = json!({"type": "ref/prompt", "name": "git_p", "uri": "note://a"});
        let asked = json!({"ref": reference, "argument": {"name": "x", "value": ""}});
        let completed = client.call("completion/complete", asked).await;
        assert_eq!(completed["result"]["completion"]["values"], json!(["a"]), "{completed}");
    }
}
