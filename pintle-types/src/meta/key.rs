use std::fmt;

use super::Meta;

/// The keys of `_meta` that the protocol defines.
pub mod keys {
    /// On a request: the token of its progress notifications.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// On a request: the revision of the protocol.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// On a request: the capabilities of the client.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// On a request: the name and version of the client.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// On a request: the lowest level of log messages that the client wants.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// On a result: the name and version of the server.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// On messages of a subscription: the id of the request that opened it.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// On messages about a task: the task.
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// On the creation of a task: an immediate response for the model.
    pub const MODEL_IMMEDIATE_RESPONSE: &str = "io.modelcontextprotocol/model-immediate-response";
    /// On any message: the span that caused it, in the format of W3C Trace Context.
    pub const TRACEPARENT: &str = "traceparent";
    /// On any message: vendor-specific trace data, in the format of W3C Trace Context.
    pub const TRACESTATE: &str = "tracestate";
    /// On any message: application-defined properties, in the format of W3C Baggage.
    pub const BAGGAGE: &str = "baggage";
}

impl Meta {
    /// Checks that an application may use `key`: `[prefix/]name`, without a prefix that is reserved for the protocol.
    ///
    /// The prefix is labels joined by dots; a label begins with a letter, ends with a letter or digit, and may have
    /// hyphens inside. The name is empty, or begins and ends with a letter or digit and may have `-`, `_` and `.` inside.
    ///
    /// ```
    /// use pintle_types::{Meta, MetaKeyError};
    ///
    /// assert_eq!(Meta::check_key("com.example/tenant"), Ok(()));
    /// assert_eq!(Meta::check_key("dev.mcp/x"), Err(MetaKeyError::Reserved { key: "dev.mcp/x".into() }));
    /// ```
    pub fn check_key(key: &str) -> Result<(), MetaKeyError> {
        let (prefix, name) = match key.split_once('/') {
            Some((prefix, name)) => (Some(prefix), name),
            None => (None, key),
        };
        if prefix.is_some_and(|prefix| !prefix.split('.').all(is_label)) {
            return Err(MetaKeyError::Prefix { key: key.to_owned() });
        }
        if !is_name(name) {
            return Err(MetaKeyError::Name { key: key.to_owned() });
        }
        if Self::is_reserved_key(key) {
            return Err(MetaKeyError::Reserved { key: key.to_owned() });
        }
        Ok(())
    }

    /// Whether `key` has a prefix that is reserved for the protocol.
    ///
    /// Later revisions look at the second label (`io.modelcontextprotocol/`, `com.mcp.tools/`), an earlier one at the
    /// last but one (`modelcontextprotocol.io/`, `tools.mcp.com/`). Both count, since peers of both are served.
    pub fn is_reserved_key(key: &str) -> bool {
        let Some((prefix, _)) = key.split_once('/') else { return false };
        let ours = |label| matches!(label, Some("modelcontextprotocol" | "mcp"));
        ours(prefix.split('.').nth(1)) || ours(prefix.rsplit('.').nth(1))
    }
}

/// The reason for which an application may not use a key.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum MetaKeyError {
    /// The part before the slash is not a sequence of labels joined by dots.
    Prefix {
        /// The key.
        key: String,
    },
    /// The part after the slash is not a name.
    Name {
        /// The key.
        key: String,
    },
    /// The prefix is reserved for the protocol.
    Reserved {
        /// The key.
        key: String,
    },
}

impl fmt::Display for MetaKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix { key } => write!(
                f,
                "bad prefix in `_meta` key `{key}`: write labels of letters, digits and hyphens, joined by dots, as in `com.example/`"
            ),
            Self::Name { key } => write!(
                f,
                "bad name in `_meta` key `{key}`: begin and end with a letter or digit; `-`, `_` and `.` may stand inside"
            ),
            Self::Reserved { key } => {
                write!(
                    f,
                    "reserved prefix in `_meta` key `{key}`: use a domain of your own, as in `com.example/`"
                )
            }
        }
    }
}

impl std::error::Error for MetaKeyError {}

fn is_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let at_the_ends = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    at_the_ends(bytes.first())
        && at_the_ends(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_ones_own_are_fine() {
        for key in [
            "tenant",
            "a",
            "",
            "com.example/",
            "com.example/a.b-c_d",
            "com.example.mcp/x",
            "x-1.y/2",
            "mcp/x",
        ] {
            assert_eq!(Meta::check_key(key), Ok(()), "{key}");
        }
    }

    #[test]
    fn bad_keys_are_distinguished() {
        for key in ["/x", "1a/x", "a./x", "a-/x", "a..b/x", "a b/x", "é/x"] {
            assert!(matches!(Meta::check_key(key), Err(MetaKeyError::Prefix { .. })), "{key}");
        }
        for key in ["-a", "a-", "com.example/a/b", "com.example/_a", "a b", "é"] {
            assert!(matches!(Meta::check_key(key), Err(MetaKeyError::Name { .. })), "{key}");
        }
        for key in [
            "io.modelcontextprotocol/x",
            "dev.mcp/",
            "org.modelcontextprotocol.api/x",
            "com.mcp.tools/x",
            "modelcontextprotocol.io/x",
            "mcp.dev/x",
            "api.tools.mcp.com/x",
        ] {
            assert!(matches!(Meta::check_key(key), Err(MetaKeyError::Reserved { .. })), "{key}");
        }
    }

    #[test]
    fn our_own_keys_are_well_formed() {
        for key in [keys::PROGRESS_TOKEN, keys::TRACEPARENT, keys::TRACESTATE, keys::BAGGAGE] {
            assert_eq!(Meta::check_key(key), Ok(()));
        }
        for key in [keys::PROTOCOL_VERSION, keys::RELATED_TASK, keys::MODEL_IMMEDIATE_RESPONSE] {
            assert!(Meta::is_reserved_key(key));
        }
    }
}
