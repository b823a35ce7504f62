use http::{Method, header::CONTENT_LENGTH};

use super::{
    Accepts, Guard, Head, NameSource, Refusal,
    accept::{EVENTS, USUAL, check_content_type},
};

/// The configuration of an endpoint. Revisions are given by name, preferred ones first.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct Endpoint<'a> {
    /// The stateless-era revisions that are served. An empty list disables that era.
    pub stateless: &'a [&'a str],
    /// The session-era revisions that are served. An empty list disables that era.
    pub session: &'a [&'a str],
    /// The revisions listed in the error for an unsupported one, as in the result of `server/discover`.
    pub advertised: &'a [&'a str],
    /// The revisions of `session` that have batches.
    pub batching: &'a [&'a str],
    /// The revision of `session` that is assumed for a request that names none.
    pub assumed: Option<&'a str>,
    /// Whether `initialize` opens a session, which later requests name.
    pub sessions: bool,
    /// Whether session-era requests are served without a session.
    pub sessionless: bool,
    /// The methods of extensions whose requests carry `Mcp-Name`.
    pub names: &'a [NameSource<'a>],
    /// The maximum size of a body, in bytes.
    pub body_limit: usize,
}

impl<'a> Endpoint<'a> {
    /// Creates an endpoint for these revisions. It has sessions if there are session-era revisions.
    pub const fn new(stateless: &'a [&'a str], session: &'a [&'a str]) -> Self {
        Self {
            stateless,
            session,
            advertised: stateless,
            batching: &[],
            assumed: None,
            sessions: !session.is_empty(),
            sessionless: false,
            names: &[],
            body_limit: usize::MAX,
        }
    }

    fn allow(&self) -> &'static str {
        if self.sessions { "POST, GET, DELETE" } else { "POST" }
    }
}

/// A request to an endpoint, classified by its head.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EndpointRequest<'a> {
    /// A POST: read the body, then [`route`](super::route) it. The response has one of these types.
    Post(Accepts),
    /// A GET that opens a stream for messages that belong to no request. As with
    /// [`Post::Session`](super::Post::Session), the session may be unknown or of another revision.
    Listen {
        /// The session whose messages are streamed.
        session: &'a str,
    },
    /// A GET that resumes an interrupted stream.
    Resume {
        /// The session that the stream belongs to.
        session: &'a str,
        /// The last event received, which also identifies the stream.
        last_event_id: &'a str,
    },
    /// A DELETE that ends a session.
    End {
        /// The session to end.
        session: &'a str,
    },
    /// An OPTIONS request, for CORS or otherwise. Without CORS the response is 204 with this `Allow`.
    Options {
        /// The HTTP methods of this endpoint.
        allow: &'static str,
    },
}

/// Admits or refuses a request by its head, before its body is read.
///
/// ```
/// use http::{HeaderMap, Method, Uri};
/// use pintle_proto::http::{Endpoint, Guard, Head, EndpointRequest, open};
///
/// let mut headers = HeaderMap::new();
/// headers.insert("host", "localhost:8080".parse().unwrap());
/// headers.insert("accept", "text/event-stream".parse().unwrap());
/// headers.insert("mcp-session-id", "9f86d081".parse().unwrap());
/// let uri = Uri::from_static("/mcp");
/// let head = Head::new(&Method::GET, &uri, &headers);
///
/// let endpoint = Endpoint::new(&[], &["old"]);
/// assert_eq!(open(&head, &Guard::loopback(), &endpoint), Ok(EndpointRequest::Listen { session: "9f86d081" }));
/// let refusal = open(&head, &Guard::loopback(), &Endpoint::new(&["new"], &[])).unwrap_err();
/// assert_eq!((refusal.status.as_u16(), refusal.allow), (405, Some("POST")));
/// ```
pub fn open<'a>(
    head: &Head<'a>,
    guard: &Guard,
    endpoint: &Endpoint<'_>,
) -> Result<EndpointRequest<'a>, Refusal> {
    guard.check(head)?;
    match *head.method {
        Method::POST => open_post(head, endpoint).map(EndpointRequest::Post),
        Method::GET => {
            let session = required_session(head, endpoint)?;
            if !Accepts::read(head).events {
                return Err(Refusal::not_acceptable(EVENTS));
            }
            Ok(match head.last_event_id()? {
                Some(last_event_id) => EndpointRequest::Resume { session, last_event_id },
                None => EndpointRequest::Listen { session },
            })
        }
        Method::DELETE => Ok(EndpointRequest::End { session: required_session(head, endpoint)? }),
        Method::OPTIONS => Ok(EndpointRequest::Options { allow: endpoint.allow() }),
        _ => Err(Refusal::method_not_allowed(head.method, endpoint.allow())),
    }
}

