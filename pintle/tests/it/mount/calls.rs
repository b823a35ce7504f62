//! A call of a mounted server is a call of that server, inside the outer one.

use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server,
    server::{
        Answer, Authenticated, Caller, Cx, Elicited, Entry, Mount, Next, Opened, Partial, Question, State,
        ToolError, around, prompt, resource, template, tool,
    },
    types::{
        RpcError,
        schema::{ContentBlock, CreateMessageParams, LoggingLevel, Role, SamplingMessage},
    },
};
use serde_json::{Value, json};

use crate::support::{
    drop_counter::DropCounter,
    eras::{ALL, Client, R4, R5, WITH_FORMS, each},
    line_client::Raw,
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sure {
    yes: bool,
}

type Log = Arc<Mutex<Vec<String>>>;

fn noting(
    log: &Log,
    who: &'static str,
) -> impl Fn(Cx, Next) -> std::pin::Pin<Box<dyn Future<Output = pintle::server::Outcome> + Send>>
+ Send
+ Sync
+ 'static {
    let log = log.clone();
    move |cx, next| {
        let log = log.clone();
        Box::pin(async move {
            if let Some(target) = cx.target() {
                log.lock().unwrap().push(format!("{who} {}", target.name()));
            }
            next.run(cx).await
        })
    }
}

