//! What a client says, in the words of either era, and what has to come back.

use pintle_proto::Revision;
use serde_json::Value;

/// How a client and a server come to terms.
#[expect(clippy::exhaustive_enums, reason = "there are two")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Era {
    /// With a handshake, which over HTTP opens a session.
    Session,
    /// Each request stands alone.
    Stateless,
}

impl Era {
    /// As it is called in the figures.
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Stateless => "stateless",
        }
    }

    /// The newest revision of it.
    pub fn revision(self) -> &'static str {
        let nth = match self {
            Self::Session => 1,
            Self::Stateless => 0,
        };
        Revision::all().nth(nth).map_or("", Revision::as_str)
    }
}

/// What is asked for.
#[expect(clippy::exhaustive_enums, reason = "what is measured is decided here")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ask {
    /// `tools/call` of `echo` with 64 bytes.
    Echo,
    /// `tools/list`.
    List,
}

/// 64 bytes of which four have to be escaped.
pub const TEXT: &str = "The quick brown fox jumps over the lazy dog, then says \"hello\"\n\n";
/// How many tools every server has.
pub const TOOLS: usize = 102;
/// Ids have ten digits, so that one can be written over another.
const FIRST_ID: u64 = 1_000_000_000;
const DIGITS: usize = 10;

/// A request that is sent again and again, each time with another id.
#[derive(Clone, Debug)]
pub struct Asking {
    bytes: Vec<u8>,
    id_at: usize,
    id: u64,
    ask: Ask,
}

impl Asking {
    /// As a line for a pipe.
    pub fn line(ask: Ask, era: Era) -> Self {
        let (mut bytes, id_at) = body(ask, era);
        bytes.push(b'\n');
        Self { bytes, id_at, id: FIRST_ID, ask }
    }

    /// As a POST.
    pub fn post(ask: Ask, era: Era, host: &str, session: Option<&str>) -> Self {
        let (body, id_at) = body(ask, era);
        let head = head(host, body.len(), &headers(ask, era, session));
        Self { id_at: head.len() + id_at, bytes: [head.as_bytes(), &body].concat(), id: FIRST_ID, ask }
    }

    /// The next one.
    pub fn another(&mut self) -> &[u8] {
        self.id += 1;
        if let Some(place) = self.bytes.get_mut(self.id_at..self.id_at + DIGITS) {
            place.copy_from_slice(self.id.to_string().as_bytes());
        }
        &self.bytes
    }

    /// What is wrong with this answer to the one before; nothing if it is as it should be. On a pipe, where several are
    /// on their way, the id is somebody's.
    pub fn fault(&self, answer: &[u8]) -> Option<String> {
        let shown = || String::from_utf8_lossy(answer.get(..300).unwrap_or(answer)).into_owned();
        let Ok(value) = serde_json::from_slice::<Value>(payload(answer)) else {
            return Some(format!("no JSON: {}", shown()));
        };
        let known = value["id"].as_u64().is_some_and(|id| FIRST_ID < id && id <= self.id);
        let right = match self.ask {
            Ask::Echo => value["result"]["content"][0]["text"] == TEXT,
            Ask::List => value["result"]["tools"].as_array().is_some_and(|tools| tools.len() == TOOLS),
        };
        (!known || !right).then(|| format!("not the answer: {}", shown()))
    }
}

/// The JSON text in an answer: all of it, or the data of its last event that has any.
fn payload(answer: &[u8]) -> &[u8] {
    let mut events = answer.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
    events.rfind(|data| !data.trim_ascii().is_empty()).unwrap_or(answer)
}

/// The handshake: `initialize`, and that it is done.
pub fn handshake() -> [String; 2] {
    let revision = Era::Session.revision();
    let open = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"bench","version":"1.0.0"}}}}}}"#
    );
    [open, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned()]
}

/// The headers of a request that say what it is.
pub fn headers(ask: Ask, era: Era, session: Option<&str>) -> Vec<(&'static str, String)> {
    let mut headers = vec![("MCP-Protocol-Version", era.revision().to_owned())];
    headers.extend(session.map(|id| ("Mcp-Session-Id", id.to_owned())));
    if era == Era::Stateless {
        headers.push(("Mcp-Method", method(ask).to_owned()));
        headers.extend((ask == Ask::Echo).then(|| ("Mcp-Name", "echo".to_owned())));
    }
    headers
}

/// The head of a POST.
pub fn head(host: &str, length: usize, headers: &[(&'static str, String)]) -> String {
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {length}\r\n{more}\r\n"
    )
}

/// Whether this is a whole answer with a length.
pub(crate) fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let head = answer.get(..end).and_then(|head| std::str::from_utf8(head).ok()).unwrap_or_default();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    answer.len() >= end + 4 + length.unwrap_or(0)
}

fn method(ask: Ask) -> &'static str {
    match ask {
        Ask::Echo => "tools/call",
        Ask::List => "tools/list",
    }
}

/// The message, and where its id is.
pub fn body(ask: Ask, era: Era) -> (Vec<u8>, usize) {
    let mut params = Vec::new();
    if ask == Ask::Echo {
        params.push(format!(r#""name":"echo","arguments":{{"text":{}}}"#, Value::from(TEXT)));
    }
    if era == Era::Stateless {
        let revision = era.revision();
        params.push(format!(
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{revision}","io.modelcontextprotocol/clientInfo":{{"name":"bench","version":"1.0.0"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}"#
        ));
    }
    let before = r#"{"jsonrpc":"2.0","id":"#;
    let (method, params) = (method(ask), params.join(","));
    let text = format!(r#"{before}{FIRST_ID},"method":"{method}","params":{{{params}}}}}"#);
    (text.into_bytes(), before.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_has_an_id_of_its_own_and_stays_json() {
        for (ask, era) in [(Ask::Echo, Era::Stateless), (Ask::List, Era::Session)] {
            let mut asking = Asking::line(ask, era);
            let ids: Vec<_> = (0..3)
                .map(|_| serde_json::from_slice::<Value>(asking.another()).unwrap()["id"].clone())
                .collect();
            assert_eq!(ids, [FIRST_ID + 1, FIRST_ID + 2, FIRST_ID + 3]);
        }
    }

    #[test]
    fn only_the_right_answer_passes() {
        let mut asking = Asking::line(Ask::Echo, Era::Session);
        asking.another();
        let answer = |id: u64, text: &str| {
            serde_json::json!({"id": id, "result": {"content": [{"type": "text", "text": text}]}}).to_string()
        };
        assert_eq!(asking.fault(answer(FIRST_ID + 1, TEXT).as_bytes()), None);
        let event = format!("id: 1\ndata:\n\nevent: message\ndata: {}\n\n", answer(FIRST_ID + 1, TEXT));
        assert_eq!(asking.fault(event.as_bytes()), None);
        assert!(asking.fault(answer(FIRST_ID + 2, TEXT).as_bytes()).is_some());
        assert!(asking.fault(answer(FIRST_ID + 1, "other").as_bytes()).is_some());
        assert!(asking.fault(b"{").is_some());
    }
}