/// Returns whether a text is a valid session id: visible ASCII, at most 1,024 bytes.
pub fn is_session_id(text: &str) -> bool {
    // All bytes are tested, so that the compiler vectorizes the loop.
    (1..=MAX_SESSION_ID).contains(&text.len())
        && text.bytes().fold(true, |fits, byte| fits & byte.is_ascii_graphic())
}

/// Returns the session id of the head, if there is one, or refuses an invalid one.
pub(super) fn session_id<'a>(head: &Head<'a>) -> Result<Option<&'a str>, Refusal> {
    match head.session()? {
        Some(id) if !is_session_id(id) => Err(Refusal::bad_request(pintle_types::RpcError::invalid_request(
            "the `Mcp-Session-Id` header is not a session id; send the one from the response to `initialize`",
        ))),
        id => Ok(id),
    }
}

pub(super) fn session_missing() -> Refusal {
    Refusal::bad_request(pintle_types::RpcError::invalid_request(
        "the `Mcp-Session-Id` header is missing; send `initialize` first, then the id from its response",
    ))
}

const MAX_SESSION_ID: usize = 1024;

fn open_post(head: &Head<'_>, endpoint: &Endpoint<'_>) -> Result<Accepts, Refusal> {
    check_content_type(head)?;
    let accepts = Accepts::read(head);
    if !accepts.json && !accepts.events {
        return Err(Refusal::not_acceptable(USUAL));
    }
    // An invalid length is refused by the HTTP library, and the limit is enforced while reading too.
    match head.content_length.text(CONTENT_LENGTH.as_str())?.map(str::parse) {
        Some(Ok(length)) if endpoint.body_limit < length => Err(Refusal::too_large(endpoint.body_limit)),
        _ => Ok(accepts),
    }
}

