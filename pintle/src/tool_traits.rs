use pintle_types::{JsonObject, schema::Tool};
use serde::{Deserialize, Serialize};

/// Properties of a tool beyond the protocol's four hints.
///
/// They are sent under one key of the tool's `_meta`, which other clients ignore.
///
/// ```
/// use pintle::{ToolTraits, server::tool};
///
/// let route = tool("reindex", || async { "done" })
///     .description("Rebuild the index.")
///     .traits(ToolTraits::new().long_running().expensive().category("search"))
///     .tag("db");
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolTraits {
    /// Whether the tool takes long.
    #[serde(skip_serializing_if = "is_false")]
    pub long_running: bool,
    /// Whether the tool costs money or other scarce resources.
    #[serde(skip_serializing_if = "is_false")]
    pub expensive: bool,
    /// Whether the results may be cached and outdated.
    #[serde(skip_serializing_if = "is_false")]
    pub cached: bool,
    /// Whether the tool works only for authenticated callers.
    #[serde(skip_serializing_if = "is_false")]
    pub requires_auth: bool,
    /// Whether the tool accesses sensitive data.
    #[serde(skip_serializing_if = "is_false")]
    pub sensitive: bool,
    /// Whether calls of the tool are recorded.
    #[serde(skip_serializing_if = "is_false")]
    pub audited: bool,
    /// The category.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Tags to search for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Tools that have to be called before this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    /// Custom members.
    #[serde(flatten)]
    pub custom: JsonObject,
}

/// The key in a tool's `_meta`.
pub(crate) const KEY: &str = "dev.pintle/traits";

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl ToolTraits {
    /// Returns traits with nothing declared.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the traits that a tool declares. Unreadable traits count as not declared.
    pub fn of(tool: &Tool) -> Self {
        let declared = tool.meta.as_ref().and_then(|meta| meta.get(KEY));
        declared.and_then(|traits| serde_json::from_value(traits.clone()).ok()).unwrap_or_default()
    }

    /// Returns whether everything that `wanted` declares is declared here too.
    pub(crate) fn includes(&self, wanted: &Self) -> bool {
        let flags = |traits: &Self| {
            [
                traits.long_running,
                traits.expensive,
                traits.cached,
                traits.requires_auth,
                traits.sensitive,
                traits.audited,
            ]
        };
        flags(self).into_iter().zip(flags(wanted)).all(|(declared, wanted)| declared || !wanted)
            && (wanted.category.is_none() || wanted.category == self.category)
            && wanted.tags.iter().all(|tag| self.tags.contains(tag))
            && wanted.dependencies.iter().all(|tool| self.dependencies.contains(tool))
            && wanted.custom.iter().all(|(name, value)| self.custom.get(name) == Some(value))
    }

    /// Declares that the tool takes long.
    #[must_use]
    pub fn long_running(mut self) -> Self {
        self.long_running = true;
        self
    }

    /// Declares that the tool costs money or other scarce resources.
    #[must_use]
    pub fn expensive(mut self) -> Self {
        self.expensive = true;
        self
    }

    /// Declares that the results may be cached and outdated.
    #[must_use]
    pub fn cached(mut self) -> Self {
        self.cached = true;
        self
    }

    /// Declares that the tool works only for authenticated callers.
    #[must_use]
    pub fn requires_auth(mut self) -> Self {
        self.requires_auth = true;
        self
    }

    /// Declares that the tool accesses sensitive data.
    #[must_use]
    pub fn sensitive(mut self) -> Self {
        self.sensitive = true;
        self
    }

    /// Declares that calls of the tool are recorded.
    #[must_use]
    pub fn audited(mut self) -> Self {
        self.audited = true;
        self
    }

    /// Sets the category.
    #[must_use]
    pub fn category(mut self, name: impl Into<String>) -> Self {
        self.category = Some(name.into());
        self
    }

    /// Adds a tag.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// Adds a tool that has to be called before this one.
    #[must_use]
    pub fn depends_on(mut self, tool: impl Into<String>) -> Self {
        self.dependencies.push(tool.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn traits_include_those_that_declare_less() {
        let all = ToolTraits::new()
            .long_running()
            .expensive()
            .cached()
            .requires_auth()
            .sensitive()
            .audited()
            .category("search")
            .tag("db")
            .depends_on("open");
        let custom = |value: u8| ToolTraits {
            custom: JsonObject::from_iter([("level".to_owned(), json!(value))]),
            ..ToolTraits::new()
        };
        for wanted in [
            ToolTraits::new().long_running(),
            ToolTraits::new().expensive(),
            ToolTraits::new().cached(),
            ToolTraits::new().requires_auth(),
            ToolTraits::new().sensitive(),
            ToolTraits::new().audited(),
            ToolTraits::new().category("search"),
            ToolTraits::new().tag("db"),
            ToolTraits::new().depends_on("open"),
        ] {
            assert!(all.includes(&wanted) && wanted.includes(&ToolTraits::new()), "{wanted:?}");
            assert!(!ToolTraits::new().includes(&wanted), "{wanted:?}");
        }
        assert!(!all.includes(&ToolTraits::new().category("other")));
        assert!(custom(1).includes(&custom(1)) && !custom(1).includes(&custom(2)));
    }
}
