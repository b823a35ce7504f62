//! The client's side: a call returns its result, whatever the server made of it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Client, Server,
    client::{Answer, CallStart, Mode},
    server::{ToolError, tool},
    types::{RpcError, schema::TaskStatus},
};
use pintle_tasks::{TaskHandle, TaskPolling, TaskRequests as _, Tasks};
use serde_json::json;

use super::same_tool::{Acts, server};
use crate::support::eras::{R4, R5};
use crate::support::over::TRANSPORTS;

fn client(revision: &str) -> Client {
    Client::new("c", "0")
        .revisions([revision.parse().unwrap()])
        .with(TaskPolling::new().intervals(Duration::from_millis(1), Duration::from_millis(1)))
        .on_elicit(|question| async move {
            Answer::accept(json!({"name": if question.message == "What?" { "tea" } else { "Bergen" }}))
        })
}

#[tokio::test]
async fn a_call_returns_its_result_as_a_task_and_plainly_in_both_eras_over_both_transports() {
    for over in TRANSPORTS {
        for revision in [R4, R5] {
            let acts = Acts::default();
            let connection = over.connect(&client(revision), &server(&acts), revision).await.unwrap();
            for (number, tool) in ["plain", "order", "later"].into_iter().enumerate() {
                let (seen, shown) = (Arc::new(Mutex::new(Vec::new())), format!("{over:?} {revision} {tool}"));
                let reports = seen.clone();
                let result = connection
                    .call(tool)
                    .on_progress(move |progress| reports.lock().unwrap().push(progress.message.unwrap()))
                    .send()
                    .await
                    .unwrap_or_else(|error| panic!("{shown}: {error}"));
                assert_eq!(result.text(), format!("tea to Bergen, act {}", number + 1), "{shown}");
                assert_eq!(acts.0.load(Ordering::SeqCst), number + 1, "{shown}");
                let seen = seen.lock().unwrap();
                // A status between two polls is not seen; the last one of a task without a session is.
                assert!((revision == R4 || !seen.is_empty()) && seen.len() <= 4, "{shown}: {seen:?}");
            }
        }
    }
}

/// The handlers of one call answer the questions of its task.
#[tokio::test(start_paused = true)]
async fn the_handlers_of_a_call_answer_its_task() {
    for revision in [R4, R5] {
        let acts = Acts::default();
        let connection = client(revision).connect(server(&acts).in_process().unwrap()).await.unwrap();
        let result = connection
            .call("later")
            .on_elicit(|_| async { Answer::accept(json!({"name": "own"})) })
            .send()
            .await
            .unwrap();
        assert_eq!(result.text(), "own to own, act 1", "{revision}");
    }
}

