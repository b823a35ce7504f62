use std::fmt;

use http::StatusCode;
use pintle_types::{ErrorCode, RequestId, RpcError};
use serde::Serialize;

use crate::shown::shown;

/// An HTTP response that refuses a request. Its body names what the client has to change.
///
/// ```
/// use pintle_proto::http::Refusal;
///
/// let refusal = Refusal::too_large(1024);
/// assert_eq!(refusal.status, 413);
/// assert_eq!(
///     refusal.body(None),
///     r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"the body is larger than 1024 bytes; send less"}}"#,
/// );
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The status of the response.
    pub status: StatusCode,
    /// The JSON-RPC error in the body.
    pub error: RpcError,
    /// The value of the `Allow` header, if one is to be sent.
    pub allow: Option<&'static str>,
}

impl Refusal {
    /// Creates a refusal.
    pub fn new(status: StatusCode, error: RpcError) -> Self {
        Self { status, error, allow: None }
    }

    /// Returns a 400 refusal: the message is invalid.
    pub fn bad_request(error: RpcError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// Returns a 400 refusal: a batch, in a revision without batches.
    pub fn batch() -> Self {
        let message = "batches are not served in this revision; send one message per POST";
        Self::bad_request(RpcError::invalid_request(message))
    }

    /// Returns a 400 refusal: no `Host`, which HTTP/1.1 requires.
    pub fn no_host() -> Self {
        Self::bad_request(RpcError::invalid_request("send a `Host` header: HTTP/1.1 needs one"))
    }

    /// Returns a 403 refusal: the `Host` or the `Origin` is not allowed.
    pub fn forbidden(message: String) -> Self {
        Self::invalid(StatusCode::FORBIDDEN, message)
    }

    /// Returns a 404 refusal: the session has ended or never existed.
    pub fn unknown_session() -> Self {
        let message =
            "no such session; send `initialize` without an `Mcp-Session-Id` header to start another";
        Self::new(StatusCode::NOT_FOUND, RpcError::invalid_request(message))
    }

    /// Returns a 405 refusal: the endpoint does not support the HTTP method.
    pub fn method_not_allowed(method: &http::Method, allow: &'static str) -> Self {
        let message = format!("`{}` is not served here; use {allow}", shown(method.as_str()));
        Self { allow: Some(allow), ..Self::invalid(StatusCode::METHOD_NOT_ALLOWED, message) }
    }

    /// Returns a 406 refusal: the client accepts no available response type.
    pub fn not_acceptable(wanted: &'static str) -> Self {
        Self::invalid(StatusCode::NOT_ACCEPTABLE, format!("send `Accept: {wanted}`"))
    }

    /// Returns a 408 refusal: the body did not arrive in time.
    pub fn too_slow() -> Self {
        let message = "the body did not arrive in time; send the whole request at once";
        Self::new(StatusCode::REQUEST_TIMEOUT, RpcError::invalid_request(message))
    }

    /// Returns a 413 refusal: the body is over the limit.
    pub fn too_large(limit: usize) -> Self {
        let message = format!("the body is larger than {limit} bytes; send less");
        Self::invalid(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    /// Returns a 415 refusal: `Content-Type` is not JSON.
    pub(crate) fn unsupported_media_type() -> Self {
        let message = "send `Content-Type: application/json`";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, RpcError::invalid_request(message))
    }

    /// Returns a 400 refusal with the code for headers that are missing, malformed or inconsistent with the body.
    pub(crate) fn header_mismatch(message: String) -> Self {
        Self::bad_request(RpcError::new(ErrorCode::HEADER_MISMATCH, message))
    }

    /// Returns a 400 refusal with the code for an unsupported revision, and the list of supported ones.
    pub(crate) fn unsupported_version(requested: &str, supported: &[&str]) -> Self {
        #[derive(Serialize)]
        struct UnsupportedVersion<'a> {
            supported: &'a [&'a str],
            requested: &'a str,
        }

        let requested = &*shown(requested);
        let message = format!("protocol version `{requested}` is not served here; use {}", Listed(supported));
        let error = RpcError::new(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, message);
        Self::bad_request(error.with_data(&UnsupportedVersion { supported, requested }))
    }

    /// Returns the body of the response. `id` is the id of the request, if it could be read.
    pub fn body(&self, id: Option<&RequestId>) -> String {
        #[derive(Serialize)]
        struct ErrorResponse<'a> {
            jsonrpc: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<&'a RequestId>,
            error: &'a RpcError,
        }

        let answer = ErrorResponse { jsonrpc: "2.0", id, error: &self.error };
        serde_json::to_string(&answer).expect("our own types serialize")
    }

    fn invalid(status: StatusCode, message: String) -> Self {
        Self::new(status, RpcError::invalid_request(message))
    }
}

/// Displays a list as "`a` or `b`".
pub(super) struct Listed<'a>(pub(super) &'a [&'a str]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, item) in self.0.iter().enumerate() {
            let or = if at == 0 { "" } else { " or " };
            write!(f, "{or}`{item}`")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[test]
    fn every_refusal_says_what_to_change() {
        for (refusal, status, body) in [
            (Refusal::batch(), 400, "batches are not served in this revision; send one message per POST"),
            (Refusal::forbidden("host `evil` is not served".into()), 403, "host `evil` is not served"),
            (
                Refusal::unknown_session(),
                404,
                "no such session; send `initialize` without an `Mcp-Session-Id` header to start another",
            ),
            (Refusal::method_not_allowed(&Method::PUT, "POST"), 405, "`PUT` is not served here; use POST"),
            (Refusal::not_acceptable("text/event-stream"), 406, "send `Accept: text/event-stream`"),
            (Refusal::too_slow(), 408, "the body did not arrive in time; send the whole request at once"),
            (Refusal::too_large(7), 413, "the body is larger than 7 bytes; send less"),
            (Refusal::unsupported_media_type(), 415, "send `Content-Type: application/json`"),
        ] {
            assert_eq!(refusal.status, status);
            let expected = format!(r#"{{"jsonrpc":"2.0","error":{{"code":-32600,"message":"{body}"}}}}"#);
            assert_eq!(refusal.body(None), expected);
        }
        assert_eq!(Refusal::method_not_allowed(&Method::PUT, "POST").allow, Some("POST"));
    }

    #[test]
    fn a_readable_id_is_echoed_and_the_versions_are_listed() {
        let refusal = Refusal::unsupported_version("v999.0.0", &["2026-07-28", "2025-11-25"]);
        let message = "protocol version `v999.0.0` is not served here; use `2026-07-28` or `2025-11-25`";
        assert_eq!(
            refusal.body(Some(&"a".into())),
            format!(
                r#"{{"jsonrpc":"2.0","id":"a","error":{{"code":-32022,"message":"{message}","data":{{"supported":["2026-07-28","2025-11-25"],"requested":"v999.0.0"}}}}}}"#
            )
        );
    }
}
