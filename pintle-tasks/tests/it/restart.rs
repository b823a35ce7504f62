//! Tasks whose process has ended, and tasks that several processes share.

use std::{sync::atomic::Ordering, time::Duration};

use pintle::{
    Server,
    server::{Cx, Extension, HttpHead, State, StateKeys, ToolError, tool},
};
use pintle_tasks::{TaskStore, Tasks};
use serde_json::{Value, json};

use super::same_tool::{Acts, answer, capabilities, order};
use crate::support::{
    durable::Durable,
    eras::{Client, R4, R5},
};

/// Runs one process to its sudden end: nothing of it is there afterwards but what it has stored.
fn process<T>(conversation: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(conversation)
}

pub(super) fn server(store: &Durable, acts: &Acts) -> Server {
    Server::new("s", "0")
        .state_keys(StateKeys::from([7; 32]))
        .with_state(acts.clone())
        .with(Tasks::new().store(store.clone()))
        .tool(tool("order", order).task("optional").resumable())
        .tool(tool("fragile", order).task("required"))
        .tool(tool("stuck", stuck).task("required").resumable())
        .tool(tool("stuck_later", stuck_later).task("required").resumable())
        .tool(tool("quick", || async { "quick" }).task("required"))
}

/// A tool whose action does not end.
async fn stuck(cx: Cx, State(acts): State<Acts>) -> Result<String, ToolError> {
    let act = async {
        acts.0.fetch_add(1, Ordering::SeqCst);
        std::future::pending::<u32>().await
    };
    Ok(cx.once("act", act).await?.to_string())
}

/// The same after it has waited, when its task is stored: nothing but its checkpoint records the action.
async fn stuck_later(cx: Cx, acts: State<Acts>) -> Result<String, ToolError> {
    tokio::task::yield_now().await;
    stuck(cx, acts).await
}

pub(super) async fn open(server: &Server, revision: &'static str) -> Client {
    let mut client = Client::open(server, revision, capabilities()).await;
    client.answer = Box::new(|_, params| answer(params));
    client
}

pub(super) async fn start(client: &mut Client, name: &str) -> String {
    let created = client.call("tools/call", json!({"name": name, "task": {}})).await["result"].clone();
    let id = created["taskId"].as_str().or(created["task"]["taskId"].as_str());
    id.unwrap_or_else(|| panic!("{created}")).to_owned()
}

pub(super) async fn get(client: &mut Client, id: &str) -> Value {
    let reply = client.call("tasks/get", json!({"taskId": id})).await;
    assert!(reply["result"].is_object(), "{reply}");
    reply["result"].clone()
}

