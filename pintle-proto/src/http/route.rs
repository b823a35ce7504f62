use pintle_types::{RpcError, method};

use super::{
    Endpoint, Head, Refusal, mirror, name_member,
    open::{session_id, session_missing},
    refusal::Listed,
};
use crate::{Stamp, shown::shown};

/// The parsed body of a POST, as far as routing depends on it.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub enum PostBody<'a> {
    /// One request.
    Request(RequestHead<'a>),
    /// One notification.
    Notification,
    /// One response to a request from the server.
    Response,
    /// An array of any of these.
    Batch,
}

/// The members of a request that its routing depends on.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// The method.
    pub method: &'a str,
    /// The protocol version in `params._meta`.
    pub version: Option<&'a str>,
    /// Whether `params._meta` has the client's capabilities.
    pub capabilities: bool,
    /// The member of `params` that [`name_member`] returns, if it is a string.
    pub name: Option<&'a str>,
}

impl<'a> RequestHead<'a> {
    /// Creates a request head. A stateless request has the last three, a session-era request only the first.
    pub const fn new(
        method: &'a str,
        version: Option<&'a str>,
        capabilities: bool,
        name: Option<&'a str>,
    ) -> Self {
        Self { method, version, capabilities, name }
    }
}

/// The destination of a POST.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Post<'a> {
    /// The stateless era. Head and body are consistent.
    Stateless {
        /// The revision of the request.
        version: &'a str,
    },
    /// Nowhere: a notification in the stateless era, which defines none over HTTP. Respond with 202.
    Ignored,
    /// The handshake of the session era.
    Initialize,
    /// A session. Respond with [`Refusal::unknown_session`] if there is no such session, then
    /// [`check_session_version`], and with [`Refusal::batch`] to a batch unless the session's revision has them.
    Session {
        /// The id of the session.
        id: &'a str,
    },
    /// The session era, without a session.
    Sessionless {
        /// The revision of the request.
        version: &'a str,
    },
}

/// Routes a POST, or refuses it. On refusal, pass the id of the request to [`Refusal::body`].
///
/// A protocol version in `_meta` selects the stateless era, whatever else is present; next come the handshake, the
/// session and the version header, in this order.
///
/// ```
/// use http::{HeaderMap, Method, Uri};
/// use pintle_proto::http::{PostBody, Endpoint, Head, Post, RequestHead, route};
///
/// let mut headers = HeaderMap::new();
/// headers.insert("mcp-protocol-version", "new".parse().unwrap());
/// headers.insert("mcp-method", "tools/call".parse().unwrap());
/// headers.insert("mcp-name", "ad".parse().unwrap());
/// let uri = Uri::from_static("/mcp");
/// let head = Head::new(&Method::POST, &uri, &headers);
/// let body = PostBody::Request(RequestHead::new("tools/call", Some("new"), true, Some("add")));
///
/// let refusal = route(&head, &body, &Endpoint::new(&["new"], &["old"])).unwrap_err();
/// assert_eq!(refusal.status, 400);
/// assert_eq!(
///     refusal.error.message,
///     "the `Mcp-Name` header is `ad` and the body's `params.name` is `add`; send the same value in both",
/// );
/// ```
pub fn route<'a>(head: &Head<'a>, body: &PostBody<'a>, endpoint: &Endpoint<'a>) -> Result<Post<'a>, Refusal> {
    let version = head.version()?;
    let stateless = !endpoint.stateless.is_empty();
    if let PostBody::Request(request) = body
        && stateless
        && request.version.is_some()
    {
        return admit(head, version, request, endpoint);
    }

    let handshakes = endpoint.sessions || endpoint.sessionless;
    let of_session = version.is_some_and(|version| endpoint.session.contains(&version));
    if let PostBody::Request(request) = body
        && handshakes
        && request.method == method::INITIALIZE
        // An unknown version may be newer than this code, and newer revisions have no handshake.
        && (version.is_none() || of_session || !stateless)
    {
        return Ok(Post::Initialize);
    }
    if endpoint.sessions
        && let Some(id) = session_id(head)?
    {
        return Ok(Post::Session { id });
    }
    if endpoint.sessionless
        && let Some(version) =
            version.filter(|_| of_session).or(endpoint.assumed.filter(|_| version.is_none()))
    {
        return match body {
            PostBody::Batch if !endpoint.batching.contains(&version) => Err(Refusal::batch()),
            _ => Ok(Post::Sessionless { version }),
        };
    }
    if handshakes && of_session {
        return Err(session_missing());
    }
    match (body, version) {
        (PostBody::Batch, _) => Err(Refusal::batch()),
        (PostBody::Request(request), _) if stateless => admit(head, version, request, endpoint),
        (PostBody::Notification, Some(version)) if endpoint.stateless.contains(&version) => Ok(Post::Ignored),
        (PostBody::Response, Some(version)) if endpoint.stateless.contains(&version) => {
            let message = format!(
                "responses are not accepted in `{version}`; send them in `inputResponses` of the next request"
            );
            Err(Refusal::bad_request(RpcError::invalid_request(message)))
        }
        (_, Some(version)) if stateless => Err(Refusal::unsupported_version(version, endpoint.advertised)),
        (_, Some(version)) => Err(session_version_refused(version, endpoint.session)),
        (_, None) if handshakes => Err(session_missing()),
        (_, None) => Err(version_missing(endpoint)),
    }
}

