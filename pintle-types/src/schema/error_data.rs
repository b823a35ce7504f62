use serde::{Deserialize, Serialize};

use super::client::ElicitUrlParams;
use crate::JsonObject;
use crate::common::ClientCapabilities;

/// The `data` of [`ErrorCode::UNSUPPORTED_PROTOCOL_VERSION`](crate::ErrorCode::UNSUPPORTED_PROTOCOL_VERSION).
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct UnsupportedVersionData {
    /// The revisions that the server supports.
    pub supported: Vec<String>,
    /// The requested revision. Required, though some servers omit it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl UnsupportedVersionData {
    /// Creates the data from the requested and the supported revisions.
    pub fn new(supported: Vec<String>, requested: impl Into<String>) -> Self {
        Self { supported, requested: Some(requested.into()), ..Self::default() }
    }
}

/// The `data` of [`ErrorCode::MISSING_CLIENT_CAPABILITY`](crate::ErrorCode::MISSING_CLIENT_CAPABILITY).
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MissingCapabilityData {
    /// The capabilities that the client would need.
    pub required_capabilities: ClientCapabilities,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl MissingCapabilityData {
    /// Creates the data.
    pub fn new(required_capabilities: ClientCapabilities) -> Self {
        Self { required_capabilities, ..Self::default() }
    }
}

/// The `data` of [`ErrorCode::URL_ELICITATION_REQUIRED`](crate::ErrorCode::URL_ELICITATION_REQUIRED).
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct UrlElicitationRequiredData {
    /// The URLs that the user has to open first.
    pub elicitations: Vec<ElicitUrlParams>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl UrlElicitationRequiredData {
    /// Creates the data.
    pub fn new(elicitations: Vec<ElicitUrlParams>) -> Self {
        Self { elicitations, ..Self::default() }
    }
}

/// The `data` of an error about a resource that does not exist.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ResourceNotFoundData {
    /// The URI.
    pub uri: String,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ResourceNotFoundData {
    /// Creates the data for `uri`.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), ..Self::default() }
    }
}
