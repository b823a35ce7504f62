use serde::{Deserialize, Serialize};

use super::{client::ElicitUrlParams, common::ClientCapabilities};
use crate::JsonObject;

/// The `data` of [`ErrorCode::UNSUPPORTED_PROTOCOL_VERSION`](crate::ErrorCode::UNSUPPORTED_PROTOCOL_VERSION).
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct UnsupportedVersionData {
    /// The revisions that the server speaks.
    pub supported: Vec<String>,
    /// The one that was asked for. Required, though some servers forget it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl UnsupportedVersionData {
    /// `requested` was asked for, `supported` is spoken.
    pub fn new(supported: Vec<String>, requested: impl Into<String>) -> Self {
        Self { supported, requested: Some(requested.into()), ..Self::default() }
    }
}

/// The `data` of [`ErrorCode::MISSING_CLIENT_CAPABILITY`](crate::ErrorCode::MISSING_CLIENT_CAPABILITY).
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MissingCapabilityData {
    /// What the client would have to offer.
    pub required_capabilities: ClientCapabilities,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl MissingCapabilityData {
    /// These are needed.
    pub fn new(required_capabilities: ClientCapabilities) -> Self {
        Self { required_capabilities, ..Self::default() }
    }
}

/// The `data` of [`ErrorCode::URL_ELICITATION_REQUIRED`](crate::ErrorCode::URL_ELICITATION_REQUIRED).
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct UrlElicitationRequiredData {
    /// Where the user has to go first.
    pub elicitations: Vec<ElicitUrlParams>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl UrlElicitationRequiredData {
    /// These are needed.
    pub fn new(elicitations: Vec<ElicitUrlParams>) -> Self {
        Self { elicitations, ..Self::default() }
    }
}

/// The `data` of an error about a resource that does not exist.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ResourceNotFoundData {
    /// Where it was looked for.
    pub uri: String,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ResourceNotFoundData {
    /// There is nothing at `uri`.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), ..Self::default() }
    }
}
