use serde::{Deserialize, Serialize};

use super::{object, wire};

object! {
    /// Hints about the audience and the importance of something.
    ///
    /// ```
    /// use pintle_types::schema::{Annotations, Role};
    ///
    /// let chart = Annotations::new().audience([Role::User]).priority(0.8);
    /// ```
    #[derive(Debug, Default)]
    Annotations {
        /// The intended audience. Absent means everybody.
        audience?: Vec<Role>,
        /// The importance, from 0 (entirely optional) to 1 (effectively required).
        #[serde(serialize_with = "wire::optional_number")]
        priority?: f64,
        /// The time of the last change, in ISO 8601.
        last_modified?: String,
        ..
    }
    /// Creates an empty set of hints.
    new()
}

impl Annotations {
    /// Sets the intended audience.
    #[must_use]
    pub fn audience(mut self, roles: impl IntoIterator<Item = Role>) -> Self {
        self.audience = Some(roles.into_iter().collect());
        self
    }

    /// Sets the importance, from 0 (entirely optional) to 1 (effectively required).
    #[must_use]
    pub fn priority(mut self, priority: f64) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets the time of the last change, in ISO 8601.
    #[must_use]
    pub fn last_modified(mut self, at: impl Into<String>) -> Self {
        self.last_modified = Some(at.into());
        self
    }
}

/// The role of a participant in a conversation.
#[expect(clippy::exhaustive_enums, reason = "every revision has these two")]
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The assistant: a model.
    Assistant,
}
