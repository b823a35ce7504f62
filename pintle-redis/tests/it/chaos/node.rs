//! The program of a process of the fleet: this test, in a process of its own.

use std::{
    fs::OpenOptions,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use pintle::{
    Server,
    server::{Args, Cx, StateKeys, ToolError, template, tool},
    types::schema::{ContentBlock, CreateMessageParams, Role, SamplingMessage},
};
use pintle_redis::{Redis, RedisOptions};
use pintle_tasks::{TaskQuota, Tasks};
use tokio::{net::TcpListener, time::sleep};

const PORT: &str = "PINTLE_CHAOS_PORT";
const REDIS: &str = "PINTLE_CHAOS_REDIS";
/// The file with a line for each act of `pay`.
const LEDGER: &str = "PINTLE_CHAOS_LEDGER";

/// The time after which a process that is silent is gone. Faults are shorter and longer.
pub(super) const LEASE: Duration = Duration::from_secs(4);
/// How long a task is kept: longer than a client waits for it.
const TASK_TTL: Duration = Duration::from_secs(120);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    n: u32,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Note {
    uri: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    key: String,
}

/// Asks the client's model something that it answers with a text.
async fn ask(cx: &Cx, key: &str) -> Result<String, ToolError> {
    let message = SamplingMessage::new(Role::User, ContentBlock::text(key));
    Ok(cx.sample(key, CreateMessageParams::new(vec![message], 10)).await?.text())
}

/// Adds a line to the ledger, in one write.
async fn act(ledger: &PathBuf, key: &str) -> bool {
    sleep(Duration::from_millis(5)).await;
    let file = OpenOptions::new().create(true).append(true).open(ledger);
    let written = file.and_then(|mut file| file.write_all(format!("{key}\n").as_bytes())).is_ok();
    sleep(Duration::from_millis(20)).await;
    written
}

/// Asks, acts once, and asks again.
async fn order(cx: Cx, ledger: PathBuf, key: String) -> Result<String, ToolError> {
    let what = ask(&cx, "what").await?;
    let is_done = cx.once("order", act(&ledger, &key)).await?;
    let place = ask(&cx, "where").await?;
    Ok(format!("{key}: {what}, {place}, {is_done}"))
}

/// The tasks of all clients, which have one address.
fn tasks(redis: &Redis) -> Tasks {
    let mut quota = TaskQuota::default();
    quota.account_tasks = quota.tasks;
    quota.account_bytes = quota.bytes;
    Tasks::new()
        .store(redis.tasks())
        .quota(quota)
        .ttl(TASK_TTL)
        .poll_interval(Duration::from_millis(200))
        .lease(LEASE)
}

fn server(redis: &Redis, ledger: PathBuf) -> Server {
    let (ordered, rented) = (ledger.clone(), ledger.clone());
    Server::new("chaos", "1.0.0")
        .state_keys(StateKeys::from([7; 32]))
        .may_change()
        .with(tasks(redis))
        .tool(tool("echo", |Args(Number { n })| async move { n.to_string() }))
        .tool(tool("steps", |cx: Cx, Args(Number { n })| async move {
            for step in 0..n {
                cx.progress(f64::from(step), None).await;
                sleep(Duration::from_millis(30)).await;
            }
            "done"
        }))
        .tool(tool("ask", |cx: Cx| async move { ask(&cx, "word").await }))
        .tool(tool("pay", move |cx: Cx| {
            let ledger = ledger.clone();
            async move {
                // Before the first question, so that it is the same in every run.
                let key = cx.call_key();
                ask(&cx, "who").await?;
                let paid = cx.once("pay", act(&ledger, &key)).await?;
                ask(&cx, "sure").await?;
                Ok::<_, ToolError>(format!("{key} {paid}"))
            }
        }))
        .tool(
            tool("order", move |cx: Cx, Args(Order { key })| order(cx, ordered.clone(), key))
                .task("optional")
                .resumable(),
        )
        .tool(
            tool("rent", move |cx: Cx, Args(Order { key })| order(cx, rented.clone(), key)).task("optional"),
        )
        .tool(tool("wait", || async {
            sleep(Duration::from_secs(600)).await;
            "waited"
        }))
        .tool(tool("touch", |cx: Cx, Args(Note { uri })| async move {
            cx.server().resource_updated(uri);
            "touched"
        }))
        .template(template("note://{n}", "note", || async { "" }))
}

/// Starts a process. It ends with this one.
pub(super) fn start(port: u16, redis: &str, ledger: &Path, log: &Path) -> Child {
    let name = concat!(module_path!(), "::as_a_program").split_once("::").unwrap().1;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--quiet"]);
    command.env(PORT, port.to_string()).env(REDIS, redis).env(LEDGER, ledger);
    let log = OpenOptions::new().create(true).append(true).open(log).unwrap();
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

async fn serve(port: u16) -> Result<(), Box<dyn std::error::Error>> {
    let options = RedisOptions::default().lease(LEASE).timeout(Duration::from_secs(1));
    let url = std::env::var(REDIS)?;
    let redis = loop {
        match Redis::connect_with(&url, options.clone()).await {
            Ok(redis) => break redis,
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    };
    let server = server(&redis, std::env::var(LEDGER)?.into());
    let http = server.http()?.at("/mcp").shared(redis);
    // The process before this one may not be quite gone.
    let listener = loop {
        match TcpListener::bind(("127.0.0.1", port)).await {
            Ok(listener) => break listener,
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    };
    http.serve(listener)?.wait().await;
    Ok(())
}

/// Not a test by itself.
#[test]
fn as_a_program() {
    let Ok(port) = std::env::var(PORT) else { return };
    std::thread::spawn(|| {
        // It is closed when the test ends.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let level = tracing::Level::INFO;
    tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_ansi(false).init();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(serve(port.parse().unwrap())).unwrap();
    std::process::exit(0);
}
