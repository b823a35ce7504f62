//! A server process, which is this very program, and a client of it that speaks in lines.

use std::{
    env,
    path::{Path, PathBuf},
    process::Stdio as Streams,
    time::Duration,
};

use pintle::{
    Server,
    server::{Cx, State, StateKeys, ToolError, tool},
    transport::Stdio,
};
use pintle_sqlite::SqliteTaskStore;
use pintle_tasks::Tasks;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::watch,
    time::timeout,
};

use crate::{
    folder::Folder,
    reporting::{CHANGED, ReportingStore},
};

const FOLDER: &str = "PINTLE_SQLITE_FOLDER";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

/// A tool that asks twice, and acts once in between: it appends a line to a file.
async fn order(cx: Cx, State(acts): State<PathBuf>) -> Result<String, ToolError> {
    let first = cx.elicit::<Name>("first", "What?").await?.accepted().ok_or("declined")?;
    cx.progress_with(1.0, 2.0, "half way").await;
    let act = async {
        let mut lines = std::fs::read_to_string(&acts).unwrap_or_default();
        lines += "act\n";
        std::fs::write(&acts, &lines).map(|()| lines.lines().count()).unwrap_or_default()
    };
    let number = cx.once("act", act).await?;
    let second = cx.elicit::<Name>("second", "Where?").await?.accepted().ok_or("declined")?;
    Ok(format!("{} to {}, act {number}", first.name, second.name))
}

fn server(folder: &Path) -> Server {
    let tasks = Tasks::new()
        .store(ReportingStore(SqliteTaskStore::open(folder.join("tasks.db")).unwrap()))
        .poll_interval(Duration::from_millis(20))
        .lease(Duration::from_millis(600));
    Server::new("shop", "1.0.0")
        .state_keys(StateKeys::from([7; 32]))
        .with_state(folder.join("acts"))
        .with(tasks)
        .tool(tool("order", order).task("optional").resumable())
        .tool(tool("fragile", order).task("optional"))
}

/// Tests nothing by itself: it is the server that the tests start.
#[test]
fn helper() {
    let Ok(folder) = env::var(FOLDER) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let serving = server(folder.as_ref()).serve(Stdio::new().unwrap()).unwrap();
        serving.wait().await.unwrap();
    });
    drop(runtime);
    std::process::exit(0);
}

/// A server process. Dropping it kills the process.
pub(crate) struct ServerProcess {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// Changes of the file, by any process that the test has started.
    changes: watch::Receiver<u64>,
    is_stateless: bool,
    next_id: i64,
}

impl ServerProcess {
    /// Starts a process on the file in a folder, and opens a session unless the client is stateless.
    pub(crate) async fn start(folder: &Folder, is_stateless: bool) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "process::helper", "--nocapture", "--quiet"])
            .env(FOLDER, folder.file(""))
            .stdin(Streams::piped())
            .stdout(Streams::piped())
            .stderr(Streams::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let output = BufReader::new(output).lines();
        let mut reports = BufReader::new(child.stderr.take().unwrap()).lines();
        let changes = folder.changes.clone();
        let mut process =
            Self { child, input, output, changes: changes.subscribe(), is_stateless, next_id: 0 };
        tokio::spawn(async move {
            while let Ok(Some(line)) = reports.next_line().await {
                if line == CHANGED {
                    changes.send_modify(|count| *count += 1);
                }
            }
        });
        if !is_stateless {
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {"form": {}}},
                "clientInfo": {"name": "test", "version": "0"}});
            process.call("initialize", hello).await;
            process.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        }
        process
    }

    /// Ends the process by SIGKILL.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    async fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Sends a request, and returns its id.
    pub(crate) async fn request(&mut self, method: &str, mut params: Value) -> i64 {
        self.next_id += 1;
        if self.is_stateless {
            let capabilities =
                json!({"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
            params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": capabilities});
        }
        let (id, method) = (self.next_id, method.to_owned());
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    /// Returns the next message. The test harness of the process says a few words before.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            let line = timeout(Duration::from_secs(60), self.output.next_line()).await;
            let line = line.expect("nothing came for a minute").unwrap().expect("the process has ended");
            if let Ok(message) = serde_json::from_str::<Value>(&line)
                && message.is_object()
            {
                return message;
            }
        }
    }

    /// Answers a question of the server.
    pub(crate) async fn answer(&mut self, question: &Value) {
        let answer = answer(&question["params"]);
        self.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer})).await;
    }

    /// Sends a request, answers the questions that come, and returns the result.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        loop {
            let message = self.next().await;
            if message["method"] == "elicitation/create" {
                self.answer(&message).await;
            } else if message["id"] == id {
                assert!(message["result"].is_object(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    /// Polls a task until it has this status and, if there is one, this question.
    pub(crate) async fn until(&mut self, id: &str, status: &str, question: Option<&str>) -> Value {
        for _ in 0..100 {
            self.changes.mark_unchanged();
            let task = self.call("tasks/get", json!({"taskId": id})).await;
            let is_asked = question.is_none_or(|key| task["inputRequests"][key].is_object());
            if task["status"] == status && is_asked {
                return task;
            }
            assert_ne!(task["status"], "failed", "{task}");
            timeout(Duration::from_secs(60), self.changes.changed())
                .await
                .expect("no change for a minute")
                .unwrap();
        }
        panic!("the task never was `{status}`");
    }

    /// Answers questions of a task of a stateless client.
    pub(crate) async fn update(&mut self, id: &str, task: &Value) {
        let asked = task["inputRequests"].as_object().unwrap();
        let answers: serde_json::Map<_, _> =
            asked.iter().map(|(key, question)| (key.clone(), answer(&question["params"]))).collect();
        self.call("tasks/update", json!({"taskId": id, "inputResponses": answers})).await;
    }
}

fn answer(params: &Value) -> Value {
    let name = if params["message"] == "What?" { "tea" } else { "Bergen" };
    json!({"action": "accept", "content": {"name": name}})
}
