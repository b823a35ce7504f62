//! What the answer to a client's first request says about the server.

use http::StatusCode;
use pintle_types::ErrorCode;

/// An answer, as far as it tells something about its server's era.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    /// The status.
    pub status: StatusCode,
    /// Whether it has a `WWW-Authenticate` header.
    pub challenge: bool,
    /// What its body was.
    pub body: ReplyBody<'a>,
}

/// The body of an answer. One of another content type than JSON or an event stream is [`Unreadable`](Self::Unreadable).
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub enum ReplyBody<'a> {
    /// A JSON-RPC result.
    Result,
    /// A JSON-RPC error.
    Error {
        /// Its code.
        code: ErrorCode,
        /// Its `data.supported`, if there is such a list.
        supported: &'a [&'a str],
    },
    /// Anything else, or nothing.
    Unreadable,
}

impl<'a> Reply<'a> {
    /// An answer without a challenge.
    pub const fn new(status: StatusCode, body: ReplyBody<'a>) -> Self {
        Self { status, challenge: false, body }
    }
}

/// What a client does next.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict<'a> {
    /// Goes on in the stateless era.
    Stateless,
    /// Asks again in this stateless-era revision, with a new id, even if it is the same as before. Once.
    Reselect(&'a str),
    /// Sends `initialize`, offering this revision, or its newest if the server named none.
    Initialize(Option<&'a str>),
    /// Goes on in the session that it opened.
    Session,
    /// Tries the oldest transport: GET the same address and wait for an `endpoint` event.
    EventStream,
    /// Gets authorized, then asks again.
    Authorize,
    /// Reports the error that came: the server is of the stateless era, and it said no.
    Refused,
    /// Reports the answer: it says nothing about the era. Asking again later may help.
    Fail,
}

/// Judges the answer to `server/discover`, given the revisions that the client speaks, preferred ones first.
///
/// No single code decides: servers of the session era answer an unknown request in many ways. Only the codes that the
/// stateless era introduced prove that the server is of that era.
///
/// ```
/// use http::StatusCode;
/// use pintle_proto::http::probe::{Reply, ReplyBody, Verdict, after_discover};
/// use pintle_types::ErrorCode;
///
/// let body = ReplyBody::Error { code: ErrorCode::METHOD_NOT_FOUND, supported: &[] };
/// let reply = Reply::new(StatusCode::NOT_FOUND, body);
/// assert_eq!(after_discover(&reply, &["new"], &["old"]), Verdict::Initialize(None));
/// ```
pub fn after_discover<'a>(reply: &Reply<'_>, stateless: &[&'a str], session: &[&'a str]) -> Verdict<'a> {
    if let Some(verdict) = proven(reply, stateless, session) {
        return verdict;
    }
    match (reply.status, reply.body) {
        _ if wants_authorization(reply) => Verdict::Authorize,
        (status, ReplyBody::Result) if status.is_success() => Verdict::Stateless,
        // Come and go by themselves.
        (StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS, _) => {
            Verdict::Fail
        }
        (status, _) if status.is_success() || status.is_client_error() => Verdict::Initialize(None),
        _ => Verdict::Fail,
    }
}

/// Judges the answer to `initialize`, given the revisions that the client speaks, preferred ones first.
pub fn after_initialize<'a>(reply: &Reply<'_>, stateless: &[&'a str], session: &[&'a str]) -> Verdict<'a> {
    match proven(reply, stateless, session) {
        // It was just asked for.
        Some(Verdict::Initialize(_)) => return Verdict::Refused,
        Some(verdict) => return verdict,
        None => {}
    }
    match (reply.status, reply.body) {
        _ if wants_authorization(reply) => Verdict::Authorize,
        (status, ReplyBody::Result) if status.is_success() => Verdict::Session,
        (StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED, _) => {
            Verdict::EventStream
        }
        _ => Verdict::Fail,
    }
}

/// The verdict if the error is one that only the stateless era has.
fn proven<'a>(reply: &Reply<'_>, stateless: &[&'a str], session: &[&'a str]) -> Option<Verdict<'a>> {
    let ReplyBody::Error { code, supported } = reply.body else { return None };
    match code {
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => {
            let shared = |ours: &[&'a str]| ours.iter().copied().find(|version| supported.contains(version));
            Some(match (shared(stateless), shared(session)) {
                (Some(version), _) => Verdict::Reselect(version),
                (None, Some(version)) => Verdict::Initialize(Some(version)),
                (None, None) => Verdict::Refused,
            })
        }
        ErrorCode::HEADER_MISMATCH | ErrorCode::MISSING_CLIENT_CAPABILITY => Some(Verdict::Refused),
        _ => None,
    }
}

