//! The requests of a client in both eras, and the expected responses.

use std::borrow::Cow;

use pintle_proto::Revision;
use serde_json::{Value, json};

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

/// The kind of request.
#[expect(clippy::exhaustive_enums, reason = "what is measured is decided here")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ask {
    /// `tools/call` of `echo` with 64 bytes.
    Echo,
    /// An echo of this many bytes.
    Large(usize),
    /// `tools/list`.
    List,
    /// `tools/call` of `progress`, which reports ten times.
    Progress,
    /// `tools/call` of `confirm`, which asks the user one question.
    Confirm,
}

/// 64 bytes of which four have to be escaped.
pub const TEXT: &str = "The quick brown fox jumps over the lazy dog, then says \"hello\"\n\n";
/// How many tools every server has.
pub const TOOLS: usize = 104;
/// How often `progress` reports.
pub const REPORTS: usize = 10;
/// The question of `confirm`.
pub const QUESTION: &str = "Go on?";
/// Ids have ten digits, so that one can be written over another.
const FIRST_ID: u64 = 1_000_000_000;
const DIGITS: usize = 10;

impl Ask {
    /// The tool that is called, if one is.
    pub fn tool(self) -> Option<&'static str> {
        match self {
            Self::Echo | Self::Large(_) => Some("echo"),
            Self::Progress => Some("progress"),
            Self::Confirm => Some("confirm"),
            Self::List => None,
        }
    }

    fn method(self) -> &'static str {
        if self.tool().is_some() { "tools/call" } else { "tools/list" }
    }

    /// Returns the text for `echo`.
    fn text(self) -> Cow<'static, str> {
        /// One character in twenty has to be escaped, and some are not ASCII.
        const LINE: &str = "The \"quick\" brown fox jumps over the lazy dog — naïve résumé, path C:\\tmp\n";
        let Self::Large(length) = self else { return TEXT.into() };
        let mut text = LINE.repeat(length / LINE.len());
        text.extend(std::iter::repeat_n('.', length - text.len()));
        text.into()
    }

    fn is_answered_by(self, message: &Value) -> bool {
        let result = &message["result"];
        let text = &result["content"][0]["text"];
        match self {
            Self::Echo | Self::Large(_) => *text == *self.text(),
            Self::List => {
                result["tools"].as_array().is_some_and(|tools| tools.len() == TOOLS)
                    && result["nextCursor"].is_null()
            }
            Self::Progress => *text == "done",
            Self::Confirm => *text == "yes",
        }
    }
}

/// A request that is sent again and again, each time with another id.
#[derive(Clone, Debug)]
pub struct Asking {
    bytes: Vec<u8>,
    /// Where the id is, and where else it is repeated.
    id_at: Vec<usize>,
    id: u64,
    ask: Ask,
}

impl Asking {
    /// As a line for a pipe.
    pub fn line(ask: Ask, era: Era) -> Self {
        Self::new(ask, [body(ask, era).0, b"\n".to_vec()].concat())
    }

    /// As a POST.
    pub fn post(ask: Ask, era: Era, host: &str, session: Option<&str>) -> Self {
        let (body, _) = body(ask, era);
        let head = head(host, body.len(), &headers(ask, era, session));
        Self::new(ask, [head.as_bytes(), &body].concat())
    }

    fn new(ask: Ask, bytes: Vec<u8>) -> Self {
        let first = FIRST_ID.to_string();
        let places = bytes.windows(DIGITS).enumerate().filter(|(_, digits)| *digits == first.as_bytes());
        Self { id_at: places.map(|(at, _)| at).collect(), bytes, id: FIRST_ID, ask }
    }

    /// With other ids: for requests beside it in the same session.
    #[must_use]
    pub fn skip(mut self, ids: u64) -> Self {
        self.id += ids;
        self
    }

