use std::{
    fmt::Debug,
    sync::{Arc, Mutex},
};

use pintle::{
    Connection, Error,
    client::Change,
    types::{
        ErrorCode,
        schema::{CallToolResult, CompletionReference, PromptReference},
    },
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Cell,
    waiting::{cancelled, changed},
};
use crate::Wrong;

/// The columns, in the order in which they are asked for.
pub const CELLS: &[Cell] = &[
    Cell { name: "list", ask: |server| Box::pin(list(server)) },
    Cell { name: "call", ask: |server| Box::pin(call(server)) },
    Cell { name: "bad-arguments", ask: |server| Box::pin(bad_arguments(server)) },
    Cell { name: "progress", ask: |server| Box::pin(progress(server)) },
    Cell {
        name: "answer",
        ask: |server| Box::pin(expect_text(server, "ask", json!({"question": "yes"}), "accepted 2")),
    },
    Cell {
        name: "decline",
        ask: |server| Box::pin(expect_text(server, "ask", json!({"question": "no"}), "declined")),
    },
    Cell {
        name: "sample",
        ask: |server| Box::pin(expect_text(server, "sample", json!({"topic": "hi"}), "model said pong")),
    },
    Cell { name: "cancel", ask: |server| Box::pin(cancelled(server)) },
    Cell { name: "read", ask: |server| Box::pin(read(server)) },
    Cell { name: "update", ask: |server| Box::pin(update(server)) },
    Cell { name: "change", ask: |server| Box::pin(change(server)) },
    Cell { name: "complete", ask: |server| Box::pin(complete(server)) },
    Cell { name: "pages", ask: |server| Box::pin(pages(server)) },
];

async fn list(server: &Connection) -> Result<String, Wrong> {
    let tools = server.tools().await?;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    match ["add", "steps", "ask", "sample"].iter().find(|name| !names.contains(name)) {
        Some(missing) => Err(Wrong::new(format!("`{missing}` is not among {names:?}"))),
        None => Ok(format!("{} tools", tools.len())),
    }
}

async fn call(server: &Connection) -> Result<String, Wrong> {
    let result = server.call_tool("add", json!({"a": 2, "b": 3})).await?;
    expect(&result.structured_content, &Some(json!({"sum": 5})))
}

/// Either way of saying no is right; a result is not.
async fn bad_arguments(server: &Connection) -> Result<String, Wrong> {
    match server.call_tool("add", json!({"a": "two", "b": 3})).await {
        Ok(result) if result.is_error == Some(true) => Ok("the tool's error".to_owned()),
        Ok(result) => Err(Wrong::new(format!("taken: {}", text(&result)))),
        Err(Error::Rpc(error)) if error.code == ErrorCode::INVALID_PARAMS => Ok("invalid params".to_owned()),
        Err(error) => Err(error.into()),
    }
}

async fn progress(server: &Connection) -> Result<String, Wrong> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let see = seen.clone();
    let call = server.call("steps").args(json!({"n": 3})).on_progress(move |step| {
        if let Ok(mut seen) = see.lock() {
            seen.push((step.progress, step.total));
        }
    });
    expect(&*text(&call.send().await?), "done")?;
    let seen = seen.lock().map_err(Wrong::new)?.clone();
    expect(&seen, &[1.0, 2.0, 3.0].map(|step| (step, Some(3.0))).to_vec())
}

async fn read(server: &Connection) -> Result<String, Wrong> {
    let result = server.read_resource("note://1").await?;
    let contents = serde_json::to_value(&result.contents).map_err(Wrong::new)?;
    expect(&contents[0]["text"], &json!("This is note 1."))
}

async fn update(server: &Connection) -> Result<String, Wrong> {
    let mut changes = server.changes().await?;
    server.subscribe("note://1").await?;
    server.call_tool("touch", ()).await?;
    let found = changed(&mut changes, &Change::Resource("note://1".into())).await;
    server.unsubscribe("note://1").await?;
    found
}

async fn change(server: &Connection) -> Result<String, Wrong> {
    let has_extra =
        async || -> Result<bool, Wrong> { Ok(server.tools().await?.iter().any(|tool| tool.name == "extra")) };
    let mut changes = server.changes().await?;
    let before = has_extra().await?;
    server.call_tool("grow", ()).await?;
    changed(&mut changes, &Change::Tools).await?;
    expect(&has_extra().await?, &!before)
}

async fn complete(server: &Connection) -> Result<String, Wrong> {
    let reference = CompletionReference::Prompt(PromptReference::new("greet"));
    let found = server.complete(reference, "name", "a", []).await?;
    expect(&found.values, &["ada", "alan"].map(str::to_owned).to_vec())
}

async fn pages(server: &Connection) -> Result<String, Wrong> {
    let mut stream = server.resources_stream();
    let mut pages = Vec::new();
    while let Some(page) = stream.next_page().await? {
        pages.push(page.len());
    }
    expect(&pages, &vec![3, 3, 1])
}

async fn expect_text(
    server: &Connection,
    tool: &str,
    arguments: Value,
    wanted: &str,
) -> Result<String, Wrong> {
    let result = server.call_tool(tool, arguments).await?;
    expect(&*text(&result), wanted)
}

pub(super) fn text(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|block| block.as_text()).collect()
}

fn expect<T: Debug + PartialEq + Serialize + ?Sized>(found: &T, wanted: &T) -> Result<String, Wrong> {
    if found == wanted {
        serde_json::to_string(found).map_err(Wrong::new)
    } else {
        Err(Wrong::new(format!("{found:?} instead of {wanted:?}")))
    }
}
