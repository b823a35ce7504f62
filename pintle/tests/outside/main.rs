//! The extension of tasks, compiled as those of another crate are: with the public API, and nothing behind it.
#![cfg(all(feature = "client", feature = "server"))]
#![allow(
    dead_code,
    missing_docs,
    unfulfilled_lint_expectations,
    unreachable_pub,
    unused_imports,
    reason = "the modules are parts of a library, and this program uses little of them"
)]

use pintle::{Connection, Error, Result, client, message_log, server};

#[path = "../../src/tasks/mod.rs"]
mod tasks;

// What the kits of all stores are made of needs nothing of the crate either.
#[path = "../../src/properties.rs"]
mod properties;
mod transport {
    pub(crate) mod kit {
        pub(crate) use crate::properties::Broken;
    }
}

#[tokio::test]
async fn tasks_of_another_crate_work() {
    let server = pintle::Server::new("s", "0")
        .with(tasks::Tasks::new())
        .tool(server::tool("slow", || async { "done" }).task("required"));
    let client = pintle::Client::new("c", "0").with(tasks::TaskPolling::new());
    let connection = client.connect(server.in_process().unwrap()).await.unwrap();
    let task = tasks::TaskHandle::of(connection.call("slow").start().await.unwrap()).unwrap();
    assert_eq!(task.result().await.unwrap().text(), "done");
}
