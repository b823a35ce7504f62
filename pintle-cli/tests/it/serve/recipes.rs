//! The recipes of the guide, with the programs that they are for. One that is not installed is said.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
};

use pintle::{Client, Connection, client::Answer, transport::Child};
use serde_json::{Value, json};

use crate::support::{http_request::HttpRequest, machine::Machine, scripted_http};

const GUIDE: &str = include_str!("../../../../docs/serve.md");

/// A file of the guide in a folder of its own, served to a client whose user agrees to everything.
struct Recipe {
    machine: Machine,
}

impl Recipe {
    /// Returns the file that has this tool.
    fn of(tool: &str) -> Self {
        let machine = Machine::new(&format!("recipe-{tool}"));
        machine.write("tools.toml", text(&format!("[tools.{tool}]\n")));
        Self { machine }
    }

    /// Runs a program in the folder.
    fn run(&self, program: &str, words: &[&str]) {
        let mut command = Command::new(program);
        for (name, value) in [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")] {
            command.env(name, value);
        }
        for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
            command.env(name, "ann@example.com");
        }
        let ran = command.args(words).current_dir(self.machine.path("")).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
    }

    /// Writes a program into the folder, which comes first in `PATH`.
    #[cfg(unix)]
    fn program(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;

        self.machine.write(name, script);
        std::fs::set_permissions(self.machine.path(name), PermissionsExt::from_mode(0o755)).unwrap();
    }

    async fn client(&self) -> Connection {
        let file = self.machine.path("tools.toml");
        let path = format!("{}:{}", self.machine.path("").display(), std::env::var("PATH").unwrap());
        let child = Child::command(env!("CARGO_BIN_EXE_pintle")).args(["serve", file.to_str().unwrap()]);
        let child = child.env("PATH", path).env("GITHUB_TOKEN", "t0ken");
        let child = child.env("WEATHER_TOKEN", "w3ather").env("WEATHER_KEY", "k3y");
        let client = Client::new("test", "1").on_elicit(|question| {
            // What is asked for is a branch or a number; everything else is a confirmation.
            let asked = question.requested_schema.properties.iter().next().map(|(name, _)| name);
            let content = match asked {
                Some("branch") => json!({"branch": "main"}),
                Some("pieces") => json!({"pieces": 3}),
                _ => json!({}),
            };
            async move { Answer::accept(content) }
        });
        client.connect(child.spawn().unwrap()).await.unwrap()
    }
}

/// Returns the file of the guide that has this heading.
fn text(heading: &str) -> &'static str {
    let mut files = GUIDE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    files.find(|file| file.contains(heading)).unwrap_or_else(|| panic!("{heading}"))
}

/// Returns GitHub's document. Returns `None`, and says so, if its package is not installed; with `PINTLE_OPENAPI_PACKAGES`, which names
/// the folder of the packages, that is a failure.
#[expect(clippy::print_stderr, reason = "what is not tested is said")]
fn document_of_github() -> Option<PathBuf> {
    let given = std::env::var_os("PINTLE_OPENAPI_PACKAGES").map(PathBuf::from);
    let is_required = given.is_some();
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/openapi/node_modules");
    let document = given.unwrap_or_else(usual).join("@octokit/openapi/generated/api.github.com.json");
    assert!(document.is_file() || !is_required, "{} is missing", document.display());
    if !document.is_file() {
        eprintln!("skipped: `@octokit/openapi` is not installed");
    }
    document.is_file().then_some(document)
}

/// Returns whether a program is installed.
#[expect(clippy::print_stderr, reason = "what is not tested is said")]
fn has(program: &str) -> bool {
    let is_there =
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("skipped: `{program}` is not installed");
    }
    is_there
}

async fn call(client: &Connection, tool: &str, arguments: Value) -> String {
    let result = client.call_tool(tool, arguments).await.unwrap_or_else(|error| panic!("{tool}: {error}"));
    assert_ne!(result.is_error, Some(true), "{tool}: {result:?}");
    result.text()
}

