//! Many tasks of many callers at the same time.

use std::{sync::Arc, time::Duration};

use pintle::{
    Server,
    server::{Caller, Cx, State, ToolError, tool},
};
use pintle_tasks::{MemoryTaskStore, TaskQuota, Tasks};
use serde_json::json;

use super::same_tool::capabilities;
use crate::support::{
    drop_counter::DropCounter,
    eras::{Client, R4, R5},
    line_client::Raw,
};

const PRINCIPALS: usize = 100;
const TASKS: usize = 100;
/// What one waiting task may take of the store: its names, its question and the seal.
const TASK_BYTES: usize = 1_200;

async fn wait(cx: Cx, State(dropped): State<DropCounter>) -> Result<&'static str, ToolError> {
    let _guard = dropped.guard();
    cx.elicit::<()>("sure", "Sure?").await?;
    Ok("done")
}

async fn client(server: &Server, name: &str, revision: &'static str) -> Client {
    Client::over(Raw::known(server, Caller::new().principal(name)), revision, capabilities()).await
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_tasks_of_a_hundred_callers_are_bounded_apart_and_expire() {
    let (store, dropped) = (Arc::new(MemoryTaskStore::new()), DropCounter::default());
    let mut quota = TaskQuota::default();
    (quota.account_tasks, quota.tasks) = (TASKS, PRINCIPALS * TASKS);
    let tasks = Tasks::new().store(store.clone()).quota(quota).ttl(Duration::from_secs(600));
    let server = Server::new("s", "0")
        .with_state(dropped.clone())
        .with(tasks)
        .tool(tool("wait", wait).task("required"));
    let mut clients = Vec::new();
    for number in 0..PRINCIPALS {
        let mut client = client(&server, &format!("caller-{number}"), R5).await;
        let mut ids = Vec::new();
        for _ in 0..TASKS {
            let created = client.call("tools/call", json!({"name": "wait"})).await;
            ids.push(created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned());
        }
        // One more is refused, and takes nothing from others.
        let refused = client.call("tools/call", json!({"name": "wait"})).await;
        assert!(
            refused["error"]["message"].as_str().is_some_and(|it| it.contains("too many tasks")),
            "{refused}"
        );
        clients.push((client, ids));
    }
    assert_eq!(store.len(), PRINCIPALS * TASKS);
    assert!(store.bytes() <= PRINCIPALS * TASKS * TASK_BYTES, "{} bytes", store.bytes());
    let mut another = client(&server, "another", R5).await;
    let refused = another.call("tools/call", json!({"name": "wait"})).await;
    assert!(
        refused["error"]["message"].as_str().is_some_and(|it| it.contains("too many tasks")),
        "{refused}"
    );

    // Everybody sees its own tasks, and nobody those of the next.
    let foreign: Vec<String> = clients.iter().map(|(_, ids)| ids[0].clone()).collect();
    for (at, (client, ids)) in clients.iter_mut().enumerate() {
        let own = client.call("tasks/get", json!({"taskId": ids[at]})).await;
        assert_eq!(own["result"]["status"], "input_required", "{own}");
        let other = &foreign[(at + 1) % PRINCIPALS];
        for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
            let refused = client.call(method, json!({"taskId": other, "inputResponses": {}})).await;
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
        }
    }
    let mut session = self::client(&server, "caller-7", R4).await;
    let listed = session.call("tasks/list", json!({})).await["result"]["tasks"].clone();
    let mut listed: Vec<_> =
        listed.as_array().unwrap().iter().map(|task| task["taskId"].as_str().unwrap().to_owned()).collect();
    listed.sort_unstable();
    clients[7].1.sort_unstable();
    assert_eq!(listed, clients[7].1);

    // Nobody has to ask for it: the tasks are gone when their time is over, and their handlers with them.
    let refused = dropped.count();
    assert_eq!(refused, PRINCIPALS + 1, "the handlers of calls that were refused");
    tokio::time::sleep(Duration::from_secs(660)).await;
    assert_eq!((store.len(), store.bytes(), dropped.count()), (0, 0, refused + PRINCIPALS * TASKS));
    let again = another.call("tools/call", json!({"name": "wait"})).await;
    assert_eq!(again["result"]["status"], "working", "{again}");
}
