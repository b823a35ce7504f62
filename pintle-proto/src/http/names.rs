//! Header names that the protocol defines. Names are case-insensitive; values are not.

use http::HeaderName;

/// The protocol revision of a request.
pub static MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The session that a request belongs to. Session era only.
pub static MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// The body's `method`. Stateless era only.
pub static MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// The tool, prompt or resource that the body's `params` name. Stateless era only.
pub static MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The last event received on the stream that a client resumes. Session era only.
pub static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Sent as `no` with an event stream, so that nginx does not buffer the events.
pub static X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The prefix of the headers that mirror arguments.
pub(super) const MCP_PARAM_PREFIX: &str = "mcp-param-";
