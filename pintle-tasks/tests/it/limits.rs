//! What tasks are bounded by, each bound alone: times, accounts and leases.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server,
    server::{AskError, Cx, StateKeys, tool},
};
use pintle_tasks::{MemoryTaskStore, StoredTask, TaskFuture, TaskQuota, TaskStore, Tasks, Updated};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::same_tool::capabilities;
use crate::support::eras::{Client, R4, R5};

/// A store that several processes share, and in which nothing is ever removed.
#[derive(Clone, Debug, Default)]
struct Unswept {
    tasks: Arc<MemoryTaskStore>,
    /// How often a process has given a sign of life.
    renewed: Arc<AtomicUsize>,
}

impl TaskStore for Unswept {
    fn create<'a>(&'a self, task: &'a StoredTask, quota: &'a TaskQuota) -> TaskFuture<'a, bool> {
        self.tasks.create(task, quota)
    }

    fn update<'a>(&'a self, task: &'a StoredTask, quota: &'a TaskQuota) -> TaskFuture<'a, Updated> {
        self.tasks.update(task, quota)
    }

    fn get<'a>(&'a self, id: &'a str) -> TaskFuture<'a, Option<StoredTask>> {
        self.tasks.get(id)
    }

    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> TaskFuture<'a, Vec<StoredTask>> {
        self.tasks.list(owner, after, limit)
    }

    fn remove_expired(&self, _: u64) -> TaskFuture<'_, Option<u64>> {
        Box::pin(async { Ok(None) })
    }

    fn renew<'a>(&'a self, holder: &'a str, until: u64) -> TaskFuture<'a, ()> {
        self.renewed.fetch_add(1, Ordering::SeqCst);
        self.tasks.renew(holder, until)
    }

    fn orphans(&self, now: u64, limit: usize) -> TaskFuture<'_, Vec<StoredTask>> {
        self.tasks.orphans(now, limit)
    }

    fn unread<'a>(&'a self, holder: &'a str, limit: usize) -> TaskFuture<'a, Vec<String>> {
        self.tasks.unread(holder, limit)
    }

    fn now(&self) -> TaskFuture<'_, Option<u64>> {
        self.tasks.now()
    }
}

/// A server whose tool takes so many seconds.
fn server(tasks: Tasks, seconds: u64) -> Server {
    Server::new("s", "0").state_keys(StateKeys::from([7; 32])).with(tasks).tool(
        tool("sleep", move || async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            "slept"
        })
        .task("required"),
    )
}

async fn start(client: &mut Client, task: Value) -> Value {
    let called = client.call("tools/call", json!({"name": "sleep", "task": task})).await;
    let result = &called["result"];
    let created = if client.revision == R4 { &result["task"] } else { result };
    assert!(created["taskId"].is_string(), "{called}");
    created.clone()
}

async fn get(client: &mut Client, task: &Value) -> Value {
    client.call("tasks/get", json!({"taskId": task["taskId"]})).await
}

#[tokio::test(start_paused = true)]
async fn an_expired_task_is_neither_found_nor_listed_while_the_store_still_has_it() {
    let store = Unswept::default();
    let server = server(Tasks::new().store(store.clone()).ttl(Duration::from_secs(60)), 1);
    let mut client = Client::open(&server, R4, json!({})).await;
    let task = start(&mut client, json!({})).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(get(&mut client, &task).await["result"]["status"], "completed");
    let listed = client.call("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"].as_array().map(Vec::len), Some(1), "{listed}");
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(store.tasks.len(), 1);
    let got = get(&mut client, &task).await;
    assert_eq!(got["error"]["code"], -32602, "{got}");
    let listed = client.call("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"], json!([]), "{listed}");
}

#[tokio::test(start_paused = true)]
async fn nobody_has_a_task_kept_for_longer_than_the_limit() {
    let tasks = || Tasks::new().max_ttl(Duration::from_secs(60));
    // What a client requests, and what the server keeps without a request.
    for (tasks, requested) in [(tasks(), json!({"ttl": 86_400_000})), (tasks(), json!({}))] {
        let mut client = Client::open(&server(tasks, 1), R4, json!({})).await;
        let task = start(&mut client, requested).await;
        assert_eq!(task["ttl"], 60_000, "{task}");
        tokio::time::sleep(Duration::from_secs(59)).await;
        assert_eq!(get(&mut client, &task).await["result"]["status"], "completed");
        tokio::time::sleep(Duration::from_secs(2)).await;
        let gone = get(&mut client, &task).await;
        assert_eq!(gone["error"]["code"], -32602, "{gone}");
    }
    // Less is kept as it is requested.
    let mut client = Client::open(&server(tasks(), 1), R4, json!({})).await;
    assert_eq!(start(&mut client, json!({"ttl": 5_000})).await["ttl"], 5_000);
}

#[tokio::test(start_paused = true)]
async fn anonymous_callers_are_counted_by_their_address() {
    use crate::support::http_client::Wire;

    let mut quota = TaskQuota::default();
    quota.account_tasks = 1;
    let wire = Wire::new(&server(Tasks::new().quota(quota), 5).http().unwrap());
    let call = async |address: &str| {
        let wire = Wire { peer: Some(address.parse().unwrap()), ..wire.clone() };
        let called =
            wire.modern(1, "tools/call", json!({"name": "sleep"}), capabilities()).await.json().await;
        called["result"]["taskId"].is_string()
    };
    for (address, is_created) in [
        ("192.0.2.1:1", true),
        ("192.0.2.1:2", false),
        ("192.0.2.2:1", true),
        ("[2001:db8:0:1::1]:1", true),
        // Whoever has a network of 64 bits has all of its addresses.
        ("[2001:db8:0:1:ffff::2]:1", false),
        ("[2001:db8:0:2::1]:1", true),
    ] {
        assert_eq!(call(address).await, is_created, "{address}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_takes_longer_than_the_lease_stays_with_the_process_that_runs_it() {
    let store = Unswept::default();
    let process = || server(Tasks::new().store(store.clone()).lease(Duration::from_secs(3)), 60);
    let (one, other) = (process(), process());
    let (mut client, mut watching) =
        (Client::open(&one, R5, capabilities()).await, Client::open(&other, R5, capabilities()).await);
    let task = start(&mut client, json!({})).await;
    assert_eq!(get(&mut watching, &task).await["result"]["status"], "working");
    tokio::time::sleep(Duration::from_secs(61)).await;
    // The other process would have ended it: its tool cannot be resumed.
    for client in [&mut client, &mut watching] {
        let task = get(client, &task).await;
        assert_eq!(task["result"]["status"], "completed", "{task}");
    }
    let renewed = store.renewed.load(Ordering::SeqCst);
    assert!((20..=90).contains(&renewed), "a sign of life three times in a lease: {renewed}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_no_task_after_all_is_over_with_its_response() {
    let (asked, mut answers) = mpsc::channel(4);
    let leave = move |cx: Cx| {
        let asked = asked.clone();
        async move {
            let left = cx.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let _ = asked.send(left.elicit::<()>("sure", "Sure?").await.map(drop)).await;
            });
            "now"
        }
    };
    let server = Server::new("s", "0").with(Tasks::new()).tool(tool("leave", leave).task("optional"));
    let mut client = Client::open(&server, R5, capabilities()).await;
    assert_eq!(client.tool("leave").await, "now");
    // What the handler has left behind cannot ask: nobody would be asked, and it would wait for ever.
    let answer = tokio::time::timeout(Duration::from_secs(60), answers.recv()).await;
    assert!(matches!(answer, Ok(Some(Err(AskError::CallOver)))), "{answer:?}");
}
