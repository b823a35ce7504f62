//! Layers of a client: a log of both directions, a trace context in every request, and a memory that answers without the server.
//!
//! A layer sees each request and notification as a [`Cx`], and its result. What a connection does for a request (the policy, input
//! requests, retries) happens inside of the layers, so they see each request once.
//!
//! ```sh
//! cargo run --example client_layers --features client,server
//! ```

#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use pintle::{
    Client, Error, Result, Server,
    client::{Answer, Cx, Direction, Next, Target, around},
    server::{self, ToolError, tool},
    types::{Meta, RawObject},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Guests {
    count: u8,
}

/// Asks how many guests there are, in the middle of the call.
async fn book(cx: server::Cx) -> Result<String, ToolError> {
    let guests = cx.elicit::<Guests>("guests", "For how many?").await?.accepted();
    let trace = cx.meta().get("traceparent").is_some();
    Ok(format!("booked for {}, traced: {trace}", guests.map_or(0, |guests| guests.count)))
}

/// Prints one line per message. Answers of the user are not printed: only whether there was one.
async fn logged(cx: Cx, next: Next) -> Result<RawObject> {
    let arrow = if cx.direction() == Direction::Out { "->" } else { "<-" };
    let server = cx.connection().unwrap_or("server").to_owned();
    let method = cx.method().to_owned();
    let result = next.run(cx).await;
    println!("{server} {arrow} {method}: {}", if result.is_ok() { "ok" } else { "failed" });
    result
}

/// Adds a trace context to every request, and refuses one tool.
async fn traced(cx: Cx, next: Next) -> Result<RawObject> {
    if let Some(Target::Tool(name)) = cx.target()
        && name == "demolish"
    {
        return Err(Error::Refused("`demolish` is not for guests: call the owner".into()));
    }
    if cx.direction() == Direction::In || cx.is_notification() {
        return next.run(cx).await;
    }
    let mut meta = Meta::new();
    meta.insert("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    next.run(cx.with_meta(meta)).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let hotel = Server::new("hotel", "1.0.0")
        .tool(tool("book", book).description("Book a room."))
        .tool(tool("demolish", || async { "gone" }).description("Tear the hotel down."));

    // Equal calls get the result of the first.
    let known: Arc<Mutex<HashMap<String, RawObject>>> = Arc::default();
    let remembered = around(move |cx: Cx, next: Next| {
        let known = known.clone();
        async move {
            let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
            let key = cx.params().as_str().to_owned();
            let earlier = (cx.method() == "tools/call").then(|| lock().get(&key).cloned()).flatten();
            if let Some(result) = earlier {
                return Ok(result);
            }
            let is_call = cx.method() == "tools/call";
            let result = next.run(cx).await?;
            if is_call {
                lock().insert(key, result.clone());
            }
            Ok(result)
        }
    });

    let client = Client::new("guest", "1.0.0")
        .on_elicit(|_| async { Answer::accept(json!({ "count": 2 })) })
        .layer(&around(traced))
        .layer(&remembered)
        // The layer added last is the outermost: this one also sees what the others refuse.
        .layer(&around(logged));
    let hotel = client.connect_as("hotel", hotel.in_process()?).await?;
    println!("{}", hotel.call_tool("book", ()).await?.text());
    // The user is not asked again.
    println!("{}", hotel.call_tool("book", ()).await?.text());
    if let Err(error) = hotel.call_tool("demolish", ()).await {
        println!("{error}");
    }
    hotel.close().await;
    Ok(())
}
