use std::{
    fmt::{self, Write as _},
    net::SocketAddr,
    time::SystemTime,
};

use http::{HeaderMap, Method, StatusCode};

use super::timestamp::iso8601_micros;
use crate::message_log::transport_kind::TransportKind;

/// A record of a [`MessageLog`](super::MessageLog): a message, or the head of an HTTP request or response without one.
///
/// [`Display`](fmt::Display) prints it as one line of bounded length for people, [`to_json`](Self::to_json) as one line with
/// everything.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct MessageRecord<'a> {
    /// The number of the record, from 1, unique in the log.
    pub number: u64,
    /// The time at which the message was queued or received.
    pub time: SystemTime,
    /// The side of the protocol that wrote the record.
    pub side: Side,
    /// The direction of the message, as this side sees it.
    pub direction: Direction,
    /// The kind of the transport.
    pub transport: TransportKind,
    /// The number of the connection, from 1, unique in the log. `None` for a server over HTTP: its clients use any number of
    /// HTTP connections.
    pub connection: Option<u64>,
    /// The address of the peer, if the transport is a socket and knows it.
    pub peer: Option<SocketAddr>,
    /// The redacted id of the session over HTTP. The same session has the same text.
    pub session: Option<&'a str>,
    /// The HTTP request or response, over HTTP.
    pub http: Option<HttpRecord<'a>>,
    /// The content.
    pub payload: Payload<'a>,
}

/// The HTTP part of a [`MessageRecord`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct HttpRecord<'a> {
    /// The number of the HTTP request, from 1, unique in the log. All messages of its response have it too, also those of an
    /// event stream.
    pub exchange: u64,
    /// The method of the request.
    pub method: &'a Method,
    /// The redacted target of the request.
    pub uri: &'a str,
    /// The status, if this is a response.
    pub status: Option<StatusCode>,
    /// The redacted headers of the request or the response. Empty for the events of a stream, whose head has a record before.
    pub headers: &'a HeaderMap,
    /// Whether the payload is an event of a stream.
    pub event: bool,
    /// The id of the event.
    pub event_id: Option<&'a str>,
}

/// The content of a [`MessageRecord`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Payload<'a> {
    /// A message or a batch, redacted: JSON on one line.
    Message(&'a str),
    /// A text that is not JSON, redacted.
    Text(&'a str),
    /// A message that exceeded the limit and was discarded.
    Oversized,
    /// Nothing: the head of an HTTP request or response.
    Empty,
}

/// A side of the protocol.
#[expect(clippy::exhaustive_enums, reason = "the protocol has two sides")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// The direction of a message.
#[expect(clippy::exhaustive_enums, reason = "a connection has two directions")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// From this side to the peer.
    Out,
    /// From the peer to this side.
    In,
}

impl Side {
    /// Returns the side that sends messages of a direction, as seen from this side.
    pub(super) fn sends(self, direction: Direction) -> Self {
        match (self, direction) {
            (Self::Client, Direction::Out) | (Self::Server, Direction::In) => Self::Client,
            (Self::Client, Direction::In) | (Self::Server, Direction::Out) => Self::Server,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

impl Direction {
    fn as_str(self) -> &'static str {
        match self {
            Self::Out => "out",
            Self::In => "in",
        }
    }
}

/// The number of bytes of a payload that [`Display`](fmt::Display) prints.
const SHOWN: usize = 4 << 10;

impl MessageRecord<'_> {
    /// Returns the record as one line of JSON.
    ///
    /// Members: `number`, `time` (ISO 8601), `side`, `direction`, `transport`, and where they are known `connection`, `peer`,
    /// `session`, `http` (`exchange`, `method`, `uri`, `status`, `headers` as a list of pairs, `event`, `eventId`); then
    /// `message` (the JSON itself), `text`, or `oversized`.
    pub fn to_json(&self) -> String {
        let mut line = String::with_capacity(256);
        let (side, direction) = (self.side.as_str(), self.direction.as_str());
        let _ = write!(line, "{{\"number\":{}", self.number);
        if let Some(time) = iso8601_micros(self.time) {
            let _ = write!(line, ",\"time\":\"{time}\"");
        }
        let transport = self.transport;
        let _ =
            write!(line, ",\"side\":\"{side}\",\"direction\":\"{direction}\",\"transport\":\"{transport}\"");
        if let Some(connection) = self.connection {
            let _ = write!(line, ",\"connection\":{connection}");
        }
        if let Some(peer) = self.peer {
            let _ = write!(line, ",\"peer\":\"{peer}\"");
        }
        if let Some(session) = self.session {
            let _ = write!(line, ",\"session\":{}", quoted(session));
        }
        if let Some(http) = &self.http {
            http.write(&mut line);
        }
        match self.payload {
            Payload::Message(message) => drop(write!(line, ",\"message\":{message}")),
            Payload::Text(text) => drop(write!(line, ",\"text\":{}", quoted(text))),
            Payload::Oversized => line.push_str(",\"oversized\":true"),
            Payload::Empty => {}
        }
        line.push('}');
        line
    }
}

impl HttpRecord<'_> {
    fn write(&self, line: &mut String) {
        let (exchange, method, uri) = (self.exchange, quoted(self.method.as_str()), quoted(self.uri));
        let _ = write!(line, ",\"http\":{{\"exchange\":{exchange},\"method\":{method},\"uri\":{uri}");
        if let Some(status) = self.status {
            let _ = write!(line, ",\"status\":{}", status.as_u16());
        }
        if !self.headers.is_empty() {
            line.push_str(",\"headers\":[");
            for (n, (name, value)) in self.headers.iter().enumerate() {
                let comma = if n == 0 { "" } else { "," };
                let value = quoted(&String::from_utf8_lossy(value.as_bytes()));
                let _ = write!(line, "{comma}[\"{name}\",{value}]");
            }
            line.push(']');
        }
        if self.event {
            line.push_str(",\"event\":true");
        }
        if let Some(id) = self.event_id {
            let _ = write!(line, ",\"eventId\":{}", quoted(id));
        }
        line.push('}');
    }
}

