//! The names of attributes and metrics, from the OpenTelemetry conventions for generative AI and MCP. Those conventions are in
//! development: a name that changes there changes here, and nowhere else.

/// The method: `tools/call`.
pub const METHOD: &str = "mcp.method.name";
/// The revision of the protocol.
pub const PROTOCOL_VERSION: &str = "mcp.protocol.version";
/// The URI of the resource that is read or subscribed to.
pub const RESOURCE_URI: &str = "mcp.resource.uri";
/// The operation of a model: [`EXECUTE_TOOL`] for calls of tools.
pub const OPERATION: &str = "gen_ai.operation.name";
/// The tool that is called.
pub const TOOL: &str = "gen_ai.tool.name";
/// The prompt that is requested.
pub const PROMPT: &str = "gen_ai.prompt.name";
/// The id of the request.
pub const REQUEST_ID: &str = "jsonrpc.request.id";
/// The code of the error that the request failed with.
pub const STATUS_CODE: &str = "rpc.response.status_code";
/// The type of the error: the code of the error, [`TOOL_ERROR`], `cancelled`, `timeout`, …
pub const ERROR_TYPE: &str = "error.type";
/// The transport: `pipe`, `tcp` or `unix`.
pub const TRANSPORT: &str = "network.transport";
/// The protocol below: `http`.
pub const NETWORK_PROTOCOL: &str = "network.protocol.name";
/// The address of the client, at the server.
pub const CLIENT_ADDRESS: &str = "client.address";

/// The value of [`OPERATION`] for calls of tools.
pub const EXECUTE_TOOL: &str = "execute_tool";
/// The value of [`ERROR_TYPE`] for a tool that returned an error to the model.
pub const TOOL_ERROR: &str = "tool_error";

/// The histogram of the durations of requests at their sender, in seconds.
pub const CLIENT_DURATION: &str = "mcp.client.operation.duration";
/// The histogram of the durations of requests at their receiver, in seconds.
pub const SERVER_DURATION: &str = "mcp.server.operation.duration";
/// The boundaries of both histograms.
pub const BOUNDARIES: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
