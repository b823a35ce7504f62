//! The headers of a client's requests.
//!
//! ```
//! use pintle_proto::http::headers;
//!
//! let headers = headers::stateless_post("new", "tools/call", Some("grüßen")).unwrap();
//! assert_eq!(headers["accept"], "application/json, text/event-stream");
//! assert_eq!(headers["mcp-method"], "tools/call");
//! assert_eq!(headers["mcp-name"], "=?base64?Z3LDvMOfZW4=?=");
//! ```

use std::{borrow::Cow, fmt};

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE},
};

use pintle_types::Message;

use super::{
    LAST_EVENT_ID, MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION, MCP_SESSION_ID, NameSource,
    accept::{EVENTS, JSON, USUAL},
    encode_value,
    head::trim,
    name_in, name_member,
    streams::Streams,
};
use crate::Revision;

/// The headers of a connection's POST requests: those that all of them share, and those of a single request.
///
/// ```
/// use pintle_proto::{Revision, http::headers::PostHeaders};
/// use pintle_types::Message;
///
/// let posts = PostHeaders::new(Some(Revision::LATEST), None).unwrap();
/// assert_eq!(posts.common()["accept"], "application/json, text/event-stream");
/// let call = Message::parse(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}"#).unwrap();
/// let own = posts.of(&[call], &[]).unwrap();
/// assert_eq!(own[0], ("mcp-method".parse().unwrap(), "tools/call".parse().unwrap()));
/// assert_eq!(own[1], ("mcp-name".parse().unwrap(), "add".parse().unwrap()));
/// ```
#[derive(Clone, Debug)]
pub struct PostHeaders {
    common: HeaderMap,
    mirrored: bool,
}

impl PostHeaders {
    /// Creates the headers for an agreed revision, if there is one, and for the session that the server assigned, if it
    /// did.
    ///
    /// # Errors
    ///
    /// The session id is not a valid header value.
    pub fn new(agreed: Option<Revision>, session: Option<&str>) -> Result<Self, BadHeader> {
        let mut common = post(8);
        let mirrored = agreed.is_some_and(|revision| Streams::of(revision).mirrored);
        if let Some(revision) = agreed {
            set(&mut common, &MCP_PROTOCOL_VERSION, revision.as_str())?;
        }
        in_session(&mut common, session.filter(|_| !mirrored))?;
        Ok(Self { common, mirrored })
    }

    /// Returns the headers that all requests share.
    pub fn common(&self) -> &HeaderMap {
        &self.common
    }

    /// Returns the headers of the request that carries `messages`, besides the shared ones. `extensions` are the methods
    /// of extensions whose requests carry `Mcp-Name`.
    ///
    /// # Errors
    ///
    /// The method or the name is not a valid header value.
    pub fn of(
        &self,
        messages: &[Message],
        extensions: &[NameSource<'_>],
    ) -> Result<Vec<(HeaderName, HeaderValue)>, BadHeader> {
        if !self.mirrored {
            return Ok(Vec::new());
        }
        let (method, params) = match messages {
            [Message::Request(request)] => (&request.method, request.params.as_ref()),
            [Message::Notification(notification)] => (&notification.method, None),
            _ => return Ok(Vec::new()),
        };
        let mut own = Vec::with_capacity(4);
        let sent = match method {
            // The usual case: a static method name is not copied.
            Cow::Borrowed(method) if encode_value(method) == *method => HeaderValue::from_static(method),
            method => value(&MCP_METHOD, method)?,
        };
        own.push((MCP_METHOD.clone(), sent));
        let member = name_member(method, extensions);
        if let Some(name) = member.and_then(|member| name_in(params?, member)) {
            own.push((MCP_NAME.clone(), value(&MCP_NAME, &encode_value(&name))?));
        }
        Ok(own)
    }
}

/// Returns the headers of a stateless POST. `name` is the value of the member that [`name_member`] returns.
pub fn stateless_post(version: &str, method: &str, name: Option<&str>) -> Result<HeaderMap, BadHeader> {
    let mut headers = post(5);
    set(&mut headers, &MCP_PROTOCOL_VERSION, version)?;
    set(&mut headers, &MCP_METHOD, method)?;
    if let Some(name) = name {
        set(&mut headers, &MCP_NAME, &encode_value(name))?;
    }
    Ok(headers)
}

/// Returns the headers of the POST that opens a session, before a revision is agreed on.
pub fn initialize() -> HeaderMap {
    post(2)
}

/// Returns the headers of a session-era POST after the handshake. `session` is `None` if the server assigned no
/// session.
pub fn session_post(version: &str, session: Option<&str>) -> Result<HeaderMap, BadHeader> {
    let mut headers = post(4);
    agreed(&mut headers, version, session)?;
    Ok(headers)
}

/// Returns the headers of a session-era GET, which opens a stream or resumes one after the last event received.
pub fn session_get(
    version: &str,
    session: Option<&str>,
    last_event_id: Option<&str>,
) -> Result<HeaderMap, BadHeader> {
    let mut headers = event_stream();
    agreed(&mut headers, version, session)?;
    if let Some(id) = last_event_id.filter(|id| !id.is_empty()) {
        set(&mut headers, &LAST_EVENT_ID, id)?;
    }
    Ok(headers)
}

/// Returns the headers of the DELETE that ends a session.
pub fn session_delete(version: &str, session: &str) -> Result<HeaderMap, BadHeader> {
    let mut headers = HeaderMap::with_capacity(2);
    agreed(&mut headers, version, Some(session))?;
    Ok(headers)
}

/// Returns the headers of the GET that opens the event stream of the HTTP+SSE transport.
pub fn event_stream() -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(4);
    headers.insert(ACCEPT, HeaderValue::from_static(EVENTS));
    headers
}

