//! A task belongs to its caller.

use std::{sync::Arc, time::Duration};

use pintle::{
    Server,
    server::{
        Caller, Cx, StateKeys,
        http::{Http, nodes::MemoryFleet},
        tool,
    },
};
use pintle_tasks::{MemoryTaskStore, Tasks};
use serde_json::{Value, json};

use super::same_tool::capabilities;
use crate::support::{
    eras::{Client, R4, R5},
    http_client::Wire,
    line_client::Raw,
};

fn server(tasks: Tasks) -> Server {
    Server::new("s", "0").state_keys(StateKeys::from([7; 32])).with(tasks).tool(
        tool("sleep", || async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            "slept"
        })
        .task("required"),
    )
}

fn wire() -> Wire {
    let http = server(Tasks::new()).http().unwrap().principal(|parts| {
        let name = parts.headers.get("x-user").and_then(|name| name.to_str().ok());
        name.filter(|name| !name.is_empty()).map(str::to_owned)
    });
    Wire::new(&http)
}

async fn call(wire: &Wire, user: &str, method: &str, params: Value) -> Value {
    let mut wire = wire.with("x-user", user);
    if let Some(id) = params["taskId"].as_str() {
        wire = wire.with("mcp-name", id);
    }
    wire.modern(1, method, params, capabilities()).await.json().await
}