fn wants_authorization(reply: &Reply<'_>) -> bool {
    reply.status == StatusCode::UNAUTHORIZED || (reply.status == StatusCode::FORBIDDEN && reply.challenge)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &[&str] = &["2026-07-28"];
    const OLD: &[&str] = &["2025-11-25", "2025-06-18"];

    fn reply(status: u16, body: ReplyBody<'static>) -> Reply<'static> {
        Reply::new(StatusCode::from_u16(status).unwrap(), body)
    }

    fn error(code: i32, supported: &'static [&'static str]) -> ReplyBody<'static> {
        ReplyBody::Error { code: ErrorCode(code), supported }
    }

    #[test]
    fn answers_to_discover() {
        use ReplyBody::{Result, Unreadable};
        for (status, body, expected) in [
            (200, Result, Verdict::Stateless),
            (400, error(-32022, &["2026-07-28"]), Verdict::Reselect("2026-07-28")),
            (200, error(-32022, &["2027-01-01", "2026-07-28"]), Verdict::Reselect("2026-07-28")),
            (400, error(-32022, &["2025-06-18", "2025-11-25"]), Verdict::Initialize(Some("2025-11-25"))),
            (400, error(-32022, &["2027-01-01"]), Verdict::Refused),
            (400, error(-32022, &[]), Verdict::Refused),
            (400, error(-32020, &[]), Verdict::Refused),
            (400, error(-32021, &[]), Verdict::Refused),
            (404, error(-32601, &[]), Verdict::Initialize(None)),
            (200, error(-32601, &[]), Verdict::Initialize(None)),
            (400, error(-32602, &[]), Verdict::Initialize(None)),
            (400, error(-32600, &[]), Verdict::Initialize(None)),
            (400, error(-32000, &[]), Verdict::Initialize(None)),
            (404, error(-32001, &[]), Verdict::Initialize(None)),
            (400, error(0, &[]), Verdict::Initialize(None)),
            (400, Unreadable, Verdict::Initialize(None)),
            (404, Unreadable, Verdict::Initialize(None)),
            (405, Unreadable, Verdict::Initialize(None)),
            (406, Unreadable, Verdict::Initialize(None)),
            (403, Unreadable, Verdict::Initialize(None)),
            (202, Unreadable, Verdict::Initialize(None)),
            (200, Unreadable, Verdict::Initialize(None)),
            (401, Unreadable, Verdict::Authorize),
            (401, error(-32000, &[]), Verdict::Authorize),
            (408, Unreadable, Verdict::Fail),
            (429, Unreadable, Verdict::Fail),
            (301, Unreadable, Verdict::Fail),
            (500, error(-32603, &[]), Verdict::Fail),
            (502, Unreadable, Verdict::Fail),
        ] {
            assert_eq!(after_discover(&reply(status, body), NEW, OLD), expected, "{status} {body:?}");
        }
        let challenged = Reply { challenge: true, ..reply(403, Unreadable) };
        assert_eq!(after_discover(&challenged, NEW, OLD), Verdict::Authorize);
    }

    #[test]
    fn answers_to_initialize() {
        use ReplyBody::{Result, Unreadable};
        for (status, body, expected) in [
            (200, Result, Verdict::Session),
            (200, error(-32602, &[]), Verdict::Fail),
            (400, Unreadable, Verdict::EventStream),
            (404, Unreadable, Verdict::EventStream),
            (405, Unreadable, Verdict::EventStream),
            (400, error(-32600, &[]), Verdict::EventStream),
            (406, Unreadable, Verdict::Fail),
            (403, Unreadable, Verdict::Fail),
            (401, Unreadable, Verdict::Authorize),
            (400, error(-32020, &[]), Verdict::Refused),
            (400, error(-32022, &["2026-07-28"]), Verdict::Reselect("2026-07-28")),
            (400, error(-32022, &["2025-11-25"]), Verdict::Refused),
            (500, Unreadable, Verdict::Fail),
            (202, Unreadable, Verdict::Fail),
        ] {
            assert_eq!(after_initialize(&reply(status, body), NEW, OLD), expected, "{status} {body:?}");
        }
    }
}
