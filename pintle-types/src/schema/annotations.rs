use serde::{Deserialize, Serialize};

use super::wire;
use crate::JsonObject;

/// Hints about whom something is for and how much it matters.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// Whom it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// From 0, entirely optional, to 1, effectively required.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "wire::optional_number")]
    pub priority: Option<f64>,
    /// When it last changed, in ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl Annotations {
    /// No hints yet.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Who speaks, or who is spoken to.
#[expect(clippy::exhaustive_enums, reason = "every revision has these two")]
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}
