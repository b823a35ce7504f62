//! A tool that runs as a task: it asks, reports progress and acts once, and its client waits for the result or follows the task.
//!
//! The handler is the one of a plain call. Clients that know no tasks call it plainly.

#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::time::Duration;

use pintle::{
    Client, Server,
    client::Answer,
    server::{Cx, ToolError},
};
use pintle_tasks::{TaskHandle, TaskPolling, Tasks};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Address {
    /// The street and the number.
    street: String,
}

/// Bake a cake and have it delivered.
///
/// With a store that outlives the process (`pintle-sqlite`), a task of this tool goes on after a restart.
#[pintle::tool(task = "optional", resumable)]
async fn bake(cx: Cx, cake: String) -> Result<String, ToolError> {
    let to = cx.elicit::<Address>("address", "Where to?").await?.accepted().ok_or("Nothing was baked.")?;
    for step in 1..=3 {
        cx.progress_with(f64::from(step), 3.0, "baking").await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Done once, however often the handler runs.
    let number: u32 = cx.once("deliver", async { 4711 }).await?;
    Ok(format!("Delivery {number}: {cake} to {}", to.street))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    let tasks = Tasks::new().ttl(Duration::from_secs(600)).poll_interval(Duration::from_millis(20));
    let server = Server::new("bakery", "1.0.0").with(tasks).tools(pintle::tools![bake]);
    let client = Client::new("guest", "1.0.0")
        .with(TaskPolling::new().intervals(Duration::from_millis(10), Duration::from_secs(1)))
        .on_elicit(|_| async { Answer::accept(json!({"street": "Harbour 1"})) });
    let connection = client.connect(server.in_process()?).await?;

    // Whatever the server makes of the call, this is its result.
    let result = connection.call_tool("bake", json!({"cake": "carrot cake"})).await?;
    println!("{}", result.text());

    // The task itself: its id can be kept, and its status shown.
    let started = connection.call("bake").args(json!({"cake": "cheesecake"})).start().await?;
    if let Some(task) = TaskHandle::of(started) {
        let is_over = task.state().await?.status.is_terminal();
        println!("a task that is {}", if is_over { "over" } else { "under way" });
        println!("{}", task.result().await?.text());
    }
    Ok(())
}
