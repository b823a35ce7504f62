//! The example runs: three processes behind haproxy serve clients of both eras as one.

use std::{
    collections::BTreeSet,
    env, fs,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, UNIX_EPOCH},
};

use pintle::{
    Client,
    client::{Answer, Mode, http::Http},
};
use serde_json::json;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(30);

/// The program of the example. Cargo builds it beside the tests, unless only one of them was asked for.
fn program() -> PathBuf {
    let tests = env::current_exe().unwrap();
    let built = tests.ancestors().nth(2).unwrap().join("examples").join("fleet");
    let built = built.with_extension(env::consts::EXE_EXTENSION);
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/fleet/main.rs");
    let changed = |path: &PathBuf| fs::metadata(path).and_then(|file| file.modified());
    let stale = changed(&source).unwrap() > changed(&built).unwrap_or(UNIX_EPOCH);
    assert!(!stale, "run `cargo build --package pintle-redis --examples` first");
    built
}

fn is_missing(program: &str, flag: &str) -> bool {
    Command::new(program).arg(flag).stdout(Stdio::null()).stderr(Stdio::null()).status().is_err()
}

/// The script of the example, which ends what it has started.
struct Script(Child);

impl Drop for Script {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

impl Script {
    /// Starts the script, and returns the URL that it prints.
    fn start() -> (Self, String) {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/fleet/run.sh");
        for attempt in 0..20 {
            // Below the ports that the system gives to connections. Others may have one of the five all the same.
            let port = 21_000 + (std::process::id() + 97 * attempt) % 2_000 * 5;
            let mut command = Command::new(&script);
            command.env("FLEET_PORT", port.to_string()).env("FLEET_PROGRAM", program());
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            let mut url = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
            let script = Self(child);
            if !url.is_empty() {
                return (script, url.trim().to_owned());
            }
        }
        panic!("no ports are free");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_processes_behind_a_balancer_serve_a_client_as_one() {
    if is_missing("redis-server", "--version") || is_missing("haproxy", "-v") {
        assert!(env::var_os("PINTLE_REQUIRE_REDIS").is_none(), "redis-server or haproxy is missing");
        return eprintln!("skipped: redis-server or haproxy is not installed");
    }
    let (_script, url) = Script::start();
    for mode in [Mode::Legacy, Mode::Modern] {
        let client = Client::new("shopper", "1.0.0")
            .mode(mode)
            .on_elicit(|_| async { Answer::accept(json!({"count": 2})) });
        let client = timeout(SOON, client.connect(Http::new(&url).unwrap())).await.unwrap().unwrap();
        let mut processes = BTreeSet::new();
        for _ in 0..8 {
            let ordered = timeout(SOON, client.call_tool("order", json!({"item": "tea"}))).await.unwrap();
            let text = ordered.unwrap().text();
            let process = text.strip_prefix("2 of `tea` ordered by process ").map(str::to_owned);
            processes.insert(process.unwrap_or_else(|| panic!("{mode:?}: {text}")));
        }
        assert!(processes.len() > 1, "{mode:?}: all calls ran in {processes:?}");
        client.close().await;
    }
}
