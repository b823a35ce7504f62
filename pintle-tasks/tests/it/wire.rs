//! The methods of tasks, message by message.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server,
    server::{Cx, ToolError, tool},
    types::RpcError,
};
use pintle_tasks::{MemoryTaskStore, TaskQuota, TaskStore, Tasks};
use pintle_testing::kits;
use serde_json::{Value, json};

use super::same_tool::capabilities;
use crate::support::eras::{ALL, Client, R4, R5};

/// Sets a flag when it is dropped.
struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn server(tasks: Tasks, dropped: &Arc<AtomicBool>) -> Server {
    let dropped = dropped.clone();
    Server::new("s", "0")
        .with(tasks)
        .tool(tool("at_once", || async { "now" }).task("optional"))
        .tool(
            tool("sleep", move |cx: Cx| {
                let dropped = dropped.clone();
                async move {
                    let _guard = OnDrop(dropped);
                    cx.progress(0.5, None).await;
                    tokio::time::sleep(Duration::from_secs(15)).await;
                    "slept"
                }
            })
            .task("optional"),
        )
        .tool(tool("fails", || async { Err::<String, _>(ToolError::new("no luck")) }).task("required"))
        .tool(tool("breaks", || async { Err::<String, _>(RpcError::internal("broken")) }).task("required"))
        .tool(tool("never", || async { "plain" }))
}

async fn start(client: &mut Client, tool: &str) -> Value {
    let mut call = json!({"name": tool});
    if client.revision == R4 {
        call["task"] = json!({});
    }
    let reply = client.call("tools/call", call).await;
    let result = &reply["result"];
    let task = if client.revision == R4 { &result["task"] } else { result };
    assert!(task["taskId"].is_string(), "{reply}");
    task.clone()
}

async fn get(client: &mut Client, id: &Value) -> Value {
    client.call("tasks/get", json!({"taskId": id})).await
}