/// Refuses with 400 a request whose version header is not among `served`. A version other than the session's own is
/// accepted: clients should send that one, but some always send the same. The session keeps its revision.
pub fn check_session_version(head: &Head<'_>, served: &[&str]) -> Result<(), Refusal> {
    match head.version()? {
        Some(version) if !served.contains(&version) => Err(session_version_refused(version, served)),
        _ => Ok(()),
    }
}

/// Checks a stateless request, in the order that the conformance suite expects.
fn admit<'a>(
    head: &Head<'a>,
    version: Option<&str>,
    request: &RequestHead<'a>,
    endpoint: &Endpoint<'_>,
) -> Result<Post<'a>, Refusal> {
    let Some(header) = version else { return Err(version_missing(endpoint)) };
    let version = Stamp::require(request.version, request.capabilities).map_err(Refusal::bad_request)?;
    if header != version {
        let member = "params._meta.io.modelcontextprotocol/protocolVersion";
        return Err(mirror::mismatch("MCP-Protocol-Version", header, member, version));
    }
    if !endpoint.stateless.contains(&version) {
        return Err(Refusal::unsupported_version(version, endpoint.advertised));
    }
    mirror::check_method(head, request.method)?;
    if let Some(member) = name_member(request.method, endpoint.names) {
        mirror::check_name(head, member, request.name)?;
    }
    Ok(Post::Stateless { version })
}

fn version_missing(endpoint: &Endpoint<'_>) -> Refusal {
    Refusal::header_mismatch(format!(
        "the `MCP-Protocol-Version` header is missing; send {} there and in `params._meta`{}",
        Listed(endpoint.stateless),
        if endpoint.sessions { ", or `initialize` first" } else { "" }
    ))
}

