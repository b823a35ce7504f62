use serde::{Deserialize, Serialize};

use super::base::{CacheScope, ResultType};
use crate::common::{ServerCapabilities, wire};
use crate::{JsonObject, Meta};

/// The result of `server/discover`. The name of the server is in `_meta`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoverResult {
    /// The supported revisions.
    pub supported_versions: Vec<String>,
    /// The capabilities.
    pub capabilities: ServerCapabilities,
    /// Instructions for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// How long the result may be cached, in milliseconds. Absent or negative means not at all.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<i64>,
    /// The audience that may share the cached result. Absent means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// The type of the result. Absent means [`ResultType::Complete`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl DiscoverResult {
    /// Creates a result without instructions.
    pub fn new(supported_versions: Vec<String>, capabilities: ServerCapabilities) -> Self {
        Self { supported_versions, capabilities, ..Self::default() }
    }
}
