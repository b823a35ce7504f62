//! A server with a tool for everything that can happen in a call, and a relay in front of it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{
    Client, Server,
    proto::Revision,
    server::{
        Answer as ClientAnswer, Args, Cx, Outcome, Partial, PromptArguments, Question, ToolError, prompt,
        resource, template, tool,
    },
    types::{
        ErrorCode, RawObject, RpcError,
        schema::{ContentBlock, CreateMessageParams, LoggingLevel, Role, SamplingMessage},
    },
};
use pintle_relay::Relay;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::eras::{R4, R5};

/// The eras, by a revision of each.
pub(crate) const ERAS: [&str; 2] = [R4, R5];

/// What the handlers of the server do beside answering.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    /// Handlers of `wait` that were started, and that were dropped.
    pub(crate) started: Arc<AtomicUsize>,
    pub(crate) dropped: Arc<AtomicUsize>,
    pub(crate) changed: Arc<Notify>,
}

impl Seen {
    /// Waits until so many handlers of `wait` were started, and dropped.
    pub(crate) async fn reaches(&self, started: usize, dropped: usize) {
        loop {
            let notified = self.changed.notified();
            let now = (self.started.load(Ordering::SeqCst), self.dropped.load(Ordering::SeqCst));
            if now == (started, dropped) {
                return;
            }
            notified.await;
        }
    }
}

struct Dropped(Seen);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
        self.0.changed.notify_waiters();
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Guests {
    count: u8,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

/// The server behind.
pub(crate) fn server(seen: &Seen) -> Server {
    let wait = {
        let seen = seen.clone();
        move |_: Cx| {
            let seen = seen.clone();
            async move {
                let _dropped = Dropped(seen.clone());
                seen.started.fetch_add(1, Ordering::SeqCst);
                seen.changed.notify_waiters();
                std::future::pending::<()>().await;
                "never"
            }
        }
    };
    Server::new("dice", "1.0.0")
        .logging()
        .tool(tool("add", |Args(pair): Args<Pair>| async move { (pair.a + pair.b).to_string() }))
        .tool(tool("raw", |cx: Cx| async move {
            let mut meta = serde_json::to_value(cx.meta()).unwrap();
            meta.as_object_mut().unwrap().retain(|key, _| key.starts_with("acme/") || key == "traceparent");
            let result = json!({"content": [{"type": "text", "text": meta.to_string(), "acme/x": 1}],
                "acme/y": [1.50, 12345678901234567890u64], "_meta": {"acme/z": {"deep": true}}});
            Outcome::Complete(result.to_string().parse::<RawObject>().unwrap().into())
        }))
        .tool(tool("fail", |_: Cx| async {
            Err::<String, _>(RpcError::new(ErrorCode(-31999), "out of paper").with_data(&json!({"tray": 2})))
        }))
        .tool(tool("sorry", |_: Cx| async { Err::<String, _>(ToolError::new("not today")) }))
        .tool(tool("count", |cx: Cx| async move {
            for step in 1..=3 {
                cx.progress_with(f64::from(step), 3.0, "counting").await;
            }
            "counted"
        }))
        .tool(tool("log", |cx: Cx| async move {
            cx.log(LoggingLevel::Debug, Some("dice"), &json!("too much")).await;
            cx.log(LoggingLevel::Warning, Some("dice"), &json!({"left": 3})).await;
            "logged"
        }))
        .tool(tool("book", |cx: Cx| async move {
            cx.progress(1.0, 2.0).await;
            let guests = cx.elicit::<Guests>("guests", "A table for how many?").await?.accepted();
            let Some(guests) = guests else { return Ok("Never mind.".to_owned()) };
            let sure = cx.elicit::<()>("sure", "Sure?").await?.accepted().is_some();
            Ok::<_, ToolError>(format!("{} guests, {sure}", guests.count))
        }))
        .tool(tool("pay", |cx: Cx| async move {
            let agreed = cx.elicit_url("pay", "Please pay.", "https://example.com/pay").await?;
            Ok::<_, ToolError>(format!("agreed: {agreed}"))
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
        .tool(tool("both", |cx: Cx| async move {
            let message = SamplingMessage::new(Role::User, ContentBlock::text("2 and 2?"));
            let sample = Question::Sample(Box::new(CreateMessageParams::new(vec![message], 10)));
            let answers =
                cx.ask_all([("roots".to_owned(), Question::Roots), ("sum".to_owned(), sample)]).await?;
            let Some(ClientAnswer::Sample(written)) = answers.get("sum") else { panic!("{answers:?}") };
            Ok::<_, ToolError>(format!("{} of {}", written.text(), answers.len()))
        }))
        .tool(tool("wait", wait))
        .may_change()
        .prompt(
            prompt(
                "review",
                |given: PromptArguments| async move { format!("Review {}.", given["language"]) },
            )
            .argument("language", "A language.")
            .complete("language", |typed: Partial| async move {
                ["ruby", "rust"].into_iter().filter(|it| it.starts_with(&typed.value)).collect::<Vec<_>>()
            }),
        )
        .resource(resource("note://shopping", "shopping", |_: Cx| async { "milk" }))
        .template(template("note://{id}", "note", |_: Cx| async { "a note" }))
}

/// What a client that can be asked everything declares.
pub(crate) fn everything() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
}

/// A client for the relay, of this revision.
pub(crate) fn client(revision: &str) -> Client {
    Client::new("relay", "1.0.0").revisions([revision.parse::<Revision>().unwrap()])
}

/// A relay to `behind` in this revision.
pub(crate) async fn relay(behind: &Server, revision: &str) -> Relay {
    let behind = behind.clone();
    let connector = move || {
        let connected = behind.in_process().map_err(std::io::Error::other);
        async { connected }
    };
    Relay::connect(client(revision), connector).await.unwrap()
}

/// A server that offers what the one behind does.
pub(crate) fn front(relay: &Relay) -> Server {
    Server::new("dice", "1.0.0").provider(relay.clone())
}

/// A server that relays to `behind` in this revision.
pub(crate) async fn relayed(behind: &Server, revision: &str) -> Server {
    front(&relay(behind, revision).await)
}

/// Answers every question.
pub(crate) fn answer(method: &str, params: &Value) -> Value {
    match method {
        "roots/list" => json!({"roots": [{"uri": "file:///srv"}]}),
        "sampling/createMessage" => {
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "4"}})
        }
        _ if params["mode"] == "url" => json!({"action": "accept"}),
        _ if params["message"] == "Sure?" => json!({"action": "accept", "content": {}}),
        _ => json!({"action": "accept", "content": {"count": 4}}),
    }
}
