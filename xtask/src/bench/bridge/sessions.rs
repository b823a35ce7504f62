//! The memory that the sessions of clients take in a bridge.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const CALL: &str =
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}"#;
const TIMEOUT: Duration = Duration::from_secs(30);

/// The memory of a process with sessions, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grown {
    pub(super) resident: f64,
    /// The part that the sessions after the first one take.
    pub(super) added: f64,
}

/// Opens sessions, with a call in each, and returns what the process has resident with all of them.
pub(super) fn open(port: u16, process: u32, sessions: usize) -> io::Result<Grown> {
    open_one(port)?;
    let before = resident(process)?;
    for _ in 1..sessions {
        open_one(port)?;
    }
    let resident = resident(process)?;
    Ok(Grown { resident, added: resident - before })
}

fn open_one(port: u16) -> io::Result<()> {
    let opened = post(port, INITIALIZE, None)?;
    let session = session_id(&opened).ok_or_else(|| io::Error::other(format!("no session: {opened}")))?;
    post(port, INITIALIZED, Some(session))?;
    let result = post(port, CALL, Some(session))?;
    if result.contains("\"result\"") { Ok(()) } else { Err(io::Error::other(format!("no result: {result}"))) }
}

/// Sends a request on a connection of its own, and returns the whole response.
fn post(port: u16, body: &str, session: Option<&str>) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\n{session}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}

fn session_id(response: &str) -> Option<&str> {
    let line = response.lines().find(|line| line.to_ascii_lowercase().starts_with("mcp-session-id:"))?;
    Some(line.split_once(':')?.1.trim())
}

/// Returns the resident memory of a process, in bytes.
fn resident(process: u32) -> io::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024.0).ok_or_else(|| io::Error::other("`VmRSS` is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_is_in_the_head() {
        assert_eq!(session_id("HTTP/1.1 200 OK\r\nmcp-session-id: a7\r\n\r\n{}"), Some("a7"));
        assert_eq!(session_id("HTTP/1.1 200 OK\r\n\r\n{}"), None);
    }
}
