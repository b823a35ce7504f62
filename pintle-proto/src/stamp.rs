use std::borrow::Cow;

use pintle_types::{RawValue, RequestId, RpcError, keys, plain_error};
use serde::Deserialize;

use crate::text::text;

/// The protocol members of a request's `_meta`, read once.
///
/// A stateless request carries its revision and its sender's capabilities here; a session's request has at most a
/// progress token. The presence of a revision decides how the request is served.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Stamp<'a> {
    #[serde(
        borrow,
        default,
        rename = "io.modelcontextprotocol/protocolVersion",
        deserialize_with = "present"
    )]
    version: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        rename = "io.modelcontextprotocol/clientCapabilities",
        deserialize_with = "present"
    )]
    pub(crate) capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientInfo")]
    pub(crate) info: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/logLevel")]
    pub(crate) log_level: Option<Cow<'a, str>>,
    #[serde(default, rename = "progressToken")]
    pub(crate) progress: Option<RequestId>,
}

impl<'a> Stamp<'a> {
    /// Reads the stamp from the value of `_meta`.
    pub(crate) fn of(meta: &'a str) -> Result<Self, RpcError> {
        if meta == "null" {
            return Ok(Self::default());
        }
        if meta.starts_with('[') {
            // serde also reads a struct from an array, member by member.
            return Err(RpcError::invalid_params("`_meta` is invalid: an array, expected an object"));
        }
        serde_json::from_str(meta)
            .map_err(|error| RpcError::invalid_params(format!("`_meta` is invalid: {}", Plain(&error))))
    }

    /// Refuses a stateless request that lacks a required member. This is the one place where that is checked. Returns
    /// the revision that the request names.
    ///
    /// # Errors
    ///
    /// The error to respond with, which names the first missing member.
    pub(crate) fn require<T>(version: Option<T>, capabilities: bool) -> Result<T, RpcError> {
        let missing = |key: &str| {
            RpcError::invalid_params(format!("`params._meta` lacks `{key}`; send it with every request"))
        };
        let version = version.ok_or_else(|| missing(keys::PROTOCOL_VERSION))?;
        if capabilities { Ok(version) } else { Err(missing(keys::CLIENT_CAPABILITIES)) }
    }

    /// Returns whether the request is stateless.
    pub(crate) fn is_stateless(&self) -> bool {
        self.version.is_some()
    }

    /// Returns whether the sender declares its capabilities.
    pub(crate) fn has_capabilities(&self) -> bool {
        self.capabilities.is_some()
    }

    /// Returns the revision that the request names, as it is spelled.
    pub(crate) fn version(&self) -> Result<Option<Cow<'a, str>>, RpcError> {
        let wrong = |error: serde_json::Error| {
            let name = "io.modelcontextprotocol/protocolVersion";
            RpcError::invalid_params(format!("`_meta[\"{name}\"]` is invalid: {}", Plain(&error)))
        };
        self.version.map(|raw| text(raw.get())).transpose().map_err(wrong)
    }
}

/// Reads `null` as a present but invalid value, not as an absent one.
fn present<'de: 'a, 'a, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Displays a decoding error without its position, which would be relative to a member.
pub(crate) struct Plain<'a>(pub(crate) &'a serde_json::Error);

impl std::fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&plain_error(self.0))
    }
}

#[cfg(test)]
mod tests {
    use pintle_types::RawObject;

    use super::*;

    fn read(text: &str) -> RawObject {
        text.parse().unwrap()
    }

    fn stamp(params: &RawObject) -> Result<Stamp<'_>, RpcError> {
        params.get("_meta").map_or_else(|| Ok(Stamp::default()), Stamp::of)
    }

    #[test]
    fn a_version_in_the_stamp_makes_a_request_stateless() {
        let params = read(
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"v\u0031","progressToken":7,"x":[]}}"#,
        );
        let found = stamp(&params).unwrap();
        assert!(found.is_stateless());
        assert_eq!(found.version().unwrap().as_deref(), Some("v1"));
        assert_eq!(found.progress, Some(RequestId::Number(7)));
        for params in [r#"{"_meta":{"progressToken":"a"}}"#, r#"{"_meta":{}}"#, "{}"] {
            assert!(!stamp(&read(params)).unwrap().is_stateless());
        }
    }

    #[test]
    fn a_stamp_that_cannot_be_read_is_refused() {
        for (params, expected) in [
            (r#"{"_meta":5}"#, "`_meta` is invalid: invalid type: integer `5`"),
            (r#"{"_meta":{"progressToken":1.5}}"#, "`_meta` is invalid: invalid type: floating point `1.5`"),
        ] {
            let params = read(params);
            let error = stamp(&params).unwrap_err();
            assert!(error.message.starts_with(expected), "{error}");
        }
        let params = read(r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":null}}"#);
        let stamp = stamp(&params).unwrap();
        assert!(stamp.is_stateless());
        assert_eq!(
            stamp.version().unwrap_err().message,
            "`_meta[\"io.modelcontextprotocol/protocolVersion\"]` is invalid: invalid type: null, expected a string"
        );
    }
}
