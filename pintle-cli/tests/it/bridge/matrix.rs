//! Every pairing of transports and eras through a bridge, compared with the direct connection.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Arc, Mutex},
    time::Duration,
};

use pintle::{
    Client, Connection,
    client::{Answer, Change, Event, Mode, http::Http},
    transport::Child,
    types::{
        RawObject,
        schema::{ContentBlock, CreateMessageResult, LoggingLevel},
    },
};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use super::matrix_server;
use crate::support::HttpServing;

/// A transport, and an era. The oldest transport is of one era.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Side {
    StdioSession,
    StdioStateless,
    HttpSession,
    HttpStateless,
    Sse,
}

use Side::{HttpSession, HttpStateless, Sse, StdioSession, StdioStateless};

const SIDES: [Side; 5] = [StdioSession, StdioStateless, HttpSession, HttpStateless, Sse];

impl Side {
    fn name(self) -> &'static str {
        match self {
            StdioSession => "stdio, session",
            StdioStateless => "stdio, stateless",
            HttpSession => "HTTP, session",
            HttpStateless => "HTTP, stateless",
            Sse => "HTTP+SSE",
        }
    }

    fn mode(self) -> Mode {
        match self {
            StdioSession | HttpSession | Sse => Mode::Legacy,
            StdioStateless | HttpStateless => Mode::Modern,
        }
    }

    fn era(self) -> &'static str {
        if self.mode() == Mode::Modern { "stateless" } else { "session" }
    }

    /// The words that name the server on this side to a bridge.
    fn target(self, origin: &str) -> Vec<String> {
        let (variable, program) = matrix_server::program();
        let era = ["--era".to_owned(), self.era().to_owned()];
        let rest = match self {
            StdioSession | StdioStateless => {
                [vec!["--env".to_owned(), variable, "--".to_owned()], program].concat()
            }
            HttpSession | HttpStateless => vec![format!("{origin}/mcp")],
            Sse => vec![format!("{origin}/sse")],
        };
        [era.to_vec(), rest].concat()
    }
}

/// What is passed on.
const FEATURES: [&str; 11] = [
    "call",
    "bad arguments",
    "progress",
    "log messages",
    "a form",
    "sampling",
    "roots",
    "cancellation",
    "list changes",
    "subscriptions",
    "unknown members",
];

/// How long something may take.
const LIMIT: Duration = Duration::from_secs(20);

/// A connection, and the log messages of it.
struct Session {
    connection: Connection,
    logs: Arc<Mutex<Vec<String>>>,
}

impl Session {
    fn client(side: Side) -> (Client, Arc<Mutex<Vec<String>>>) {
        let logs = Arc::<Mutex<Vec<String>>>::default();
        let seen = logs.clone();
        let client = Client::new("matrix", "1.0.0")
            .mode(side.mode())
            .on_elicit(|_| async { Answer::accept(json!({"count": 3})) })
            .on_sample(|_| async { CreateMessageResult::new("model", ContentBlock::text("4")) })
            .roots(["file:///work"])
            .log_level(LoggingLevel::Info)
            .on_log(move |message| seen.lock().unwrap().push(message.data.to_string()));
        (client, logs)
    }

    async fn over_http(side: Side, origin: &str) -> Self {
        let (client, logs) = Self::client(side);
        let path = if side == Sse { "/sse" } else { "/mcp" };
        let connection = client.connect(Http::new(format!("{origin}{path}")).unwrap()).await.unwrap();
        Self { connection, logs }
    }

    async fn over_pipes(side: Side, words: &[String], variable: Option<&str>) -> Self {
        let (client, logs) = Self::client(side);
        let mut command = Child::command(&words[0]).args(&words[1..]);
        if let Some((name, value)) = variable.and_then(|variable| variable.split_once('=')) {
            command = command.env(name, value);
        }
        let connection = client.connect(command.spawn().unwrap()).await.unwrap();
        Self { connection, logs }
    }

