//! The methods with their params and results, and the limits that both sides know.

use pintle::types::schema::Resource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The media type of directories.
#[cfg(feature = "server")]
pub(crate) const DIRECTORY_TYPE: &str = "inode/directory";
/// The limit of files of one skill that every host supports.
pub(crate) const MAX_FILES: usize = 512;
/// The limit of bytes of one skill that every host supports.
pub(crate) const MAX_BYTES: u64 = 16 << 20;

pub(crate) const LIST: &str = "skills/list";
pub(crate) const GET: &str = "skills/get";
pub(crate) const READ_DIRECTORY: &str = "resources/directory/read";
/// The member of the settings that tells whether directories can be read.
pub(crate) const DIRECTORY_READ: &str = "directoryRead";

/// A request for a page.
#[derive(Default, Deserialize, Serialize)]
pub(crate) struct ListParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cursor: Option<String>,
}

/// A request for a skill, or for a page of a directory.
#[derive(Deserialize, Serialize)]
pub(crate) struct UriParams {
    pub(crate) uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cursor: Option<String>,
}

/// A page of skills. They are decoded one by one: a malformed one does not hide the others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg(feature = "client")]
pub(crate) struct ListResult {
    pub(crate) skills: Vec<Value>,
    pub(crate) next_cursor: Option<String>,
}

/// One skill.
#[derive(Deserialize)]
#[cfg(feature = "client")]
pub(crate) struct GetResult {
    pub(crate) skill: crate::SkillEntry,
}

/// A page of a directory.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DirectoryResult {
    pub(crate) resources: Vec<Resource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// Returns a result with its cache hints.
#[cfg(feature = "server")]
pub(crate) fn cached(mut result: Value, hint: Option<&pintle::server::CacheHint>) -> Value {
    if let Some(hint) = hint {
        result["ttlMs"] = hint.ttl_ms.into();
        result["cacheScope"] = serde_json::to_value(&hint.scope).unwrap_or_default();
    }
    result
}