fn session_version_refused(version: &str, served: &[&str]) -> Refusal {
    Refusal::bad_request(RpcError::invalid_request(format!(
        "the `MCP-Protocol-Version` header is `{}`; send {}",
        shown(version),
        Listed(served)
    )))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method, Uri};

    use super::*;
    use crate::http::NameSource;

    const NEW: &str = "2026-07-28";
    const OLD: &str = "2025-11-25";
    const BATCHING: &str = "2025-03-26";

    const BOTH: Endpoint<'_> = Endpoint::new(&[NEW], &[OLD, BATCHING]);
    const MODERN: Endpoint<'_> = Endpoint::new(&[NEW], &[]);
    const LEGACY: Endpoint<'_> = Endpoint::new(&[], &[OLD, BATCHING]);
    const SESSIONLESS: Endpoint<'_> = Endpoint {
        sessions: false,
        sessionless: true,
        assumed: Some(BATCHING),
        batching: &[BATCHING],
        ..BOTH
    };

    fn modern(method: &'static str, name: Option<&'static str>) -> PostBody<'static> {
        PostBody::Request(RequestHead::new(method, Some(NEW), true, name))
    }

    fn plain(method: &'static str) -> PostBody<'static> {
        PostBody::Request(RequestHead::new(method, None, false, None))
    }

    /// Routes a POST whose headers are `v` (version), `s` (session), `m` (method), `n` (name); returns the destination or the code.
    fn routed(endpoint: &Endpoint<'_>, lines: &str, body: PostBody<'_>) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in lines.split_whitespace().map(|word| word.split_once('=').unwrap()) {
            let name = match name {
                "v" => "mcp-protocol-version",
                "s" => "mcp-session-id",
                "m" => "mcp-method",
                _ => "mcp-name",
            };
            headers.append(name, value.parse().unwrap());
        }
        let uri = Uri::from_static("/mcp");
        match route(&Head::new(&Method::POST, &uri, &headers), &body, endpoint) {
            Ok(Post::Stateless { version }) => format!("stateless {version}"),
            Ok(Post::Ignored) => "ignored".into(),
            Ok(Post::Initialize) => "initialize".into(),
            Ok(Post::Session { id }) => format!("session {id}"),
            Ok(Post::Sessionless { version }) => format!("sessionless {version}"),
            Err(refusal) => format!("{} {}", refusal.status.as_u16(), refusal.error.code.0),
        }
    }

    #[test]
    fn which_era() {
        let list = modern("tools/list", None);
        for (endpoint, headers, body, expected) in [
            // `_meta` decides first, whatever the method and whatever session is named.
            (&BOTH, "v=2026-07-28 m=tools/list", list, "stateless 2026-07-28"),
            (&BOTH, "v=2026-07-28 m=tools/list s=9f", list, "stateless 2026-07-28"),
            (&BOTH, "v=2026-07-28 m=initialize", modern("initialize", None), "stateless 2026-07-28"),
            (&BOTH, "v=2026-07-28 m=ping", modern("ping", None), "stateless 2026-07-28"),
            (&BOTH, "v=2025-11-25 m=tools/list s=9f", list, "400 -32020"),
            // A modern or unknown header without `_meta` is modern and malformed.
            (&BOTH, "v=2026-07-28 m=tools/list", plain("tools/list"), "400 -32602"),
            (&BOTH, "v=2026-07-28 m=initialize", plain("initialize"), "400 -32602"),
            (&BOTH, "v=v999.0.0 m=tools/list", plain("tools/list"), "400 -32602"),
            (&BOTH, "v=v999.0.0", plain("initialize"), "400 -32602"),
            // The handshake.
            (&BOTH, "", plain("initialize"), "initialize"),
            (&BOTH, "v=2025-11-25 m=initialize", plain("initialize"), "initialize"),
            (&BOTH, "s=stale", plain("initialize"), "initialize"),
            (&LEGACY, "v=v999.0.0", plain("initialize"), "initialize"),
            (&SESSIONLESS, "", plain("initialize"), "initialize"),
            (&MODERN, "", plain("initialize"), "400 -32020"),
            (&MODERN, "v=2025-11-25", plain("initialize"), "400 -32602"),
            // Sessions.
            (&BOTH, "s=9f", plain("tools/list"), "session 9f"),
            (&BOTH, "s=9f v=2025-11-25", plain("tools/list"), "session 9f"),
            (&BOTH, "s=9f", PostBody::Notification, "session 9f"),
            (&BOTH, "s=9f", PostBody::Response, "session 9f"),
            (&BOTH, "s=9f", PostBody::Batch, "session 9f"),
            (&LEGACY, "s=9f v=2026-07-28 m=tools/list", list, "session 9f"),
            (&BOTH, "s=é", plain("tools/list"), "400 -32020"),
            (&BOTH, "v=2025-11-25", plain("tools/list"), "400 -32600"),
            (&BOTH, "v=2025-11-25", PostBody::Notification, "400 -32600"),
            (&BOTH, "", PostBody::Notification, "400 -32600"),
            (&BOTH, "", PostBody::Response, "400 -32600"),
            (&LEGACY, "", plain("tools/list"), "400 -32600"),
            (&LEGACY, "v=v999.0.0", plain("tools/list"), "400 -32600"),
            (&LEGACY, "v=2026-07-28 m=server/discover", modern("server/discover", None), "400 -32600"),
            // No sign of an era at all.
            (&BOTH, "", plain("tools/list"), "400 -32020"),
            (&MODERN, "", plain("tools/list"), "400 -32020"),
            (&MODERN, "s=9f", plain("tools/list"), "400 -32020"),
            (&MODERN, "", PostBody::Notification, "400 -32020"),
            // The session era without sessions.
            (&SESSIONLESS, "v=2025-11-25", plain("tools/list"), "sessionless 2025-11-25"),
            (&SESSIONLESS, "", plain("tools/list"), "sessionless 2025-03-26"),
            (&SESSIONLESS, "s=ignored", PostBody::Notification, "sessionless 2025-03-26"),
            (&SESSIONLESS, "", PostBody::Response, "sessionless 2025-03-26"),
            (&SESSIONLESS, "v=2026-07-28 m=tools/list", list, "stateless 2026-07-28"),
            // Batches.
            (&SESSIONLESS, "", PostBody::Batch, "sessionless 2025-03-26"),
            (&SESSIONLESS, "v=2025-11-25", PostBody::Batch, "400 -32600"),
            (&SESSIONLESS, "v=2026-07-28", PostBody::Batch, "400 -32600"),
            (&MODERN, "v=2026-07-28", PostBody::Batch, "400 -32600"),
            (&BOTH, "", PostBody::Batch, "400 -32600"),
            // What the stateless era has no use for.
            (&MODERN, "v=2026-07-28 m=notifications/cancelled", PostBody::Notification, "ignored"),
            (&BOTH, "v=2026-07-28", PostBody::Response, "400 -32600"),
            (&BOTH, "v=v999.0.0", PostBody::Notification, "400 -32022"),
            (&BOTH, "v=v999.0.0", PostBody::Response, "400 -32022"),
        ] {
            assert_eq!(routed(endpoint, headers, body), expected, "{headers} {body:?}");
        }
    }

    #[test]
    fn checks_of_the_stateless_era_come_in_order() {
        let request = |version, capabilities| {
            PostBody::Request(RequestHead::new("tools/call", version, capabilities, Some("add")))
        };
        for (headers, body, expected) in [
            ("", request(None, false), "400 -32020"),
            ("", request(Some(NEW), true), "400 -32020"),
            ("v=2026-07-28", request(None, false), "400 -32602"),
            ("v=2026-07-28", request(None, true), "400 -32602"),
            ("v=2026-07-28", request(Some(NEW), false), "400 -32602"),
            ("v=2026-07-28", request(Some("v999.0.0"), false), "400 -32602"),
            ("v=2026-07-28", request(Some("v999.0.0"), true), "400 -32020"),
            ("v=v999.0.0", request(Some("v999.0.0"), true), "400 -32022"),
            ("v=2025-11-25", request(Some("2025-11-25"), true), "400 -32022"),
            ("v=2026-07-28", request(Some(NEW), true), "400 -32020"),
            ("v=2026-07-28 m=tools/list", request(Some(NEW), true), "400 -32020"),
            ("v=2026-07-28 m=tools/call", request(Some(NEW), true), "400 -32020"),
            ("v=2026-07-28 m=tools/call n=sub", request(Some(NEW), true), "400 -32020"),
            ("v=2026-07-28 m=tools/call n=add", request(Some(NEW), true), "stateless 2026-07-28"),
            ("v=2026-07-28 v=2026-07-28 m=tools/call n=add", request(Some(NEW), true), "400 -32020"),
        ] {
            assert_eq!(routed(&BOTH, headers, body), expected, "{headers} {body:?}");
        }
    }

    #[test]
    fn extensions_have_names_too() {
        let names = [NameSource::new("tasks/get", "taskId")];
        let tasks = Endpoint { names: &names, ..MODERN };
        let get = modern("tasks/get", Some("t1"));
        assert_eq!(routed(&tasks, "v=2026-07-28 m=tasks/get n=t1", get), "stateless 2026-07-28");
        assert_eq!(routed(&tasks, "v=2026-07-28 m=tasks/get", get), "400 -32020");
        assert_eq!(routed(&MODERN, "v=2026-07-28 m=tasks/get", get), "stateless 2026-07-28");
    }

    #[test]
    fn a_refusal_names_the_versions() {
        let (headers, uri) = (HeaderMap::new(), Uri::from_static("/mcp"));
        let head = Head::new(&Method::POST, &uri, &headers);
        let refusal = route(&head, &plain("initialize"), &MODERN).unwrap_err();
        assert_eq!(
            refusal.error.message,
            "the `MCP-Protocol-Version` header is missing; send `2026-07-28` there and in `params._meta`"
        );
    }

    #[test]
    fn a_session_takes_requests_of_every_revision_that_is_served() {
        let uri = Uri::from_static("/mcp");
        for (header, fine) in [
            (None, true),
            (Some(OLD), true),
            (Some(BATCHING), true),
            (Some(NEW), false),
            (Some("v999.0.0"), false),
        ] {
            let headers = header
                .map(|value| ("mcp-protocol-version".parse().unwrap(), value.parse().unwrap()))
                .into_iter()
                .collect();
            let checked = check_session_version(&Head::new(&Method::POST, &uri, &headers), &[OLD, BATCHING]);
            assert_eq!(
                checked.map_err(|refusal| refusal.status.as_u16()),
                if fine { Ok(()) } else { Err(400) }
            );
        }
    }
}
