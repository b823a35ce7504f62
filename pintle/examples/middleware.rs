//! Middleware: a layer around every call that logs its outcome and duration, and a rate limit around a single tool.
//!
//! A layer sees each call as a [`Cx`] and its end as an [`Outcome`]. It may inspect, delay, answer or forward the call.
//! [`around`] creates a layer from an async function; a `tower::Layer` over services of `Cx` also works.

#![allow(clippy::print_stderr, reason = "it is what the program is for")]

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Instant,
};

use pintle::{
    Server,
    server::{Cx, Next, Outcome, around, tool},
    types::RpcError,
};

/// Writes one line per call to standard error, because standard output is the wire.
async fn logged(cx: Cx, next: Next) -> Outcome {
    let (method, tool) = (cx.method().to_owned(), cx.params().decode_member::<String>("name"));
    let name = tool.ok().flatten().unwrap_or_default();
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
    let roll = tool("roll", || async { "4" }).description("Roll a die.").layer(&three_times);
    // The layer added last is the outermost: this one also sees calls that the other refuses.
    Server::new("dice", "1.0.0").tool(roll).layer(&around(logged)).serve_stdio().await
}
