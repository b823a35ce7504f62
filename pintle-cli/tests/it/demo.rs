//! The demo server: over a real pipe, and what it offers.

use std::{
    io::{BufRead as _, BufReader, Write},
    process::Stdio,
};

use pintle_cli::demo::{Harbour, server};
use pintle_testing::{CatalogueSnapshot, TestClient};
use serde_json::{Value, json};

use crate::support::{pintle, run};

/// Tells the server all of this, hangs up, and returns what it said.
fn talk(lines: &[Value]) -> Vec<Value> {
    let mut demo = pintle()
        .arg("demo")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let reply: String = lines.iter().map(|line| format!("{line}\n")).collect();
    // Dropped at the end of the line: that is hanging up.
    demo.stdin.take().unwrap().write_all(reply.as_bytes()).unwrap();
    let ended = demo.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let lines = String::from_utf8(ended.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn it_answers_who_it_is_without_a_session() {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let reply =
        talk(&[json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}})]);
    assert_eq!(reply.len(), 1, "{reply:?}");
    let info = &reply[0]["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!((&reply[0]["id"], &info["name"]), (&json!(1), &json!("harbour")));
}

#[test]
fn it_answers_who_it_is_with_a_session() {
    let params = json!({
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}
    });
    let reply = talk(&[
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "tide", "arguments": {"port": "esbjerg", "hour": 6}}}),
    ]);
    assert_eq!(reply[0]["result"]["serverInfo"]["name"], "harbour", "{reply:?}");
    assert_eq!(reply[1]["result"]["content"][0]["text"], r#"{"metres":1.4,"rising":false}"#, "{reply:?}");
}

#[tokio::test]
async fn what_it_offers_is_what_the_file_says() {
    CatalogueSnapshot::of(&server(&Harbour::default())).await.assert_file("tests/it/catalogue.txt");
}

#[tokio::test]
async fn whoever_declines_gets_no_berth() {
    use pintle::client::Answer;

    let client = TestClient::new().form("how long", Answer::Decline);
    client
        .both_eras(&server(&Harbour::default()), async |client| {
            assert_eq!(client.tool("berth", ()).await.text(), "The berth stays free.");
        })
        .await;
}

#[test]
fn whoever_connects_over_http_needs_the_token_if_there_is_one() {
    let mut demo = pintle()
        .args(["demo", "--http", "127.0.0.1:0", "--bearer-env", "DEMO_TOKEN"])
        .env("DEMO_TOKEN", "s3cret")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(demo.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let ping = |token: Option<&str>| {
        let mut command = pintle();
        command.args(["ping", url.trim()]);
        if let Some(token) = token {
            command.args(["--token-env", "TOKEN"]).env("TOKEN", token);
        }
        run(&mut command)
    };
    let without = ping(None);
    assert!(without.stderr.contains("send it as `Authorization: Bearer"), "{without:?}");
    let wrong = ping(Some("s3cret2"));
    assert!(wrong.stderr.contains("the token is not the one of this server"), "{wrong:?}");
    let right = ping(Some("s3cret"));
    demo.kill().unwrap();
    demo.wait().unwrap();
    assert_eq!(right.code, Some(0), "{right:?}");
    assert_ne!((without.code, wrong.code), (Some(0), Some(0)));
}
