//! Tasks of two processes that share a Redis.

use std::collections::BTreeSet;

use pintle_redis::Redis;
use pintle_tasks::{StoredTask, TaskQuota, TaskStore as _};
use serde_json::json;

use crate::{redis_server::RedisServer, task_process::TaskProcess};

async fn create(process: &TaskProcess, tool: &str) -> String {
    let created = process.call("tools/call", json!({"name": tool, "arguments": {}})).await;
    created["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_of_one_process_is_polled_answered_and_cancelled_at_another() {
    let Some(redis) = RedisServer::start().await else { return };
    let (one, two) = (TaskProcess::start(&redis.url()).await, TaskProcess::start(&redis.url()).await);
    let id = create(&one, "fragile").await;
    for question in ["first", "second"] {
        let task = two.until(&id, "input_required", Some(question)).await;
        two.answer(&id, &task).await;
    }
    let expected = format!("tea to Bergen, act 1, by {}", one.id());
    for process in [&two, &one] {
        let task = process.until(&id, "completed", None).await;
        assert_eq!(task["result"]["content"][0]["text"], expected, "{task}");
    }

    let id = create(&one, "fragile").await;
    one.until(&id, "input_required", Some("first")).await;
    two.call("tasks/cancel", json!({"taskId": id})).await;
    for process in [&two, &one] {
        process.until(&id, "cancelled", None).await;
    }
    assert_eq!(redis.keys_without_expiry().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_survivor_goes_on_with_the_task_of_a_process_that_was_killed() {
    let Some(redis) = RedisServer::start().await else { return };
    let (one, two) =
        (TaskProcess::start_mortal(&redis.url()).await, TaskProcess::start_mortal(&redis.url()).await);
    let (resumed, failed) = (create(&one, "order").await, create(&one, "fragile").await);
    let task = two.until(&resumed, "input_required", Some("first")).await;
    two.answer(&resumed, &task).await;
    two.until(&resumed, "input_required", Some("second")).await;
    one.kill().await;
    // Answered before anybody has noticed that nobody runs it.
    let task = two.until(&resumed, "input_required", Some("second")).await;
    two.answer(&resumed, &task).await;
    let task = two.until(&resumed, "completed", None).await;
    let expected = format!("tea to Bergen, act 1, by {}", two.id());
    assert_eq!(task["result"]["content"][0]["text"], expected, "the action was done once: {task}");
    let task = two.until(&failed, "failed", None).await;
    let reason = task["error"]["message"].as_str().unwrap_or_default();
    assert!(reason.starts_with("the server ended while the task ran"), "{task}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_of_tasks_that_is_down_is_not_an_unknown_task() {
    let Some(mut redis) = RedisServer::start().await else { return };
    let process = TaskProcess::start(&redis.url()).await;
    let unknown = process.request("tasks/get", json!({"taskId": "unknown"})).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    redis.stop();
    let (head, down) = process.request_whole("tasks/get", json!({"taskId": "unknown"})).await;
    assert!(head.starts_with("http/1.1 503") && head.contains("retry-after: 1"), "{head}");
    let reason = down["error"]["message"].as_str().unwrap_or_default();
    assert!(reason.contains("cannot be reached now"), "{down}");
    assert!(down["error"]["data"]["retryAfterMs"].is_u64(), "{down}");
}

/// Whoever reads a few of them at a time meets all: those of another key, which it cannot open, hide no others.
#[tokio::test]
async fn every_orphan_is_found_however_few_are_read_at_a_time() {
    let Some(redis) = RedisServer::start().await else { return };
    let store = Redis::connect(&redis.url()).await.unwrap().tasks();
    let mut created = BTreeSet::new();
    for (number, holder) in ["one", "one", "one", "two", "three", "alive"].into_iter().enumerate() {
        let mut task = StoredTask::new(format!("t{number}"), "ann", u64::MAX >> 12, b"body".to_vec());
        task.holder = Some(holder.to_owned());
        store.create(&task, &TaskQuota::default()).await.unwrap();
        created.extend((holder != "alive").then_some(task.id));
    }
    store.renew("alive", u64::MAX >> 12).await.unwrap();
    for limit in [1, 2, 4] {
        let mut found = BTreeSet::new();
        for _ in 0..500 {
            let orphans = store.orphans(1_000, limit).await.unwrap();
            assert_eq!(orphans.len(), limit);
            let ids: BTreeSet<_> = orphans.into_iter().map(|task| task.id).collect();
            assert_eq!(ids.len(), limit, "none is returned twice: {ids:?}");
            found.extend(ids);
        }
        assert_eq!(found, created);
    }
    let all: BTreeSet<_> = store.orphans(1_000, 64).await.unwrap().into_iter().map(|task| task.id).collect();
    assert_eq!(all, created);
}