/// Polls until the task has this status.
pub(super) async fn until(client: &mut Client, id: &str, status: &str) -> Value {
    for _ in 0..200 {
        let task = get(client, id).await;
        if task["status"] == status {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    panic!("the task never was `{status}`: {}", get(client, id).await);
}

pub(super) async fn reply(client: &mut Client, id: &str, key: &str, name: &str) -> Value {
    let answers = json!({key: {"action": "accept", "content": {"name": name}}});
    client.call("tasks/update", json!({"taskId": id, "inputResponses": answers})).await
}

#[test]
fn a_resumable_task_goes_on_in_another_process_between_two_questions() {
    // The answer comes before the other process takes over, or after it.
    for comes_early in [true, false] {
        let (store, acts) = (Durable::default(), Acts::default());
        let id = process(async {
            let mut client = open(&server(&store, &acts), R5).await;
            let id = start(&mut client, "order").await;
            until(&mut client, &id, "input_required").await;
            reply(&mut client, &id, "first", "tea").await;
            let task = until(&mut client, &id, "input_required").await;
            assert!(task["inputRequests"]["second"].is_object(), "{task}");
            id
        });
        assert_eq!(acts.0.load(Ordering::SeqCst), 1);
        let store = store.another();
        process(async {
            let mut client = open(&server(&store, &acts), R5).await;
            // The open question is there at once, under the same key.
            let task = get(&mut client, &id).await;
            assert_eq!(task["status"], "input_required", "{task}");
            assert_eq!(task["inputRequests"]["second"]["params"]["message"], "Where?", "{task}");
            if !comes_early {
                tokio::time::sleep(Duration::from_secs(30)).await;
                let task = get(&mut client, &id).await;
                assert_eq!(task["inputRequests"].as_object().unwrap().len(), 1, "{task}");
            }
            let updated = reply(&mut client, &id, "second", "Bergen").await;
            assert_eq!(updated["result"]["resultType"], "complete", "{updated}");
            let task = until(&mut client, &id, "completed").await;
            assert_eq!(task["result"]["content"][0]["text"], "tea to Bergen, act 1", "{task}");
        });
        assert_eq!(acts.0.load(Ordering::SeqCst), 1, "a finished action is never done again");
    }
}

#[test]
fn times_are_those_of_the_store_whatever_the_clock_of_a_process_says() {
    // Years from the clock of this process.
    let start = 86_400_000;
    let (mut store, acts) = (Durable::default(), Acts::default());
    let id = process(async {
        store.opened = Some((start, tokio::time::Instant::now()));
        let mut client = open(&server(&store, &acts), R5).await;
        let id = start_order(&mut client).await;
        let expires = store.tasks.get(&id).await.unwrap().unwrap().expires;
        let hour = 3_600_000;
        assert!((start + hour..start + hour + 60_000).contains(&expires), "{expires}");
        id
    });
    let mut store = store.another();
    process(async {
        store.opened = Some((start + 60_000, tokio::time::Instant::now()));
        let mut client = open(&server(&store, &acts), R5).await;
        // It is not expired, its process is gone, and this one has taken over.
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(reply(&mut client, &id, "first", "tea").await["result"]["resultType"], "complete");
        until(&mut client, &id, "input_required").await;
        assert_eq!(store.tasks.orphans(start + 90_000, 9).await.unwrap(), []);
    });
}

async fn start_order(client: &mut Client) -> String {
    let id = start(client, "order").await;
    until(client, &id, "input_required").await;
    id
}

#[test]
fn a_resumable_task_of_a_session_goes_on_in_another_process() {
    let (store, acts) = (Durable::default(), Acts::default());
    let id = process(async {
        let mut client = open(&server(&store, &acts), R4).await;
        let id = start(&mut client, "order").await;
        // The first question is answered on the stream of `tasks/result`; then the process ends.
        let request = client.send("tasks/result", json!({"taskId": id})).await;
        client.answer = Box::new(|_, params| answer(params));
        let asked = tokio::time::timeout(Duration::from_secs(5), client.until(request));
        tokio::select! {
            ended = asked => panic!("{ended:?}"),
            () = async { while acts.0.load(Ordering::SeqCst) == 0 { tokio::task::yield_now().await } } => {}
        }
        id
    });
    let store = store.another();
    process(async {
        let mut client = open(&server(&store, &acts), R4).await;
        let result = client.call("tasks/result", json!({"taskId": id})).await["result"].clone();
        assert_eq!(result["content"][0]["text"], "tea to Bergen, act 1", "{result}");
    });
    assert_eq!(acts.0.load(Ordering::SeqCst), 1);
}

#[test]
fn what_has_ended_is_there_after_a_restart_and_what_cannot_be_resumed_has_failed() {
    let (store, acts) = (Durable::default(), Acts::default());
    let (quick, fragile) = process(async {
        let mut client = open(&server(&store, &acts), R5).await;
        let (quick, fragile) = (start(&mut client, "quick").await, start(&mut client, "fragile").await);
        until(&mut client, &quick, "completed").await;
        until(&mut client, &fragile, "input_required").await;
        (quick, fragile)
    });
    let store = store.another();
    process(async {
        let mut client = open(&server(&store, &acts), R5).await;
        assert_eq!(get(&mut client, &quick).await["result"]["content"][0]["text"], "quick");
        let failed = until(&mut client, &fragile, "failed").await;
        let reason = "the server ended while the task ran, and its tool cannot be resumed: call it again";
        assert_eq!(failed["error"]["message"], reason, "{failed}");
        assert_eq!(failed["statusMessage"], reason, "{failed}");
        // Another key opens nothing, and says so.
        let stranger = Server::new("s", "0")
            .state_keys(StateKeys::from([8; 32]))
            .with(Tasks::new().store(store.clone()))
            .tool(tool("quick", || async { "quick" }).task("required"));
        let mut client = open(&stranger, R5).await;
        let refused = client.call("tasks/get", json!({"taskId": quick})).await;
        assert_eq!(refused["error"]["code"], -32603, "{refused}");
    });
}

#[test]
fn an_action_that_had_started_is_not_started_again() {
    for name in ["stuck", "stuck_later"] {
        let (store, acts) = (Durable::default(), Acts::default());
        let id = process(async {
            let mut client = open(&server(&store, &acts), R5).await;
            let id = start(&mut client, name).await;
            while acts.0.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
            id
        });
        let store = store.another();
        process(async {
            let mut client = open(&server(&store, &acts), R5).await;
            let task = until(&mut client, &id, "completed").await;
            assert_eq!(task["result"]["isError"], true, "{name}: {task}");
            let text = task["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("outcome unknown: `act`"), "{name}: {text}");
        });
        assert_eq!(acts.0.load(Ordering::SeqCst), 1, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_processes_serve_one_task() {
    let (store, acts) = (Durable::default(), Acts::default());
    let (one, other) = (server(&store, &acts), server(&store.another(), &acts));
    let (mut one, mut two) = (open(&one, R5).await, open(&other, R5).await);
    let id = start(&mut one, "order").await;
    until(&mut two, &id, "input_required").await;
    // Both answer; the process that runs it hears of either, and shows at once what the other has accepted.
    reply(&mut two, &id, "first", "tea").await;
    let task = get(&mut one, &id).await;
    assert!(task["inputRequests"]["first"].is_null(), "{task}");
    reply(&mut one, &id, "first", "coffee").await;
    let task = until(&mut one, &id, "input_required").await;
    assert!(task["inputRequests"]["second"].is_object(), "{task}");
    reply(&mut two, &id, "second", "Bergen").await;
    for client in [&mut one, &mut two] {
        let task = until(client, &id, "completed").await;
        assert_eq!(task["result"]["content"][0]["text"], "tea to Bergen, act 1", "{task}");
    }
    // One cancels what the other runs.
    let id = start(&mut one, "order").await;
    until(&mut two, &id, "input_required").await;
    two.call("tasks/cancel", json!({"taskId": id})).await;
    for client in [&mut two, &mut one] {
        assert_eq!(get(client, &id).await["status"], "cancelled");
    }
    // In a session, one waits for what the other runs.
    let mut session = open(&other, R4).await;
    let id = start(&mut one, "order").await;
    let result = session.call("tasks/result", json!({"taskId": id})).await["result"].clone();
    assert_eq!(result["content"][0]["text"], "tea to Bergen, act 2", "{result}");
    assert_eq!(acts.0.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_taken_for_dead_stops() {
    let (store, acts) = (Durable::default(), Acts::default());
    let (one, other) = (server(&store, &acts), server(&store.another(), &acts));
    let (mut one, mut two) = (open(&one, R5).await, open(&other, R5).await);
    let (id, unwanted) = (start_order(&mut one).await, start_order(&mut one).await);
    store.is_mute.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(40)).await;
    // The other one runs them now; this one finds out when it writes, and passes the answer and the cancellation on.
    let updated = reply(&mut one, &id, "first", "tea").await;
    assert_eq!(updated["result"]["resultType"], "complete", "{updated}");
    let cancelled = one.call("tasks/cancel", json!({"taskId": unwanted})).await;
    assert_eq!(cancelled["result"]["resultType"], "complete", "{cancelled}");
    assert_eq!(get(&mut two, &unwanted).await["status"], "cancelled");
    until(&mut two, &id, "input_required").await;
    for _ in 0..50 {
        if get(&mut two, &id).await["inputRequests"]["second"].is_object() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    reply(&mut two, &id, "second", "Bergen").await;
    let task = until(&mut one, &id, "completed").await;
    assert_eq!(task["result"]["content"][0]["text"], "tea to Bergen, act 1", "{task}");
    assert_eq!(acts.0.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_stored_has_no_effect() {
    let (store, acts) = (Durable::default(), Acts::default());
    let mut client = open(&server(&store, &acts), R5).await;
    let id = start(&mut client, "order").await;
    until(&mut client, &id, "input_required").await;
    store.is_down.store(true, Ordering::SeqCst);
    let refused = reply(&mut client, &id, "first", "tea").await;
    assert_eq!(refused["error"]["message"], "the tasks cannot be reached now: try again later", "{refused}");
    let refused = client.call("tools/call", json!({"name": "quick"})).await;
    assert_eq!(refused["error"]["code"], -31503, "{refused}");
    assert_eq!(acts.0.load(Ordering::SeqCst), 0);
    store.is_down.store(false, Ordering::SeqCst);
    reply(&mut client, &id, "first", "tea").await;
    until(&mut client, &id, "input_required").await;
    // The result waits for the store.
    let quick = start(&mut client, "quick").await;
    until(&mut client, &quick, "completed").await;
    store.is_down.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(3)).await;
    store.is_down.store(false, Ordering::SeqCst);
    reply(&mut client, &id, "second", "Bergen").await;
    until(&mut client, &id, "completed").await;
}

#[test]
fn a_handler_whose_data_is_not_recorded_cannot_be_resumable() {
    #[derive(Clone)]
    struct Desk;
    async fn at(_: Extension<Desk>) -> &'static str {
        "desk"
    }
    async fn head(_: Option<HttpHead>) -> &'static str {
        "head"
    }
    let fault = |server: Server| server.check().unwrap_err().to_string();
    let new = || Server::new("s", "0").with(Tasks::new());
    let desk = fault(new().tool(tool("at", at).task("optional").resumable()));
    assert!(desk.contains("`at` is resumable, but takes `Extension<") && desk.contains("Desk>`"), "{desk}");
    let header = fault(new().tool(tool("head", head).task("optional").resumable()));
    assert!(header.contains("takes `HttpHead`, which is not recorded"), "{header}");
    let never = fault(new().tool(tool("never", || async { "x" }).resumable()));
    assert!(never.contains("`never` is resumable, but never a task"), "{never}");
    new().tool(tool("at", at).task("optional")).check().unwrap();
    // Keys that end with the process seal nothing that outlives it.
    let keys = fault(Server::new("s", "0").with(Tasks::new().store(Durable::default())));
    assert!(keys.contains("set them with `Server::state_keys`"), "{keys}");
}
