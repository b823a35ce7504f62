//! Our client, and a raw one beside it, against the limit server in a process of its own, whose work is not counted.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use pintle::{
    Client, Connection,
    client::{Mode, http::Http},
    transport::{Child as Piped, Transport},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
};

use crate::{
    limit,
    protocol::Case,
    served,
    wire::{self, Ask, Asking, Era, TEXT},
};

/// All of them. As many calls are begun at once as the name says; each of those that make them calls again when it is
/// answered.
pub const CASES: &[Case] = &[
    Case { name: "raw HTTP client, stateless, 1 at once", run: |n| raw(n, Era::Stateless, 1) },
    Case { name: "raw HTTP client, stateless, 64 at once", run: |n| raw(n, Era::Stateless, 64) },
    Case { name: "HTTP client, session, 1 at once", run: |n| http(n, Era::Session, 1) },
    Case { name: "HTTP client, session, 64 at once", run: |n| http(n, Era::Session, 64) },
    Case { name: "HTTP client, stateless, 1 at once", run: |n| http(n, Era::Stateless, 1) },
    Case { name: "HTTP client, stateless, 64 at once", run: |n| http(n, Era::Stateless, 64) },
    Case { name: "stdio client, session, 1 at once", run: |n| stdio(n, Era::Session, 1) },
    Case { name: "stdio client, session, 64 at once", run: |n| stdio(n, Era::Session, 64) },
    Case { name: "stdio client, stateless, 1 at once", run: |n| stdio(n, Era::Stateless, 1) },
    Case { name: "stdio client, stateless, 64 at once", run: |n| stdio(n, Era::Stateless, 64) },
];

/// The argument that makes this program the server instead of the runner.
pub const AS_LIMIT: &str = "as-limit";

/// Is the server, if that is what the program was started for.
///
/// # Errors
///
/// It could not.
pub fn be_limit(words: &[String]) -> Option<std::io::Result<()>> {
    match words {
        [first, transport] if first == AS_LIMIT && transport == "stdio" => Some(limit::stdio::serve()),
        [first, transport] if first == AS_LIMIT && transport == "http" => Some(limit::http::run()),
        [first, what] if first == AS_LIMIT && what == "server" => {
            Some(runtime()?.block_on(served::serve_http(served::server())))
        }
        _ => None,
    }
}

/// A server over HTTP in a process of its own: the limit (`http`), or ours (`server`). It ends when this is dropped.
pub(crate) struct Behind {
    process: Child,
    pub(crate) address: String,
}

impl Behind {
    pub(crate) fn start(what: &str) -> Option<Self> {
        let mut command = Command::new(std::env::current_exe().ok()?);
        command.args([AS_LIMIT, what]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().ok()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take()?).read_line(&mut line).ok()?;
        Some(Self { process, address: line.trim().to_owned() })
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn runtime() -> Option<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().ok()
}

/// So many calls of each of those that call: a call that is begun is counted.
fn shares(times: usize, at_once: usize) -> impl Iterator<Item = usize> {
    (0..at_once).map(move |n| times / at_once + usize::from(n < times % at_once))
}

fn http(times: usize, era: Era, at_once: usize) -> usize {
    let (Some(limit), Some(runtime)) = (Behind::start("http"), runtime()) else { return 0 };
    let Ok(transport) = Http::new(format!("http://{}/mcp", limit.address)) else { return 0 };
    runtime.block_on(calls(times, era, at_once, transport))
}

fn stdio(times: usize, era: Era, at_once: usize) -> usize {
    let (Ok(program), Some(runtime)) = (std::env::current_exe(), runtime()) else { return 0 };
    runtime.block_on(async {
        let Ok(transport) = Piped::spawn(program, [AS_LIMIT, "stdio"]) else { return 0 };
        calls(times, era, at_once, transport).await
    })
}

async fn calls(times: usize, era: Era, at_once: usize, transport: impl Transport) -> usize {
    let mode = match era {
        Era::Session => Mode::Legacy,
        Era::Stateless => Mode::Modern,
    };
    let Ok(server) = Client::new("bench", "1.0.0").mode(mode).connect(transport).await else { return 0 };
    let mut tasks: JoinSet<usize> =
        shares(times, at_once).map(|share| some_calls(server.clone(), share)).collect();
    let mut answered = 0;
    while let Some(done) = tasks.join_next().await {
        answered += done.unwrap_or(0);
    }
    assert_eq!(answered, times, "every call is answered");
    answered
}

async fn some_calls(server: Connection, times: usize) -> usize {
    let mut answered = 0;
    for _ in 0..times {
        let result = server.call_tool("echo", serde_json::json!({"text": TEXT})).await;
        answered += usize::from(result.is_ok_and(|result| result.text() == TEXT));
    }
    answered
}

/// The bytes of a request, made before, and an answer that is only looked at for where it ends.
fn raw(times: usize, era: Era, at_once: usize) -> usize {
    let (Some(limit), Some(runtime)) = (Behind::start("http"), runtime()) else { return 0 };
    runtime.block_on(async {
        let asking = Asking::post(Ask::Echo, era, &limit.address, None);
        let mut tasks: JoinSet<usize> = shares(times, at_once)
            .map(|share| some_raw_calls(limit.address.clone(), asking.clone(), share))
            .collect();
        let mut answered = 0;
        while let Some(done) = tasks.join_next().await {
            answered += done.unwrap_or(0);
        }
        assert_eq!(answered, times, "every call is answered");
        answered
    })
}

async fn some_raw_calls(address: String, mut asking: Asking, times: usize) -> usize {
    let Ok(mut stream) = TcpStream::connect(address).await else { return 0 };
    if stream.set_nodelay(true).is_err() {
        return 0;
    }
    let mut answered = 0;
    let mut buffer = Vec::new();
    for _ in 0..times {
        if stream.write_all(asking.another()).await.is_err() {
            break;
        }
        buffer.clear();
        while !wire::is_whole(&buffer) {
            if !stream.read_buf(&mut buffer).await.is_ok_and(|came| came > 0) {
                return answered;
            }
        }
        answered += usize::from(buffer.starts_with(b"HTTP/1.1 200 "));
    }
    answered
}
