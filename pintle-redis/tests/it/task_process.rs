//! A process that serves tasks over HTTP, which is this very program, and a client that speaks to any of several.

use std::{env, process::Stdio as Streams, time::Duration};

use pintle::{
    Server,
    server::{Cx, State, StateKeys, ToolError, tool},
};
use pintle_redis::{Redis, RedisOptions};
use pintle_tasks::Tasks;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
};

use crate::redis_server::connected;

const REDIS: &str = "PINTLE_TASKS_REDIS";
const LEASE: &str = "PINTLE_TASKS_LEASE";

/// The lease of a process that is to be missed soon.
const SHORT_LEASE: Duration = Duration::from_millis(900);
/// The lease of a process that a busy machine does not let lapse.
const LONG_LEASE: Duration = Duration::from_secs(60);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

/// Counts the acts of all processes.
#[derive(Clone)]
struct Acts(redis::Client);

impl Acts {
    async fn act(&self) -> i64 {
        let mut connection = connected(&self.0).await.unwrap();
        let mut commands = redis::pipe();
        commands.cmd("INCR").arg("acts").cmd("EXPIRE").arg("acts").arg(600).ignore();
        let (number,): (i64,) = commands.query_async(&mut connection).await.unwrap();
        number
    }
}

/// A tool that asks twice, and acts once in between.
async fn order(cx: Cx, State(acts): State<Acts>) -> Result<String, ToolError> {
    let first = cx.elicit::<Name>("first", "What?").await?.accepted().ok_or("declined")?;
    let number = cx.once("act", acts.act()).await?;
    let second = cx.elicit::<Name>("second", "Where?").await?.accepted().ok_or("declined")?;
    Ok(format!("{} to {}, act {number}, by {}", first.name, second.name, std::process::id()))
}

/// A tool whose action does not end.
async fn stuck(cx: Cx, State(acts): State<Acts>) -> Result<String, ToolError> {
    cx.progress(1.0, None).await;
    let act = async {
        acts.act().await;
        std::future::pending::<i64>().await
    };
    Ok(cx.once("act", act).await?.to_string())
}

fn server(redis: &Redis, acts: Acts, lease: Duration) -> Server {
    let tasks = Tasks::new().store(redis.tasks()).poll_interval(Duration::from_millis(20)).lease(lease);
    Server::new("shop", "1.0.0")
        .state_keys(StateKeys::from([7; 32]))
        .with_state(acts)
        .with(tasks)
        .tool(tool("order", order).task("optional").resumable())
        .tool(tool("fragile", order).task("optional"))
        .tool(tool("stuck", stuck).task("optional").resumable())
}

/// Tests nothing by itself: it is the server that the tests start.
#[test]
fn helper() {
    let Ok(url) = env::var(REDIS) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let lease = Duration::from_millis(env::var(LEASE).unwrap().parse().unwrap());
        let redis = Redis::connect_with(&url, RedisOptions::default().lease(lease)).await.unwrap();
        let server = server(&redis, Acts(redis::Client::open(url).unwrap()), lease);
        let http = server.http().unwrap().shared(redis);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        eprintln!("listening {}", listener.local_addr().unwrap());
        http.serve(listener).unwrap().wait().await;
    });
    drop(runtime);
    std::process::exit(0);
}

/// A process. Dropping it kills it.
pub(crate) struct TaskProcess {
    child: Child,
    pub(crate) address: String,
}

impl TaskProcess {
    /// Starts a process that is not taken for gone.
    pub(crate) async fn start(redis: &str) -> Self {
        Self::start_with(redis, LONG_LEASE).await
    }

    /// Starts a process that is missed soon after it was killed.
    pub(crate) async fn start_mortal(redis: &str) -> Self {
        Self::start_with(redis, SHORT_LEASE).await
    }

    async fn start_with(redis: &str, lease: Duration) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "task_process::helper", "--nocapture", "--quiet"])
            .env(REDIS, redis)
            .env(LEASE, lease.as_millis().to_string())
            .stdout(Streams::null())
            .stderr(Streams::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next_line().await.unwrap().expect("the process has ended");
            if let Some(address) = line.strip_prefix("listening ") {
                break address.to_owned();
            }
        };
        // It must not wait for anybody to read what it says.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { child, address }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// Ends the process by SIGKILL.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Sends a request of a stateless client, and returns the response.
    pub(crate) async fn request(&self, method: &str, params: Value) -> Value {
        self.request_whole(method, params).await.1
    }

    /// Sends a request of a stateless client, and returns the head of the response and its message.
    pub(crate) async fn request_whole(&self, method: &str, mut params: Value) -> (String, Value) {
        let capabilities =
            json!({"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities});
        let name = params.get("name").or(params.get("taskId")).and_then(Value::as_str).unwrap_or_default();
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let head = format!(
            "POST / HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: {method}\r\nMcp-Name: {name}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        let mut reply = String::new();
        let read = stream.read_to_string(&mut reply);
        tokio::time::timeout(Duration::from_secs(30), read).await.expect("no response").unwrap();
        let start = reply.find("\r\n\r\n").map_or(0, |end| end + 4);
        let text = &reply[start..];
        // A body or the data of its only event.
        let json = text.find('{').and_then(|from| text.rfind('}').map(|to| &text[from..=to]));
        let message =
            serde_json::from_str(json.unwrap_or_default()).unwrap_or_else(|_| panic!("{method}: {reply}"));
        (reply[..start].to_ascii_lowercase(), message)
    }

    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        let response = self.request(method, params).await;
        assert!(response["result"].is_object(), "{method}: {response}");
        response["result"].clone()
    }

    /// Polls a task until it has this status and, if there is one, this question.
    pub(crate) async fn until(&self, id: &str, status: &str, question: Option<&str>) -> Value {
        for _ in 0..1_500 {
            let task = self.call("tasks/get", json!({"taskId": id})).await;
            let is_asked = question.is_none_or(|key| task["inputRequests"][key].is_object());
            if task["status"] == status && is_asked {
                return task;
            }
            assert!(task["status"] == "working" || task["status"] == "input_required", "{task}");
            // As often as the server recommends.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the task never was `{status}`");
    }

    /// Answers the questions of a task.
    pub(crate) async fn answer(&self, id: &str, task: &Value) {
        let asked = task["inputRequests"].as_object().unwrap();
        let name = |params: &Value| if params["message"] == "What?" { "tea" } else { "Bergen" };
        let answer =
            |question: &Value| json!({"action": "accept", "content": {"name": name(&question["params"])}});
        let answers: serde_json::Map<_, _> =
            asked.iter().map(|(key, question)| (key.clone(), answer(question))).collect();
        self.call("tasks/update", json!({"taskId": id, "inputResponses": answers})).await;
    }
}