/// The error for a text that is not a valid header value.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BadHeader {
    /// The header.
    pub name: HeaderName,
}

impl fmt::Display for BadHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the value of `{}` is not a valid header value: remove control characters and surrounding white space",
            self.name
        )
    }
}

impl std::error::Error for BadHeader {}

fn post(capacity: usize) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(capacity);
    headers.insert(ACCEPT, HeaderValue::from_static(USUAL));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    headers
}

fn agreed(headers: &mut HeaderMap, version: &str, session: Option<&str>) -> Result<(), BadHeader> {
    set(headers, &MCP_PROTOCOL_VERSION, version)?;
    in_session(headers, session)
}

fn in_session(headers: &mut HeaderMap, session: Option<&str>) -> Result<(), BadHeader> {
    if let Some(session) = session {
        set(headers, &MCP_SESSION_ID, session)?;
        // The id is a credential of the session: keep it out of logs and HPACK tables.
        if let Some(value) = headers.get_mut(&MCP_SESSION_ID) {
            value.set_sensitive(true);
        }
    }
    Ok(())
}

fn set(headers: &mut HeaderMap, name: &HeaderName, text: &str) -> Result<(), BadHeader> {
    headers.insert(name.clone(), value(name, text)?);
    Ok(())
}

/// Converts a text to a header value, as bytes because an event id may be any UTF-8. Surrounding white space is
/// refused: it is lost in transit.
fn value(name: &HeaderName, text: &str) -> Result<HeaderValue, BadHeader> {
    let whole = Some(text.as_bytes()).filter(|bytes| trim(bytes).len() == bytes.len());
    let value = whole.and_then(|bytes| HeaderValue::from_bytes(bytes).ok());
    value.ok_or_else(|| BadHeader { name: name.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(headers: &HeaderMap) -> Vec<String> {
        let line = |(name, value): (&HeaderName, &HeaderValue)| {
            format!("{name}: {}", std::str::from_utf8(value.as_bytes()).unwrap())
        };
        let mut lines: Vec<_> = headers.iter().map(line).collect();
        lines.sort();
        lines
    }

    #[test]
    fn headers_of_each_request() {
        let both = "accept: application/json, text/event-stream";
        let stream = "accept: text/event-stream";
        let json = "content-type: application/json";
        let (old, new) = ("mcp-protocol-version: 2025-11-25", "mcp-protocol-version: 2026-07-28");
        let session = "mcp-session-id: 9f";
        for (headers, expected) in [
            (
                stateless_post("2026-07-28", "tools/call", Some("add")).unwrap(),
                &[both, json, "mcp-method: tools/call", "mcp-name: add", new][..],
            ),
            (
                stateless_post("2026-07-28", "resources/read", Some("file:///a%20b.txt")).unwrap(),
                &[both, json, "mcp-method: resources/read", "mcp-name: file:///a%20b.txt", new],
            ),
            (
                stateless_post("2026-07-28", "tools/list", None).unwrap(),
                &[both, json, "mcp-method: tools/list", new],
            ),
            (initialize(), &[both, json]),
            (session_post("2025-11-25", Some("9f")).unwrap(), &[both, json, old, session]),
            (session_post("2025-11-25", None).unwrap(), &[both, json, old]),
            (session_get("2025-11-25", Some("9f"), None).unwrap(), &[stream, old, session]),
            (
                session_get("2025-11-25", Some("9f"), Some("世-2")).unwrap(),
                &[stream, "last-event-id: 世-2", old, session],
            ),
            (session_delete("2025-11-25", "9f").unwrap(), &[old, session]),
            (event_stream(), &[stream]),
        ] {
            assert_eq!(lines(&headers), expected);
        }
        let headers = session_post("2025-11-25", Some("9f")).unwrap();
        assert!(headers[&MCP_SESSION_ID].is_sensitive());
    }

    #[test]
    fn posts_of_each_revision() {
        let both = "accept: application/json, text/event-stream";
        let json = "content-type: application/json";
        let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"gr\u00fc\u00dfen"}}"#;
        let call = Message::parse(call).unwrap();
        let task = br#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"7"}}"#;
        let task = Message::parse(task).unwrap();
        let notification = Message::parse(br#"{"jsonrpc":"2.0","method":"notifications/x"}"#).unwrap();
        let tasks = [NameSource::new("tasks/get", "taskId")];
        let all = |posts: &PostHeaders, messages: &[Message]| {
            let mut headers = posts.common().clone();
            headers.extend(posts.of(messages, &tasks).unwrap().into_iter().map(|(n, v)| (Some(n), v)));
            lines(&headers)
        };
        for revision in Revision::all() {
            let version = format!("mcp-protocol-version: {revision}");
            let posts = PostHeaders::new(Some(revision), Some("9f")).unwrap();
            if !revision.is_stateless() {
                let expected = [both, json, &version, "mcp-session-id: 9f"];
                assert_eq!(all(&posts, std::slice::from_ref(&call)), expected);
                assert!(posts.common()[&MCP_SESSION_ID].is_sensitive());
                continue;
            }
            let method = "mcp-method: tools/call";
            let name = "mcp-name: =?base64?Z3LDvMOfZW4=?=";
            assert_eq!(all(&posts, std::slice::from_ref(&call)), [both, json, method, name, &version]);
            let expected = [both, json, "mcp-method: tasks/get", "mcp-name: 7", &version];
            assert_eq!(all(&posts, std::slice::from_ref(&task)), expected);
            let expected = [both, json, "mcp-method: notifications/x", &version];
            assert_eq!(all(&posts, std::slice::from_ref(&notification)), expected);
        }
        // Nothing is agreed on, or nothing but the session.
        assert_eq!(all(&PostHeaders::new(None, None).unwrap(), std::slice::from_ref(&call)), [both, json]);
        assert_eq!(
            all(&PostHeaders::new(None, Some("9f")).unwrap(), &[call]),
            [both, json, "mcp-session-id: 9f"]
        );
    }

    #[test]
    fn a_value_that_would_not_arrive_is_refused() {
        for bad in [
            session_post("2025-11-25", Some("9f\r\nx: y")),
            session_post("2025-11-25", Some("9f ")),
            session_get("2025-11-25", None, Some(" 7")),
            stateless_post("2026-07-28", "\ttools/list", None),
        ] {
            let message = bad.unwrap_err().to_string();
            assert!(message.contains("is not a valid header value"), "{message}");
        }
        let posts = PostHeaders::new(Some(Revision::LATEST), None).unwrap();
        let unsendable =
            Message::Notification(pintle_types::Notification::new("notifications/x\r\ny: z", None));
        let message = posts.of(&[unsendable], &[]).unwrap_err().to_string();
        assert!(message.contains("is not a valid header value"), "{message}");
    }
}
