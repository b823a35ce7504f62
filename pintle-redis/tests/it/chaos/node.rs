//! The program of a process of the fleet: this test, in a process of its own.

use std::{
    fs::OpenOptions,
    io::{Read as _, Write as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use pintle::{
    Server,
    server::{Args, Cx, StateKeys, ToolError, template, tool},
    types::schema::{ContentBlock, CreateMessageParams, Role, SamplingMessage},
};
use pintle_redis::{Redis, RedisOptions};
use tokio::{net::TcpListener, time::sleep};

const PORT: &str = "PINTLE_CHAOS_PORT";
const REDIS: &str = "PINTLE_CHAOS_REDIS";
/// The file with a line for each act of `pay`.
const LEDGER: &str = "PINTLE_CHAOS_LEDGER";

/// The time after which a process that is silent is gone. Faults are shorter and longer.
pub(super) const LEASE: Duration = Duration::from_secs(4);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    n: u32,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Note {
    uri: String,
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

fn server(ledger: PathBuf) -> Server {
    Server::new("chaos", "1.0.0")
        .state_keys(StateKeys::from([7; 32]))
        .may_change()
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
pub(super) fn start(port: u16, redis: &str, ledger: &std::path::Path) -> Child {
    let name = concat!(module_path!(), "::as_a_program").split_once("::").unwrap().1;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--quiet"]);
    command.env(PORT, port.to_string()).env(REDIS, redis).env(LEDGER, ledger);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
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
    let http = server(std::env::var(LEDGER)?.into()).http()?.at("/mcp").shared(redis);
    http.serve(TcpListener::bind(("127.0.0.1", port)).await?)?.wait().await;
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
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(serve(port.parse().unwrap())).unwrap();
    std::process::exit(0);
}