    /// The next one.
    pub fn another(&mut self) -> &[u8] {
        self.id += 1;
        let mut digits = [b'0'; DIGITS];
        let mut rest = self.id;
        for digit in digits.iter_mut().rev() {
            *digit += (rest % 10) as u8;
            rest /= 10;
        }
        for at in &self.id_at {
            if let Some(place) = self.bytes.get_mut(*at..at + DIGITS) {
                place.copy_from_slice(&digits);
            }
        }
        &self.bytes
    }

    /// Returns what is wrong with this answer to the one before; nothing if it is as it should be. On a pipe, where several are
    /// on their way, the id is somebody's.
    pub fn fault(&self, answer: &[u8]) -> Option<String> {
        let shown = || String::from_utf8_lossy(answer.get(..300).unwrap_or(answer)).into_owned();
        let messages: Vec<Value> =
            payloads(answer).filter_map(|text| serde_json::from_slice(text).ok()).collect();
        let Some(last) = messages.last() else { return Some(format!("no JSON: {}", shown())) };
        let known = last["id"].as_u64().is_some_and(|id| FIRST_ID < id && id <= self.id);
        let reports = messages.iter().filter(|message| message["method"] == "notifications/progress").count();
        if self.ask == Ask::Progress && reports != REPORTS {
            return Some(format!("{reports} reports and not {REPORTS}: {}", shown()));
        }
        (!known || !self.ask.is_answered_by(last)).then(|| format!("not the answer: {}", shown()))
    }
}

/// The JSON texts in an answer: its lines, or the data of its events.
pub fn payloads(answer: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = answer.split(|byte| *byte == b'\n');
    lines
        .map(|line| line.strip_prefix(b"data:").unwrap_or(line).trim_ascii())
        .filter(|text| text.starts_with(b"{"))
}

/// The handshake: `initialize`, and that it is done.
pub fn handshake() -> [String; 2] {
    let revision = Era::Session.revision();
    let open = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{"elicitation":{{"form":{{}}}}}},"clientInfo":{{"name":"bench","version":"1.0.0"}}}}}}"#
    );
    [open, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned()]
}

/// The user says yes: the answer to a question that came as a request of the server's.
pub fn accepted(id: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": yes()}).to_string()
}

/// The call again, with what was asked for in the result of the one before.
pub fn again(id: u64, result: &Value) -> String {
    let answers: serde_json::Map<_, _> = result["inputRequests"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| (key.clone(), yes()))
        .collect();
    let mut params = json!({
        "name": Ask::Confirm.tool(),
        "arguments": {},
        "inputResponses": answers,
        "_meta": serde_json::from_str::<Value>(&meta(Ask::Confirm, Era::Stateless)).unwrap_or_default(),
    });
    if let Some(state) = result.get("requestState") {
        params["requestState"] = state.clone();
    }
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"ok": true}})
}

