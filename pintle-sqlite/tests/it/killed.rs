//! Tasks of processes that are killed.

use std::fs;

use serde_json::json;

use crate::{folder::Folder, process::ServerProcess};

#[tokio::test]
async fn a_task_goes_on_to_its_result_after_its_process_is_killed_between_two_questions() {
    let folder = Folder::new();
    let mut process = ServerProcess::start(&folder, true).await;
    let created = process.call("tools/call", json!({"name": "order"})).await;
    let id = created["taskId"].as_str().unwrap().to_owned();
    let task = process.until(&id, "input_required", Some("first")).await;
    process.update(&id, &task).await;
    process.until(&id, "input_required", Some("second")).await;
    process.kill().await;

    let mut process = ServerProcess::start(&folder, true).await;
    let task = process.until(&id, "input_required", Some("second")).await;
    assert_eq!(task["inputRequests"].as_object().unwrap().len(), 1, "{task}");
    // Killed again, with the answer, before anybody ran the task.
    process.update(&id, &task).await;
    process.kill().await;

    let mut process = ServerProcess::start(&folder, true).await;
    let task = process.until(&id, "completed", None).await;
    assert_eq!(task["result"]["content"][0]["text"], "tea to Bergen, act 1", "{task}");
    assert_eq!(fs::read_to_string(folder.file("acts")).unwrap(), "act\n", "the action was done once");
    process.kill().await;

    // The result is there for the next one too.
    let mut process = ServerProcess::start(&folder, true).await;
    let task = process.until(&id, "completed", None).await;
    assert_eq!(task["result"]["content"][0]["text"], "tea to Bergen, act 1", "{task}");
}

#[tokio::test]
async fn a_task_of_a_session_goes_on_after_its_process_is_killed_between_two_questions() {
    let folder = Folder::new();
    let mut process = ServerProcess::start(&folder, false).await;
    let created = process.call("tools/call", json!({"name": "order", "task": {}})).await;
    let id = created["task"]["taskId"].as_str().unwrap().to_owned();
    process.request("tasks/result", json!({"taskId": id})).await;
    let mut asked = 0;
    while asked < 2 {
        let message = process.next().await;
        if message["method"] == "elicitation/create" {
            asked += 1;
            if asked == 1 {
                process.answer(&message).await;
            }
        }
    }
    process.kill().await;

    let mut process = ServerProcess::start(&folder, false).await;
    let result = process.call("tasks/result", json!({"taskId": id})).await;
    assert_eq!(result["content"][0]["text"], "tea to Bergen, act 1", "{result}");
    assert_eq!(fs::read_to_string(folder.file("acts")).unwrap(), "act\n");
}

#[tokio::test]
async fn two_processes_on_one_file_share_their_tasks() {
    let folder = Folder::new();
    let mut one = ServerProcess::start(&folder, true).await;
    let mut two = ServerProcess::start(&folder, true).await;
    let created = one.call("tools/call", json!({"name": "fragile"})).await;
    let id = created["taskId"].as_str().unwrap().to_owned();
    for question in ["first", "second"] {
        let task = two.until(&id, "input_required", Some(question)).await;
        two.update(&id, &task).await;
    }
    for process in [&mut one, &mut two] {
        let task = process.until(&id, "completed", None).await;
        assert_eq!(task["result"]["content"][0]["text"], "tea to Bergen, act 1", "{task}");
    }
}

#[tokio::test]
async fn a_task_that_cannot_be_resumed_fails_after_its_process_is_killed() {
    let folder = Folder::new();
    let mut process = ServerProcess::start(&folder, false).await;
    let created = process.call("tools/call", json!({"name": "fragile", "task": {}})).await;
    let id = created["task"]["taskId"].as_str().unwrap().to_owned();
    process.kill().await;
    let mut process = ServerProcess::start(&folder, false).await;
    let request = process.request("tasks/result", json!({"taskId": id})).await;
    let reply = loop {
        let message = process.next().await;
        if message["id"] == request && message.get("method").is_none() {
            break message;
        }
    };
    let reason = reply["error"]["message"].as_str().unwrap_or_default();
    assert!(reason.starts_with("the server ended while the task ran"), "{reply}");
}
