//! The memory that the sessions of clients take in a bridge.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
const CALL: &str =
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}"#;
const TIMEOUT: Duration = Duration::from_secs(30);

/// The memory of a process with sessions, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grown {
    pub(super) resident: f64,
    /// The part that the sessions after the first one take.
    pub(super) added: f64,
}

/// Whether clients have an event stream for what belongs to no call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ClientStreams {
    None,
    Open,
}

/// Opens sessions, with a list of tools and a call in each, and returns what the process has resident with all of them.
pub(super) fn open(port: u16, process: u32, sessions: usize, streams: ClientStreams) -> io::Result<Grown> {
    let first = open_one(port, streams)?;
    let before = resident(process)?;
    let mut open = vec![first];
    for _ in 1..sessions {
        open.push(open_one(port, streams)?);
    }
    let resident = resident(process)?;
    Ok(Grown { resident, added: resident - before })
}

/// Opens a session, and returns its stream.
fn open_one(port: u16, streams: ClientStreams) -> io::Result<Option<TcpStream>> {
    let opened = post(port, INITIALIZE, None)?;
    let session = session_id(&opened).ok_or_else(|| io::Error::other(format!("no session: {opened}")))?;
    post(port, INITIALIZED, Some(session))?;
    let stream = match streams {
        ClientStreams::None => None,
        ClientStreams::Open => Some(listen(port, session)?),
    };
    for request in [LIST, CALL] {
        let result = post(port, request, Some(session))?;
        if !result.contains("\"result\"") {
            return Err(io::Error::other(format!("no result: {result}")));
        }
    }
    Ok(stream)
}

/// Opens the event stream of a session.
fn listen(port: u16, session: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    write!(
        stream,
        "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n"
    )?;
    let mut head = [0; 1024];
    let length = stream.read(&mut head)?;
    match head[..length].starts_with(b"HTTP/1.1 200") {
        true => Ok(stream),
        false => Err(io::Error::other(format!("no stream: {}", String::from_utf8_lossy(&head[..length])))),
    }
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
