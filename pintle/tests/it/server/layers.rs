//! `tower` layers around every call, and around one tool.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use pintle::{
    Server,
    server::{Cx, Next, Outcome, tool},
    types::RpcError,
};
use serde_json::json;

use crate::support::eras::{ALL, Client, each};

type Log = Arc<Mutex<Vec<String>>>;

/// Notes what goes in and comes out, and stops what it is told to.
#[derive(Clone)]
struct Noting {
    name: &'static str,
    refuses: &'static str,
    log: Log,
}

#[derive(Clone)]
struct Noted<S>(Noting, S);

impl<S> tower_layer::Layer<S> for Noting {
    type Service = Noted<S>;

    fn layer(&self, inner: S) -> Noted<S> {
        Noted(self.clone(), inner)
    }
}

impl<S> tower_service::Service<Cx> for Noted<S>
where
    S: tower_service::Service<Cx, Response = Outcome> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Outcome;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Outcome, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.1.poll_ready(cx)
    }

    fn call(&mut self, cx: Cx) -> Self::Future {
        let Self(Noting { name, refuses, log }, mut inner) = self.clone();
        Box::pin(async move {
            if cx.is_notification() {
                return inner.call(cx).await;
            }
            log.lock().unwrap().push(format!("{name} before {}", cx.method()));
            if cx.method() == refuses {
                return Ok(Outcome::Failed(RpcError::invalid_request("not today")));
            }
            let outcome = inner.call(cx).await;
            log.lock().unwrap().push(format!("{name} after"));
            outcome
        })
    }
}

#[tokio::test]
async fn the_last_one_added_is_the_outermost_and_each_may_end_a_call() {
    let log = Log::default();
    let noting = |name, refuses| Noting { name, refuses, log: log.clone() };
    let wrapped = tool("wrapped", || async { "fine" }).layer(&noting("tool", ""));
    let server = Server::new("s", "0")
        .tool(wrapped)
        .tool(tool("bare", || async { "fine" }))
        .layer(&noting("inner", ""))
        .layer(&noting("outer", "tools/list"));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        // The handshake passes the layers too.
        log.lock().unwrap().clear();
        assert_eq!(client.tool("wrapped").await, "fine");
        let seen = std::mem::take(&mut *log.lock().unwrap());
        let (before, after) = (["outer", "inner", "tool"], ["tool", "inner", "outer"]);
        let expected = before.map(|name| format!("{name} before tools/call"));
        assert_eq!(seen[..3], expected);
        assert_eq!(seen[3..], after.map(|name| format!("{name} after")));
        assert_eq!(client.tool("bare").await, "fine");
        assert_eq!(std::mem::take(&mut *log.lock().unwrap()).len(), 4);
        let refused = client.call("tools/list", json!({})).await;
        assert_eq!(refused["error"]["message"], "not today");
        assert_eq!(std::mem::take(&mut *log.lock().unwrap()), ["outer before tools/list"]);
    })
    .await;
    // A layer sees the rest of the way as a service, whatever it is.
    fn is_service<S: tower_service::Service<Cx, Response = Outcome>>() {}
    is_service::<Next>();
}

/// Requests to a client pass the functions around them, each with its answer; without a session there are none.
#[cfg(feature = "client")]
#[tokio::test]
async fn functions_around_requests_to_clients_see_every_question_of_a_session() {
    use pintle::{
        client::Mode,
        server::{AskError, OutgoingNext, OutgoingRequest, Question, ToolError},
        types::Meta,
    };
    for mode in [Mode::Legacy, Mode::Modern] {
        let log = Log::default();
        let noted = log.clone();
        let places = |cx: Cx| async move {
            cx.roots().await?;
            let both = ["one", "two"].map(|key| (key.to_owned(), Question::Roots));
            Ok::<_, ToolError>(cx.ask_all(both).await?.len().to_string())
        };
        let server = Server::new("s", "1").tool(tool("places", places)).around_outgoing(
            move |request: OutgoingRequest, next: OutgoingNext| {
                let noted = noted.clone();
                async move {
                    noted.lock().unwrap().push(format!("{} in {}", request.method(), request.cx().method()));
                    let mut meta = Meta::new();
                    meta.insert("com.example/a", 1);
                    let answer = next.run(request.with_meta(meta)).await?;
                    match answer.get("roots") {
                        Some(roots) => noted.lock().unwrap().push(roots.to_owned()),
                        None => return Err(AskError::CallOver),
                    }
                    Ok(answer)
                }
            },
        );
        let seen = log.clone();
        let client = pintle::Client::new("c", "1").mode(mode).roots(["file:///a"]).layer(
            &pintle::client::around(move |cx: pintle::client::Cx, next: pintle::client::Next| {
                if cx.method() == "roots/list" {
                    let meta = cx.meta().get("com.example/a").map(ToString::to_string);
                    seen.lock().unwrap().push(format!("received {meta:?}"));
                }
                next.run(cx)
            }),
        );
        let connection = client.connect(server.in_process().unwrap()).await.unwrap();
        assert_eq!(connection.call_tool("places", ()).await.unwrap().text(), "2");
        let log = log.lock().unwrap();
        let count = |wanted: &str| log.iter().filter(|line| *line == wanted).count();
        let sent = if matches!(mode, Mode::Legacy) { 3 } else { 0 };
        assert_eq!(count("roots/list in tools/call"), sent, "{log:?}");
        assert_eq!(count(r#"[{"uri":"file:///a"}]"#), sent, "{log:?}");
        assert_eq!(count(r#"received Some("1")"#), sent, "{log:?}");
    }
}
