use serde::{Deserialize, Serialize};

use crate::common::{ClientCapabilities, Implementation, ServerCapabilities};
use crate::{JsonObject, Meta};

/// The params of `initialize`, the first request of a session.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// The revision that the client proposes.
    pub protocol_version: String,
    /// The capabilities.
    pub capabilities: ClientCapabilities,
    /// The name and version.
    pub client_info: Implementation,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl InitializeParams {
    /// Creates params without metadata.
    pub fn new(
        protocol_version: impl Into<String>,
        capabilities: ClientCapabilities,
        client_info: Implementation,
    ) -> Self {
        Self { protocol_version: protocol_version.into(), capabilities, client_info, ..Self::default() }
    }
}

/// The result of `initialize`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// The revision of the session.
    pub protocol_version: String,
    /// The capabilities.
    pub capabilities: ServerCapabilities,
    /// The name and version.
    pub server_info: Implementation,
    /// Instructions for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl InitializeResult {
    /// Creates a result without instructions.
    pub fn new(
        protocol_version: impl Into<String>,
        capabilities: ServerCapabilities,
        server_info: Implementation,
    ) -> Self {
        Self { protocol_version: protocol_version.into(), capabilities, server_info, ..Self::default() }
    }
}
