use pintle_types::{JsonObject, schema::Tool};
use serde::{Deserialize, Serialize};

/// What is worth knowing of a tool beyond the protocol's four hints.
///
/// It travels under one key of the tool's `_meta`, which clients that do not know it leave alone.
///
/// ```
/// use pintle::{ToolTraits, server::tool};
///
/// let route = tool("reindex", || async { "done" })
///     .description("Builds the index anew.")
///     .traits(ToolTraits::new().long_running().expensive().category("search"))
///     .tag("db");
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolTraits {
    /// It takes longer than one likes to wait.
    #[serde(skip_serializing_if = "is_false")]
    pub long_running: bool,
    /// It costs money, or much of something else.
    #[serde(skip_serializing_if = "is_false")]
    pub expensive: bool,
    /// What it says may be of yesterday.
    #[serde(skip_serializing_if = "is_false")]
    pub cached: bool,
    /// It works only for somebody who is known.
    #[serde(skip_serializing_if = "is_false")]
    pub requires_auth: bool,
    /// It shows or touches what is not for everybody.
    #[serde(skip_serializing_if = "is_false")]
    pub sensitive: bool,
    /// Somebody keeps a record of its calls.
    #[serde(skip_serializing_if = "is_false")]
    pub audited: bool,
    /// Where it belongs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Tools that have to be called before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    /// Anything else.
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
    /// Nothing said.
    pub fn new() -> Self {
        Self::default()
    }

    /// What a tool says of itself. Nothing, if it says nothing that can be read.
    pub fn of(tool: &Tool) -> Self {
        let said = tool.meta.as_ref().and_then(|meta| meta.get(KEY));
        said.and_then(|said| serde_json::from_value(said.clone()).ok()).unwrap_or_default()
    }

    /// It takes longer than one likes to wait.
    #[must_use]
    pub fn long_running(mut self) -> Self {
        self.long_running = true;
        self
    }

    /// It costs money, or much of something else.
    #[must_use]
    pub fn expensive(mut self) -> Self {
        self.expensive = true;
        self
    }

    /// What it says may be of yesterday.
    #[must_use]
    pub fn cached(mut self) -> Self {
        self.cached = true;
        self
    }

    /// It works only for somebody who is known.
    #[must_use]
    pub fn requires_auth(mut self) -> Self {
        self.requires_auth = true;
        self
    }

    /// It shows or touches what is not for everybody.
    #[must_use]
    pub fn sensitive(mut self) -> Self {
        self.sensitive = true;
        self
    }

    /// Somebody keeps a record of its calls.
    #[must_use]
    pub fn audited(mut self) -> Self {
        self.audited = true;
        self
    }

    /// Where it belongs.
    #[must_use]
    pub fn category(mut self, name: impl Into<String>) -> Self {
        self.category = Some(name.into());
        self
    }

    /// A word to find it by.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// A tool that has to be called before it.
    #[must_use]
    pub fn depends_on(mut self, tool: impl Into<String>) -> Self {
        self.dependencies.push(tool.into());
        self
    }
}
