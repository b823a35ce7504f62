//! A server with a tool for everything that a bridge passes on: over HTTP, HTTP+SSE, and as a program.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
    mpsc,
};

use pintle::{
    Server,
    server::{Args, Cx, Outcome, StateKeys, ToolError, resource, tool},
    types::{
        RawObject,
        schema::{ContentBlock, CreateMessageParams, LoggingLevel, Role, SamplingMessage},
    },
};
use serde_json::json;

/// The resource that `touch` changes.
pub(super) const NOTE: &str = "note://shopping";

/// The variable that makes a program of a test.
const PROGRAM: &str = "PINTLE_TEST_SERVER";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Guests {
    count: u8,
}

/// Counts the handlers that were dropped before they returned.
struct Cancelled(Arc<AtomicUsize>);

impl Drop for Cancelled {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn server() -> Server {
    let cancelled = Arc::<AtomicUsize>::default();
    let waiting = cancelled.clone();
    Server::new("matrix", "1.0.0")
        // Known to the next process: a call goes on there.
        .state_keys(StateKeys::from([7; 32]))
        .logging()
        .may_change()
        .tool(tool("add", |Args(pair): Args<Pair>| async move { (pair.a + pair.b).to_string() }))
        .tool(tool("raw", |cx: Cx| async move {
            let mut meta = serde_json::to_value(cx.meta()).unwrap();
            meta.as_object_mut().unwrap().retain(|key, _| key.starts_with("acme/"));
            let result = json!({"content": [{"type": "text", "text": meta.to_string(), "acme/x": 1}],
                "acme/y": [1.5, {"deep": null}], "_meta": {"acme/z": true}});
            Outcome::Complete(result.to_string().parse::<RawObject>().unwrap().into())
        }))
        .tool(tool("count", |cx: Cx| async move {
            for step in 1..=3 {
                cx.progress_with(f64::from(step), 3.0, "counting").await;
            }
            "counted"
        }))
        .tool(tool("log", |cx: Cx| async move {
            cx.log(LoggingLevel::Debug, Some("matrix"), &json!("too much")).await;
            cx.log(LoggingLevel::Warning, Some("matrix"), &json!({"left": 3})).await;
            "logged"
        }))
        .tool(tool("book", |cx: Cx| async move {
            let guests = cx.elicit::<Guests>("guests", "A table for how many?").await?.accepted();
            Ok::<_, ToolError>(guests.map_or("none".to_owned(), |guests| format!("{} guests", guests.count)))
        }))
        .tool(tool("think", |cx: Cx| async move {
            let message = SamplingMessage::new(Role::User, ContentBlock::text("2 and 2?"));
            let written = cx.sample("thought", CreateMessageParams::new(vec![message], 10)).await?;
            Ok::<_, ToolError>(written.text())
        }))
        .tool(tool("where", |cx: Cx| async move {
            let roots = cx.roots().await?;
            Ok::<_, ToolError>(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
        }))
        .tool(tool("wait", move |cx: Cx| {
            let cancelled = Cancelled(waiting.clone());
            async move {
                let _cancelled = cancelled;
                cx.progress(1.0, None).await;
                std::future::pending::<()>().await;
            }
        }))
        .tool(tool("cancelled", move |_: Cx| {
            let count = cancelled.load(Ordering::SeqCst);
            async move { count.to_string() }
        }))
        .tool(tool("grow", |cx: Cx| async move {
            cx.server().remove_tool("grown");
            cx.server().add_tool(tool("grown", || async { "" }))?;
            Ok::<_, ToolError>("grown")
        }))
        .tool(tool("touch", |cx: Cx| async move {
            cx.server().resource_updated(NOTE);
            "touched"
        }))
        .resource(resource(NOTE, "shopping", |_: Cx| async { "milk" }))
}

/// Serves it over HTTP, in a thread that ends with the tests, and returns the origin.
pub(super) fn listen() -> String {
    let (sender, started) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let origin = format!("http://{}", listener.local_addr().unwrap());
            let http = server().http().unwrap().at("/mcp").two_endpoints("/sse", "/messages");
            let serving = http.serve(listener).unwrap();
            sender.send(origin).unwrap();
            serving.wait().await;
        });
    });
    started.recv().unwrap()
}

/// Returns the variable, the program and its arguments that serve it on standard streams: this test, in a process of its own.
pub(super) fn program() -> (String, Vec<String>) {
    let path = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    let name = concat!(module_path!(), "::as_a_program").split_once("::").unwrap().1;
    let words = [&path, "--exact", name, "--nocapture", "--quiet"];
    (format!("{PROGRAM}=1"), words.map(str::to_owned).to_vec())
}

/// Not a test by itself.
#[test]
fn as_a_program() {
    if std::env::var_os(PROGRAM).is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // What the test prints before is not a message, and is skipped.
    runtime.block_on(server().serve_stdio()).unwrap();
    std::process::exit(0);
}
