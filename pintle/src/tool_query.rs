use pintle_types::schema::{Tool, ToolAnnotations};

use crate::ToolTraits;

/// A query for tools. All of its conditions must hold.
///
/// Omitted hints have the protocol's defaults: not read-only, destructive, not idempotent, open world. A read-only tool
/// counts as idempotent and not destructive.
///
/// ```
/// use pintle::{Server, ToolQuery, server::tool};
///
/// let server = Server::new("notes", "1.0.0")
///     .tool(tool("find", || async { "" }).read_only().tag("db"))
///     .tool(tool("drop", || async { "" }).tag("db"));
/// let harmless = ToolQuery::new().tagged("db").except(ToolQuery::new().destructive());
/// assert_eq!(server.tools_where(harmless)[0].name, "find");
/// ```
#[derive(Clone, Debug, Default)]
pub struct ToolQuery {
    read_only: bool,
    destructive: bool,
    idempotent: bool,
    open_world: bool,
    tags: Vec<String>,
    category: Option<String>,
    traits: Option<Box<ToolTraits>>,
    except: Vec<Self>,
}

impl ToolQuery {
    /// Returns a query for all tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects read-only tools.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Selects tools that may be destructive.
    #[must_use]
    pub fn destructive(mut self) -> Self {
        self.destructive = true;
        self
    }

    /// Selects idempotent tools.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Selects tools that interact with an open world.
    #[must_use]
    pub fn open_world(mut self) -> Self {
        self.open_world = true;
        self
    }

    /// Selects tools with a tag.
    #[must_use]
    pub fn tagged(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// Selects tools of a category.
    #[must_use]
    pub fn category(mut self, name: impl Into<String>) -> Self {
        self.category = Some(name.into());
        self
    }

    /// Selects tools that declare all of these traits.
    ///
    /// ```
    /// use pintle::{Server, ToolQuery, ToolTraits, server::tool};
    ///
    /// let server = Server::new("notes", "1.0.0")
    ///     .tool(tool("export", || async { "" }).traits(ToolTraits::new().sensitive().audited()))
    ///     .tool(tool("count", || async { "" }));
    /// let sensitive = ToolQuery::new().traits(ToolTraits::new().sensitive());
    /// assert_eq!(server.tools_where(sensitive)[0].name, "export");
    /// ```
    #[must_use]
    pub fn traits(mut self, traits: ToolTraits) -> Self {
        self.traits = Some(Box::new(traits));
        self
    }

    /// Excludes the tools that match another query.
    #[must_use]
    pub fn except(mut self, query: Self) -> Self {
        self.except.push(query);
        self
    }

    /// Returns whether a tool matches.
    pub fn matches(&self, tool: &Tool) -> bool {
        let none = ToolAnnotations::new();
        let hints = tool.annotations.as_ref().unwrap_or(&none);
        let read_only = hints.read_only_hint == Some(true);
        let destructive = !read_only && hints.destructive_hint != Some(false);
        let idempotent = read_only || hints.idempotent_hint == Some(true);
        let open_world = hints.open_world_hint != Some(false);
        (!self.read_only || read_only)
            && (!self.destructive || destructive)
            && (!self.idempotent || idempotent)
            && (!self.open_world || open_world)
            && self.matches_traits(tool)
            && !self.except.iter().any(|query| query.matches(tool))
    }

    fn matches_traits(&self, tool: &Tool) -> bool {
        if self.tags.is_empty() && self.category.is_none() && self.traits.is_none() {
            return true;
        }
        let traits = ToolTraits::of(tool);
        self.tags.iter().all(|tag| traits.tags.contains(tag))
            && (self.category.is_none() || self.category == traits.category)
            && self.traits.as_ref().is_none_or(|wanted| traits.includes(wanted))
    }
}

/// A condition on tools: a [`ToolQuery`] or a function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a condition on tools",
    note = "use a `ToolQuery`, or a closure from `&Tool` to `bool`"
)]
pub trait ToolPredicate {
    /// Returns whether a tool matches.
    fn matches(&self, tool: &Tool) -> bool;
}

impl ToolPredicate for ToolQuery {
    fn matches(&self, tool: &Tool) -> bool {
        Self::matches(self, tool)
    }
}

impl<F: Fn(&Tool) -> bool> ToolPredicate for F {
    fn matches(&self, tool: &Tool) -> bool {
        self(tool)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn omitted_hints_have_the_defaults_of_the_protocol() {
        let tool = |value| serde_json::from_value::<Tool>(value).unwrap();
        let silent = tool(json!({"name": "a", "inputSchema": {"type": "object"}}));
        let reads = tool(
            json!({"name": "b", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true, "destructiveHint": true}}),
        );
        let adds = tool(
            json!({"name": "c", "inputSchema": {"type": "object"}, "_meta": {"dev.pintle/traits": {"tags": ["x"], "category": "k"}},
                "annotations": {"destructiveHint": false, "idempotentHint": true, "openWorldHint": false}}),
        );
        let matching = |query: ToolQuery| {
            [&silent, &reads, &adds]
                .iter()
                .filter(|tool| query.matches(tool))
                .map(|tool| &*tool.name)
                .collect::<String>()
        };
        let query = ToolQuery::new;
        assert_eq!(matching(query()), "abc");
        assert_eq!(matching(query().read_only()), "b");
        assert_eq!(matching(query().destructive()), "a");
        assert_eq!(matching(query().idempotent()), "bc");
        assert_eq!(matching(query().open_world()), "ab");
        assert_eq!(matching(query().tagged("x").category("k")), "c");
        assert_eq!(matching(query().tagged("x").tagged("y")), "");
        assert_eq!(matching(query().traits(ToolTraits::new())), "abc");
        assert_eq!(matching(query().traits(ToolTraits::new().tag("x").category("k"))), "c");
        assert_eq!(matching(query().traits(ToolTraits::new().sensitive())), "");
        assert_eq!(matching(query().except(query().open_world())), "c");
    }
}
