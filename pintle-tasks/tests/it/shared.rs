//! Tasks of two processes that share a store, one of which loses its way to it.

use std::{sync::atomic::Ordering, time::Duration};

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{
    restart::{get, open, reply, server, start, until},
    same_tool::{Acts, answer},
};
use crate::support::{
    durable::Durable,
    eras::{Client, R4, R5},
};

/// Far more than anything here takes, under a paused clock.
const SOON: Duration = Duration::from_secs(60);

async fn result(client: &mut Client, id: &str) -> Value {
    let result = client.call("tasks/result", json!({"taskId": id}));
    timeout(SOON, result).await.expect("the task ends")
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_cut_off_does_not_show_what_others_may_have_changed() {
    let (store, acts) = (Durable::default(), Acts::default());
    let (one, other) = (server(&store, &acts), server(&store.another(), &acts));
    let (mut one, mut two) = (open(&one, R5).await, open(&other, R5).await);
    let id = start(&mut one, "order").await;
    until(&mut two, &id, "input_required").await;
    store.is_down.store(true, Ordering::SeqCst);
    two.call("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(get(&mut two, &id).await["status"], "cancelled");
    let refused = one.call("tasks/get", json!({"taskId": id})).await;
    assert_eq!(refused["error"]["message"], "the tasks cannot be reached now: try again later", "{refused}");
    store.is_down.store(false, Ordering::SeqCst);
    assert_eq!(get(&mut one, &id).await["status"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_list_shows_at_once_what_another_process_has_changed() {
    let (store, acts) = (Durable::default(), Acts::default());
    let (one, other) = (server(&store, &acts), server(&store.another(), &acts));
    let (mut one, mut two) = (open(&one, R4).await, open(&other, R4).await);
    let id = start(&mut one, "order").await;
    until(&mut two, &id, "input_required").await;
    two.call("tasks/cancel", json!({"taskId": id})).await;
    for client in [&mut one, &mut two] {
        let listed = client.call("tasks/list", json!({})).await["result"]["tasks"].clone();
        assert_eq!((&listed[0]["taskId"], &listed[0]["status"]), (&json!(id), &json!("cancelled")));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_a_session_is_kept_until_it_can_be_stored() {
    // The task runs where the answer arrives, or elsewhere.
    for is_here in [true, false] {
        let (store, acts) = (Durable::default(), Acts::default());
        let cut_off = store.another();
        let (one, other) = (server(&store, &acts), server(&cut_off, &acts));
        let (mut one, mut two) = (open(&one, R5).await, open(&other, R5).await);
        let mut session = open(&other, R4).await;
        let id = start(if is_here { &mut two } else { &mut one }, "order").await;
        until(&mut two, &id, "input_required").await;
        let is_down = cut_off.is_down.clone();
        session.answer = Box::new(move |_, params| {
            // The answer is accepted, and the store is there again later.
            if !is_down.swap(true, Ordering::SeqCst) {
                let is_down = is_down.clone();
                tokio::spawn(async move {
                    sleep(Duration::from_millis(300)).await;
                    is_down.store(false, Ordering::SeqCst);
                });
            }
            answer(params)
        });
        let mut done = result(&mut session, &id).await;
        // A request that finds no store ends, and the next one goes on.
        while done["error"]["code"] == -31503 {
            sleep(Duration::from_secs(1)).await;
            done = result(&mut session, &id).await;
        }
        assert_eq!(done["result"]["content"][0]["text"], "tea to Bergen, act 1", "{is_here}: {done}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_a_client_refuses_fails_at_the_process_that_runs_the_task() {
    for is_here in [true, false] {
        let (store, acts) = (Durable::default(), Acts::default());
        let (one, other) = (server(&store, &acts), server(&store.another(), &acts));
        let mut starting = open(if is_here { &one } else { &other }, R5).await;
        let mut session = open(&one, R4).await;
        session.answer = Box::new(|_, _| json!({"rpcError": {"code": -1, "message": "not now"}}));
        let id = start(&mut starting, "order").await;
        let failed = result(&mut session, &id).await;
        assert!(failed.to_string().contains("not now"), "{is_here}: {failed}");
        assert_eq!(acts.0.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_while_the_store_is_down_may_be_sent_again() {
    let (store, acts) = (Durable::default(), Acts::default());
    let (one, other) = (server(&store, &acts), server(&store.another(), &acts));
    let (mut one, mut two) = (open(&one, R5).await, open(&other, R5).await);
    let id = start(&mut one, "order").await;
    until(&mut one, &id, "input_required").await;
    store.is_down.store(true, Ordering::SeqCst);
    let refused = reply(&mut one, &id, "first", "tea").await;
    assert_eq!(refused["error"]["code"], -31503, "{refused}");
    reply(&mut two, &id, "first", "cake").await;
    store.is_down.store(false, Ordering::SeqCst);
    // The other process was told first.
    reply(&mut one, &id, "first", "tea").await;
    for _ in 0..50 {
        if get(&mut one, &id).await["inputRequests"]["second"].is_object() {
            break;
        }
        sleep(Duration::from_millis(250)).await;
    }
    reply(&mut one, &id, "second", "Bergen").await;
    let done = until(&mut two, &id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "cake to Bergen, act 1", "{done}");
}

#[tokio::test(start_paused = true)]
async fn a_task_goes_on_with_an_answer_of_another_process_although_the_reply_to_its_own_change_is_lost() {
    let (store, acts) = (Durable::default(), Acts::default());
    let (one, other) = (server(&store, &acts), server(&store.another(), &acts));
    let (mut one, mut two) = (open(&one, R5).await, open(&other, R5).await);
    let id = start(&mut one, "fragile").await;
    until(&mut two, &id, "input_required").await;
    store.is_unheard.store(true, Ordering::SeqCst);
    reply(&mut two, &id, "first", "tea").await;
    sleep(Duration::from_secs(5)).await;
    store.is_unheard.store(false, Ordering::SeqCst);
    let task = until(&mut one, &id, "input_required").await;
    assert!(task["inputRequests"]["second"].is_object(), "{task}");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_could_not_be_stored_is_seen_by_others_once_the_store_is_there() {
    let (store, acts) = (Durable::default(), Acts::default());
    let (one, other) = (server(&store, &acts), server(&store.another(), &acts));
    let (mut one, mut two) = (open(&one, R5).await, open(&other, R5).await);
    let id = start(&mut one, "fragile").await;
    until(&mut two, &id, "input_required").await;
    reply(&mut two, &id, "first", "tea").await;
    // The process reads the answer and asks again, and nothing of it arrives.
    store.is_unheard.store(true, Ordering::SeqCst);
    sleep(Duration::from_secs(5)).await;
    store.is_unheard.store(false, Ordering::SeqCst);
    // Nobody asks the process that runs the task.
    let task = until(&mut two, &id, "input_required").await;
    assert!(task["inputRequests"]["second"].is_object(), "{task}");
}
