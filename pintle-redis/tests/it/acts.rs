//! An action of `once` that runs while its process is killed: the call is run again at another process and ends with an error, because
//! nobody knows whether the action was done. It is not done again.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::TcpStream,
    time::timeout,
};

use crate::{
    faults::{INITIALIZE, SESSION},
    redis_folder::{ask, until},
    redis_server::RedisServer,
    task_process::TaskProcess,
};

const SOON: Duration = Duration::from_secs(60);
const UNKNOWN: &str = "outcome unknown";

/// Returns the number of acts of all processes.
async fn acts(redis: &RedisServer) -> Option<String> {
    ask::<Option<String>>(redis.port(), "GET acts").await.unwrap()
}

/// Waits until the action runs.
async fn act_runs(redis: &RedisServer) {
    until("the action runs", async || acts(redis).await).await;
}

/// A response, and the id of its last event.
struct Reply {
    lines: Lines<BufReader<TcpStream>>,
    last: String,
}

impl Reply {
    /// Sends a request with these headers.
    async fn to(process: &TaskProcess, method: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let mut head = format!(
            "{method} / HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Accept: application/json, text/event-stream\r\n",
            process.address,
            body.len()
        );
        headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        let mut stream = TcpStream::connect(&process.address).await.unwrap();
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
        Self { lines: BufReader::new(stream).lines(), last: String::new() }
    }

    async fn line(&mut self) -> String {
        timeout(SOON, self.lines.next_line()).await.expect("no line").unwrap().expect("the response ends")
    }

    async fn header(&mut self, name: &str) -> String {
        loop {
            let line = self.line().await;
            if let Some((found, value)) = line.split_once(": ")
                && found.eq_ignore_ascii_case(name)
            {
                return value.to_owned();
            }
        }
    }

    /// Returns the next message of a stream of events.
    async fn message(&mut self) -> Value {
        loop {
            let line = self.line().await;
            if let Some(id) = line.strip_prefix("id:") {
                id.trim().clone_into(&mut self.last);
            }
            if let Some(data) = line.strip_prefix("data:")
                && let Ok(message) = serde_json::from_str(data)
            {
                return message;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_whose_process_is_killed_while_it_acts_ends_and_does_not_act_again() {
    let Some(redis) = RedisServer::start().await else { return };
    let (one, two) =
        (TaskProcess::start_mortal(&redis.url()).await, TaskProcess::start_mortal(&redis.url()).await);
    let created = one.call("tools/call", json!({"name": "stuck", "arguments": {}})).await;
    let id = created["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
    act_runs(&redis).await;
    one.kill().await;
    let ended = until("the task has ended", async || {
        let task = two.call("tasks/get", json!({"taskId": id})).await;
        (task["status"] != "working").then_some(task)
    });
    let ended = ended.await;
    assert!(ended.to_string().contains(UNKNOWN), "{ended}");
    assert_eq!(acts(&redis).await.as_deref(), Some("1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_a_session_whose_process_is_killed_while_it_acts_ends_and_does_not_act_again() {
    let Some(redis) = RedisServer::start().await else { return };
    let (one, two) =
        (TaskProcess::start_mortal(&redis.url()).await, TaskProcess::start_mortal(&redis.url()).await);
    let session = Reply::to(&one, "POST", &[], INITIALIZE).await.header(SESSION).await;
    let own = [(SESSION, &*session), ("mcp-protocol-version", "2025-06-18")];
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(Reply::to(&one, "POST", &own, initialized).await.line().await, "HTTP/1.1 202 Accepted");
    let params = json!({"name": "stuck", "arguments": {}, "_meta": {"progressToken": 1}});
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string();
    let mut called = Reply::to(&one, "POST", &own, &call).await;
    assert_eq!(called.message().await["method"], "notifications/progress");
    act_runs(&redis).await;
    one.kill().await;
    let last = called.last;
    let resumed = [own[0], own[1], ("last-event-id", &*last)];
    let mut resumed = Reply::to(&two, "GET", &resumed, "").await;
    let ended = loop {
        let message = resumed.message().await;
        if message["id"] == 7 {
            break message;
        }
    };
    assert!(ended.to_string().contains(UNKNOWN), "{ended}");
    assert_eq!(acts(&redis).await.as_deref(), Some("1"));
}
