//! Ten backends of all kinds, and the file of a gateway with them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server,
    server::{Args, Cx, Outcome, around, tool},
    types::{RawObject, RpcError},
};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    bridge::{chaos::Random, programs::marked},
    support::http_request,
};

/// The backends whose every call succeeds.
pub(super) const HONEST: [&str; 6] = ["demo", "program", "modern", "session", "oldest", "slow"];

#[derive(Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

/// A server with a memory for each of its sessions.
fn server(delay: Duration) -> Server {
    let echo = tool("echo", move |Args(Text { text }): Args<Text>| async move {
        sleep(delay).await;
        text
    });
    let keep = tool("keep", |cx: Cx, Args(Text { text }): Args<Text>| async move {
        let before = cx.session().and_then(|session| session.insert(text).unwrap());
        before.map_or_else(String::new, |before: Arc<String>| String::clone(&before))
    });
    Server::new("soak", "0").tool(echo).tool(keep)
}

/// A server with other tools and hints each time, with names that hosts refuse, some lists that never end, and results that are huge, wrong or
/// none.
fn hostile() -> Server {
    let requests = AtomicUsize::new(0);
    let server = Server::new("hostile", "0").tool(tool("x", || async { "" }));
    server.layer(&around(move |cx, next| {
        let number = requests.fetch_add(1, Ordering::Relaxed);
        async move {
            let result = match (cx.method(), number % 3) {
                ("tools/list", _) => {
                    let cursor: Option<String> = cx.params().decode_member("cursor").ok().flatten();
                    hostile_page(cursor.and_then(|cursor| cursor.parse().ok()), number)
                }
                ("tools/call", 0) => json!({"content": [{"type": "text", "text": "x".repeat(1 << 20)}]}),
                ("tools/call", 1) => json!({"content": "none"}),
                ("tools/call", _) => return Outcome::Failed(RpcError::internal("it is hostile")),
                _ => return next.run(cx).await,
            };
            Outcome::Complete(result.to_string().parse::<RawObject>().unwrap().into())
        }
    }))
}

/// Returns a page of the list of tools from a cursor on. One of ten lists has no end.
fn hostile_page(cursor: Option<usize>, number: usize) -> Value {
    let is_endless = cursor.is_some() || number.is_multiple_of(10);
    let (first, length) = (cursor.unwrap_or(0), if is_endless { 500 } else { 20 });
    let tools: Vec<_> = (first..first + length)
        .map(|at| {
            let hints = json!({"readOnlyHint": number.is_multiple_of(2)});
            let name = format!("../{at}/{}", "x".repeat(at % 90));
            json!({"name": name, "inputSchema": {"type": "object"}, "annotations": hints})
        })
        .collect();
    match is_endless {
        true => json!({"tools": tools, "nextCursor": (first + length).to_string()}),
        false => json!({"tools": tools}),
    }
}

/// Serves a server at `/mcp`, and at `/sse`. Returns its origin.
async fn serve(server: Server) -> String {
    let http = server.http().unwrap().at("/mcp").two_endpoints("/sse", "/messages");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let serving = http.serve(listener).unwrap();
    let origin = format!("http://{}", serving.address());
    // Until the test ends.
    tokio::spawn(async move { serving.wait().await });
    origin
}

/// The targets of the file, and the mark of the program that is killed.
pub(super) struct Backends {
    targets: String,
    mark: String,
}

impl Backends {
    pub(super) async fn start() -> Self {
        let program = env!("CARGO_BIN_EXE_pintle");
        let modern = serve(server(Duration::ZERO)).await;
        let session = serve(server(Duration::ZERO).revisions(["2025-11-25".parse().unwrap()])).await;
        let oldest = serve(server(Duration::ZERO).revisions(["2024-11-05".parse().unwrap()])).await;
        let slow = serve(server(Duration::from_millis(200))).await;
        let hostile = serve(hostile()).await;
        // It closes each connection in the middle of a response.
        let broken = http_request::listen(|mut connection, _| {
            http_request::HttpRequest::read(connection)?;
            std::io::Write::write_all(
                &mut connection,
                b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"json",
            )
        });
        let mark = format!("soak-{}", std::process::id());
        let targets = format!(
            r#"
            [targets.demo]
            server = "demo"
            [targets.program]
            command = ["{program}", "demo"]
            [targets.crashing]
            command = ["{program}", "demo"]
            env = {{ PINTLE_TEST_MARK = "{mark}" }}
            [targets.modern]
            url = "{modern}/mcp"
            [targets.session]
            url = "{session}/mcp"
            [targets.oldest]
            url = "{oldest}/sse"
            [targets.slow]
            url = "{slow}/mcp"
            [targets.hostile]
            url = "{hostile}/mcp"
            only = ["*1*"]
            [targets.broken]
            url = "http://{broken}/mcp"
            [targets.dead]
            command = ["/no/such/program"]
            "#
        );
        Self { targets, mark: format!("PINTLE_TEST_MARK={mark}") }
    }

    /// Returns a file with all of them, and with something else for each number.
    pub(super) fn file(&self, number: usize, random: &mut Random) -> String {
        let mut file = self.targets.clone();
        if random.below(2) == 0 {
            file += "[targets.sometimes]\nserver = \"demo\"\n";
        }
        if random.below(2) == 0 {
            file = file.replace("[targets.dead]\n", "[targets.dead]\nhide = [\"x\"]\n");
        }
        file += &format!("[servers.some]\nonly = [\"modern_*\", \"x{}\"]\n", random.below(100));
        file += &format!("[[rules]]\nname = \"{number}\"\ntools = [\"demo_berth\"]\ndecision = \"deny\"\n");
        file + "[[rules]]\ndecision = \"allow\"\n"
    }

    /// Kills the programs of the backend that crashes. Returns how many there were.
    pub(super) fn crash(&self) -> usize {
        let programs = marked(&self.mark);
        for id in &programs {
            // It may have ended.
            let _ = kill_process(Pid::from_raw(id.cast_signed()).unwrap(), Signal::KILL);
        }
        programs.len()
    }
}