#[derive(Clone)]
struct Branch(&'static str);

fn git() -> Server {
    Server::new("git", "1")
        .with_state(Branch("main"))
        .tool(tool("branch", |State(Branch(name)): State<Branch>| async move { name }))
        .prompt(prompt("review", || async { "Review it." }))
        .resource(resource("git://head", "head", || async { "abc" }))
        .template(
            template(
                "git://commit/{id}",
                "commit",
                |vars: pintle::server::Vars<std::collections::HashMap<String, String>>| async move {
                    vars.0["id"].clone()
                },
            )
            .complete("id", |partial: Partial| async move { vec![format!("{}1", partial.value)] }),
        )
}

/// Three levels: `desk` has `code`, which has `git`.
fn desk(git: &Server) -> Server {
    let code = Server::new("code", "1").with_state(Branch("wrong")).mount("git", git.clone());
    Server::new("desk", "1")
        .tool(tool("own", |cx: Cx| async move { cx.server().tools_where(|_: &_| true).len().to_string() }))
        .mount("code", code)
}

#[tokio::test]
async fn everything_works_three_levels_deep() {
    each(&desk(&git()), &ALL, json!({}), async |client| {
        assert_eq!(client.tool("code_git_branch").await, "main", "the state is that of the mounted server");
        assert_eq!(client.tool("own").await, "2", "its own, and the mounted one");
        let got = client.call("prompts/get", json!({"name": "code_git_review"})).await;
        assert_eq!(got["result"]["messages"][0]["content"]["text"], "Review it.", "{got}");
        let read = client.call("resources/read", json!({"uri": "git://head"})).await;
        assert_eq!(read["result"]["contents"][0]["text"], "abc", "{read}");
        let read = client.call("resources/read", json!({"uri": "git://commit/7"})).await;
        assert_eq!(read["result"]["contents"][0]["text"], "7", "{read}");
        let complete = json!({"ref": {"type": "ref/resource", "uri": "git://commit/{id}"}, "argument": {"name": "id", "value": "4"}});
        let completed = client.call("completion/complete", complete).await;
        assert_eq!(completed["result"]["completion"]["values"], json!(["41"]), "{completed}");
        for wrong in ["branch", "git_branch", "code_branch", "code_git_wrong", "code_git_own"] {
            let refused = client.call("tools/call", json!({"name": wrong})).await;
            assert!(refused["error"]["message"].as_str().unwrap().contains("no such tool"), "{refused}");
        }
    })
    .await;
}

#[tokio::test]
async fn layers_of_both_servers_run_the_outer_ones_outside() {
    let log = Log::default();
    let git = git().layer(&around(noting(&log, "git")));
    let desk = desk(&git).layer(&around(noting(&log, "desk")));
    each(&desk, &[R4, R5], json!({}), async |client| {
        assert_eq!(client.tool("code_git_branch").await, "main");
        let log = std::mem::take(&mut *log.lock().unwrap());
        assert_eq!(log, ["desk code_git_branch", "git branch"], "each sees its own name");
    })
    .await;
}

#[tokio::test]
async fn a_tool_that_only_a_layer_knows_is_called_through_a_mount() {
    let git = git().layer(&around(|cx: Cx, next: Next| async move {
        match cx.target() {
            Some(pintle::server::Target::Tool(name)) if name == "virtual" => {
                let params = r#"{"name": "branch"}"#.parse().unwrap();
                next.run(cx.with_params(params)).await
            }
            _ => next.run(cx).await,
        }
    }));
    each(&desk(&git), &[R4, R5], json!({}), async |client| {
        assert_eq!(client.tool("code_git_virtual").await, "main");
        let refused = client.call("tools/call", json!({"name": "code_git_x"})).await;
        assert!(refused["error"]["message"].as_str().unwrap().contains("no such tool"), "{refused}");
    })
    .await;
}

#[cfg(feature = "logging")]
#[tokio::test]
async fn questions_values_once_progress_and_logs_pass_through() {
    let acts = Arc::new(AtomicUsize::new(0));
    let counted = acts.clone();
    let ask = move |cx: Cx| {
        let acts = counted.clone();
        async move {
            let number = cx.once("act", async { acts.fetch_add(1, Ordering::SeqCst) + 1 }).await?;
            let Elicited::Accept(Sure { yes }) = cx.elicit::<Sure>("sure", "Sure?").await? else {
                return Err(ToolError::new("no"));
            };
            let sampled = CreateMessageParams::new(
                vec![SamplingMessage::new(Role::User, ContentBlock::text("Hi"))],
                10,
            );
            let Answer::Sample(sampled) = cx.ask("model", Question::Sample(Box::new(sampled))).await? else {
                return Err(ToolError::new("no"));
            };
            cx.progress(1.0, 2.0).await;
            cx.log(LoggingLevel::Warning, Some("git"), &"pushed").await;
            Ok::<_, ToolError>(format!("{number} {yes} {}", serde_json::to_value(&sampled).unwrap()["model"]))
        }
    };
    let git = git().logging().tool(tool("push", ask));
    let can = json!({"elicitation": {}, "sampling": {}});
    each(&desk(&git), &WITH_FORMS, can, async |client| {
        acts.store(0, Ordering::SeqCst);
        client.answer = Box::new(|method, params| match method {
            "elicitation/create" => {
                assert_eq!(params["message"], "Sure?");
                json!({"action": "accept", "content": {"yes": true}})
            }
            _ => json!({"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "m"}),
        });
        client.log_level("info").await;
        let call = json!({"name": "code_git_push", "_meta": {"progressToken": "p"}});
        let done = client.call("tools/call", call).await;
        assert_eq!(done["result"]["content"][0]["text"], r#"1 true "m""#, "{done}");
        assert_eq!(client.questions, 2);
        assert_eq!(acts.load(Ordering::SeqCst), 1, "an act happens once, whatever the number of rounds");
        let notified: Vec<Value> =
            client.received().iter().map(|received| received["method"].clone()).collect();
        assert_eq!(notified, ["notifications/progress", "notifications/message"]);
    })
    .await;
}

#[tokio::test]
async fn a_state_of_a_mounted_tool_is_used_once() {
    let acts = Arc::new(AtomicUsize::new(0));
    let counted = acts.clone();
    let git = git().tool(tool("push", move |cx: Cx| {
        let acts = counted.clone();
        async move {
            cx.elicit::<Sure>("sure", "Sure?").await?;
            Ok::<_, ToolError>((acts.fetch_add(1, Ordering::SeqCst) + 1).to_string())
        }
    }));
    let mut client = Client::open(&desk(&git), R5, json!({"elicitation": {}})).await;
    let id = client.send("tools/call", json!({"name": "code_git_push"})).await;
    let asked = client.until(id).await;
    let answers = json!({"sure": {"action": "accept", "content": {"yes": true}}});
    let state = &asked["result"]["requestState"];
    for _ in 0..2 {
        let again = json!({"name": "code_git_push", "requestState": state, "inputResponses": answers});
        let id = client.send("tools/call", again).await;
        assert_eq!(client.until(id).await["result"]["content"][0]["text"], "1");
    }
    assert_eq!(acts.load(Ordering::SeqCst), 1);
    // The state is bound to the name that the client called.
    let other = json!({"name": "code_git_branch", "requestState": state, "inputResponses": answers});
    let id = client.send("tools/call", other).await;
    assert!(client.until(id).await["error"]["code"].is_i64());
}

#[tokio::test]
async fn a_cancelled_call_drops_the_handler_of_the_mounted_server() {
    let dropped = DropCounter::default();
    let counted = dropped.clone();
    let git = git().tool(tool("hang", move |cx: Cx| {
        let guard = counted.guard();
        async move {
            cx.progress(0.0, None).await;
            pending::<()>().await;
            drop(guard);
        }
    }));
    each(&desk(&git), &ALL, json!({}), async |client| {
        let before = dropped.count();
        let id =
            client.send("tools/call", json!({"name": "code_git_hang", "_meta": {"progressToken": 1}})).await;
        assert_eq!(client.receive().await["method"], "notifications/progress");
        client.notify("notifications/cancelled", json!({"requestId": id})).await;
        assert_eq!(client.tool("code_git_branch").await, "main");
        assert_eq!(dropped.count(), before + 1, "{}", client.revision);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_timeout_is_that_of_the_tool_the_mounted_server_or_the_outer_one() {
    let hang = |name: &str| tool(name, pending::<&str>);
    let git =
        || Server::new("git", "1").tool(hang("hang")).tool(hang("short").timeout(Duration::from_secs(1)));
    let outer =
        |git: Server| Server::new("desk", "1").call_timeout(Duration::from_secs(15)).mount("git", git);
    for (server, name, seconds) in [
        (outer(git()), "git_hang", "15s"),
        (outer(git().call_timeout(Duration::from_secs(5))), "git_hang", "5s"),
        (outer(git().call_timeout(Duration::from_secs(5))), "git_short", "1s"),
    ] {
        let mut client = Client::open(&server, R5, json!({})).await;
        let ended = client.call("tools/call", json!({"name": name})).await;
        let message = ended["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(&format!("longer than {seconds}")), "{name}: {ended}");
    }
}

#[tokio::test]
async fn filters_and_rights_of_all_servers_apply() {
    let git = Server::new("git", "1")
        .tool(tool("read", || async { "read" }))
        .tool(tool("write", || async { "written" }).requires(["write"]))
        .tool(tool("secret", || async { "secret" }).requires(["admin"]).hidden())
        .tool(tool("inner", || async { "inner" }))
        .resource(resource("git://secret", "secret", || async { "x" }).requires(["admin"]).hidden())
        .filter(|scope, entry| {
            !matches!(entry, Entry::Tool(tool) if tool.name == "inner") || scope.principal == Some("eve")
        });
    let server = Server::new("desk", "1")
        .provider(Mount::new("git", git).requires(["git"]))
        .filter(|_, entry| !matches!(entry, Entry::Tool(tool) if tool.name == "git_read"));
    for revision in [R4, R5] {
        let by = async |name: &'static str, rights: &'static [&'static str]| {
            let caller = Authenticated::new(name).rights(|right| rights.contains(&right));
            Client::over(Raw::known(&server, Caller::new().principal(name).with(caller)), revision, json!({}))
                .await
        };
        let names = |listed: Value| -> Vec<String> {
            let tools = listed["result"]["tools"].as_array().unwrap();
            tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
        };
        let refusal = |answer: Value| answer["error"]["message"].as_str().unwrap_or_default().to_owned();
        let mut ann = by("ann", &["git"]).await;
        assert_eq!(names(ann.call("tools/list", json!({})).await), ["git_write"]);
        let call = |name: &str| json!({"name": name});
        assert_eq!(
            refusal(ann.call("tools/call", call("git_write")).await),
            "`git_write` needs more than the caller may"
        );
        for hidden in ["git_read", "git_secret", "git_inner"] {
            let detail = refusal(ann.call("tools/call", call(hidden)).await);
            assert!(detail.starts_with(&format!("no such tool: `{hidden}`")), "{detail}");
        }
        let read = ann.call("resources/read", json!({"uri": "git://secret"})).await;
        assert!(read["error"]["code"].is_i64(), "{read}");
        let mut eve = by("eve", &["git", "write", "admin"]).await;
        assert_eq!(names(eve.call("tools/list", json!({})).await), ["git_write", "git_secret", "git_inner"]);
        for name in ["git_write", "git_secret", "git_inner"] {
            assert!(eve.call("tools/call", call(name)).await["result"].is_object(), "{name}");
        }
        // The right of the mount is needed besides.
        let mut bob = by("bob", &["write"]).await;
        assert_eq!(
            refusal(bob.call("tools/call", call("git_write")).await),
            "`git_write` needs more than the caller may"
        );
    }
}

#[tokio::test]
async fn hooks_and_notification_handlers_of_a_mounted_server_run() {
    let log = Log::default();
    let noted = |what: &'static str| {
        let log = log.clone();
        move || log.lock().unwrap().push(what.to_owned())
    };
    let (opened, session, closed, roots) = (noted("open"), noted("session"), noted("close"), noted("roots"));
    let git = git()
        .on_open(move |connection: &Opened| {
            assert_eq!(connection.server.lint().len(), git_lints());
            opened();
        })
        .on_session(move |_: &Opened| session())
        .on_close(move |_: &Opened, _| closed())
        .on_notification("notifications/roots/list_changed", move |_, _| {
            roots();
            async {}
        });
    let server = desk(&git);
    let mut client = Client::open(&server, R4, json!({"roots": {"listChanged": true}})).await;
    client.notify("notifications/roots/list_changed", json!({})).await;
    client.tool("code_git_branch").await;
    drop(client);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(*log.lock().unwrap(), ["open", "session", "roots", "close"]);

    let refusing = git.on_session(|_: &Opened| Err(RpcError::invalid_request("not today")));
    let mut raw = Raw::new(&desk(&refusing));
    let params =
        json!({"protocolVersion": R4, "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}});
    raw.request("initialize", params).await;
    assert_eq!(raw.recv().await["error"]["message"], "not today");
}

fn git_lints() -> usize {
    git().lint().len()
}
