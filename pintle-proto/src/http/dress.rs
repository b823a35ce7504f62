//! The headers of a client's requests.
//!
//! ```
//! use pintle_proto::http::dress;
//!
//! let headers = dress::stateless_post("new", "tools/call", Some("grüßen")).unwrap();
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

/// The POSTs of a connection: what all of them wear, and what each has of its own.
///
/// ```
/// use pintle_proto::{Revision, http::dress::Posts};
/// use pintle_types::Message;
///
/// let posts = Posts::new(Some(Revision::LATEST), None).unwrap();
/// assert_eq!(posts.common()["accept"], "application/json, text/event-stream");
/// let call = Message::parse(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}"#).unwrap();
/// let own = posts.own(&[call], &[]).unwrap();
/// assert_eq!(own[0], ("mcp-method".parse().unwrap(), "tools/call".parse().unwrap()));
/// assert_eq!(own[1], ("mcp-name".parse().unwrap(), "add".parse().unwrap()));
/// ```
#[derive(Clone, Debug)]
pub struct Posts {
    common: HeaderMap,
    mirrored: bool,
}

impl Posts {
    /// With this revision, once it is agreed on, and in this session, if the server gave one out.
    ///
    /// # Errors
    ///
    /// No header can carry the session.
    pub fn new(agreed: Option<Revision>, session: Option<&str>) -> Result<Self, BadHeader> {
        let mut common = post(8);
        let mirrored = agreed.is_some_and(|revision| Streams::of(revision).mirrored);
        if let Some(revision) = agreed {
            set(&mut common, &MCP_PROTOCOL_VERSION, revision.as_str())?;
        }
        in_session(&mut common, session.filter(|_| !mirrored))?;
        Ok(Self { common, mirrored })
    }

    /// What all of them wear.
    pub fn common(&self) -> &HeaderMap {
        &self.common
    }

    /// What this one has of its own. `extensions` are the methods of extensions that name something.
    ///
    /// # Errors
    ///
    /// It names something that no header can carry.
    pub fn own(
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
            // Nearly every one; it need not be copied.
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

/// For a POST of the stateless era. `name` is what [`name_member`] says the request names.
pub fn stateless_post(version: &str, method: &str, name: Option<&str>) -> Result<HeaderMap, BadHeader> {
    let mut headers = post(5);
    set(&mut headers, &MCP_PROTOCOL_VERSION, version)?;
    set(&mut headers, &MCP_METHOD, method)?;
    if let Some(name) = name {
        set(&mut headers, &MCP_NAME, &encode_value(name))?;
    }
    Ok(headers)
}

/// For the POST that opens a session, before anything is agreed on.
pub fn initialize() -> HeaderMap {
    post(2)
}

/// For a POST of the session era, after the handshake. Servers need not give out sessions.
pub fn session_post(version: &str, session: Option<&str>) -> Result<HeaderMap, BadHeader> {
    let mut headers = post(4);
    agreed(&mut headers, version, session)?;
    Ok(headers)
}

/// For a GET of the session era: to listen, or to resume after the last event that was seen.
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

/// For the DELETE that ends a session.
pub fn session_delete(version: &str, session: &str) -> Result<HeaderMap, BadHeader> {
    let mut headers = HeaderMap::with_capacity(2);
    agreed(&mut headers, version, Some(session))?;
    Ok(headers)
}

/// For the GET that opens the stream of the oldest transport.
pub fn event_stream() -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(4);
    headers.insert(ACCEPT, HeaderValue::from_static(EVENTS));
    headers
}

/// A value that no header can carry.
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
            "the value of `{}` has characters, or white space around it, that no header can carry",
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
        // Whoever holds it can speak in the session: keep it out of logs and HPACK tables.
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

/// From bytes: the id of an event may be any UTF-8. White space around a value is lost on the way.
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
        let told = Message::parse(br#"{"jsonrpc":"2.0","method":"notifications/x"}"#).unwrap();
        let tasks = [NameSource::new("tasks/get", "taskId")];
        let all = |posts: &Posts, messages: &[Message]| {
            let mut headers = posts.common().clone();
            headers.extend(posts.own(messages, &tasks).unwrap().into_iter().map(|(n, v)| (Some(n), v)));
            lines(&headers)
        };
        for revision in Revision::all() {
            let version = format!("mcp-protocol-version: {revision}");
            let posts = Posts::new(Some(revision), Some("9f")).unwrap();
            if !revision.is_stateless() {
                let worn = [both, json, &version, "mcp-session-id: 9f"];
                assert_eq!(all(&posts, std::slice::from_ref(&call)), worn);
                assert!(posts.common()[&MCP_SESSION_ID].is_sensitive());
                continue;
            }
            let method = "mcp-method: tools/call";
            let name = "mcp-name: =?base64?Z3LDvMOfZW4=?=";
            assert_eq!(all(&posts, std::slice::from_ref(&call)), [both, json, method, name, &version]);
            let worn = [both, json, "mcp-method: tasks/get", "mcp-name: 7", &version];
            assert_eq!(all(&posts, std::slice::from_ref(&task)), worn);
            let worn = [both, json, "mcp-method: notifications/x", &version];
            assert_eq!(all(&posts, std::slice::from_ref(&told)), worn);
        }
        // Nothing is agreed on, or nothing but the session.
        assert_eq!(all(&Posts::new(None, None).unwrap(), std::slice::from_ref(&call)), [both, json]);
        assert_eq!(all(&Posts::new(None, Some("9f")).unwrap(), &[call]), [both, json, "mcp-session-id: 9f"]);
    }

    #[test]
    fn a_value_that_would_not_arrive_is_refused() {
        for bad in [
            session_post("2025-11-25", Some("9f\r\nx: y")),
            session_post("2025-11-25", Some("9f ")),
            session_get("2025-11-25", None, Some(" 7")),
            stateless_post("2026-07-28", "\ttools/list", None),
        ] {
            let said = bad.unwrap_err().to_string();
            assert!(
                said.contains("has characters, or white space around it, that no header can carry"),
                "{said}"
            );
        }
    }
}
