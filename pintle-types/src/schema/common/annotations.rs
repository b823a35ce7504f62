use serde::{Deserialize, Serialize};

use super::wire;
use crate::JsonObject;

/// Hints about whom something is for and how much it matters.
///
/// ```
/// use pintle_types::schema::{Annotations, Role};
///
/// let chart = Annotations::new().audience([Role::User]).priority(0.8);
/// ```
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

    /// For these, and for nobody else.
    #[must_use]
    pub fn audience(mut self, roles: impl IntoIterator<Item = Role>) -> Self {
        self.audience = Some(roles.into_iter().collect());
        self
    }

    /// From 0, entirely optional, to 1, effectively required.
    #[must_use]
    pub fn priority(mut self, priority: f64) -> Self {
        self.priority = Some(priority);
        self
    }

    /// When it last changed, in ISO 8601.
    #[must_use]
    pub fn last_modified(mut self, at: impl Into<String>) -> Self {
        self.last_modified = Some(at.into());
        self
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
