//! A client of either era that follows tasks.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::support::eras::{Client, R4};

/// Lets the tools of servers go on, one step each.
#[derive(Clone)]
pub(crate) struct Steps(Arc<Semaphore>);

impl Steps {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    pub(crate) fn one(&self) {
        self.add(1);
    }

    pub(crate) fn add(&self, steps: usize) {
        self.0.add_permits(steps);
    }

    pub(crate) async fn wait(&self) {
        self.0.acquire().await.unwrap().forget();
    }
}

/// What a client that follows tasks declares.
pub(crate) fn declares() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

/// Starts a task, and returns its id.
pub(crate) async fn start(client: &mut Client, name: &str) -> Value {
    let call = match client.revision {
        R4 => json!({"name": name, "task": {}}),
        _ => json!({"name": name}),
    };
    let called = client.call("tools/call", call).await;
    let result = &called["result"];
    let id = result.get("taskId").or_else(|| result["task"].get("taskId"));
    id.unwrap_or_else(|| panic!("{called}")).clone()
}

/// Wants to be notified of tasks. Returns those that are granted.
pub(crate) async fn listen(client: &mut Client, ids: &[&Value]) -> Value {
    client.send("subscriptions/listen", json!({"notifications": {"taskIds": ids}})).await;
    let acknowledged = client.receive().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
    acknowledged["params"]["notifications"]["taskIds"].clone()
}

/// Waits for the status of a task.
pub(crate) async fn status(client: &mut Client, id: &Value, expected: &str) -> Value {
    for _ in 0..10 {
        let received = client.receive().await;
        assert_eq!(received["params"]["taskId"], *id, "{received}");
        if received["params"]["status"] == expected {
            return received;
        }
    }
    panic!("the task does not become {expected}");
}

/// Polls a task until it has this status.
pub(crate) async fn polled(client: &mut Client, id: &Value, expected: &str) -> Value {
    let mut last = Value::Null;
    for _ in 0..100 {
        let got = client.call("tasks/get", json!({"taskId": id})).await;
        assert_eq!(got["result"]["taskId"], *id, "{got}");
        if got["result"]["status"] == expected {
            return got["result"].clone();
        }
        last = got;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("the task does not become {expected}: {last}");
}

/// Returns the answer that the call of a task would have got, once it has ended.
pub(crate) async fn outcome(client: &mut Client, id: &Value) -> Value {
    if client.revision == R4 {
        return client.call("tasks/result", json!({"taskId": id})).await;
    }
    for _ in 0..100 {
        let got = client.call("tasks/get", json!({"taskId": id})).await["result"].clone();
        if got.get("result").is_some() || got.get("error").is_some() {
            return got;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("no end of {id}");
}