async fn until(client: &mut Client, id: &Value, status: &str) -> Value {
    for _ in 0..400 {
        let task = get(client, id).await["result"].clone();
        if task["status"] == status {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("never `{status}`");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_is_dropped_and_stays_cancelled() {
    for revision in [R4, R5] {
        let dropped = Arc::new(AtomicBool::new(false));
        let mut client = Client::open(&server(Tasks::new(), &dropped), revision, capabilities()).await;
        let task = start(&mut client, "sleep").await;
        let id = &task["taskId"];
        let cancelled = client.call("tasks/cancel", json!({"taskId": id})).await;
        match revision {
            R4 => assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}"),
            _ => {
                assert_eq!(cancelled["result"]["resultType"], "complete", "{cancelled}");
                assert!(cancelled["result"].get("status").is_none(), "{cancelled}");
            }
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(dropped.load(Ordering::SeqCst), "the handler goes on");
        assert_eq!(get(&mut client, id).await["result"]["status"], "cancelled");
        let again = client.call("tasks/cancel", json!({"taskId": id})).await;
        match revision {
            R4 => assert_eq!(again["error"]["code"], -32602, "{again}"),
            _ => assert_eq!(again["result"]["resultType"], "complete", "{again}"),
        }
        if revision == R4 {
            let result = client.call("tasks/result", json!({"taskId": id})).await;
            assert_eq!(result["error"]["code"], -32602, "{result}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn progress_is_the_status_and_the_end_is_that_of_the_tool() {
    for revision in [R4, R5] {
        let mut client = Client::open(&server(Tasks::new(), &Arc::default()), revision, capabilities()).await;
        let task = start(&mut client, "sleep").await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        let running = get(&mut client, &task["taskId"]).await["result"].clone();
        assert_eq!((&running["status"], &running["statusMessage"]), (&json!("working"), &json!("0.5")));
        until(&mut client, &task["taskId"], "completed").await;

        // A result that reports an error is a failure in the older shape, and a result in the newer one.
        let task = start(&mut client, "fails").await;
        let status = if revision == R4 { "failed" } else { "completed" };
        let failed = until(&mut client, &task["taskId"], status).await;
        let result = match revision {
            R4 => client.call("tasks/result", json!({"taskId": task["taskId"]})).await["result"].clone(),
            _ => failed["result"].clone(),
        };
        assert_eq!((&result["isError"], &result["content"][0]["text"]), (&json!(true), &json!("no luck")));

        let task = start(&mut client, "breaks").await;
        let broken = until(&mut client, &task["taskId"], "failed").await;
        let error = match revision {
            R4 => client.call("tasks/result", json!({"taskId": task["taskId"]})).await["error"].clone(),
            _ => broken["error"].clone(),
        };
        assert_eq!((&error["code"], &error["message"]), (&json!(-32603), &json!("broken")), "{broken}");
        // Neither progress nor log messages are sent of a task.
        let received = client.received();
        assert!(received.iter().all(|message| message["method"] != "notifications/progress"), "{received:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_completes_at_once_is_no_task_unless_the_client_wants_one() {
    let server = server(Tasks::new(), &Arc::default());
    let mut client = Client::open(&server, R5, capabilities()).await;
    assert_eq!(client.tool("at_once").await, "now");
    // In this revision the param means nothing.
    let ignored = client.call("tools/call", json!({"name": "never", "task": {}})).await;
    assert_eq!(ignored["result"]["content"][0]["text"], "plain", "{ignored}");
    let mut client = Client::open(&server, R4, capabilities()).await;
    assert_eq!(client.tool("at_once").await, "now");
    let task = start(&mut client, "at_once").await;
    assert_eq!(task["status"], "working");
    let refused = client.call("tools/call", json!({"name": "never", "task": {}})).await;
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn each_revision_sees_its_own_kind_of_tasks() {
    let server = server(Tasks::new(), &Arc::default());
    for revision in ALL {
        let mut client = Client::open(&server, revision, capabilities()).await;
        let listed = client.call("tools/list", json!({})).await["result"]["tools"].clone();
        let supports =
            listed.as_array().unwrap().iter().filter(|tool| tool.get("execution").is_some()).count();
        assert_eq!(supports, if revision == R4 { 4 } else { 0 }, "{revision}");
        for (method, there) in [
            ("tasks/get", [R4, R5].contains(&revision)),
            ("tasks/cancel", [R4, R5].contains(&revision)),
            ("tasks/update", revision == R5),
            ("tasks/result", revision == R4),
        ] {
            let reply = client.call(method, json!({"taskId": "none", "inputResponses": {}})).await;
            let code = if there { -32602 } else { -32601 };
            assert_eq!(reply["error"]["code"], code, "{revision} {method}: {reply}");
        }
        let list = client.call("tasks/list", json!({})).await;
        match revision {
            R4 => assert_eq!(list["result"]["tasks"], json!([]), "{list}"),
            _ => assert_eq!(list["error"]["code"], -32601, "{revision}: {list}"),
        }
        if revision == R5 {
            let can = client.call("server/discover", json!({})).await["result"]["capabilities"].clone();
            assert!(can.get("tasks").is_none(), "{can}");
            assert_eq!(can["extensions"]["io.modelcontextprotocol/tasks"], json!({}));
        }
    }
    // A client that does not declare the extension cannot use its methods.
    let mut client = Client::open(&server, R5, json!({"tasks": {}})).await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = client.call(method, json!({"taskId": "none", "inputResponses": {}})).await;
        assert_eq!(refused["error"]["code"], -32021, "{refused}");
    }
    assert_eq!(client.tool("at_once").await, "now");
}

#[tokio::test(start_paused = true)]
async fn a_task_expires_and_its_handler_with_it() {
    let (dropped, store) = (Arc::new(AtomicBool::new(false)), Arc::new(MemoryTaskStore::new()));
    let tasks = Tasks::new().ttl(Duration::from_secs(10)).store(store.clone());
    let mut client = Client::open(&server(tasks, &dropped), R5, capabilities()).await;
    let task = start(&mut client, "sleep").await;
    assert_eq!(task["ttlMs"], 10_000);
    let short = start(&mut client, "fails").await;
    until(&mut client, &short["taskId"], "completed").await;
    assert_eq!(store.len(), 2);
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert!(dropped.load(Ordering::SeqCst), "the handler goes on");
    // Nobody had to ask for it.
    assert_eq!(store.len(), 0);
    for task in [task, short] {
        let gone = get(&mut client, &task["taskId"]).await;
        assert_eq!(gone["error"]["code"], -32602, "{gone}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_number_and_the_bytes_of_tasks_are_bounded() {
    let mut quota = TaskQuota::default();
    (quota.account_tasks, quota.account_bytes) = (2, 2_000);
    let tasks = Tasks::new().quota(quota);
    let server = Server::new("s", "0")
        .with(tasks)
        .tool(tool("long", || async { "x".repeat(4_000) }).task("required"))
        .tool(tool("short", || async { "x" }).task("required"));
    let mut client = Client::open(&server, R5, capabilities()).await;
    let task = start(&mut client, "long").await;
    let failed = until(&mut client, &task["taskId"], "failed").await;
    assert!(failed["error"]["message"].as_str().unwrap().contains("bytes"), "{failed}");
    start(&mut client, "short").await;
    let refused = client.call("tools/call", json!({"name": "short"})).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("too many tasks"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn clients_are_notified_of_the_status() {
    let server = server(Tasks::new(), &Arc::default());
    let mut client = Client::open(&server, R5, capabilities()).await;
    let task = start(&mut client, "sleep").await;
    let filter = json!({"notifications": {"taskIds": [task["taskId"], "another"]}});
    client.send("subscriptions/listen", filter).await;
    let granted = client.receive().await;
    assert_eq!(granted["params"]["notifications"]["taskIds"], json!([task["taskId"]]), "{granted}");
    loop {
        let notified = client.receive().await;
        assert_eq!(notified["method"], "notifications/tasks", "{notified}");
        assert_eq!(notified["params"]["taskId"], task["taskId"]);
        if notified["params"]["status"] == "completed" {
            assert_eq!(notified["params"]["result"]["content"][0]["text"], "slept");
            break;
        }
    }
    let mut client = Client::open(&server, R4, capabilities()).await;
    start(&mut client, "sleep").await;
    loop {
        let notified = client.receive().await;
        assert_eq!(notified["method"], "notifications/tasks/status", "{notified}");
        if notified["params"]["status"] == "completed" {
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_become_a_task_after_it_asked() {
    let server = Server::new("s", "0").with(Tasks::new()).tool(tool("build", |cx: Cx| async move {
        cx.require_extension(pintle_tasks::EXTENSION)?;
        cx.elicit::<()>("sure", "Sure?").await?;
        assert!(cx.detach().await && cx.detach().await);
        cx.elicit::<()>("really", "Really?").await?;
        Ok::<_, ToolError>("built")
    }));
    let mut client = Client::open(&server, R5, capabilities()).await;
    client.answer = Box::new(|_, params| {
        assert_eq!(params["message"], "Sure?");
        json!({"action": "accept", "content": {}})
    });
    let task = start(&mut client, "build").await;
    assert_eq!(client.questions, 1);
    assert!(task.get("requestState").is_none(), "{task}");
    let asking = until(&mut client, &task["taskId"], "input_required").await;
    assert_eq!(asking["inputRequests"]["really"]["params"]["message"], "Really?", "{asking}");
    let answers = json!({"really": {"action": "accept", "content": {}}, "unknown": 7});
    client.call("tasks/update", json!({"taskId": task["taskId"], "inputResponses": answers})).await;
    until(&mut client, &task["taskId"], "completed").await;
}

/// What a handler leaves behind, such as a task that it has spawned, is not told that its call has become a task.
#[tokio::test]
async fn a_call_that_completed_at_once_does_not_go_on_after_its_response() {
    let (left, mut found) = tokio::sync::mpsc::unbounded_channel();
    let reporting = left.clone();
    let server = Server::new("s", "0")
        .with(Tasks::new())
        .tool(
            tool("quiet", move |cx: Cx| {
                left.send(cx).unwrap();
                async { "now" }
            })
            .task("optional"),
        )
        .tool(
            tool("reports", move |cx: Cx| {
                let left = reporting.clone();
                async move {
                    cx.progress(0.5, None).await;
                    left.send(cx).unwrap();
                    "now"
                }
            })
            .task("optional"),
        );
    let mut client = Client::open(&server, R5, capabilities()).await;
    for name in ["quiet", "reports"] {
        assert_eq!(client.tool(name).await, "now");
        let cx = found.recv().await.unwrap();
        assert!(!cx.is_detached(), "{name}");
    }
}

#[tokio::test]
async fn the_store_in_memory_keeps_the_contract() {
    kits::tasks::check(async || Ok(kits::two_handles(MemoryTaskStore::new()))).await.unwrap();
    let store: Arc<dyn TaskStore> = Arc::new(MemoryTaskStore::new());
    assert!(store.get("none").await.unwrap().is_none());
}
