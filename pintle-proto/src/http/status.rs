use http::StatusCode;
use pintle_types::ErrorCode;

use crate::Revision;

/// Returns the status of a stateless-era response with this error code.
///
/// A request with incomplete `_meta` is refused with 400 before this is called; the same code from a handler means that
/// a tool or resource does not exist, and is sent with 200.
pub fn stateless_status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::PARSE_ERROR
        | ErrorCode::INVALID_REQUEST
        | ErrorCode::HEADER_MISMATCH
        | ErrorCode::MISSING_CLIENT_CAPABILITY
        | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => StatusCode::BAD_REQUEST,
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        ErrorCode::OVERLOADED => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::OK,
    }
}

/// Returns the status of a session-era response with this error code.
///
/// Only unparsable messages are 400, and overload is 429: clients of that era give up on any other status without
/// reading the body, and 404 would mean that the session has ended.
pub fn session_status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::PARSE_ERROR => StatusCode::BAD_REQUEST,
        ErrorCode::OVERLOADED => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::OK,
    }
}

/// Returns whether clients of this revision add the scopes that a 403 names to those they were granted before.
///
/// [Authorization, Scope Challenge Handling]: from 2026-07-28 on they must, and a challenge names only what the request
/// needs. Before, they may request just the named scopes, so a challenge should include those already granted.
pub fn adds_to_granted(revision: Revision) -> bool {
    revision.dialect().adds_to_granted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_adds_to_what_was_granted() {
        let adds: Vec<_> = Revision::all().map(adds_to_granted).collect();
        assert_eq!(adds, [true, false, false, false, false]);
    }

    #[test]
    fn statuses_by_code_and_era() {
        for (code, stateless, session) in [
            (-32700, 400, 400),
            (-32600, 400, 200),
            (-32601, 404, 200),
            (-32602, 200, 200),
            (-32603, 200, 200),
            (-32020, 400, 200),
            (-32021, 400, 200),
            (-32022, 400, 200),
            (-32002, 200, 200),
            (-32042, 200, 200),
            (-31503, 429, 429),
            (-1, 200, 200),
            (7, 200, 200),
        ] {
            assert_eq!(stateless_status(ErrorCode(code)), stateless, "{code}");
            assert_eq!(session_status(ErrorCode(code)), session, "{code}");
        }
    }
}
