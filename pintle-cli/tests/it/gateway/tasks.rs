//! Tasks of targets of both eras, for clients of both.

use std::{sync::Arc, time::Duration};

use pintle::{
    Client, Connection, Server,
    client::{Mode, http::Http},
    proto::Revision,
    server::tool,
    types::{RawObject, schema::TaskStatus},
};
use pintle_tasks::{TaskHandle, TaskPolling, Tasks};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};

use super::{gateway, target};
use crate::support::{PATIENCE, machine::Machine};

/// The handler of a tool: it reports that it runs, and that it is dropped.
struct Running(mpsc::UnboundedSender<&'static str>);

impl Running {
    fn begin(reports: &mpsc::UnboundedSender<&'static str>) -> Self {
        let _ = reports.send("begun");
        Self(reports.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.send("ended");
    }
}

/// A server of one revision with a tool that runs as a task, until it gets a permit.
fn oven(revision: &str, permits: &Arc<Semaphore>, reports: &mpsc::UnboundedSender<&'static str>) -> Server {
    let revision: Revision = revision.parse().unwrap();
    let (permits, reports) = (permits.clone(), reports.clone());
    let bake = move || {
        let (permits, running) = (permits.clone(), Running::begin(&reports));
        async move {
            permits.acquire().await.unwrap().forget();
            drop(running);
            format!("bread of {revision}")
        }
    };
    let tasks = Tasks::new().poll_interval(Duration::from_millis(100));
    Server::new("oven", "0").revisions([revision]).with(tasks).tool(tool("bake", bake).task("optional"))
}

pub(super) async fn connect(url: &str, token: &str, mode: Mode) -> Connection {
    let client = Client::new("host", "1.0.0").mode(mode).with(TaskPolling::new());
    client.connect(Http::new(url).unwrap().bearer(token).unwrap()).await.unwrap()
}

pub(super) async fn start(client: &Connection, name: &str) -> TaskHandle {
    TaskHandle::of(client.call(name).start().await.unwrap()).unwrap_or_else(|| panic!("{name} is no task"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_of_a_target_of_any_era_is_that_of_its_principal() {
    let permits = Arc::new(Semaphore::new(0));
    let (reports, mut reported) = mpsc::unbounded_channel();
    let mut expect = async |expected: &str| {
        let report = tokio::time::timeout(PATIENCE, reported.recv()).await;
        assert_eq!(report.unwrap_or_else(|_| panic!("it has not {expected}")), Some(expected));
    };
    let old = oven("2025-11-25", &permits, &reports).serve_http("127.0.0.1:0").await.unwrap();
    let new = oven("2026-07-28", &permits, &reports).serve_http("127.0.0.1:0").await.unwrap();
    let machine = Machine::new("gateway-tasks");
    let rules = "[servers.bakery]\ndefault = \"allow\"\n\n[[rules]]\ndecision = \"allow\"\n";
    let file = target("old", old.address()) + &target("new", new.address()) + rules;
    let gateway = gateway(&machine, &file);
    for mode in [Mode::Legacy, Mode::Modern] {
        for path in ["", "/bakery"] {
            let url = format!("{}{path}", gateway.url);
            let alice = connect(&url, "alice-token", mode).await;
            let bob = connect(&url, "bob-token", mode).await;
            for (target, revision) in [("old", "2025-11-25"), ("new", "2026-07-28")] {
                let name = format!("{target}_bake");
                let task = start(&alice, &name).await;
                expect("begun").await;
                assert_eq!(task.state().await.unwrap().status, TaskStatus::Working);
                let of_alice = RawObject::from_serialize(&json!({ "taskId": task.id() })).unwrap();
                for method in ["tasks/get", "tasks/cancel"] {
                    let refused = bob.call_raw(method, of_alice.clone()).await.unwrap_err().to_string();
                    assert!(refused.contains("no such task"), "{mode:?} {path} {target}: {refused}");
                }
                permits.add_permits(1);
                assert_eq!(task.result().await.unwrap().text(), format!("bread of {revision}"));
                expect("ended").await;
                // One that is cancelled ends at its target, without a permit.
                let task = start(&alice, &name).await;
                expect("begun").await;
                task.cancel().await.unwrap();
                expect("ended").await;
            }
        }
    }
}
