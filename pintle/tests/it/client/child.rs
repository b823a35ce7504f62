//! Servers that are processes, and what becomes of a client when they misbehave.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Client, Ended, Error, Timeouts,
    client::{Mode, OpenError},
    message_log::{Direction, MessageLog},
    transport::{Child, ChildCommand},
};
use serde_json::json;

use crate::support::scripted_server::client;

fn sh(script: &str) -> ChildCommand {
    Child::command("sh").args(["-c", script]).grace(Duration::from_millis(10))
}

/// Answers a handshake, then whatever the rest of the script says.
const SESSION: &str = r#"
    answer() { id=${line#*'"id":'}; printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "${id%%,*}" "$1"; }
    hello='{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}'
    read -r line; answer "$hello"; read -r line
"#;

fn impatient() -> Client {
    let mut timeouts = Timeouts::default();
    timeouts.probe = Duration::from_millis(50);
    timeouts.initialize = Duration::from_millis(50);
    client().timeouts(timeouts)
}

#[tokio::test]
async fn an_old_server_that_is_a_script_is_used_and_closed() {
    let script = format!(
        r#"{SESSION} read -r line; answer '{{"content":[{{"type":"text","text":"hi"}}]}}'; cat >/dev/null"#
    );
    let server = client().mode(Mode::Legacy).connect(sh(&script).spawn().unwrap()).await.unwrap();
    assert_eq!(server.server_info().unwrap().name, "sh");
    let result = server.call_tool("t", json!({})).await.unwrap();
    assert_eq!(result.content[0].as_text(), Some("hi"));
    server.close().await;
    assert_eq!(server.wait().await, Ended::Stopped);
}

#[tokio::test]
async fn a_server_that_exits_is_distinguished_from_one_that_is_silent() {
    let open = |client: Client, script: &'static str| async move {
        let error = client.connect(sh(script).spawn().unwrap()).await.unwrap_err();
        let text = error.to_string();
        match error {
            Error::Open { error, .. } => (error, text),
            other => panic!("{other}"),
        }
    };
    let (error, text) = open(client(), "echo Welcome; exit 3").await;
    assert!(matches!(error, OpenError::Exited { .. }), "{text}");
    assert!(
        text.contains("it printed a line that is not a message, `Welcome`; ") && text.ends_with("3)"),
        "{text}"
    );
    let (error, text) = open(impatient(), "cat >/dev/null").await;
    assert!(matches!(error, OpenError::Silent { .. }), "{text}");
}

#[tokio::test]
async fn a_server_that_the_probe_kills_is_started_again() {
    let script = r#"
        read -r line
        case $line in *server/discover*) exit 7;; esac
        id=${line#*'"id":'}
        printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}\n' "${id%%,*}"
        cat >/dev/null
    "#;
    let server = client().connect(sh(script).spawn().unwrap()).await.unwrap();
    assert_eq!(server.revision().as_str(), "2025-06-18");
    server.close().await;
}

/// As servers on the Python SDK up to 1.9.3: the probe breaks them, and the next line ends them.
#[tokio::test]
async fn a_server_that_the_probe_kills_with_the_next_line_is_started_again() {
    let script = r#"
        read -r line
        case $line in *server/discover*) read -r line; echo 'validation error' >&2; exit 1;; esac
        id=${line#*'"id":'}
        printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-03-26","capabilities":{}}}\n' "${id%%,*}"
        cat >/dev/null
    "#;
    let mut timeouts = Timeouts::default();
    timeouts.probe = Duration::from_millis(50);
    let server = client().timeouts(timeouts).connect(sh(script).spawn().unwrap()).await.unwrap();
    assert_eq!(server.revision().as_str(), "2025-03-26");
    server.close().await;
}

/// The handshake is in its pipe before it reads the probe and exits.
#[tokio::test]
async fn a_server_that_starts_slowly_and_that_the_probe_kills_is_started_again() {
    let script = r#"
        [ -e "$MARK" ] || { : >"$MARK"; until [ -e "$MARK.go" ]; do sleep 0.01; done; }
        read -r line
        case $line in *server/discover*) exit 7;; esac
        id=${line#*'"id":'}
        printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}\n' "${id%%,*}"
        cat >/dev/null
    "#;
    let directory = temporary();
    let mark = directory.join("mark");
    let mut timeouts = Timeouts::default();
    timeouts.probe = Duration::from_millis(50);
    let sent = Arc::new(AtomicUsize::new(0));
    let go = directory.join("mark.go");
    let log = MessageLog::new({
        let sent = sent.clone();
        move |record| {
            // The handshake is about to be written: the server may begin to read.
            if record.direction == Direction::Out && sent.fetch_add(1, Ordering::Relaxed) == 1 {
                std::fs::write(&go, "").unwrap();
            }
        }
    });
    let child = sh(script).env("MARK", &mark).spawn().unwrap();
    let server = client().timeouts(timeouts).message_log(log).connect(child).await.unwrap();
    assert_eq!(server.revision().as_str(), "2025-06-18");
    // The probe and the handshake for the first process, the handshake and its end for the second.
    assert_eq!(sent.load(Ordering::Relaxed), 4);
    server.close().await;
    std::fs::remove_dir_all(directory).unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_that_crashes_at_start_is_started_once() {
    let directory = temporary();
    let log = directory.join("log");
    let child = sh(r#"echo started >>"$LOG"; exit 3"#).env("LOG", &log).spawn().unwrap();
    let error = client().connect(child).await.unwrap_err().to_string();
    assert!(error.ends_with("exited with status 3)"), "{error}");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "started\n");
    std::fs::remove_dir_all(directory).unwrap();
}

fn temporary() -> std::path::PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("pintle-child-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

#[tokio::test]
async fn the_exit_of_a_server_during_a_call_is_reported() {
    let script = format!("{SESSION} read -r line; exit 4");
    let client = client().mode(Mode::Legacy).reconnects(0);
    let server = client.connect(sh(&script).spawn().unwrap()).await.unwrap();
    let error = server.call_tool("t", json!({})).await.unwrap_err();
    assert!(
        matches!(&error, Error::Closed(Ended::ByPeer { known: Some(known) }) if known.contains('4')),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_crashes_is_started_again() {
    // It answers one call, and is gone.
    let script = format!(r#"{SESSION} read -r line; answer '{{"content":[]}}'; exit 1"#);
    let server = client().mode(Mode::Legacy).connect(sh(&script).spawn().unwrap()).await.unwrap();
    let mut changes = server.changes().await.unwrap();
    server.call_tool("t", json!({})).await.unwrap();
    assert_eq!(changes.next().await, Some(pintle::client::Event::Reopened));
    server.call_tool("t", json!({})).await.unwrap();
    server.close().await;
}