#[tokio::test(start_paused = true)]
async fn another_caller_sees_nothing() {
    let wire = wire();
    let task = call(&wire, "ann", "tools/call", json!({"name": "sleep"})).await["result"].clone();
    let id = &task["taskId"];
    assert!(id.as_str().is_some_and(|id| id.len() >= 22), "{task}");
    for user in ["bob", ""] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let text = |reply: &Value| reply["error"]["message"].as_str().unwrap_or("").to_owned();
            let params = |id: &str| json!({"taskId": id, "inputResponses": {}});
            let unknown = call(&wire, user, method, params("none-such")).await;
            let refused = call(&wire, user, method, params(id.as_str().unwrap())).await;
            assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
            assert_eq!(text(&refused), text(&unknown).replace("none-such", id.as_str().unwrap()));
        }
    }
    let own = call(&wire, "ann", "tasks/get", json!({"taskId": id})).await;
    assert_eq!(own["result"]["status"], "working", "{own}");
    // The headers name the task.
    let other = wire.with("x-user", "ann").with("mcp-name", "another");
    let refused = other.modern(1, "tasks/get", json!({"taskId": id}), capabilities()).await.json().await;
    assert_eq!(refused["error"]["code"], -32020, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_task_of_an_anonymous_session_belongs_to_it() {
    let wire = wire();
    let (one, other) = (wire.open(R4, json!({})).await, wire.open(R4, json!({})).await);
    let call = json!({"name": "sleep", "task": {}});
    let created = one.call(1, "tools/call", call).await.json().await["result"]["task"].clone();
    let id = json!({"taskId": created["taskId"]});
    assert_eq!(one.call(2, "tasks/get", id.clone()).await.json().await["result"]["status"], "working");
    assert_eq!(other.call(2, "tasks/get", id).await.json().await["error"]["code"], -32602);
    let listed = |reply: Value| reply["result"]["tasks"].as_array().unwrap().len();
    assert_eq!(listed(one.call(3, "tasks/list", json!({})).await.json().await), 1);
    assert_eq!(listed(other.call(3, "tasks/list", json!({})).await.json().await), 0);
}

#[tokio::test(start_paused = true)]
async fn a_task_of_an_anonymous_session_belongs_to_it_at_every_process() {
    let (fleet, store) = (MemoryFleet::new(), Arc::new(MemoryTaskStore::new()));
    let process = || {
        let server = server(Tasks::new().store(store.clone()));
        server.http().unwrap().shared(fleet.node().unwrap())
    };
    let (a, b) = (process(), process());
    let at_b = |client: &Wire| Wire { http: Http::clone(&b), ..client.clone() };
    let (one, other) = (Wire::new(&a).open(R4, json!({})).await, Wire::new(&a).open(R4, json!({})).await);
    let call = json!({"name": "sleep", "task": {}});
    let created = one.call(1, "tools/call", call).await.json().await["result"]["task"].clone();
    let id = json!({"taskId": created["taskId"]});
    let found = at_b(&one).call(2, "tasks/get", id.clone()).await.json().await;
    assert_eq!(found["result"]["status"], "working", "{found}");
    assert_eq!(at_b(&other).call(2, "tasks/get", id).await.json().await["error"]["code"], -32602);
    let listed = |reply: Value| reply["result"]["tasks"].as_array().unwrap().len();
    assert_eq!(listed(at_b(&one).call(3, "tasks/list", json!({})).await.json().await), 1);
    assert_eq!(listed(at_b(&other).call(3, "tasks/list", json!({})).await.json().await), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cursor_of_the_list_of_tasks_is_that_of_its_caller() {
    let server = server(Tasks::new());
    let open = |name: &str| Client::over(Raw::known(&server, Caller::new().principal(name)), R4, json!({}));
    let mut ann = open("ann").await;
    for _ in 0..101 {
        ann.call("tools/call", json!({"name": "sleep", "task": {}})).await;
    }
    let page = ann.call("tasks/list", json!({})).await["result"].clone();
    let (tasks, cursor) = (page["tasks"].as_array().unwrap(), page["nextCursor"].as_str().unwrap());
    let ids: Vec<_> = tasks.iter().map(|task| task["taskId"].as_str().unwrap()).collect();
    assert!(ids.len() == 100 && !ids.contains(&cursor), "{cursor}");
    let rest = open("ann").await.call("tasks/list", json!({"cursor": cursor})).await;
    assert_eq!(rest["result"]["tasks"].as_array().map(Vec::len), Some(1), "{rest}");
    for (name, cursor) in [("bob", cursor), ("ann", ids[99]), ("ann", "made-up")] {
        let refused = open(name).await.call("tasks/list", json!({"cursor": cursor})).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_notified_of_the_tasks_of_others() {
    let server = Server::new("s", "0").with(Tasks::new()).tool(
        tool("sleep", |cx: Cx| async move {
            for step in 1..=3 {
                tokio::time::sleep(Duration::from_secs(5)).await;
                cx.progress(f64::from(step), None).await;
            }
            "slept"
        })
        .task("required"),
    );
    let open = async |caller: Caller| Client::over(Raw::known(&server, caller), R5, capabilities()).await;
    let callers = || [Caller::local(), Caller::new().principal("ann"), Caller::new()];
    for (at, caller) in callers().into_iter().enumerate() {
        let mut owner = open(caller).await;
        let created = owner.call("tools/call", json!({"name": "sleep"})).await;
        let filter = json!({"notifications": {"taskIds": [created["result"]["taskId"]]}});
        let mut listeners = Vec::new();
        for (other, caller) in callers().into_iter().enumerate() {
            let mut listener = open(caller).await;
            listener.send("subscriptions/listen", filter.clone()).await;
            let acknowledged = listener.receive().await;
            assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
            let granted = acknowledged["params"]["notifications"]["taskIds"].as_array().map(Vec::len);
            // One without a name may be the local user, who is told apart when a notification is sent.
            let may_be_granted = at == other && at < 2 || (at, other) == (0, 2);
            assert_eq!(granted, Some(usize::from(may_be_granted)), "{at}, {other}: {acknowledged}");
            listeners.push(listener);
        }
        tokio::time::sleep(Duration::from_secs(20)).await;
        for (other, listener) in listeners.iter_mut().enumerate() {
            // The reply to another request comes after all that was sent before.
            listener.call("tools/list", json!({})).await;
            let notified =
                listener.received().iter().any(|received| received["method"] == "notifications/tasks");
            // Nothing tells one anonymous caller from another.
            assert_eq!(notified, at == other && at < 2, "a task of {at}, and a listener of {other}");
        }
    }
}
