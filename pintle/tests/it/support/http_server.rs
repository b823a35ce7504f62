//! A server with something of everything on sockets, and a client of each revision for it.

use std::{
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Client, Connection, Server, Timeouts,
    client::{
        Answer,
        http::{Http as Remote, Proxy, Retry},
    },
    server::{
        Args, Cx, Field, Form, ToolError, Vars,
        http::{Http, HttpServer, HttpServing, ShutdownSignal},
        template, tool,
    },
    types::schema::{ContentBlock, CreateMessageParams, CreateMessageResult, Role, SamplingMessage},
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

use crate::support::eras::R1;

/// Every call says whose it is, and hears it again in everything that comes of it.
#[derive(Deserialize, JsonSchema)]
struct Mark {
    mark: String,
    /// How many steps to report.
    #[serde(default)]
    steps: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    #[expect(dead_code, reason = "whichever it is")]
    name: String,
}

pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) http: Http,
    /// Held by every handler that was not dropped.
    alive: Arc<()>,
    /// Sockets that were accepted.
    pub(crate) sockets: Arc<AtomicUsize>,
    /// Lets the tool `hold` come to its end, once for each permit.
    pub(crate) hold: Arc<Semaphore>,
    /// What was called, by mark.
    pub(crate) called: Arc<Mutex<Vec<String>>>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_idle_sessions(Timeouts::default().idle_session)
    }

    /// One that forgets a session after so long a silence.
    pub(crate) fn with_idle_sessions(idle: Duration) -> Self {
        let mut timeouts = Timeouts::default();
        timeouts.idle_session = idle;
        let (alive, called) = (Arc::new(()), Arc::<Mutex<Vec<String>>>::default());
        let note = template("note://{name}", "note", |_: Vars<Note>| async { "" });
        let server = Server::new("world", "1").timeouts(timeouts).template(note);
        let received = called.clone();
        let server = server.tool(tool("echo", move |Args(Mark { mark, .. }): Args<Mark>| {
            received.lock().unwrap().push(mark.clone());
            async move { mark }
        }));
        let received = called.clone();
        let server = server.tool(tool("steps", move |cx: Cx, Args(Mark { mark, steps }): Args<Mark>| {
            received.lock().unwrap().push(mark.clone());
            async move {
                for step in 1..=steps {
                    cx.progress_with(f64::from(step), f64::from(steps), &mark).await;
                    tokio::task::yield_now().await;
                }
                mark
            }
        }));
        let held = alive.clone();
        let server = server.tool(tool("ask", move |cx: Cx, Args(Mark { mark, .. }): Args<Mark>| {
            let held = held.clone();
            async move {
                let _held = held;
                ask(&cx, &mark).await
            }
        }));
        let held = alive.clone();
        let server = server.tool(tool("wait", move |cx: Cx, Args(Mark { mark, .. }): Args<Mark>| {
            let held = held.clone();
            async move {
                cx.progress_with(1.0, None, &mark).await;
                std::future::pending::<()>().await;
                drop(held);
                ""
            }
        }));
        let (held, hold) = (alive.clone(), Arc::new(Semaphore::new(0)));
        let (permits, received) = (hold.clone(), called.clone());
        let server = server.tool(tool("hold", move |cx: Cx, Args(Mark { mark, .. }): Args<Mark>| {
            received.lock().unwrap().push(mark.clone());
            let (held, permits) = (held.clone(), permits.clone());
            async move {
                let _held = held;
                cx.progress_with(1.0, None, &mark).await;
                permits.acquire().await.unwrap().forget();
                mark
            }
        }));
        let server = server.tool(tool("touch", |cx: Cx, Args(Mark { mark, .. }): Args<Mark>| async move {
            cx.server().resource_updated(format!("note://{mark}"));
            mark
        }));
        let http = server.http().unwrap().two_endpoints("/sse", "/messages");
        Self { server, http, alive, sockets: Arc::default(), hold, called }
    }

    pub(crate) async fn serve(&self) -> HttpServing {
        self.serve_on(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    pub(crate) fn serve_on(&self, listener: TcpListener) -> HttpServing {
        let signal = ShutdownSignal::new();
        self.http.close_on(&signal);
        let sockets = self.sockets.clone();
        let server =
            HttpServer::new(self.http.clone()).shutdown_signal(signal).tls(move |socket: TcpStream| {
                sockets.fetch_add(1, Ordering::SeqCst);
                std::future::ready(Ok(socket))
            });
        server.serve(listener).unwrap()
    }

    /// Handlers that were begun and not dropped.
    pub(crate) fn alive(&self) -> usize {
        // One is ours, and three tools have one each.
        Arc::strong_count(&self.alive) - 4
    }

    /// Waits until nothing is left of anybody.
    pub(crate) async fn empty(&self) {
        wait_for(|| self.alive() == 0 && self.http.sessions() == 0).await;
    }
}

/// Asks the user; or the model, where users cannot be asked.
async fn ask(cx: &Cx, mark: &str) -> Result<String, ToolError> {
    let answer = if cx.can_elicit() {
        let form = Form::new().field("answer", Field::text());
        let filled = cx.elicit_form("question", mark, &form).await?.accepted().unwrap_or_default();
        filled["answer"].as_str().unwrap_or_default().to_owned()
    } else {
        let question = SamplingMessage::new(Role::User, ContentBlock::text(mark));
        let written = cx.sample("question", CreateMessageParams::new(vec![question], 10)).await?;
        written.content.as_slice().iter().filter_map(ContentBlock::as_text).collect()
    };
    Ok(format!("{mark}: {answer}"))
}

/// A client of one revision that has a name, and answers questions about itself only.
pub(crate) fn client(revision: &str, name: &str) -> Client {
    let says = {
        let name = name.to_owned();
        move |mark: &str| match mark.starts_with(&name) {
            true => format!("{name} heard {mark}"),
            false => format!("{name} is not meant"),
        }
    };
    let writes = says.clone();
    Client::new(name, "1")
        .revisions([revision.parse().unwrap()])
        .timeouts(patient())
        .on_elicit(move |question| {
            let answer = says(&question.message);
            async move { Answer::accept(serde_json::json!({ "answer": answer })) }
        })
        .on_sample(move |question| {
            let asked: String =
                question.messages[0].content.as_slice().iter().filter_map(ContentBlock::as_text).collect();
            let answer = writes(&asked);
            async move { CreateMessageResult::new("m", ContentBlock::text(answer)) }
        })
}

/// Where a client of this revision finds the server.
pub(crate) fn remote(revision: &str, address: impl std::fmt::Display) -> Remote {
    let path = if revision == R1 { "sse" } else { "mcp" };
    let mut retry = Retry::default();
    retry.first_wait = Duration::from_millis(1);
    retry.max_wait = Duration::from_millis(20);
    Remote::new(format!("http://{address}/{path}")).unwrap().proxy(Proxy::none()).retry(retry)
}

pub(crate) async fn connect(revision: &str, name: &str, address: impl std::fmt::Display) -> Connection {
    let connection = client(revision, name).connect(remote(revision, address)).await.unwrap();
    assert_eq!(connection.revision().to_string(), revision);
    connection
}

/// Timeouts that no test reaches unless something hangs.
fn patient() -> Timeouts {
    let mut timeouts = Timeouts::default();
    timeouts.call = Duration::from_secs(150);
    timeouts.probe = Duration::from_secs(150);
    timeouts.initialize = Duration::from_secs(150);
    timeouts
}

/// The text of the answer to a call with a mark.
pub(crate) async fn marked(connection: &Connection, tool: &str, mark: &str) -> pintle::Result<String> {
    let result = connection.call_tool(tool, serde_json::json!({ "mark": mark })).await?;
    let text = result.content.first().and_then(ContentBlock::as_text).unwrap_or_default().to_owned();
    assert_ne!(result.is_error, Some(true), "{tool} {mark}: {text}");
    Ok(text)
}

/// Nothing here takes this long unless it hangs.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(180), future).await.expect("it hangs")
}

/// Looks until it is so: what another task on another socket does cannot be waited for otherwise.
pub(crate) async fn wait_for(so: impl Fn() -> bool) {
    soon(async {
        while !so() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