/// Returns the session of a GET or DELETE. Both exist in the session era only.
fn required_session<'a>(head: &Head<'a>, endpoint: &Endpoint<'_>) -> Result<&'a str, Refusal> {
    let not_allowed = || Refusal::method_not_allowed(head.method, "POST");
    if !endpoint.sessions {
        return Err(not_allowed());
    }
    match session_id(head)? {
        Some(id) => Ok(id),
        // Clients without a session try this too, and take 405 for "not supported".
        None if endpoint.sessionless => Err(not_allowed()),
        None if head.version()?.is_some_and(|version| endpoint.stateless.contains(&version)) => {
            Err(not_allowed())
        }
        None => Err(session_missing()),
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Uri};

    use super::*;

    const BOTH: Endpoint<'_> = Endpoint::new(&["2026-07-28"], &["2025-11-25", "2025-03-26"]);
    const MODERN: Endpoint<'_> = Endpoint::new(&["2026-07-28"], &[]);

    /// Opens `METHOD` with headers in lines; returns the status, or the kind of request.
    fn opened(endpoint: &Endpoint<'_>, method: &str, lines: &str) -> String {
        let headers: HeaderMap = lines
            .lines()
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap()))
            .collect();
        let (method, uri) = (method.parse().unwrap(), Uri::from_static("/mcp"));
        match open(&Head::new(&method, &uri, &headers), &Guard::loopback(), endpoint) {
            Ok(opening) => format!("{opening:?}"),
            Err(Refusal { status, allow: Some(allow), .. }) => format!("{} {allow}", status.as_u16()),
            Err(refusal) => refusal.status.as_u16().to_string(),
        }
    }

    #[test]
    fn posts() {
        let both = "Post(Accepts { json: true, events: true })";
        let json = "content-type: application/json";
        let limited = Endpoint { body_limit: 10, ..BOTH };
        for (endpoint, lines, expected) in [
            (&BOTH, format!("{json}\naccept: application/json, text/event-stream"), both),
            (&MODERN, format!("{json}\nhost: localhost:80\norigin: http://localhost:80"), both),
            (
                &BOTH,
                format!("{json}\naccept: application/json"),
                "Post(Accepts { json: true, events: false })",
            ),
            (&BOTH, format!("{json}\naccept: text/html"), "406"),
            (&BOTH, "content-type: text/plain".into(), "415"),
            (&BOTH, String::new(), "415"),
            (&limited, format!("{json}\ncontent-length: 10"), both),
            (&limited, format!("{json}\ncontent-length: 11"), "413"),
            (&limited, format!("{json}\ncontent-length: 99999999999999999999999"), both),
            (&BOTH, format!("{json}\nhost: evil.example.com"), "403"),
            (&BOTH, "host: evil.example.com\ncontent-type: text/plain".into(), "403"),
            (&BOTH, format!("{json}\norigin: null"), "403"),
        ] {
            assert_eq!(opened(endpoint, "POST", &lines), expected, "{lines}");
        }
    }

    #[test]
    fn gets_and_deletes() {
        let sessionless = Endpoint { sessionless: true, ..BOTH };
        let stream = "accept: text/event-stream";
        let id = "mcp-session-id: 9f";
        for (endpoint, method, lines, expected) in [
            (&BOTH, "GET", format!("{stream}\n{id}"), r#"Listen { session: "9f" }"#),
            (
                &BOTH,
                "GET",
                format!("{stream}\n{id}\nlast-event-id: s2-2"),
                r#"Resume { session: "9f", last_event_id: "s2-2" }"#,
            ),
            (&BOTH, "GET", format!("{stream}\n{id}\nlast-event-id: "), r#"Listen { session: "9f" }"#),
            (&BOTH, "GET", format!("accept: application/json\n{id}"), "406"),
            (&BOTH, "GET", stream.into(), "400"),
            (&BOTH, "GET", format!("{stream}\nmcp-session-id: a b"), "400"),
            (&BOTH, "GET", format!("{stream}\nmcp-protocol-version: 2026-07-28"), "405 POST"),
            (&MODERN, "GET", format!("{stream}\n{id}\nlast-event-id: s2-2"), "405 POST"),
            (&sessionless, "GET", stream.into(), "405 POST"),
            (&BOTH, "DELETE", id.into(), r#"End { session: "9f" }"#),
            (&BOTH, "DELETE", String::new(), "400"),
            (&MODERN, "DELETE", id.into(), "405 POST"),
            (&BOTH, "GET", format!("{stream}\n{id}\norigin: http://evil.com"), "403"),
            (&BOTH, "OPTIONS", String::new(), r#"Options { allow: "POST, GET, DELETE" }"#),
            (&BOTH, "OPTIONS", "origin: http://evil.com".into(), "403"),
            (&BOTH, "PUT", String::new(), "405 POST, GET, DELETE"),
            (&MODERN, "HEAD", String::new(), "405 POST"),
        ] {
            assert_eq!(opened(endpoint, method, &lines), expected, "{method} {lines}");
        }
    }

    #[test]
    fn session_ids_are_visible_ascii() {
        assert!(is_session_id("!~9f86d081-aB_./="));
        for text in ["", "a b", "a\tb", "é", "a\u{7f}", &"a".repeat(1025)] {
            assert!(!is_session_id(text), "{text:?}");
        }
    }
}