fn slow(dropped: &Arc<AtomicBool>) -> Server {
    struct OnDrop(Arc<AtomicBool>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let dropped = dropped.clone();
    Server::new("s", "0")
        .with(Tasks::new())
        .tool(
            tool("slow", move || {
                let dropped = dropped.clone();
                async move {
                    let _guard = OnDrop(dropped);
                    tokio::time::sleep(Duration::from_secs(1000)).await;
                    "done"
                }
            })
            .task("optional"),
        )
        .tool(tool("fails", || async { Err::<String, _>(ToolError::new("no luck")) }).task("required"))
        .tool(tool("breaks", || async { Err::<String, _>(RpcError::internal("broken")) }).task("required"))
}

#[tokio::test(start_paused = true)]
async fn a_task_may_take_longer_than_a_request() {
    for revision in [R4, R5] {
        let client = Client::new("c", "0").revisions([revision.parse().unwrap()]).with(TaskPolling::new());
        let connection = client.connect(slow(&Arc::default()).in_process().unwrap()).await.unwrap();
        let result = connection.call("slow").timeout(Duration::from_secs(10)).send().await.unwrap();
        assert_eq!(result.text(), "done");
        // An error of the tool is a result; one of the protocol is an error.
        let failed = connection.call_tool("fails", ()).await.unwrap();
        assert_eq!((failed.is_error, failed.text().as_str()), (Some(true), "no luck"));
        let error = connection.call_tool("breaks", ()).await.unwrap_err();
        assert!(error.to_string().contains("broken"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_cancels_its_task() {
    for revision in [R4, R5] {
        let dropped = Arc::new(AtomicBool::new(false));
        let client = Client::new("c", "0").revisions([revision.parse().unwrap()]).with(TaskPolling::new());
        let connection = client.connect(slow(&dropped).in_process().unwrap()).await.unwrap();
        let call = connection.call_tool("slow", ());
        assert!(tokio::time::timeout(Duration::from_secs(20), call).await.is_err());
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(dropped.load(Ordering::SeqCst), "{revision}: the handler goes on");
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_want_the_task_get_it() {
    for revision in [R4, R5] {
        let dropped = Arc::new(AtomicBool::new(false));
        let client = Client::new("c", "0").revisions([revision.parse().unwrap()]).with(TaskPolling::new());
        let connection = client.connect(slow(&dropped).in_process().unwrap()).await.unwrap();
        let task = TaskHandle::of(connection.call("slow").start().await.unwrap()).unwrap();
        assert_eq!(task.state().await.unwrap().status, TaskStatus::Working);
        drop(tokio::time::timeout(Duration::from_secs(20), task.result()).await);
        assert!(!dropped.load(Ordering::SeqCst), "{revision}: dropping the handle's future ended the task");
        task.cancel().await.unwrap();
        assert_eq!(task.state().await.unwrap().status, TaskStatus::Cancelled);
        assert!(task.result().await.is_err());
        // Without tasks there is none to get.
        let plain = Client::new("c", "0").revisions([revision.parse().unwrap()]);
        let server = Server::new("s", "0").tool(tool("quick", || async { "quick" }));
        let connection = plain.connect(server.in_process().unwrap()).await.unwrap();
        let Ok(CallStart::Complete(result)) = connection.call("quick").start().await else {
            panic!("a result")
        };
        assert_eq!(result.text(), "quick");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_ends_the_call_and_its_task() {
    let (asked, acts) = (Arc::new(AtomicUsize::new(0)), Acts::default());
    let counted = asked.clone();
    let client = Client::new("c", "0").mode(Mode::Modern).with(TaskPolling::new()).on_elicit(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Err::<Answer, _>(RpcError::internal("nobody is here")) }
    });
    let connection = client.connect(server(&acts).in_process().unwrap()).await.unwrap();
    let error = connection.call_tool("later", ()).await.unwrap_err();
    assert!(error.to_string().contains("nobody is here"), "{error}");
    assert_eq!((asked.load(Ordering::SeqCst), acts.0.load(Ordering::SeqCst)), (1, 0));
}

/// A client that was started again has the id and nothing else.
#[tokio::test(start_paused = true)]
async fn a_task_is_found_by_its_id_and_asks_the_handlers_of_that_request() {
    for revision in [R4, R5] {
        let (acts, reports) = (Acts::default(), Arc::new(Mutex::new(Vec::new())));
        let server = server(&acts);
        let connection = client(revision).connect(server.in_process().unwrap()).await.unwrap();
        let id = TaskHandle::of(connection.call("later").start().await.unwrap()).unwrap().id().to_owned();
        drop(connection);
        let connection = client(revision).connect(server.in_process().unwrap()).await.unwrap();
        let seen = reports.clone();
        let task = connection
            .task(&*id)
            .on_elicit(|_| async { Answer::accept(json!({"name": "own"})) })
            .on_progress(move |progress| seen.lock().unwrap().push(progress.message))
            .await
            .unwrap();
        assert_eq!(task.id(), id);
        assert_eq!(task.result().await.unwrap().text(), "own to own, act 1", "{revision}");
        // In a session, a status between two polls is not seen.
        assert!(revision == R4 || !reports.lock().unwrap().is_empty());
        // Without handlers of its own, those of the client are asked: here there is nothing left to ask.
        assert_eq!(connection.task(id).await.unwrap().result().await.unwrap().text(), "own to own, act 1");
        let error = connection.task("none").await.unwrap_err();
        assert!(matches!(error, pintle::Error::Rpc(_)), "{error}");
    }
}
