//! Pintle's server of the matrix.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server,
    server::{Cx, Elicited, Json, Partial, State, ToolError, resource, tool},
    types::schema::{ContentBlock, CreateMessageParams, Role, SamplingMessage},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many notes there are: more than fit on two pages.
const NOTES: usize = 7;
const PAGE: usize = 3;
/// Nobody waits for longer, whatever goes wrong.
const WAIT: Duration = Duration::from_secs(30);

/// The TypeScript SDK's clients drop progress that comes in one read with the result: they look at the result first.
const PAUSE: Duration = Duration::from_millis(100);

/// The server, with nobody waiting yet.
pub fn server() -> Server {
    let notes =
        (0..NOTES).map(|n| {
            resource(format!("note://{n}"), format!("note {n}"), move || async move {
                format!("This is note {n}.")
            })
        });
    Server::new("pintle-interop", env!("CARGO_PKG_VERSION"))
        .with_state(Arc::<Waits>::default())
        .page_size(PAGE)
        .tools(pintle::tools![add, steps, ask, sample, wait, waits, touch, grow])
        .routes(pintle::routes![greet])
        .resources(notes)
}

/// The number of started and cancelled calls of `wait`.
#[derive(Debug, Default)]
struct Waits {
    started: AtomicUsize,
    cancelled: AtomicUsize,
}

#[derive(JsonSchema, Serialize)]
struct Sum {
    sum: i64,
}

/// Adds two numbers.
#[pintle::tool]
async fn add(a: i64, b: i64) -> Json<Sum> {
    Json(Sum { sum: a + b })
}

/// Takes some steps, and tells of each.
#[pintle::tool]
async fn steps(cx: Cx, n: u32) -> &'static str {
    for step in 1..=n {
        cx.progress(step.into(), f64::from(n)).await;
        tokio::time::sleep(PAUSE).await;
    }
    "done"
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    copies: i64,
}

/// Asks the user how many copies.
#[pintle::tool]
async fn ask(cx: Cx, question: String) -> Result<String, ToolError> {
    Ok(match cx.elicit::<Order>("order", &question).await? {
        Elicited::Accept(order) => format!("accepted {}", order.copies),
        Elicited::Decline => "declined".to_owned(),
        Elicited::Cancel => "cancelled".to_owned(),
    })
}

/// Asks the client's model.
#[pintle::tool]
async fn sample(cx: Cx, topic: String) -> Result<String, ToolError> {
    let question = vec![SamplingMessage::new(Role::User, ContentBlock::text(topic))];
    let answer = cx.sample("answer", CreateMessageParams::new(question, 20)).await?;
    let text: String = answer.content.as_slice().iter().filter_map(ContentBlock::as_text).collect();
    Ok(format!("model said {text}"))
}

/// Waits until somebody cancels it.
#[pintle::tool]
async fn wait(State(waits): State<Arc<Waits>>) -> &'static str {
    /// A cancelled call is dropped.
    struct Dropped(Arc<Waits>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.cancelled.fetch_add(1, Ordering::SeqCst);
        }
    }

    waits.started.fetch_add(1, Ordering::SeqCst);
    let dropped = Dropped(waits);
    tokio::time::sleep(WAIT).await;
    std::mem::forget(dropped);
    "nobody cancelled"
}

/// How many waits were started, and how many cancelled.
#[pintle::tool]
async fn waits(State(waits): State<Arc<Waits>>) -> String {
    format!("{} {}", waits.started.load(Ordering::SeqCst), waits.cancelled.load(Ordering::SeqCst))
}

/// Changes a note.
#[pintle::tool]
async fn touch(cx: Cx) -> &'static str {
    cx.server().resource_updated("note://1");
    "touched"
}

/// Adds a tool, or takes it away again.
#[pintle::tool]
async fn grow(cx: Cx) -> Result<&'static str, ToolError> {
    if !cx.server().remove_tool("extra") {
        cx.server().add_tool(tool("extra", || async { "here for now" }))?;
    }
    Ok("changed")
}

/// Greets somebody.
#[pintle::prompt]
async fn greet(#[arg(complete = names)] name: String) -> String {
    format!("Say hello to {name}.")
}

async fn names(typed: Partial) -> Vec<&'static str> {
    ["ada", "alan", "grace"].into_iter().filter(|name| name.starts_with(&typed.value)).collect()
}
