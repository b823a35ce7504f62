use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// A JSON-RPC error.
///
/// ```
/// use pintle_types::{ErrorCode, RpcError};
///
/// let error = RpcError::invalid_params("no such tool: `ad`").with_data(&["add"]);
/// assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
/// assert_eq!(error.data.unwrap().get(), r#"["add"]"#);
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RpcError {
    /// The code.
    pub code: ErrorCode,
    /// A message for people, one sentence.
    pub message: Cow<'static, str>,
    /// Additional data, whose shape depends on `code`. Not decoded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    /// Creates an error without `data`.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The bytes were not JSON.
    pub fn parse_error(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::PARSE_ERROR, message)
    }

    /// Creates an error for JSON that is not a JSON-RPC message, or that is not allowed at this time.
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, message)
    }

    /// Creates an error for an unknown method.
    pub fn method_not_found(method: &str) -> Self {
        // A peer chose the name: enough of it to be recognised, not as much as it cares to send.
        let shown = method.char_indices().nth(80).map_or(method, |(end, _)| &method[..end]);
        let dots = if shown.len() < method.len() { "…" } else { "" };
        Self::new(ErrorCode::METHOD_NOT_FOUND, format!("no such method: `{shown}{dots}`"))
    }

    /// Creates an error for parameters that do not fit the method, or that name something unknown.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INVALID_PARAMS, message)
    }

    /// Creates an internal error.
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INTERNAL_ERROR, message)
    }

    /// Creates an error for a sender at a limit of its own, such as a rate: it may try again after so many milliseconds.
    ///
    /// Over HTTP a server sends it with 429 and `Retry-After`, and clients send such a request again. So return it before
    /// anything is done, for example from a layer that limits rates.
    ///
    /// ```
    /// use pintle_types::{ErrorCode, RpcError};
    ///
    /// let error = RpcError::overloaded("1024 subscriptions are open: end one first", 1000);
    /// assert_eq!(error.code, ErrorCode::OVERLOADED);
    /// assert_eq!(error.data.unwrap().get(), r#"{"retryAfterMs":1000}"#);
    /// ```
    pub fn overloaded(message: impl Into<Cow<'static, str>>, retry_after_ms: u64) -> Self {
        Self::new(ErrorCode::OVERLOADED, message)
            .with_data(&OverloadData { retry_after_ms, unavailable: false })
    }

    /// Creates an error for a receiver that lacks something for now, such as a store that cannot be reached, or room that others have: the
    /// sender may try again after so many milliseconds.
    ///
    /// It has the code of an [overload](Self::overloaded), and clients send such a request again. Over HTTP a server sends it with 503 and
    /// `Retry-After`.
    ///
    /// ```
    /// use pintle_types::{ErrorCode, RpcError};
    ///
    /// let error = RpcError::unavailable("the store cannot be reached now: try again later", 1000);
    /// assert_eq!(error.code, ErrorCode::OVERLOADED);
    /// assert!(error.is_unavailable());
    /// ```
    pub fn unavailable(message: impl Into<Cow<'static, str>>, retry_after_ms: u64) -> Self {
        Self::new(ErrorCode::OVERLOADED, message)
            .with_data(&OverloadData { retry_after_ms, unavailable: true })
    }

    /// Returns whether the receiver lacks something for now, `data.unavailable`, and the sender has not exceeded a limit.
    pub fn is_unavailable(&self) -> bool {
        self.data_as().is_some_and(|data: OverloadData| data.unavailable)
    }

    /// Returns the milliseconds after which the request may be repeated, `data.retryAfterMs`, if the error states them.
    ///
    /// ```
    /// let error = pintle_types::RpcError::overloaded("10 calls a minute are allowed: wait", 6000);
    /// assert_eq!(error.retry_after_ms(), Some(6000));
    /// ```
    pub fn retry_after_ms(&self) -> Option<u64> {
        self.data_as().map(|data: OverloadData| data.retry_after_ms)
    }

    /// Adds `data`. A value that cannot be printed as JSON is left out.
    #[must_use]
    pub fn with_data<T: Serialize + ?Sized>(mut self, data: &T) -> Self {
        self.data = to_raw_value(data).ok();
        self
    }

    /// Decodes `data`, if it is present and fits.
    pub fn data_as<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_str(self.data.as_deref()?.get()).ok()
    }
}

/// The `data` of an error of overload.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct OverloadData {
    retry_after_ms: u64,
    /// Whether no limit is exceeded.
    #[serde(default, skip_serializing_if = "is_false")]
    unavailable: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl PartialEq for RpcError {
    fn eq(&self, other: &Self) -> bool {
        let text = |error: &'_ Self| error.data.as_deref().map(|raw| raw.get().to_owned());
        self.code == other.code && self.message == other.message && text(self) == text(other)
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code.0)
    }
}

impl std::error::Error for RpcError {}

/// The code of an error.
///
/// A number that has no name here is a code too: applications choose theirs outside -32768 to -32000.
#[expect(clippy::exhaustive_structs, reason = "a number with names")]
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ErrorCode(pub i32);

impl ErrorCode {
    /// The bytes were not JSON.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// The message is not a JSON-RPC message, or not allowed at this time.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// The method does not exist, or its capability is not offered.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// The parameters do not fit the method, or name something unknown.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// An internal error of the receiver.
    pub const INTERNAL_ERROR: Self = Self(-32603);
    /// The resource does not exist. Session era; later revisions use [`INVALID_PARAMS`](Self::INVALID_PARAMS).
    pub const RESOURCE_NOT_FOUND: Self = Self(-32002);
    /// The HTTP headers and the body disagree. Stateless era.
    pub const HEADER_MISMATCH: Self = Self(-32020);
    /// The client lacks a capability that this request needs: see `data.requiredCapabilities`. Stateless era.
    pub const MISSING_CLIENT_CAPABILITY: Self = Self(-32021);
    /// The server does not support the revision of the request: see `data.supported`. Stateless era.
    pub const UNSUPPORTED_PROTOCOL_VERSION: Self = Self(-32022);
    /// The user must open a URL first: see `data.elicitations`. One session-era revision only.
    pub const URL_ELICITATION_REQUIRED: Self = Self(-32042);
    /// The receiver is at its limits; try again after `data.retryAfterMs` milliseconds. The protocol has no code for it: this
    /// is Pintle's own, on every transport.
    pub const OVERLOADED: Self = Self(-31503);
    /// The user rejected a sampling request. The value of an example in the specification, widely used.
    pub const USER_REJECTED: Self = Self(-1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_not_repeated_at_length() {
        assert_eq!(RpcError::method_not_found("é/x").message, "no such method: `é/x`");
        let error = RpcError::method_not_found(&"é".repeat(1 << 20));
        assert!(error.message.ends_with("é…`") && error.message.len() < 200, "{}", error.message.len());
    }
}
