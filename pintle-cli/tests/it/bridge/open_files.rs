//! A bridge that has as many open files as it may.

use std::{io::Write as _, net::TcpStream, process::Command};

use pintle::{
    Client, Connection, Error,
    client::{Mode, http::Http},
    types::ErrorCode,
};
use serde_json::{Value, json};

use crate::support::{
    HttpServing,
    http_request::{HttpRequest, listen},
    pintle,
};

/// The limit of open files of the bridge.
const LIMIT: usize = 48;

/// Serves a tool `hello`, each request over a connection of its own. Returns the URL.
fn closing_server() -> String {
    let address = listen(|mut connection, _| {
        let request = HttpRequest::read(connection)?;
        let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "closing", "version": "1"},
            }),
            Some("tools/list") => json!({"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]}),
            Some("tools/call") => json!({"content": [{"type": "text", "text": "hello"}]}),
            _ => Value::Null,
        };
        let (status, body) = match (request.head.starts_with("POST"), result) {
            (false, _) => ("405 Method Not Allowed", String::new()),
            (true, Value::Null) => ("202 Accepted", String::new()),
            (true, result) => {
                ("200 OK", json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
            }
        };
        let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json\r\n");
        write!(connection, "{head}content-length: {}\r\n\r\n{body}", body.len())
    });
    format!("http://{address}/mcp")
}

async fn connected(bridge: &HttpServing) -> Connection {
    let http = Http::new(&bridge.url).unwrap();
    Client::new("host", "1.0.0").mode(Mode::Legacy).connect(http).await.unwrap()
}

/// Returns the message of a call that fails because of the bridge.
async fn refused(client: &Connection) -> String {
    match client.call_tool("hello", json!({})).await {
        Err(Error::Rpc(error)) if error.code == ErrorCode::OVERLOADED => error.message.into_owned(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_bridge_without_files_says_so_where_it_accepts_and_where_it_connects() {
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!(r#"ulimit -n {LIMIT}; exec "$0" "$@""#), env!("CARGO_BIN_EXE_pintle")]);
    limited.args(["bridge", "--http", "127.0.0.1:0", "--era", "session", &closing_server()]);
    for (name, value) in pintle().get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let bridge = HttpServing::of(limited);
    let (used, unused) = (connected(&bridge).await, connected(&bridge).await);
    assert_eq!(used.call_tool("hello", json!({})).await.unwrap().text(), "hello");
    let address = bridge.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let others: Vec<_> = (0..LIMIT).map(|_| TcpStream::connect(address).unwrap()).collect();
    let printed = bridge.printed("`ulimit -n`").await;
    assert!(printed.contains("too many open files"), "{printed}");
    // Its session has a server behind, and the one of the other client has not.
    for client in [&used, &unused] {
        let message = refused(client).await;
        assert!(message.contains("too many open files") && message.contains("`ulimit -n`"), "{message}");
        assert!(!message.contains("down"), "{message}");
    }
    drop(others);
    // The bridge notices that they have left some time later.
    for client in [&used, &unused] {
        let mut result = client.call_tool("hello", json!({})).await;
        for _ in 0..1000 {
            if result.is_ok() {
                break;
            }
            result = client.call_tool("hello", json!({})).await;
        }
        assert_eq!(result.unwrap().text(), "hello");
    }
}