fn quoted(text: &str) -> serde_json::Value {
    text.into()
}

impl fmt::Display for MessageRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrow = match self.direction {
            Direction::Out => '→',
            Direction::In => '←',
        };
        write!(f, "{} {arrow} ", self.number)?;
        if let Some(http) = &self.http {
            match http.status {
                None => write!(f, "{} {}", http.method, http.uri)?,
                Some(_) if http.event => f.write_str("event")?,
                Some(status) => write!(f, "{}", status.as_u16())?,
            }
            write!(f, " #{} ", http.exchange)?;
        }
        let text = match self.payload {
            Payload::Message(text) | Payload::Text(text) => text,
            Payload::Oversized => return f.write_str("(above the size limit)"),
            Payload::Empty => return f.write_str("(no content)"),
        };
        let shown = &text[..boundary(text, SHOWN)];
        // A line stays a line, and a terminal keeps its colours.
        for c in shown.chars() {
            if c.is_control() { write!(f, "{}", c.escape_default())? } else { f.write_char(c)? }
        }
        match text.len() - shown.len() {
            0 => Ok(()),
            more => write!(f, "… ({more} bytes more)"),
        }
    }
}

/// Returns the largest boundary of a character up to an index.
fn boundary(text: &str, index: usize) -> usize {
    (0..=index.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn record(payload: Payload<'_>) -> MessageRecord<'_> {
        MessageRecord {
            number: 7,
            time: SystemTime::UNIX_EPOCH + Duration::from_millis(1500),
            side: Side::Server,
            direction: Direction::In,
            transport: TransportKind::Memory,
            connection: Some(2),
            peer: None,
            session: None,
            http: None,
            payload,
        }
    }

    #[test]
    fn a_record_prints_as_one_bounded_line() {
        let line = |payload| record(payload).to_string();
        assert_eq!(line(Payload::Message(r#"{"a":1}"#)), r#"7 ← {"a":1}"#);
        assert_eq!(line(Payload::Text("a\n\x1b[31mb")), "7 ← a\\n\\u{1b}[31mb");
        assert_eq!(line(Payload::Oversized), "7 ← (above the size limit)");
        let long = "é".repeat(SHOWN);
        let long = line(Payload::Text(&long));
        assert!(long.ends_with("é… (4096 bytes more)") && long.len() < SHOWN + 100, "{long}");
    }

    #[test]
    fn a_record_is_a_line_of_json() {
        let headers = HeaderMap::from_iter([(http::header::HOST, "a\"b".parse().unwrap())]);
        let mut record = record(Payload::Message(r#"{"a":1}"#));
        record.session = Some("s");
        record.http = Some(HttpRecord {
            exchange: 3,
            method: &Method::POST,
            uri: "/mcp",
            status: Some(StatusCode::OK),
            headers: &headers,
            event: true,
            event_id: Some("1-2"),
        });
        let json: serde_json::Value = serde_json::from_str(&record.to_json()).unwrap();
        let expected = serde_json::json!({
            "number": 7, "time": "1970-01-01T00:00:01.500000Z", "side": "server", "direction": "in",
            "transport": "memory", "connection": 2, "session": "s", "message": {"a": 1},
            "http": {"exchange": 3, "method": "POST", "uri": "/mcp", "status": 200,
                "headers": [["host", "a\"b"]], "event": true, "eventId": "1-2"},
        });
        assert_eq!(json, expected);
        record.payload = Payload::Text("x\ny");
        assert!(!record.to_json().contains('\n'));
    }
}
