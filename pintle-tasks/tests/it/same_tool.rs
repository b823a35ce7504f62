//! One tool that asks twice, reports progress and acts once. It is written once, and is the same as a task.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;

use pintle::{
    Server,
    server::{Cx, State, ToolError, tool},
};
use pintle_tasks::Tasks;
use serde_json::{Value, json};

use crate::support::eras::{ALL, Client, R4, R5, each};

/// How often the tool has acted.
#[derive(Clone, Default)]
pub(super) struct Acts(pub(super) Arc<AtomicUsize>);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

/// The tool.
pub(super) async fn order(cx: Cx, State(acts): State<Acts>) -> Result<String, ToolError> {
    let first = cx.elicit::<Name>("first", "What?").await?.accepted().ok_or("declined")?;
    cx.progress_with(1.0, 2.0, "half way").await;
    let number = cx.once("act", async { acts.0.fetch_add(1, Ordering::SeqCst) + 1 }).await?;
    let second = cx.elicit::<Name>("second", "Where?").await?.accepted().ok_or("declined")?;
    cx.progress_with(2.0, 2.0, "done").await;
    Ok(format!("{} to {}, act {number}", first.name, second.name))
}

pub(super) fn server(acts: &Acts) -> Server {
    Server::new("s", "0")
        .with_state(acts.clone())
        .with(Tasks::new().poll_interval(Duration::from_millis(200)))
        .tool(tool("order", order).task("optional"))
        .tool(tool("plain", order))
        .tool(tool("later", order).task("required"))
}

pub(super) fn answer(params: &Value) -> Value {
    let name = if params["message"] == "What?" { "tea" } else { "Bergen" };
    json!({"action": "accept", "content": {"name": name}})
}

pub(super) fn capabilities() -> Value {
    json!({"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

/// Runs a tool as a task of the extension: polls, and answers by `tasks/update`. Returns the last status.
pub(super) async fn poll(client: &mut Client, id: &str) -> Value {
    let mut statuses = Vec::new();
    for _ in 0..50 {
        let reply = client.call("tasks/get", json!({"taskId": id})).await;
        let task = reply["result"].clone();
        assert_eq!(task["resultType"], "complete", "{reply}");
        statuses.push(task["status"].as_str().unwrap().to_owned());
        match statuses.last().unwrap().as_str() {
            "input_required" => {
                let questions = task["inputRequests"].as_object().unwrap();
                let answers: serde_json::Map<_, _> = questions
                    .iter()
                    .map(|(key, question)| (key.clone(), answer(&question["params"])))
                    .collect();
                let update = json!({"taskId": id, "inputResponses": answers});
                let updated = client.call("tasks/update", update).await;
                assert_eq!(updated["result"]["resultType"], "complete", "{updated}");
            }
            "working" => tokio::time::sleep(Duration::from_millis(200)).await,
            _ => return task,
        }
    }
    panic!("no end: {statuses:?}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_does_the_same_plainly_and_as_a_task_without_a_session() {
    let acts = Acts::default();
    let server = server(&acts);
    let mut client = Client::open(&server, R5, capabilities()).await;
    client.answer = Box::new(|_, params| answer(params));
    assert_eq!(client.tool("plain").await, "tea to Bergen, act 1");
    for tool in ["order", "later"] {
        let acted = acts.0.load(Ordering::SeqCst);
        let created = client.call("tools/call", json!({"name": tool})).await["result"].clone();
        assert_eq!(
            (&created["resultType"], &created["status"]),
            (&json!("task"), &json!("working")),
            "{created}"
        );
        let task = poll(&mut client, created["taskId"].as_str().unwrap()).await;
        assert_eq!(task["status"], "completed", "{task}");
        assert_eq!(task["result"]["content"][0]["text"], format!("tea to Bergen, act {}", acted + 1));
        assert_eq!(task["statusMessage"], "done (2 of 2)");
        assert_eq!(acts.0.load(Ordering::SeqCst), acted + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_does_the_same_plainly_and_as_a_task_in_a_session() {
    let acts = Acts::default();
    let server = server(&acts);
    let mut client = Client::open(&server, R4, json!({"elicitation": {"form": {}}})).await;
    client.answer = Box::new(|_, params| answer(params));
    assert_eq!(client.tool("order").await, "tea to Bergen, act 1");
    for tool in ["order", "later"] {
        let acted = acts.0.load(Ordering::SeqCst);
        let call = json!({"name": tool, "task": {"ttl": 60_000}});
        let created = client.call("tools/call", call).await["result"]["task"].clone();
        assert_eq!((&created["status"], &created["ttl"]), (&json!("working"), &json!(60_000)), "{created}");
        let id = created["taskId"].as_str().unwrap().to_owned();
        // The questions belong to the task, and come while its result is awaited.
        let expected = id.clone();
        client.answer = Box::new(move |method, params| {
            assert_eq!(method, "elicitation/create");
            let related = &params["_meta"]["io.modelcontextprotocol/related-task"];
            assert_eq!(*related, json!({"taskId": expected}));
            answer(params)
        });
        let result = client.call("tasks/result", json!({"taskId": id})).await["result"].clone();
        assert_eq!(result["content"][0]["text"], format!("tea to Bergen, act {}", acted + 1), "{result}");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"], json!({"taskId": id}));
        let task = client.call("tasks/get", json!({"taskId": id})).await["result"].clone();
        assert_eq!((&task["status"], &task["taskId"]), (&json!("completed"), &json!(id)), "{task}");
    }
}

/// A client that knows no tasks calls the same tool, in every revision that has forms.
#[tokio::test(start_paused = true)]
async fn who_knows_no_tasks_gets_the_result() {
    let acts = Acts::default();
    let server = server(&acts);
    let revisions = crate::support::eras::WITH_FORMS;
    each(&server, &revisions, json!({"elicitation": {"form": {}}}), async |client: &mut Client| {
        client.answer = Box::new(|_, params| answer(params));
        let acted = acts.0.load(Ordering::SeqCst);
        assert_eq!(client.tool("order").await, format!("tea to Bergen, act {}", acted + 1));
    })
    .await;
    each(&server, &ALL, json!({"elicitation": {"form": {}}}), async |client: &mut Client| {
        let refused = client.call("tools/call", json!({"name": "later"})).await;
        match client.revision {
            R5 => {
                assert_eq!(refused["error"]["code"], -32021, "{refused}");
                let required = &refused["error"]["data"]["requiredCapabilities"]["extensions"];
                assert_eq!(*required, json!({"io.modelcontextprotocol/tasks": {}}));
            }
            R4 => assert_eq!(refused["error"]["code"], -32601, "{refused}"),
            _ => assert_eq!(refused["result"]["isError"], true, "{refused}"),
        }
    })
    .await;
}
