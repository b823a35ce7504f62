//! Middleware: a layer around every message that logs it, one that knows the tenant, and a rate limit around a single tool.
//!
//! A layer sees each request and notification as a [`Cx`] and its end as an [`Outcome`]. It may inspect, delay, change, answer
//! or forward it. [`around`] creates a layer from an async function; a `tower::Layer` over services of `Cx` also works.

#![allow(clippy::print_stderr, reason = "it is what the program is for")]

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Instant,
};

use pintle::{
    Server,
    server::{Cx, Extension, Next, Outcome, around, tool},
    types::RpcError,
};

/// Writes one line per message to standard error, because standard output is the wire.
async fn logged(cx: Cx, next: Next) -> Outcome {
    let method = cx.method().to_owned();
    let name = cx.target().map(|target| target.name().to_owned()).unwrap_or_default();
    let start = Instant::now();
    // The future of a cancelled call is dropped here, and no line is written.
    let outcome = next.run(cx).await;
    let how = match &outcome {
        Outcome::Complete(_) | Outcome::Cacheable(..) => "ok",
        Outcome::InputRequired => "a question",
        Outcome::BadArguments(_) => "bad arguments",
        _ => "failed",
    };
    eprintln!("{method} {name}: {how} after {:?}", start.elapsed());
    outcome
}

/// The tenant that a request belongs to, for handlers.
#[derive(Clone)]
struct Tenant(String);

/// Refuses clients without a name, and leaves the tenant for the handlers.
async fn with_tenant(cx: Cx, next: Next) -> Outcome {
    let named = cx.peer().info.as_ref().map(|info| info.name.clone()).filter(|name| !name.is_empty());
    match named {
        Some(name) => next.run(cx.with(Tenant(name))).await,
        None if cx.method() == "initialize" => {
            Outcome::Failed(RpcError::invalid_request("`clientInfo.name` is empty: name the client"))
        }
        None => next.run(cx.with(Tenant("guest".into()))).await,
    }
}

async fn roll(Extension(Tenant(tenant)): Extension<Tenant>) -> String {
    format!("4 for {tenant}")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    let left = AtomicU32::new(3);
    let three_times = around(move |cx: Cx, next: Next| {
        let left = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        async move {
            match left {
                Ok(_) => next.run(cx).await,
                Err(_) => {
                    Outcome::Failed(RpcError::invalid_request("the dice are worn out: start the server anew"))
                }
            }
        }
    });
    let roll = tool("roll", roll).description("Roll a die.").layer(&three_times);
    // The layer added last is the outermost: this one also sees what the others refuse.
    let server = Server::new("dice", "1.0.0").tool(roll).layer(&around(with_tenant)).layer(&around(logged));
    server.serve_stdio().await
}