#[tokio::test]
async fn git() {
    if !has("git") {
        return;
    }
    let log = Recipe::of("log");
    log.run("git", &["init", "--quiet", "--initial-branch=main"]);
    log.run("git", &["add", "tools.toml"]);
    log.run("git", &["commit", "--quiet", "-m", "the first"]);
    let client = log.client().await;
    assert!(call(&client, "log", json!({"count": 1, "path": "tools.toml"})).await.contains("the first"));

    let push = Recipe::of("push");
    push.run("git", &["init", "--quiet", "--bare", "origin.git"]);
    push.run("git", &["init", "--quiet", "--initial-branch=main"]);
    push.run("git", &["add", "tools.toml"]);
    push.run("git", &["commit", "--quiet", "-m", "the first"]);
    push.run("git", &["remote", "add", "origin", "origin.git"]);
    let client = push.client().await;
    // The branch is asked for, and the push confirmed.
    call(&client, "push", json!({})).await;
    push.run("git", &["--git-dir=origin.git", "rev-parse", "--verify", "main"]);
}

#[tokio::test]
async fn a_line_for_a_shell() {
    let largest = Recipe::of("largest");
    largest.machine.write("logs/small", "a");
    largest.machine.write("logs/large", &"a".repeat(100_000));
    let client = largest.client().await;
    let listed = call(&client, "largest", json!({"folder": "logs", "count": 2})).await;
    assert!(listed.contains("logs/large") && !listed.contains("logs/small"), "{listed}");
}