    /// Connects to the server without a bridge.
    async fn direct(side: Side, origin: &str) -> Self {
        match side {
            StdioSession | StdioStateless => {
                let (variable, program) = matrix_server::program();
                Self::over_pipes(side, &program, Some(&variable)).await
            }
            HttpSession | HttpStateless | Sse => Self::over_http(side, origin).await,
        }
    }

    /// Uses everything, and returns what came of it.
    async fn observe(&self) -> BTreeMap<&'static str, String> {
        let mut all = BTreeMap::new();
        for feature in FEATURES {
            // Only what fails takes so long.
            let seen = timeout(LIMIT, self.use_feature(feature)).await;
            let seen = match seen {
                Ok(Ok(seen)) => seen,
                Ok(Err(error)) => format!("error: {error}"),
                Err(_) => "nothing happened".to_owned(),
            };
            all.insert(feature, seen);
        }
        all
    }

    async fn tool(&self, name: &str) -> pintle::Result<String> {
        Ok(self.connection.call_tool(name, ()).await?.text())
    }

    async fn use_feature(&self, feature: &str) -> pintle::Result<String> {
        let connection = &self.connection;
        match feature {
            "call" => Ok(connection.call_tool("add", json!({"a": 1, "b": 2})).await?.text()),
            "bad arguments" => {
                let called = connection.call_tool("add", json!({"a": "x"})).await;
                Ok(called.map_or_else(|error| error.to_string(), |result| result.text()))
            }
            "progress" => {
                let steps = Arc::<Mutex<String>>::default();
                let seen = steps.clone();
                let call = connection.call("count").on_progress(move |step| {
                    write!(seen.lock().unwrap(), "{}/{:?} {:?} ", step.progress, step.total, step.message)
                        .unwrap();
                });
                let done = call.send().await?.text();
                Ok(format!("{}{done}", steps.lock().unwrap()))
            }
            "log messages" => {
                self.tool("log").await?;
                // They are reported in a task of their own.
                while self.logs.lock().unwrap().is_empty() {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                Ok(self.logs.lock().unwrap().join(" "))
            }
            "a form" => self.tool("book").await,
            "sampling" => self.tool("think").await,
            "roots" => self.tool("where").await,
            "cancellation" => {
                let before = self.tool("cancelled").await?;
                let (sender, mut begun) = mpsc::channel(1);
                let call = connection.call("wait").on_progress(move |_| {
                    // The first one counts.
                    let _ = sender.try_send(());
                });
                let call = call.send();
                tokio::select! {
                    done = call => return Ok(format!("it ended: {:?}", done.map(|done| done.text()))),
                    _ = begun.recv() => {}
                }
                while self.tool("cancelled").await? == before {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                Ok("the handler was dropped".to_owned())
            }
            "list changes" => {
                let mut changes = connection.changes().await?;
                self.tool("grow").await?;
                while !matches!(changes.next().await, Some(Event::Changed(Change::Tools))) {}
                Ok("the tools have changed".to_owned())
            }
            "subscriptions" => {
                let mut changes = connection.changes().await?;
                connection.subscribe(matrix_server::NOTE).await?;
                self.tool("touch").await?;
                loop {
                    if let Some(Event::Changed(Change::Resource(uri))) = changes.next().await {
                        return Ok(format!("{uri} has changed"));
                    }
                }
            }
            _ => {
                let params = json!({"name": "raw", "_meta": {"acme/a": [1]}, "acme/b": 2}).to_string();
                let result = connection.call_raw("tools/call", params.parse::<RawObject>().unwrap()).await?;
                let result: Value = serde_json::from_str(result.as_str()).unwrap();
                Ok(json!([result["content"], result["acme/y"], result["_meta"]["acme/z"]]).to_string())
            }
        }
    }
}

#[tokio::test]
async fn every_pairing_is_like_the_direct_connection() {
    let origin = matrix_server::listen();
    let mut direct = BTreeMap::new();
    for side in SIDES {
        direct.insert(side, Session::direct(side, &origin).await.observe().await);
    }
    let works = |side: Side, feature: &str| !direct[&side][feature].starts_with("error: ");
    for side in SIDES {
        for feature in FEATURES {
            assert!(works(side, feature), "{side:?} {feature}: {}", direct[&side][feature]);
        }
    }
    let mut page = String::from("| client \\ server |");
    SIDES.iter().for_each(|server| write!(page, " {} |", server.name()).unwrap());
    page.push_str("\n|---|---|---|---|---|---|\n");
    let mut cells: BTreeMap<(Side, Side), String> = BTreeMap::new();
    let mut wrong = Vec::new();
    for server in SIDES {
        let target = server.target(&origin);
        let words: Vec<&str> = target.iter().map(String::as_str).collect();
        let bridge = HttpServing::start(&[&["bridge", "--http", "127.0.0.1:0"], &words[..]].concat());
        let bridged_origin = bridge.url.strip_suffix("/mcp").unwrap();
        for client in SIDES {
            let session = match client {
                StdioSession | StdioStateless => {
                    let command = [env!("CARGO_BIN_EXE_pintle"), "bridge"].map(str::to_owned).to_vec();
                    Session::over_pipes(client, &[command, target.clone()].concat(), None).await
                }
                HttpSession | HttpStateless | Sse => Session::over_http(client, bridged_origin).await,
            };
            let seen = session.observe().await;
            session.connection.close().await;
            let mut missing = Vec::new();
            for feature in FEATURES {
                let pair = format!("{client:?} to {server:?}, {feature}");
                if !works(client, feature) || !works(server, feature) {
                    // The revision of one side does not have it.
                    assert!(seen[feature].starts_with("error: "), "{pair}: {}", seen[feature]);
                    missing.push(feature);
                    continue;
                }
                if seen[feature] != direct[&client][feature] {
                    missing.push(feature);
                    wrong.push(format!("{pair}: {}, and {}", seen[feature], direct[&client][feature]));
                }
            }
            let cell = match missing.is_empty() {
                true => "all".to_owned(),
                false => format!("all but {}", missing.join(", ")),
            };
            cells.insert((client, server), cell);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for client in SIDES {
        write!(page, "| {} |", client.name()).unwrap();
        SIDES.iter().for_each(|server| write!(page, " {} |", cells[&(client, *server)]).unwrap());
        page.push('\n');
    }
    compare_with_docs(&page);
}

#[tokio::test]
async fn two_bridges_in_a_row_are_like_the_direct_connection() {
    let origin = matrix_server::listen();
    for (server, middle) in [(StdioSession, HttpStateless), (StdioSession, HttpSession), (HttpStateless, Sse)]
    {
        let target = server.target(&origin);
        let words: Vec<&str> = target.iter().map(String::as_str).collect();
        let inner = HttpServing::start(&[&["bridge", "--http", "127.0.0.1:0"], &words[..]].concat());
        let target = middle.target(inner.url.strip_suffix("/mcp").unwrap());
        let words: Vec<&str> = target.iter().map(String::as_str).collect();
        let outer = HttpServing::start(&[&["bridge", "--http", "127.0.0.1:0"], &words[..]].concat());
        for client in [HttpSession, HttpStateless] {
            let direct = Session::direct(client, &origin).await.observe().await;
            let session = Session::over_http(client, outer.url.strip_suffix("/mcp").unwrap()).await;
            let through = session.observe().await;
            session.connection.close().await;
            assert_eq!(through, direct, "{client:?} to {middle:?} to {server:?}");
        }
    }
}

/// Compares the table in the guide; `PINTLE_BLESS=1` writes it.
fn compare_with_docs(table: &str) {
    const BEGIN: &str =
        "<!-- matrix: written by `PINTLE_BLESS=1 cargo test -p pintle-cli --test it matrix` -->\n";
    const END: &str = "<!-- end of matrix -->\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/bridge.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (old, after) = rest.split_once(END).unwrap();
    if std::env::var_os("PINTLE_BLESS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(old, table);
    }
}
