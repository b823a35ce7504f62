//! The header names that the protocol defines. Names ignore case; values do not.

use http::HeaderName;

/// The revision that a request speaks.
pub static MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The session that a request belongs to. Session era only.
pub static MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// The body's `method`. Stateless era only.
pub static MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// What the body's `params` name: a tool, a prompt, a URI. Stateless era only.
pub static MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The last event that a client saw of the stream it resumes. Session era only.
pub static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Sent as `no` with an event stream, or nginx would hold the events back.
pub static X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// What a mirrored argument's header starts with.
pub(super) const MCP_PARAM_PREFIX: &str = "mcp-param-";