#[tokio::test]
async fn a_database_a_filter_and_a_script() {
    let desk = Recipe::of("query");
    desk.machine
        .write("report.py", "import sys\nfor line in ['begun', sys.argv[1]]: print(line, flush=True)\n");
    let client = desk.client().await;
    if has("sqlite3") {
        desk.run(
            "sqlite3",
            &["orders.db", "CREATE TABLE orders (id, price); INSERT INTO orders VALUES (7, 9.5)"],
        );
        let rows = call(&client, "query", json!({"sql": "SELECT * FROM orders"})).await;
        assert_eq!(serde_json::from_str::<Value>(&rows).unwrap(), json!([{"id": 7, "price": 9.5}]));
        let changed = client.call_tool("query", json!({"sql": "DELETE FROM orders"})).await.unwrap();
        assert_eq!(changed.is_error, Some(true), "{changed:?}");
    }
    if has("jq") {
        let filtered = call(&client, "filter", json!({"filter": ".a[0]", "json": "{\"a\": [3]}"})).await;
        assert_eq!(filtered.trim(), "3");
    }
    // A rule has the user confirm it.
    assert_eq!(call(&client, "report", json!({"month": "2026-11"})).await, "begun\n--month=2026-11\n");
    if has("docker") && Command::new("docker").arg("ps").output().is_ok_and(|ran| ran.status.success()) {
        call(&client, "containers", json!({})).await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_payment_that_is_repeated() {
    let pay = Recipe::of("pay");
    pay.program("pay", "#!/bin/sh\necho \"$*\" >> paid\nwc -l < paid\n");
    let client = pay.client().await;
    for _ in 0..2 {
        assert_eq!(call(&client, "pay", json!({"order": "7", "amount": 9.5})).await.trim(), "1");
    }
    assert_eq!(pay.machine.read("paid"), "--order=7 --amount=9.5\n");
}

/// The heads and bodies of requests.
type Requests = Arc<Mutex<Vec<(String, String)>>>;

/// A server that gives this answer in JSON, and keeps the requests.
fn api(answer: &'static str) -> (String, Requests) {
    let requests: Requests = Arc::default();
    let kept = requests.clone();
    let address = scripted_http::serve_with(move |request: &HttpRequest| {
        kept.lock()
            .unwrap()
            .push((request.head.clone(), String::from_utf8_lossy(&request.body).into_owned()));
        ("200 OK", "application/json", answer.to_owned())
    });
    (address, requests)
}

#[cfg(unix)]
#[tokio::test]
async fn issues_of_github() {
    let issues = Recipe::of("issues");
    issues.program("gh", "#!/bin/sh\nprintf '[{\"title\":\"%s %s\"}]' \"$GH_TOKEN\" \"$*\"\n");
    let client = issues.client().await;
    let listed = call(&client, "issues", json!({"repository": "ann/x y"})).await;
    assert_eq!(listed, r#"[{"title":"t0ken issue list --repo=ann/x y --json number,title"}]"#);
}

#[tokio::test]
async fn a_worker_that_asks() {
    if !has("python3") {
        return;
    }
    let order = Recipe::of("order");
    order.machine.write("tools.py", include_str!("../../../../docs/workers/tools.py"));
    let client = order.client().await;
    for number in 1..=2 {
        let ordered = call(&client, "order", json!({"what": "tea"})).await;
        assert_eq!(ordered, format!("Order {number}: 3 tea"));
    }
}

#[tokio::test]
async fn requests_with_secrets() {
    let (address, requests) = api(r#"{"data":[{"sky":"clear"}]}"#);
    let recipe = Recipe { machine: Machine::new("recipe-forecast") };
    let file = text("[tools.forecast]\n");
    let named = "https://api.example.com/";
    assert_eq!(file.matches(named).count(), 2, "{file}");
    recipe.machine.write("tools.toml", &file.replace(named, &format!("http://{address}/")));
    let client = recipe.client().await;
    let sky = call(&client, "forecast", json!({"city": "São Paulo", "units": "c"})).await;
    assert_eq!(sky, r#"{"sky":"clear"}"#);
    // The user confirms it.
    call(&client, "report", json!({"title": "It \"rains\"", "labels": ["wet"]})).await;
    let requests = requests.lock().unwrap();
    let [(read, _), (write, body)] = &requests[..] else { panic!("{requests:?}") };
    let line = "GET /v1/cities/S%C3%A3o%20Paulo/forecast?days=3&units=c&key=k3y HTTP/1.1\r\n";
    assert!(read.starts_with(line), "{read}");
    assert!(write.starts_with("POST /v1/faults HTTP/1.1\r\n"), "{write}");
    for head in [read, write] {
        assert!(head.to_ascii_lowercase().contains("\r\nauthorization: bearer w3ather\r\n"), "{head}");
    }
    let wanted = json!({"title": "It \"rains\"", "labels": ["wet"], "urgent": false, "source": "model"});
    assert_eq!(serde_json::from_str::<Value>(body).unwrap(), wanted);
}

#[tokio::test]
async fn ten_operations_of_github() {
    let Some(document) = document_of_github() else { return };
    let (address, requests) = api(r#"{"number":7}"#);
    let recipe = Recipe { machine: Machine::new("recipe-github") };
    std::fs::copy(document, recipe.machine.path("api.github.com.json")).unwrap();
    let file = text("[apis.github]\n");
    let named = "document = \"api.github.com.json\"\n";
    assert!(file.contains(named), "{file}");
    recipe
        .machine
        .write("tools.toml", &file.replace(named, &format!("{named}base = \"http://{address}\"\n")));
    let client = recipe.client().await;
    assert_eq!(client.tools().await.unwrap().len(), 10);
    call(&client, "github_repos_get-content", json!({"owner": "ann", "repo": "x", "path": "a/b c.rs"})).await;
    let issue =
        json!({"owner": "ann", "repo": "x", "title": "It fails", "body": "Always.", "labels": ["bug"]});
    // A rule has the user confirm it.
    call(&client, "github_issues_create", issue).await;
    let requests = requests.lock().unwrap();
    let [(read, _), (write, body)] = &requests[..] else { panic!("{requests:?}") };
    assert!(read.starts_with("GET /repos/ann/x/contents/a%2Fb%20c.rs HTTP/1.1\r\n"), "{read}");
    assert!(write.starts_with("POST /repos/ann/x/issues HTTP/1.1\r\n"), "{write}");
    for head in [read, write] {
        assert!(head.to_ascii_lowercase().contains("\r\nauthorization: bearer t0ken\r\n"), "{head}");
    }
    let wanted = json!({"title": "It fails", "body": "Always.", "labels": ["bug"]});
    assert_eq!(serde_json::from_str::<Value>(body).unwrap(), wanted);
}
