use pintle_types::schema::{Tool, ToolAnnotations};

use crate::ToolTraits;

/// A question about tools: all that is said must hold.
///
/// What a tool does not say counts as the protocol has it: not read-only, destructive, not idempotent, open to the
/// world. A tool that only reads destroys nothing, and is idempotent.
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
    except: Vec<Self>,
}

impl ToolQuery {
    /// All tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Those that change nothing.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Those that may destroy something.
    #[must_use]
    pub fn destructive(mut self) -> Self {
        self.destructive = true;
        self
    }

    /// Those that may be called twice.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Those that reach out to a world that nobody controls.
    #[must_use]
    pub fn open_world(mut self) -> Self {
        self.open_world = true;
        self
    }

    /// Those with this tag.
    #[must_use]
    pub fn tagged(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// Those of this category.
    #[must_use]
    pub fn category(mut self, name: impl Into<String>) -> Self {
        self.category = Some(name.into());
        self
    }

    /// But not those.
    #[must_use]
    pub fn except(mut self, query: Self) -> Self {
        self.except.push(query);
        self
    }

    /// Whether a tool is one of them.
    pub fn fits(&self, tool: &Tool) -> bool {
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
            && self.fits_traits(tool)
            && !self.except.iter().any(|query| query.fits(tool))
    }

    fn fits_traits(&self, tool: &Tool) -> bool {
        if self.tags.is_empty() && self.category.is_none() {
            return true;
        }
        let traits = ToolTraits::of(tool);
        self.tags.iter().all(|tag| traits.tags.contains(tag))
            && (self.category.is_none() || self.category == traits.category)
    }
}

/// Something that can be asked about a tool: a [`ToolQuery`] or a function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no question about tools",
    note = "use a `ToolQuery`, or a closure from `&Tool` to `bool`"
)]
pub trait AboutTools {
    /// Whether a tool is one of those asked for.
    fn wants(&self, tool: &Tool) -> bool;
}

impl AboutTools for ToolQuery {
    fn wants(&self, tool: &Tool) -> bool {
        self.fits(tool)
    }
}

impl<F: Fn(&Tool) -> bool> AboutTools for F {
    fn wants(&self, tool: &Tool) -> bool {
        self(tool)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_said_counts_as_the_protocol_has_it() {
        let tool = |value| serde_json::from_value::<Tool>(value).unwrap();
        let silent = tool(json!({"name": "a", "inputSchema": {"type": "object"}}));
        let reads = tool(
            json!({"name": "b", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true, "destructiveHint": true}}),
        );
        let adds = tool(
            json!({"name": "c", "inputSchema": {"type": "object"}, "_meta": {"dev.pintle/traits": {"tags": ["x"], "category": "k"}},
                "annotations": {"destructiveHint": false, "idempotentHint": true, "openWorldHint": false}}),
        );
        let fitting = |query: ToolQuery| {
            [&silent, &reads, &adds]
                .iter()
                .filter(|tool| query.fits(tool))
                .map(|tool| &*tool.name)
                .collect::<String>()
        };
        let query = ToolQuery::new;
        assert_eq!(fitting(query()), "abc");
        assert_eq!(fitting(query().read_only()), "b");
        assert_eq!(fitting(query().destructive()), "a");
        assert_eq!(fitting(query().idempotent()), "bc");
        assert_eq!(fitting(query().open_world()), "ab");
        assert_eq!(fitting(query().tagged("x").category("k")), "c");
        assert_eq!(fitting(query().tagged("x").tagged("y")), "");
        assert_eq!(fitting(query().except(query().open_world())), "c");
    }
}