/// The headers of a request that say what it is.
pub fn headers(ask: Ask, era: Era, session: Option<&str>) -> Vec<(&'static str, String)> {
    let mut headers = vec![("MCP-Protocol-Version", era.revision().to_owned())];
    headers.extend(session.map(|id| ("Mcp-Session-Id", id.to_owned())));
    if era == Era::Stateless {
        headers.push(("Mcp-Method", ask.method().to_owned()));
        headers.extend(ask.tool().map(|tool| ("Mcp-Name", tool.to_owned())));
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

/// The message, and where its id is.
pub fn body(ask: Ask, era: Era) -> (Vec<u8>, usize) {
    let mut params = Vec::new();
    if let Some(tool) = ask.tool() {
        let arguments = match ask {
            Ask::Echo | Ask::Large(_) => json!({ "text": ask.text() }).to_string(),
            _ => "{}".to_owned(),
        };
        params.push(format!(r#""name":"{tool}","arguments":{arguments}"#));
    }
    if era == Era::Stateless || ask == Ask::Progress {
        params.push(format!(r#""_meta":{}"#, meta(ask, era)));
    }
    let before = r#"{"jsonrpc":"2.0","id":"#;
    let (method, params) = (ask.method(), params.join(","));
    let text = format!(r#"{before}{FIRST_ID},"method":"{method}","params":{{{params}}}}}"#);
    (text.into_bytes(), before.len())
}

/// The token of progress is the id: no two requests on their way have the same.
fn meta(ask: Ask, era: Era) -> String {
    let mut members = Vec::new();
    if era == Era::Stateless {
        let revision = era.revision();
        let can = if ask == Ask::Confirm { r#"{"elicitation":{"form":{}}}"# } else { "{}" };
        members.push(format!(
            r#""io.modelcontextprotocol/protocolVersion":"{revision}","io.modelcontextprotocol/clientInfo":{{"name":"bench","version":"1.0.0"}},"io.modelcontextprotocol/clientCapabilities":{can}"#
        ));
    }
    if ask == Ask::Progress {
        members.push(format!(r#""progressToken":{FIRST_ID}"#));
    }
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_has_an_id_of_its_own_and_stays_json() {
        for (ask, era) in
            [(Ask::Echo, Era::Stateless), (Ask::List, Era::Session), (Ask::Progress, Era::Session)]
        {
            let mut asking = Asking::line(ask, era);
            for id in 1..12 {
                let sent: Value = serde_json::from_slice(asking.another()).unwrap();
                assert_eq!(sent["id"], FIRST_ID + id);
                let token = &sent["params"]["_meta"]["progressToken"];
                assert_eq!(*token == FIRST_ID + id, ask == Ask::Progress, "{sent}");
            }
        }
    }

    #[test]
    fn only_the_right_answer_passes() {
        let mut asking = Asking::line(Ask::Echo, Era::Session);
        asking.another();
        let answer = |id: u64, text: &str| {
            json!({"id": id, "result": {"content": [{"type": "text", "text": text}]}}).to_string()
        };
        assert_eq!(asking.fault(answer(FIRST_ID + 1, TEXT).as_bytes()), None);
        let event = format!("id: 1\ndata:\n\nevent: message\ndata: {}\n\n", answer(FIRST_ID + 1, TEXT));
        assert_eq!(asking.fault(event.as_bytes()), None);
        assert!(asking.fault(answer(FIRST_ID + 2, TEXT).as_bytes()).is_some());
        assert!(asking.fault(answer(FIRST_ID + 1, "other").as_bytes()).is_some());
        assert!(asking.fault(b"{").is_some());
    }

    #[test]
    fn all_reports_have_to_come() {
        let mut asking = Asking::line(Ask::Progress, Era::Stateless);
        asking.another();
        let events = |reports: usize| {
            let report = r#"data: {"method":"notifications/progress"}"#;
            let end =
                format!(r#"data: {{"id":{},"result":{{"content":[{{"text":"done"}}]}}}}"#, FIRST_ID + 1);
            [vec![report.to_owned(); reports], vec![end]].concat().join("\r\n\r\n")
        };
        assert_eq!(asking.fault(events(REPORTS).as_bytes()), None);
        assert!(asking.fault(events(REPORTS - 1).as_bytes()).unwrap().starts_with("9 reports and not 10"));
    }

    #[test]
    fn a_large_text_has_its_length() {
        assert_eq!(Ask::Large(64 << 10).text().len(), 64 << 10);
    }

    #[test]
    fn what_was_asked_for_comes_with_the_same_call() {
        let result =
            json!({"resultType": "input_required", "inputRequests": {"go": {}}, "requestState": "s"});
        let call: Value = serde_json::from_str(&again(7, &result)).unwrap();
        let params = &call["params"];
        assert_eq!((&call["id"], &params["name"]), (&json!(7), &json!("confirm")));
        assert_eq!(params["inputResponses"], json!({"go": {"action": "accept", "content": {"ok": true}}}));
        assert_eq!(params["requestState"], "s");
    }
}
