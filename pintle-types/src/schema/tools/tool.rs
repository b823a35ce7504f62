use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::common::{
    Icon,
    wire::{self, words},
};
use crate::schema::base::list_result;
use crate::{JsonObject, Meta};

/// A tool as listed by a server.
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
    /// The name of the tool.
    pub name: String,
    /// The name to display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of the arguments, with `"type": "object"`. Tools with the same arguments can share it.
    #[serde(deserialize_with = "wire::shared", serialize_with = "wire::of_shared")]
    pub input_schema: Arc<JsonObject>,
    /// The JSON Schema of the structured content.
    #[serde(
        default,
        deserialize_with = "wire::optional_shared",
        serialize_with = "wire::of_optional_shared",
        skip_serializing_if = "Option::is_none"
    )]
    pub output_schema: Option<Arc<JsonObject>>,
    /// Hints about the effects of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// The ways in which the tool may be run. One session-era revision only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Icons.
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
    /// Creates a tool whose arguments `input_schema` describes.
    pub fn new(name: impl Into<String>, input_schema: impl Into<Arc<JsonObject>>) -> Self {
        Self { name: name.into(), input_schema: input_schema.into(), ..Self::default() }
    }

    /// Returns the name to display: `title`, else the title in `annotations`, else `name`.
    pub fn display_name(&self) -> &str {
        let annotated = || self.annotations.as_ref()?.title.as_deref();
        self.title.as_deref().or_else(annotated).unwrap_or(&self.name)
    }
}

/// Hints about the effects of calling a tool. They are trusted only if the server is.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// The name to display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether the tool changes nothing. Absent means false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// Whether the tool may destroy something. Absent means true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Whether calling the tool twice has the effect of calling it once. Absent means false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Whether the tool interacts with an open world, such as the web. Absent means true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ToolAnnotations {
    /// Creates an empty set of hints.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The ways in which a tool may be run.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecution {
    /// Whether the tool may be called as a task. Absent means [`TaskSupport::Forbidden`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ToolExecution {
    /// Creates a value without members.
    pub fn new() -> Self {
        Self::default()
    }
}

words! {
    /// Whether a tool may be called as a task.
    TaskSupport {
        /// The tool must not be called as a task.
        Forbidden = "forbidden",
        /// The tool may be called as a task.
        Optional = "optional",
        /// The tool must be called as a task.
        Required = "required",
    }
}

list_result! {
    /// The result of `tools/list`: one page.
    ListToolsResult {
        /// The tools.
        tools: Tool
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
