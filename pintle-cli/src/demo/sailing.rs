//! Long-running tools: progress, log messages, and a call that runs until it is cancelled.

use pintle::{
    Server,
    server::{Args, Cx, State, tool},
    types::schema::LoggingLevel,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Harbour, Port};

#[derive(Deserialize, JsonSchema)]
struct To {
    /// The destination.
    to: Port,
}

pub(super) fn add(server: Server) -> Server {
    server
        .tool(tool("sail", sail).description("Sails to a port and reports progress.").destructive(false))
        .tool(
            tool("anchor", anchor)
                .description("Lies at anchor until the call is cancelled.")
                .destructive(false),
        )
}

async fn sail(cx: Cx, Args(To { to }): Args<To>) -> String {
    cx.log(LoggingLevel::Info, Some("bridge"), &json!({ "sails": "set", "to": to })).await;
    for (done, leg) in LEGS {
        cx.progress_with(done, 3.0, leg).await;
    }
    format!("Arrived at {to:?}.")
}

const LEGS: [(f64, &str); 3] =
    [(1.0, "out of the harbour"), (2.0, "on the open sea"), (3.0, "land in sight")];

async fn anchor(cx: Cx, State(harbour): State<Harbour>) {
    // A cancelled call is a dropped future, so cleanup belongs into `drop`.
    let _anchor = Anchor(harbour);
    cx.progress_with(1.0, None, "the anchor holds").await;
    std::future::pending().await
}

struct Anchor(Harbour);

impl Drop for Anchor {
    fn drop(&mut self) {
        self.0.weigh();
    }
}
