use crate::common::{ClientCapabilities, Implementation, ServerCapabilities, object};

object! {
    /// The params of `initialize`, the first request of a session.
    #[derive(Debug, Default)]
    InitializeParams {
        /// The revision that the client proposes.
        protocol_version: String,
        /// The capabilities.
        capabilities: ClientCapabilities,
        /// The name and version.
        client_info: Implementation,
        ..meta
    }
    /// Creates params without metadata.
    new(protocol_version: impl Into<String>, capabilities: ClientCapabilities, client_info: Implementation)
}

object! {
    /// The result of `initialize`.
    #[derive(Debug, Default)]
    InitializeResult {
        /// The revision of the session.
        protocol_version: String,
        /// The capabilities.
        capabilities: ServerCapabilities,
        /// The name and version.
        server_info: Implementation,
        /// Instructions for the model.
        instructions?: String,
        ..meta
    }
    /// Creates a result without instructions.
    new(protocol_version: impl Into<String>, capabilities: ServerCapabilities, server_info: Implementation)
}
