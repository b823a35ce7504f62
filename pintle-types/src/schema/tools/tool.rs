use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::schema::{
    base::{CacheScope, ResultType},
    common::{
        Icon,
        wire::{self, words},
    },
};
use crate::{JsonObject, Meta};

/// A tool, as a server lists it.
///
/// ```
/// use pintle_types::{JsonObject, schema::Tool};
///
/// let schema: JsonObject =
///     serde_json::from_str(r#"{"type":"object","properties":{"city":{"type":"string"}}}"#)?;
/// let mut weather = Tool::new("weather", schema);
/// weather.description = Some("The weather of a city".into());
/// assert_eq!(weather.display_name(), "weather");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The name it is called by.
    pub name: String,
    /// The name that people see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments; has `"type": "object"`. Shared: tools that take the same have one.
    pub input_schema: Arc<JsonObject>,
    /// The JSON Schema of its structured content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Arc<JsonObject>>,
    /// Hints about what calling it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// How it may be run. One session-era revision only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Pictures of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl Tool {
    /// A tool that takes what `input_schema` describes.
    pub fn new(name: impl Into<String>, input_schema: impl Into<Arc<JsonObject>>) -> Self {
        Self { name: name.into(), input_schema: input_schema.into(), ..Self::default() }
    }

    /// The name to show: `title`, else the title in `annotations`, else `name`.
    pub fn display_name(&self) -> &str {
        let annotated = || self.annotations.as_ref()?.title.as_deref();
        self.title.as_deref().or_else(annotated).unwrap_or(&self.name)
    }
}

/// Hints about what calling a tool does; not to be trusted unless the server is.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// The name that people see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing. Absent means false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy something. Absent means true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it twice is as calling it once. Absent means false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It talks to an open world, such as the web. Absent means true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ToolAnnotations {
    /// No hints yet.
    pub fn new() -> Self {
        Self::default()
    }
}

/// How a tool may be run.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecution {
    /// Whether as a task; absent means [`TaskSupport::Forbidden`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ToolExecution {
    /// Nothing said.
    pub fn new() -> Self {
        Self::default()
    }
}

words! {
    /// Whether a tool may be called as a task.
    TaskSupport {
        /// It must not.
        Forbidden = "forbidden",
        /// It may.
        Optional = "optional",
        /// It must.
        Required = "required",
    }
}

/// One page of `tools/list`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListToolsResult {
    /// The tools.
    pub tools: Vec<Tool>,
    /// What to ask the next page with. Absent means that this is the last; an empty string is a cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// For how many milliseconds it may be cached. Absent or negative means not at all.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<i64>,
    /// Who may share it; absent means nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// What kind of result it is; absent means [`ResultType::Complete`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ListToolsResult {
    /// The only page.
    pub fn new(tools: Vec<Tool>) -> Self {
        Self { tools, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_later_revision_adds_comes_back() {
        let text = r#"{"name":"x","inputSchema":{"$defs":{},"type":"object","x-novel":1},"execution":{"taskSupport":"encouraged"},"novel":{"a":[null]}}"#;
        let tool: Tool = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&tool).unwrap(), text);
    }

    #[test]
    fn what_is_missing_is_named() {
        for (text, said) in [
            (r#"{"inputSchema":{}}"#, "missing field `name`"),
            (r#"{"name":"x"}"#, "missing field `inputSchema`"),
            (r#"{"name":"x","inputSchema":null}"#, "invalid type: null, expected a map"),
        ] {
            let error = serde_json::from_str::<Tool>(text).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }

    #[test]
    fn the_title_is_shown_first() {
        let mut tool = Tool::new("x", JsonObject::new());
        assert_eq!(tool.display_name(), "x");
        tool.annotations = Some(ToolAnnotations { title: Some("X!".into()), ..ToolAnnotations::new() });
        assert_eq!(tool.display_name(), "X!");
        tool.title = Some("Ex".into());
        assert_eq!(tool.display_name(), "Ex");
    }
}
